"""Regions within regions on their way out: columns for every level, a hierarchy, and what is stated of them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.engines.targets import HIERARCHY
from shoal.errors import PolicyError
from shoal.publishing.crosswalks.crosswalk import Drawing


def levels_of(answer: Any) -> tuple[Any, ...]:
    """The finest regions, then those of every level above; of ``Regions`` the one there is."""
    held = getattr(answer, "levels", None)
    if held is None:
        return (answer,)
    if not held:
        raise PolicyError("the answer has no level, so there is nothing to release; give one threshold at least")
    return tuple(held)


def level_file(path: Path, level: int) -> Path:
    """Where a level is drawn: the finest in the file itself, those above beside it, ``map.level2.html``."""
    return path if level == 0 else path.with_name(f"{path.stem}.level{level + 1}{path.suffix}")


def asked_of(
    levels: Sequence[Any], at_most: Mapping[str, Any], regions: Any, ids: Sequence[str]
) -> list[dict[str, Any]]:
    """What each level above the first had to keep: thresholds, maxima, number of regions, areas made neighbors."""
    from shoal.problems.regions.levels import of_level

    found = []
    for i, level in enumerate(levels[1:], 1):
        own = of_level({"at_most": {n: (None, m) for n, m in at_most.items()}, "regions": regions}, i, len(levels))
        found.append(
            {
                "k": list(level.k),
                "at_most": {name: most for name, (_, most) in (own.get("at_most") or {}).items()},
                "regions": own.get("regions"),
                "joined": [[ids[a], ids[b]] for a, b in level.joined.tolist()],
            }
        )
    return found


def first_of(levels: Sequence[Any], at_most: Mapping[str, Any], regions: Any) -> tuple[dict[str, int], int | None]:
    """The maxima and the number of regions of the finest level."""
    from shoal.problems.regions.levels import of_level

    own = of_level({"at_most": {n: (None, m) for n, m in at_most.items()}, "regions": regions}, 0, len(levels))
    return {name: most for name, (_, most) in (own.get("at_most") or {}).items()}, own.get("regions")


def facts_of(answer: Any) -> list[dict[str, Any]]:
    """The figures of each level above the first.

    regions_at_most        no partition of the areas has more regions
    unions_at_most         no partition into unions of the regions below has more
    """
    found = []
    for level, most in zip(levels_of(answer)[1:], getattr(answer, "most", ())[1:], strict=True):
        first = level.weights.reshape(level.regions, -1)[:, 0].tolist()
        found.append(
            {
                "groups": level.regions, "smallest_group": min(first), "largest_group": max(first),
                "left_out": len(level.left_out), "regions_at_most": most, "unions_at_most": level.upper_bound,
                "cost": level.cost, "cost_at_least": level.certificate.lower_bound, "unit": level.certificate.unit,
            }
        )  # fmt: skip
    return found


def columns_of(ids: Sequence[str], levels: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """region2, region2_weight, region2_areas, region2_NAME of further weights; region3 ..."""
    from shoal.problems.regions import region_names

    found: dict[str, list[Any]] = {}
    for i, level in enumerate(levels[1:], 2):
        called, held = region_names(ids, level.labels), level.labels.tolist()
        weights = level.weights.reshape(level.regions, -1)
        each = {f"region{i}_weight": weights[:, 0].tolist(), f"region{i}_areas": level.sizes.tolist()}
        each |= {f"region{i}_{name}": weights[:, j].tolist() for j, name in enumerate(names[1:], 1)}
        found[f"region{i}"] = ["*" if r < 0 else called[r] for r in held]
        found |= {name: [0 if r < 0 else values[r] for r in held] for name, values in each.items()}
    return found


def hierarchy(ids: Sequence[str], levels: Sequence[Any]) -> Drawing:
    """A file that ``--hierarchy`` reads: area;region;region at the next level;...;*"""
    from shoal.problems.regions import hierarchy_rows

    def fill(path: Path) -> None:
        rows = sorted(hierarchy_rows(ids, [level.labels for level in levels]))
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";", lineterminator="\n").writerows(rows)

    return Drawing(form=HIERARCHY, fill=fill)
