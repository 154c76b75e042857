"""What a partition costs, by each objective."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.problems.regions.task import Districting, heaviest, sums


def value(task: Districting, label: np.ndarray, objective: tuple[str, ...]) -> tuple[Any, ...]:
    """The values of the objectives in order, each the smaller the better; exact integers where units are counted."""
    return tuple(one(task, label, name) for name in objective)


def one(task: Districting, label: np.ndarray, name: str) -> Any:
    """One objective: "max" heaviest region, "count" areas minus regions, "sumsq" sum of squared weights,

    "excess" largest weight over max(k, heaviest area), "compact" moment of inertia or, without places, border edges,
    "similar" that moment in the columns to be alike in.
    """
    if name == "count":
        return len(label) - (int(label.max()) + 1 if len(label) else 0)
    weight = sums(task, label)[:, 0]
    if name == "max":
        return int(weight.max(initial=0))
    if name == "sumsq":
        return sum(w * w for w in weight.tolist())
    if name == "excess":
        return float((weight / np.maximum(heaviest(task, label), task.k)).max(initial=1.0))
    moments = task.moments(name)
    return inertia(moments, label) if len(moments) else border(task, label)


def inertia(areas: np.ndarray, label: np.ndarray) -> float:
    """Sum over the regions of mass times squared distance from the region's center; areas float64[n, c + 2]."""
    moments = np.zeros((int(label.max()) + 1, areas.shape[1]))
    np.add.at(moments, label, areas)
    mass = np.where(moments[:, 0] > 0, moments[:, 0], 1.0)
    spread = moments[:, -1] - (moments[:, 1:-1] ** 2).sum(axis=1) / mass
    return float(np.maximum(spread, 0.0).sum())


def border(task: Districting, label: np.ndarray) -> int:
    """Edges between different regions."""
    ends = task.graph.edges()
    return int((label[ends[:, 0]] != label[ends[:, 1]]).sum())
