"""Water: areas that nobody lives in and that connect no shores, attached to the regions beside them afterwards.

A lake that is an area like any other makes one region of two shores, and alone it is too light for a region.  So water
is taken out before anything is solved, which every method obeys and every bound survives, and goes to a region beside
it at the end: the one with most areas next to it, then the lightest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import array_of
from shoal.problems.regions.graph import coded, graph
from shoal.problems.regions.limits import Limits
from shoal.problems.regions.result import Regions


def water_of(
    water: Any, features: np.ndarray, exclude: Any, labelled: Mapping[str, Sequence[Any] | None]
) -> np.ndarray:
    """bool[n]: the areas that are water and not excluded.

    labelled  ``fixed`` and ``apart``, where water has no place

    Raises InputError for water that weighs something, PolicyError for water with a label.
    """
    n = len(features)
    found = array_of(water, "water", "one truth value for each area")
    if found.shape != (n,):
        raise InputError(f"water has shape {found.shape}; give one truth value for each of {n} areas")
    found = found.astype(np.bool_)
    if exclude is not None:
        found &= ~np.asarray(exclude).astype(np.bool_)
    held = int((features[found] > 0).any(axis=1).sum())
    if held:
        raise InputError(f"{held} areas of water weigh something; say that they are land, or give them no weight")
    for name, labels in labelled.items():
        if labels is not None and any(labels[i] not in (None, "") for i in np.flatnonzero(found).tolist()):
            raise PolicyError(f"an area of water has a value of {name}; leave it out there, or let the area be land")
    return found


def attached(
    found: Regions, edges: Any, water: np.ndarray, limits: Limits | None, sides: Sequence[Sequence[Any] | None]
) -> Regions:
    """Water in a region beside it, from the shores outwards; alone (label -1) where none has room, or none is there.

    limits  maxima, which water counts for;  sides  boundaries and soft boundaries, which water does not cross

    O(m log m) for m pairs.
    """
    g = graph(edges, len(water))
    zones = [coded(side, len(water), "boundaries") for side in sides if side is not None]
    label, weight = found.labels.copy(), found.weights.reshape(found.regions, -1)[:, 0]
    home = [{tuple(z[v] for z in zones) for v in np.flatnonzero(label == r).tolist()} for r in range(found.regions)]
    waiting = np.flatnonzero(water).tolist()
    fresh: list[tuple[int, int]] = [(-1, -1)]
    while fresh:
        fresh = []
        for v in waiting:
            beside = label[g.indices[g.indptr[v] : g.indptr[v + 1]]]
            own = tuple(z[v] for z in zones)
            number = {r: int((beside == r).sum()) for r in np.unique(beside[beside >= 0]).tolist() if own in home[r]}
            for r in sorted(number, key=lambda r: (-number[r], weight[r], r)):
                if limits is None or limits.allow(np.append(np.flatnonzero(label == r), v)):
                    fresh.append((v, r))
                    break
        for v, r in fresh:  # several in one round may overfill a region together
            if limits is None or limits.allow(np.append(np.flatnonzero(label == r), v)):
                label[v] = r
        waiting = [v for v in waiting if label[v] < 0]
    return with_labels(found, label, water)


def with_labels(found: Regions, label: np.ndarray, water: np.ndarray) -> Regions:
    """The same regions with water put into them; sizes, cost and counts follow."""
    more = int((label >= 0).sum() - (found.labels >= 0).sum())
    certificate, details = found.certificate, dict(found.certificate.details)
    details |= {
        "left_out": int((label < 0).sum()), "water": int(water.sum()), "water_attached": more,
        "excluded": details.get("excluded", 0) - int(water.sum()),
    }  # fmt: skip
    paid = more if details["objective"][0] == "count" else 0
    certificate = replace(
        certificate, cost=certificate.cost + paid, lower_bound=certificate.lower_bound + paid, details=details
    )
    sizes = np.bincount(label[label >= 0], minlength=found.regions)
    return replace(found, labels=label, sizes=sizes, certificate=certificate, cost=certificate.cost)
