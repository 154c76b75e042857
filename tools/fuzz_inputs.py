"""Malformed inputs: ``python tools/fuzz_inputs.py COUNT [FIRST_SEED] [KIND ...]``, COUNT of every kind.

Kinds: csv, policy, hierarchy, geojson, certificate.  Only shoal's own errors may come back, and no planted value in
them or in a log.  Prints the seed of every failure and exits 1 when there is one.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import shoal
from tests.fuzz import certificates, csv_bytes, inputs

Tried = Callable[[int, Path], str]


def certificate() -> Tried:
    """Certificates of one release, bent."""
    room = tempfile.TemporaryDirectory()
    out = Path(room.name) / "r.csv"
    asked = {"quasi_identifiers": ["age", "zip"], "sensitive": ["d"], "identifiers": ["name"], "k": 3}
    record = shoal.anonymize(inputs.FRAME, effort="fast", seed=1, **asked).write(out)
    genuine = json.loads(record.read_text())
    held = [room]

    def tried(seed: int, folder: Path) -> str:
        assert held
        path = folder / "c.json"
        path.write_bytes(certificates.bent(genuine, random.Random(f"certificate {seed}")))
        return inputs.outcome(lambda: shoal.verify(out, path, inputs.FRAME if seed % 2 else None))

    return tried


def main() -> int:
    """Run the seeds of every kind."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    kinds: dict[str, Callable[[], Tried]] = {
        "csv": lambda: lambda seed, folder: csv_bytes.outcome(csv_bytes.bent(seed), folder / "t.csv"),
        "policy": lambda: inputs.policy,
        "hierarchy": lambda: inputs.hierarchy,
        "geojson": lambda: inputs.geojson,
        "certificate": certificate,
    }
    bad = 0
    for kind in sys.argv[3:] or kinds:
        tried = kinds[kind]()
        seen: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(first, first + count):
                try:
                    came = tried(seed, Path(folder))
                except Exception as error:
                    came = "failed"
                    print(f"{kind}, seed {seed}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                seen[came] += 1
        print(f"{kind}: {count:,} from seed {first}: {dict(seen)}", flush=True)
        bad += seen["failed"]
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
