"""Components too light alone, joined to the nearest one."""

from __future__ import annotations

import numpy as np

from shoal.problems.regions.graph import Contiguity, components, graph


def join_light(
    g: Contiguity,
    features: np.ndarray,
    need: np.ndarray,
    ways: int,
    places: np.ndarray,
    boundaries: np.ndarray | None,
    geographic: bool,
) -> tuple[Contiguity, np.ndarray]:
    """Make every light component a neighbor of the nearest other one, until none is light that could be helped.

    In each round each light component gains one edge, between the pair of areas, one inside and one outside, that lie
    nearest each other (on the globe when ``geographic``), within ``boundaries``.  At most log2(components) rounds.

    returns  the graph with these edges, and the edges; int64[j, 2]
    """
    from scipy.spatial import cKDTree

    from shoal.problems.regions.task import eligible_rows

    where = _on_the_globe(places) if geographic else places
    zone = np.zeros(g.n, np.int64) if boundaries is None else boundaries
    added: list[tuple[int, int]] = []
    while True:
        count, component = components(g)
        total = np.zeros((count, features.shape[1]), np.int64)
        np.add.at(total, component, features)
        light = ~eligible_rows(total, need, ways)
        fresh = []
        for c in np.flatnonzero(light):
            inside = np.flatnonzero(component == c)
            others = np.flatnonzero((zone == zone[inside[0]]) & (component != c))
            if not len(others):
                continue
            distance, nearest = cKDTree(where[others]).query(where[inside])
            i = int(np.argmin(distance))
            fresh.append((int(inside[i]), int(others[nearest[i]])))
        if not fresh:
            return g, np.array(added, np.int64).reshape(-1, 2)
        added += sorted({(min(pair), max(pair)) for pair in fresh})
        g = graph(np.concatenate([g.edges(), np.array(fresh, np.int64)]), g.n)


def _on_the_globe(places: np.ndarray) -> np.ndarray:
    """Longitude and latitude in degrees as points on the unit sphere: nearest there is nearest on the ground."""
    lng, lat = np.radians(places[:, 0]), np.radians(places[:, 1])
    return np.column_stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)])
