"""Regions walked through again by the pairs of neighbors: whether they hang together, what they keep whole or apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import part, whole
from shoal.judge.finding import RECOMPUTED, STATED, Finding


def summed(label: np.ndarray, values: np.ndarray, m: int) -> np.ndarray:
    """int64[m]: whole numbers of areas added up over each region; label int[n] its region, below 0 for none."""
    sums = np.zeros(m, np.int64)
    np.add.at(sums, label[label >= 0], values[label >= 0])
    return sums


def why_left_out(
    label: np.ndarray, place: Mapping[str, int], pairs: pl.DataFrame, asked: Mapping[str, Any], source: pl.DataFrame
) -> Finding:
    """Whether the areas left out lie in pieces too light for a region; of others it rests on the certificate."""
    out = label < 0
    ends = _ends(place, pairs, asked.get("joined") or [])
    if asked.get("boundary") is not None:
        side = np.unique(part(source, asked["boundary"]).cast(pl.String).fill_null("").to_numpy(), return_inverse=True)[
            1
        ]
        ends = ends[side[ends[:, 0]] == side[ends[:, 1]]]
    piece = _pieces(ends[out[ends].all(axis=1)], len(label))
    m = int(piece.max(initial=-1)) + 1
    light = np.zeros(m, bool)
    for name, k in zip(asked["weight"], asked["k"], strict=True):
        light |= summed(piece, np.array(whole(source, name), np.int64), m) < k
    light[piece[ends[out[ends].any(axis=1) & ~out[ends].all(axis=1)].ravel()]] = False  # beside a region it could join
    heavy = int((out & ~light[piece]).sum())
    if not heavy:
        return Finding("why left out", True, "every area left out lies in a piece too light for a region", RECOMPUTED)
    text = f"{heavy} areas left out could be in a region; that this was asked for rests on the certificate"
    return Finding("why left out", True, text, STATED)


def _pieces(ends: np.ndarray, n: int) -> np.ndarray:
    """int64[n]: the connected piece of every area."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    links = coo_matrix((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return connected_components(links, directed=False)[1]


def connected(label: np.ndarray, place: Mapping[str, int], pairs: pl.DataFrame, joined: Sequence[Any]) -> Finding:
    """Whether every region hangs together by pairs of neighbors within it."""
    ends = _ends(place, pairs, joined)
    ends = ends[(label[ends[:, 0]] == label[ends[:, 1]]) & (label[ends[:, 0]] >= 0)]
    piece = _pieces(ends, len(label))
    held = label >= 0
    pieces = len({*zip(label[held].tolist(), piece[held].tolist(), strict=True)})
    apart = pieces - len(np.unique(label[held]))
    said = f"regions are in {apart} pieces too many" if apart else "every region hangs together"
    return Finding("connected", not apart, said)


def _ends(place: Mapping[str, int], pairs: pl.DataFrame, joined: Sequence[Any]) -> np.ndarray:
    """int64[m, 2]: neighbors by number; VerificationError where one is no area."""
    first, second = (pairs.to_series(i).cast(pl.String).to_list() for i in (0, 1))
    try:
        both = [*zip(first, second, strict=True), *((x[0], x[1]) for x in joined)]
        return np.array([(place[a], place[b]) for a, b in both], np.int64).reshape(-1, 2)
    except KeyError:
        raise VerificationError("a pair of neighbors names an area that is none") from None


def by_land(
    label: np.ndarray, place: Mapping[str, int], pairs: pl.DataFrame, joined: Sequence[Any], water: pl.Series
) -> Finding:
    """Whether every region hangs together without the areas that a column says are water."""
    wet = np.array([str(v).strip().lower() in ("1", "1.0", "yes", "true", "y", "t") for v in water.to_list()], bool)
    return connected(np.where(wet, -1, label), place, pairs, joined)._replace(check="connected by land")


def kept(what: str, mixed: bool | None, label: np.ndarray, values: Sequence[Any]) -> Finding:
    """A boundary that no region crosses (True), areas that stay together (False), or apart (None)."""
    both = [(g, v) for g, v in zip(label.tolist(), values, strict=True) if g >= 0 and (mixed or v not in (None, ""))]
    if mixed:
        wrong = len(set(both)) - len({g for g, _ in both})
        return Finding(what, not wrong, f"{wrong} crossings of a boundary" if wrong else "no region crosses it")
    if mixed is None:
        wrong = len(both) - len(set(both))
        return Finding(what, not wrong, f"{wrong} areas share a region that should not")
    wrong = len(set(both)) - len({v for _, v in both})
    return Finding(what, not wrong, f"{wrong} sets of areas that belong together are torn")
