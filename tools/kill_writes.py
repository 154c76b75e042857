"""Kill -9 at random moments of a partitioned write: under the target's name stands a whole verified release, or none.

python tools/kill_writes.py [KILLS] [SEED]

Every kill is of a fresh process.  The target holds an earlier release in half of the cases, which must then be there
whole, or the new one.  Prints how often which was found; exits 1 at the first release that is neither.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import polars as pl

import shoal

CODE = """
import sys
from pathlib import Path
import shoal
from shoal.engines import partwise
from shoal.publishing import partwise as publishing
partwise.PART_ROWS = publishing.PART_ROWS = 2_000
release = shoal.anonymize(
    Path(sys.argv[1]), quasi_identifiers=["a", "b"], sensitive=["s"], k=int(sys.argv[3]), effort="fast", seed=1
)
print("ready", flush=True)
sys.stdin.readline()
release.write(Path(sys.argv[2]))
print("done", flush=True)
"""


def table(folder: Path) -> None:
    """A folder of four parts."""
    folder.mkdir()
    for part in range(4):
        rows = range(20_000 * part, 20_000 * part + 20_000)
        columns = {"a": [i * i % 7 for i in rows], "b": [i % 5 for i in rows], "s": ["pqrs"[i * 3 % 4] for i in rows]}
        pl.DataFrame(columns).write_parquet(folder / f"{part}.parquet")


def start(folder: Path, out: Path, k: int) -> subprocess.Popen[str]:
    """A process that has everything ready to write."""
    words = [sys.executable, "-c", CODE, str(folder), str(out), str(k)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.readline()
    if said != "ready\n":
        raise SystemExit(f"the process said {said!r} where it should be ready")
    return process


def go(process: subprocess.Popen[str]) -> None:
    """Let it write."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def main() -> None:
    """Kill, look, count."""
    given = [int(word) for word in sys.argv[1:]]
    kills, seed = (*given, *(20, 1)[len(given) :])
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        table(root / "in")
        process = start(root / "in", root / "first", 3)
        clock = time.perf_counter()
        go(process)
        process.communicate()
        whole = time.perf_counter() - clock
        for number in range(kills):
            out, record = root / f"out{number}", root / f"out{number}.certificate.json"
            older = number % 2 == 1
            if older:
                shoal.anonymize(
                    root / "in", quasi_identifiers=["a", "b"], sensitive=["s"], k=4, effort="fast", seed=1
                ).write(out)
            process = start(root / "in", out, 3)
            go(process)
            time.sleep(rng.uniform(0, 1.2 * whole))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if not out.exists():
                seen["none"] += 1
                good = not older
            else:
                good = shoal.audit(out, quasi_identifiers=["a", "b"], sensitive=["s"], k=3).rows == 80_000
                belongs = record.exists() and shoal.verify(out, record).holds
                seen["whole, with its certificate" if belongs else "whole, killed before its certificate"] += 1
            if not good:
                print(f"kill {number}: what stands there is neither the old nor the new release")
                sys.exit(1)
    print(f"{kills} kills: " + ", ".join(f"{count} {what}" for what, count in sorted(seen.items())))


if __name__ == "__main__":
    main()
