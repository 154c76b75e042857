"""Small tables beside a population: the forms that lose least, by an integer program.

A release is a choice of forms and of how many rows of every cell take each.  A form that is taken has the rows that the
models ask for; it covers k people, or gets as many people as its rows need of those it covers, nobody twice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.model.histogram import Histogram
from shoal.model.partition import Partition
from shoal.model.privacy import Requirement
from shoal.problems.tables.others.forms import Forms

CELLS, PLACES = 60, 20_000  # cells; pairs of a form with a cell or with a tuple of the population
SECONDS = {"balanced": 3.0, "thorough": 60.0}


class Least(NamedTuple):
    """A partition, int64[g, d] levels of its groups, its loss and what no release undercuts, both summed over rows."""

    partition: Partition
    levels: np.ndarray
    loss: float
    bound: float


class _Program(NamedTuple):
    """Forms int64[f, d] of levels; pairs (cell, form) and (tuple of the population, form)."""

    levels: np.ndarray
    cell: np.ndarray
    form: np.ndarray
    person: np.ndarray
    covers: np.ndarray


def least_forms(
    forms: Forms, histogram: Histogram, need: Requirement, k: int, high: float | None, seconds: float
) -> Least | None:
    """The release of least loss within some seconds; None where the table is large, or more is asked than this knows.

    k     people that every form has to cover; high: the share of people that rows may be, None where none is asked
    need  k and frequency alone
    """
    if need.rules or max(need.distinct, default=1) > 1 or not 0 < histogram.cells <= CELLS or not forms.few(CELLS):
        return None
    held = _program(forms, histogram, k)
    if held is None:
        return None
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes as long to import as many a table takes
    from scipy.sparse import coo_matrix

    codes, count, f = histogram.quasi.astype(np.int64), histogram.count, len(held.levels)
    x, y, shared = held.cell.size, f, held.person.size if high is not None else 0
    paid = forms.loss(codes[held.cell], held.levels[held.form])
    ones, at = np.ones(x), np.arange(x)
    rows: list[LinearConstraint] = []

    def add(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], size: int, low: object, top: object) -> None:
        """Parts: (row, variable, factor)."""
        row, column, factor = (np.concatenate([p[i] for p in parts]) for i in range(3))
        rows.append(LinearConstraint(coo_matrix((factor, (row, column)), shape=(size, x + y + shared)), low, top))

    add([(held.cell, at, ones)], count.size, count, count)
    add([(at, at, ones), (at, x + held.form, -count[held.cell])], x, -np.inf, 0)
    add([(held.form, at, ones), (np.arange(f), x + np.arange(f), -np.full(f, float(need.smallest)))], f, 0, np.inf)
    for j, l in enumerate(need.frequency):
        for value in range(histogram.sensitive_sizes[j] if l > 1 else 0):
            add([(held.form, at, 1 - l * (histogram.sensitive[held.cell, j] == value))], f, 0, np.inf)
    if high is not None:
        people = x + y + np.arange(shared)
        add([(held.covers, people, np.full(shared, high)), (held.form, at, -ones)], f, 0, np.inf)
        add([(held.person, people, np.ones(shared))], forms.people.size, -np.inf, forms.people)
    top = np.concatenate([count[held.cell], np.ones(y), np.full(shared, np.inf)])
    whole = np.concatenate([np.ones(x + y), np.zeros(shared)])
    price = np.concatenate([paid, np.zeros(y + shared)])
    found = milp(price, integrality=whole, bounds=Bounds(0, top), constraints=rows, options={"time_limit": seconds})
    if found.x is None:
        return None
    taken = np.round(found.x[:x]).astype(np.int64)
    kept = taken > 0
    used, group = np.unique(held.form[kept], return_inverse=True)
    partition = Partition.of(held.cell[kept], group.reshape(-1), taken[kept])
    bound = found.mip_dual_bound
    return Least(partition, held.levels[used], float(paid @ taken), max(bound, 0.0) if math.isfinite(bound) else 0.0)


def _program(forms: Forms, histogram: Histogram, k: int) -> _Program | None:
    """The forms of the cells that cover k people; None where they are too many."""
    codes = histogram.quasi.astype(np.int64)
    parts: list[tuple[np.ndarray, ...]] = []
    count = places = 0
    for node in forms.lattice:
        ours, theirs, size = forms.numbers(codes, node)
        enough = np.bincount(theirs, weights=forms.people, minlength=size) >= k
        names = np.unique(ours[enough[ours]])
        number = np.full(size, -1, np.int64)
        number[names] = count + np.arange(names.size)
        cell, person = np.flatnonzero(number[ours] >= 0), np.flatnonzero(number[theirs] >= 0)
        parts.append((np.tile(node, (names.size, 1)), cell, number[ours[cell]], person, number[theirs[person]]))
        count, places = count + names.size, places + cell.size + person.size
        if places > PLACES:
            return None
    return _Program(*(np.concatenate(p) for p in zip(*parts, strict=True)))
