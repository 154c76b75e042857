"""Conditions of a policy other than its models: minimality with its decoys, and the share of rows starred whole.

Both are given to the search and counted on its result. The module also counts the groups that show a value of one row
only, and reads the hierarchies and orders of sensitive columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.engines.codes import Coded
from shoal.engines.order import ShuffleKey, generator_of
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.histogram import Histogram, Partition
from shoal.model.notation import reader_of
from shoal.model.policy import Policy
from shoal.model.privacy import AlphaKAnonymity, KAnonymity, LDiversity, Model, OfPersons, TCloseness
from shoal.model.privacy.base import CLOSE, level_text
from shoal.model.recoding import ColumnRecoding
from shoal.model.task import Decoys, Grouping
from shoal.publishing.recodings import ColumnText

_AT_ONCE = 1 << 16  # number of groups processed together
# share of the minimality limit that the attack may reach, because a reader may compute slightly different weights
CLAIM = 0.98


def share_models(asked: Policy) -> list[Model]:
    """The condition of minimality on every group and sensitive column; empty if minimality isn't requested."""
    return [] if asked.minimality is None else [AlphaKAnonymity(asked.minimality, 1)]


def refuse_common(histogram: Histogram, asked: Policy) -> None:
    """InfeasibleError if a value's share of all rows exceeds the minimality limit."""
    for j, name in enumerate(asked.sensitive if asked.minimality is not None and histogram.rows else ()):
        held = np.bincount(histogram.sensitive[:, j], weights=histogram.count)
        most = float(held.max() / histogram.rows)
        if asked.minimality is not None and most > asked.minimality + CLOSE:
            least = f"; ask for ⟨minimality={level_text(most, up=True)}⟩ at the least" if most < 1 else ""
            raise InfeasibleError(
                f"one value of {name!r} is {100 * most:.1f} % of the rows, so who knows that much infers it with "
                f"more than ⟨minimality={asked.minimality:g}⟩ of some group{least}"
            )


def decoys_of(
    asked: Policy, histogram: Histogram, secret: bytes | None,
    attack: Callable[[Partition, float, Collection[tuple[int, float]]], np.ndarray | None],
) -> Decoys | None:  # fmt: skip
    """The decoys for minimality, with random draws from the caller's secret; None: a fresh one.

    attack  gives inferences about a partition with more than a share, by an intruder who assumes that the method
            enforced a given k and l and hid no more than needed: those of the policy, and the l that minimality implies
    """
    most = asked.minimality
    if most is None:
        return None
    k = max((m.k for m in asked.privacy if isinstance(m, KAnonymity)), default=1)
    promises = {(k, float(m.l)) for m in asked.privacy if isinstance(m, LDiversity) and m.l > 1} | {(k, 1 / most)}
    context = json.dumps(asked.describe(), sort_keys=True, default=str).encode()
    counts = np.sort(histogram.count).astype("<i8").tobytes()
    deal = generator_of(ShuffleKey.of(secret, b"decoys" + context + counts).place)
    return Decoys(most, deal, lambda partition: attack(partition, CLAIM * most, sorted(promises)))


def within_budget(grouping: Grouping, columns: Sequence[ColumnText], asked: Policy) -> Grouping:
    """The grouping with the number of completely starred rows; InfeasibleError if it exceeds ``max_suppressed``.

    Global recoding uses the budget in its own search, which counts only its block. A column at its highest level, or a
    label that is the star, may produce more starred rows. O(groups x columns).
    """
    if not asked.max_suppressed:
        return grouping
    sizes = grouping.partition.sizes
    whole = np.all([c.starred[c.index] for c in columns], axis=0)
    found, allowed = int(sizes[whole].sum()), int(asked.max_suppressed * sizes.sum() + 1e-9)
    if found > allowed:
        raise InfeasibleError(
            f"the release that was found stars {found:,} of {int(sizes.sum()):,} rows whole, and "
            f"⟨max_suppressed={asked.max_suppressed:g}⟩ allows {allowed:,}; hierarchies and "
            "ranges hide less, as a lower k does"
        )
    facts = {"suppressed_rows": found, "max_suppressed_rows": allowed}
    certificate = replace(grouping.certificate, details={**grouping.certificate.details, **facts})
    return replace(grouping, certificate=certificate)


class Exposed(NamedTuple):
    """Shares of the groups, from 0 to 1, that show a value of one row: for each column, and for any column."""

    columns: Mapping[str, float]
    groups: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"columns": dict(self.columns), "groups": self.groups}


def exposed(
    histogram: Histogram, partition: Partition, columns: Sequence[ColumnRecoding], widened: Collection[str]
) -> Exposed:
    """The share of groups that show a value of one of their rows only.

    partition  its groups are the classes of rows with equal published values
    columns    the recodings
    widened    names of columns whose ranges end on a grid, where an end may but need not be a value

    Only ranges, sets, and regions count: any other form shows values that at least k rows share. O(p d log p) for p
    triples, with some of them in memory at a time.
    """
    baring = [(j, column) for j, column in enumerate(columns) if column.bares]
    alone, anywhere, groups = np.zeros(len(baring), np.int64), 0, max(partition.groups, 1)
    edges = np.append(partition.start, partition.group.size)
    for first in range(0, partition.groups, _AT_ONCE):
        last = min(first + _AT_ONCE, partition.groups)
        some = slice(edges[first], edges[last])
        any_ = np.zeros(last - first, bool)
        for i, (j, column) in enumerate(baring):
            size = np.int64(max(column.size, 1))
            key = (partition.group[some] - first) * size + histogram.quasi[partition.cell[some], j]
            order = np.argsort(key)
            start = np.flatnonzero(np.diff(key[order], prepend=-1))
            pair, held = key[order[start]], np.add.reduceat(partition.count[some][order], start)
            group = pair // size
            border = np.flatnonzero(np.diff(group, prepend=-1, append=last - first))
            shown = column.bared(group, pair % size, border) & (histogram.quasi_names[j] not in widened)
            mine = np.zeros(last - first, bool)
            mine[group[shown & (held == 1)]] = True
            alone[i] += mine.sum()
            any_ |= mine
        anywhere += int(any_.sum())
    shares = {histogram.quasi_names[j]: float(n) / groups for (j, _), n in zip(baring, alone, strict=True)}
    return Exposed(shares, anywhere / groups if shares else None)


def graphs_of(policy: Policy) -> dict[str, Hierarchy]:
    """The graphs of columns published as regions."""
    return {n: h for n, h in policy.hierarchies.items() if getattr(h, "kind", None) == REGIONS and n in policy.grouped}


def trees_of(policy: Policy) -> dict[str, Hierarchy]:
    """The hierarchies of sensitive columns; PolicyError or InputError for one that can't be read."""
    return {name: Hierarchy.of(policy.hierarchies[name]) for name in policy.sensitive if name in policy.hierarchies}


def scales_of(policy: Policy) -> dict[str, Any]:
    """The order or hierarchy of sensitive values, as keyword arguments of ``shoal.judge.tables.privacy:judge``."""
    notations = {name: held for name, held in policy.notations.items() if name in policy.sensitive}
    return {"trees": trees_of(policy), "notations": notations}


def on_trees(models: Sequence[Model], policy: Policy, sensitive: Sequence[Coded]) -> list[Model]:
    """The models, with the hierarchical distance applied to each of their columns.

    Raises PolicyError for a value that isn't in the hierarchy of its column.
    """
    out: list[Model] = []
    coded = {column.name: column for column in sensitive}
    for model in models:
        if isinstance(model, OfPersons):
            out += [replace(model, asked=bound) for bound in on_trees([model.asked], policy, sensitive)]
            continue
        if not isinstance(model, TCloseness) or model.unbound is None:
            out.append(model)
            continue
        trees = trees_of(policy)
        for name in policy.sensitive if model.column is None else (model.column,):
            if name not in trees:
                raise PolicyError(f"{model.unbound}; say ⟨hierarchies={{column: ...}}⟩")
            noted = policy.notations.get(name)
            out.append(model.on(trees[name].resolve(coded[name].texts(), name, reader_of(noted), noted).node, name))
    return out
