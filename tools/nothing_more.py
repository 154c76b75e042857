"""Try for hours what ``tests/test_nothing_more.py`` tries for seconds: does a certificate tell more than its release?

``python tools/nothing_more.py --tables 100000 --workers 2 --seed 0`` releases every small table of named cases and of
requests drawn at random, puts those together whose released files are the same, and prints each entry of a certificate
or page that tells them apart.  Exit status 1 where there is one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import count, islice
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # tables of five rows: threads cost more than they do
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.consistency import cases, tell_apart
from tests.consistency_drawn import drawn_answer, drawn_case

# requests drawn at random beside the named ones of each seed; a half of them no policy takes; a fourth as many are put
# to the other problems
DRAWN = 60
PARTS = 12  # of the cases of a seed; the tool prints a line after each
MEMORY = Path("/dev/shm")  # releases are synced to the disk, and most of the time went to that


def one(unit: tuple[int, int]) -> tuple[int, int, dict[str, list[str]]]:
    """Tables released, tables that shared their file with another, and by case what told them apart.

    unit  a seed, and which part of its cases
    """
    (seed, part), tried, shared = unit, 0, 0
    odd: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        rows = 4 + seed % 2
        named = cases(seed, rows=rows, size=4 + seed // 2 % 2)
        numbers = range(DRAWN * seed, DRAWN * (seed + 1))
        requests = [*(drawn_case(n, rows=rows) for n in numbers), *(drawn_answer(n) for n in numbers[::4])]
        for case in [*named, *requests][part::PARTS]:
            found, released, alike = tell_apart(case, Path(folder))
            tried, shared = tried + released, shared + alike
            if found:
                odd[f"{case.name} {case.note}".rstrip()] = sorted(found)
    return tried, shared, odd


def main() -> int:
    """Run until so many tables were released."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    tried = shared = wrong = 0
    with ProcessPoolExecutor(asked.workers) as pool:
        units = ((seed, part) for seed in count(asked.seed) for part in range(PARTS))  # product would read all seeds
        while tried < asked.tables:
            some = list(islice(units, asked.workers))
            for (seed, _), found in zip(some, pool.map(one, some), strict=True):
                tried, shared = tried + found[0], shared + found[1]
                for case, entries in found[2].items():
                    wrong += 1
                    print(f"seed {seed}, {case}: {', '.join(entries)}", flush=True)
            print(f"{tried:,} tables, {shared:,} shared their file with another, {wrong} cases tell more", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
