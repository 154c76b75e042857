"""Regions by the rules that health departments use, one area after another, beside the search.

python benchmarks/rules.py

The rules are those that the Geographic Aggregation Tool (GAT) documents: the area that is lowest by the first count
joins a neighbor, across no rigid boundary, until all reach the threshold.  Which neighbor: the one with the closest
center, the least count, or the most alike ratio of two columns.  Written here from its public description.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

from shoal.problems.regions import merge

DATA = Path(__file__).parents[1].parent / "shared" / "data"
CASES = (("zip_graph_ct", 5_000), ("zip_graph_ct", 20_000), ("zip_graph_ri", 20_000), ("us_counties", 100_000))
RATIO = {"us_counties": ("population", "population_2010")}


def areas_of(folder: str) -> tuple[pl.DataFrame, list[tuple[int, int]]]:
    """The areas, and pairs of neighbors by their numbers."""
    nodes = pl.read_csv(DATA / folder / "nodes.csv", schema_overrides={"id": pl.String})
    pairs = pl.read_csv(DATA / folder / "edges.csv", schema_overrides={"u": pl.String, "v": pl.String})
    number = {v: i for i, v in enumerate(nodes["id"].to_list())}
    pairs = pairs.filter(pl.col("main_part") == 1)
    return nodes, [(number[a], number[b]) for a, b in zip(pairs["u"], pairs["v"], strict=True)]


def aggregated(edges: list[tuple[int, int]], held: np.ndarray, k: int, rule: str) -> np.ndarray:
    """Labels by the rule; -1 in what stays below k.

    held  float64[n, 5]  count, count times x, count times y, and the two columns of the ratio; summed as areas merge
    """
    held, parts = held.copy(), {v: [v] for v in range(len(held))}
    near: dict[int, set[int]] = {v: set() for v in parts}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)

    def away(a: int, b: int) -> float:
        if rule == "least count":
            return float(held[b, 0])
        if rule == "most alike":
            return float(abs(held[a, 3] / max(held[a, 4], 1) - held[b, 3] / max(held[b, 4], 1)))
        where = held[[a, b], 1:3] / np.maximum(held[[a, b], :1], 1e-9)
        return float(np.hypot(*(where[0] - where[1])))

    open_ = {v for v in parts if held[v, 0] < k}
    while open_:
        a = min(open_, key=lambda v: (held[v, 0], v))
        if not near[a]:
            open_.discard(a)
            continue
        b = min(near[a], key=lambda v: (away(a, v), v))
        held[b] += held[a]
        parts[b] += parts.pop(a)
        for v in near.pop(a):
            near[v].discard(a)
            if v != b:
                near[v].add(b)
                near[b].add(v)
        open_.discard(a)
        if held[b, 0] >= k:
            open_.discard(b)
    label = np.full(len(held), -1, np.int64)
    for i, members in enumerate(m for a, m in parts.items() if held[a, 0] >= k):
        label[members] = i
    return label


def spread(label: np.ndarray, weights: np.ndarray, at: np.ndarray) -> float:
    """Root mean square distance of people from the center of their region, km."""
    inside = label >= 0
    label, w, at = label[inside], weights[inside].astype(float), at[inside]
    mass = np.maximum(np.bincount(label, weights=w), 1e-9)
    center = np.column_stack([np.bincount(label, weights=w * at[:, j]) / mass for j in range(2)])
    return float(np.sqrt((w * ((at - center[label]) ** 2).sum(axis=1)).sum() / w.sum()))


def rows_of(folder: str, k: int, rigid: bool) -> list[dict[str, Any]]:
    """Every rule, and the search for many and for many and compact regions."""
    nodes, edges = areas_of(folder)
    first, second = RATIO.get(folder, ("population_2016", "population"))
    people = nodes["population"].to_numpy()
    lat, lng = np.radians(nodes["lat"].to_numpy()), np.radians(nodes["lng"].to_numpy())
    at = 6371.0088 * np.column_stack([lng * np.cos(lat.mean()), lat])
    inside = nodes["state"].to_list() if rigid else None
    kept = edges if inside is None else [(a, b) for a, b in edges if inside[a] == inside[b]]
    held = np.column_stack([people, people * at[:, 0], people * at[:, 1], nodes[first], nodes[second]]).astype(float)
    found = []
    for rule in ("closest center", "least count", "most alike"):
        began = time.process_time()
        label = aggregated(kept, held, k, rule)
        found.append((rule, label, time.process_time() - began, None))
    for objective in ("count", "compact"):
        began = time.process_time()
        answer = merge(edges, people, k, objective=objective, boundary=inside, coordinates=at, geographic=False, seed=1)
        found.append((f"shoal, {objective}", answer.labels, time.process_time() - began, answer.upper_bound))
    return [
        {
            "areas": folder + (", states kept" if rigid else ""), "k": k, "rule": rule, "regions": int(label.max()) + 1,
            "at most": most or "", "rms distance, km": round(spread(label, people, at), 2),
            "left out": int((label < 0).sum()), "processor": spent,
        }
        for rule, label, spent, most in found
    ]  # fmt: skip


def main() -> None:
    if not DATA.is_dir():
        print(f"skipped: the areas are not at {DATA}")
        return
    rows = [row for folder, k in CASES for row in rows_of(folder, k, False)] + rows_of("us_counties", 100_000, True)
    record(
        "Regions by one rule after another",
        "python benchmarks/rules.py",
        rows,
        [
            "The area lowest by population joins a neighbor until all reach k: GAT's published rules, written here "
            "from its description. Most alike: the ratio of two counts of people ten or six years apart.",
            "Left out: areas in sets that are too light as a whole.",
        ],
    )


if __name__ == "__main__":
    main()
