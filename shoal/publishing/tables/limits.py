"""What a policy asks of a table besides its models, read for the search and counted on what was found.

``within_budget`` counts rows starred whole, whatever recoding stars them.  ``share_models``, ``refuse_common``, and
``decoys_of`` are what minimality asks.  ``exposed`` counts groups that show a value of one row alone: as an end of a
range, or in a set.  ``on_trees`` binds the hierarchical distance of t-closeness to the hierarchies of a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.engines.codes import Coded
from shoal.engines.order import ShuffleKey, dealer
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.histogram import Histogram, Partition
from shoal.model.policy import Policy
from shoal.model.privacy import AlphaKAnonymity, KAnonymity, LDiversity, Model, OfPersons, TCloseness
from shoal.model.privacy.base import CLOSE, said
from shoal.model.recoding import ColumnRecoding
from shoal.model.task import Decoys, Grouping
from shoal.publishing.recodings import ColumnText

_AT_ONCE = 1 << 16  # groups looked at together
CLAIM = 0.98  # of minimality, what the attack may claim: whoever reads the file may weigh a little otherwise


def share_models(asked: Policy) -> list[Model]:
    """What a policy's minimality asks of every group, for every sensitive column; nothing where none is asked for."""
    return [] if asked.minimality is None else [AlphaKAnonymity(asked.minimality, 1)]


def refuse_common(histogram: Histogram, asked: Policy) -> None:
    """InfeasibleError where one value is so common that its share of all rows is above what may be told."""
    for j, name in enumerate(asked.sensitive if asked.minimality is not None and histogram.rows else ()):
        held = np.bincount(histogram.sensitive[:, j], weights=histogram.count)
        most = float(held.max() / histogram.rows)
        if asked.minimality is not None and most > asked.minimality + CLOSE:
            least = f"; ask for ⟨minimality={said(most, up=True)}⟩ at the least" if most < 1 else ""
            raise InfeasibleError(
                f"one value of {name!r} is {100 * most:.1f} % of the rows, so who knows that much infers it with "
                f"more than ⟨minimality={asked.minimality:g}⟩ of some group{least}"
            )


def decoys_of(
    asked: Policy, histogram: Histogram, secret: bytes | None,
    attack: Callable[[Partition, float, Collection[tuple[int, float]]], np.ndarray | None],
) -> Decoys | None:  # fmt: skip
    """What minimality asks of the search, with draws from the caller's secret; None: fresh ones.

    attack  claims about a partition with more than a share, by who takes the method to have kept a k and an l, and to
            have hidden no more for it: those of the policy, and the l that minimality itself amounts to
    """
    most = asked.minimality
    if most is None:
        return None
    k = max((m.k for m in asked.privacy if isinstance(m, KAnonymity)), default=1)
    promises = {(k, float(m.l)) for m in asked.privacy if isinstance(m, LDiversity) and m.l > 1} | {(k, 1 / most)}
    context = json.dumps(asked.describe(), sort_keys=True, default=str).encode()
    counts = np.sort(histogram.count).astype("<i8").tobytes()
    deal = dealer(ShuffleKey.of(secret, b"decoys" + context + counts).place)
    return Decoys(most, deal, lambda partition: attack(partition, CLAIM * most, sorted(promises)))


def within_budget(grouping: Grouping, columns: Sequence[ColumnText], asked: Policy) -> Grouping:
    """The grouping with its rows starred whole counted; InfeasibleError where they are more than ``max_suppressed``.

    Global recoding spends the budget in its own search, which counts its block alone; a column at its highest level, or
    a label that is the star, may star more rows whole.  O(groups x columns).
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
    """Shares of the groups, from 0 to 1: per column of ranges, sets or regions; of those that any such one exposes."""

    columns: Mapping[str, float]
    groups: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"columns": dict(self.columns), "groups": self.groups}


def exposed(
    histogram: Histogram, partition: Partition, columns: Sequence[ColumnRecoding], widened: Collection[str]
) -> Exposed:
    """Groups that show a value which one row of theirs holds.

    partition  its groups are the classes of rows published alike
    columns    those that are recoded
    widened    names of those whose ranges end on a grid, at which somebody's value may lie but need not

    Ranges, sets and regions alone: any other form shows what at least k rows share.  O(p d log p) for p triples, in
    memory for some of them at a time.
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
    """The hierarchies of sensitive columns; PolicyError or InputError for one that cannot be read."""
    return {name: Hierarchy.of(policy.hierarchies[name]) for name in policy.sensitive if name in policy.hierarchies}


def scales_of(policy: Policy) -> dict[str, Any]:
    """How the values of sensitive columns lie, as keywords of ``shoal.judge.tables.privacy:judge``."""
    notations = {name: held for name, held in policy.notations.items() if name in policy.sensitive}
    return {"trees": trees_of(policy), "notations": notations}


def on_trees(models: Sequence[Model], policy: Policy, sensitive: Sequence[Coded]) -> list[Model]:
    """The models with the hierarchical distance bound to every column that they speak of.

    Raises PolicyError for a value that the hierarchy of its column lacks.
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
            out.append(model.on(trees[name].resolve(coded[name].texts(), name).node, name))
    return out
