"""Releases at random, made, written and judged: ``python tools/fuzz_releases.py COUNT [FIRST_SEED [KIND ...]]``.

Kinds, all of them where none is named: ``tables``, formats, recodings, models, types, engines and odd column names by
``tests/fuzz/releases.py``; ``combinations``, of every option with every other by ``tests/fuzz/combinations.py``;
``clusters``, both problems, all kinds of distance and centers by ``tests/fuzz/clusters.py``; ``crosswalks``,
tiles, regions, labels and intervals by ``tests/fuzz/crosswalks.py``; ``journeys``, one command and function after
another on tables like those that people have by ``tests/fuzz/journeys.py``; ``places``, of Spark, databases, lakes and
folders by ``tests/fuzz/places.py``, which says what is absent; ``bent``, certificates of clusters changed at random and
sealed again, which must be refused, found out, or have nothing changed that is recomputed.  Prints the seed of every
failure and exits 1 when there is one.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.fuzz import clusters, combinations, crosswalks, journeys, places, releases

KINDS = {
    "tables": releases.tried,
    "combinations": combinations.tried,
    "clusters": clusters.tried,
    "crosswalks": crosswalks.tried,
    "journeys": journeys.tried,
    "places": places.tried,
    "bent": clusters.bent_one,
}


def main() -> int:
    """Run the seeds."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    failed = 0
    for kind in sys.argv[3:] or KINDS:
        seen: Counter[str] = Counter()
        for seed in range(first, first + count):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    came = KINDS[kind](seed, Path(folder))
                except Exception as error:
                    came = "failed"
                    print(f"{kind}, seed {seed}: {type(error).__name__}: {str(error)[:400]}", flush=True)
            seen[came] += 1
        print(f"{kind}: {count:,} releases from seed {first}: {dict(seen)}", flush=True)
        failed += seen["failed"]
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
