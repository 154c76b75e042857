"""Small series of twelve parts against an enumeration of what an intruder who holds them all can conclude.

``python tools/series_intruder.py COUNT [FIRST_SEED [KIND ...]]``; kinds, all of them where none is named: ``again``,
``signatures`` (``again`` with few of them), ``increment``, ``views``, by ``tests/series/intruder.py``.  Prints the seed
of every series in which somebody has a value with more than the promise, and exits 1 when there is one.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.series.intruder import KINDS


def main() -> int:
    """Run the seeds."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed = 0
    for kind in sys.argv[3:] or KINDS:
        seen: Counter[str] = Counter()
        for seed in range(first, first + count):
            try:
                came = KINDS[kind](seed)
            except Exception as error:
                came = "failed"
                print(f"{kind}, seed {seed}: {type(error).__name__}: {str(error)[:400]}", flush=True)
            seen[came] += 1
        print(f"{kind}: {count:,} series from seed {first}: {dict(sorted(seen.items()))}", flush=True)
        failed += seen["failed"]
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
