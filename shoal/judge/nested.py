"""The judge of hierarchies that are written beside a crosswalk: read back and counted again."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from shoal.judge.finding import Finding


def judge_hierarchy(path: Path, counts: Mapping[str, int], k: int) -> list[Finding]:
    """A row per value: itself and its groups from fine to coarse, the last one group.

    counts  records of each value;  k  of the finest level, below which no group of any level may be
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter=";"))
    values = [row[0] for row in rows]
    depth = {len(row) for row in rows}
    same = sorted(values) == sorted(counts) and len(depth) == 1
    found = [Finding("values", same, f"{len(rows)} rows for {len(counts)} values, each of one depth")]
    if not same:
        return found
    light = loose = 0
    for level in range(1, depth.pop()):
        sums: dict[str, int] = {}
        parent: dict[str, str] = {}
        for row in rows:
            sums[row[level]] = sums.get(row[level], 0) + counts[row[0]]
            loose += level > 1 and parent.setdefault(row[level - 1], row[level]) != row[level]
        light += sum(n < k for n in sums.values())
    return [
        *found,
        Finding("k", not light, f"{light} groups of the hierarchy are below k = {k}"),
        Finding("nested", not loose, f"{loose} values leave the group of their finer group"),
    ]
