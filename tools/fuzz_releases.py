"""Releases at random, made, written and judged: ``python tools/fuzz_releases.py COUNT [FIRST_SEED]``.

Formats, recodings, models, types, engines and odd column names by ``tests/fuzz/releases.py``.  Prints the seed of every
failure and exits 1 when there is one.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.fuzz.releases import tried


def main() -> int:
    """Run the seeds."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                came = tried(seed, Path(folder))
            except Exception as error:
                came = "failed"
                print(f"seed {seed}: {type(error).__name__}: {str(error)[:400]}", flush=True)
        seen[came] += 1
    print(f"{count:,} releases from seed {first}: {dict(seen)}")
    return int(seen["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
