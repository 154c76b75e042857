"""People of a population shared out to the groups of a sample, nobody twice: how delta-presence counts them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from shoal.problems.tables.others.forms import Forms

EDGES = 5_000_000  # pairs of a form and a tuple of the population in a flow
FLOWS = 400  # flows for one sharing out, and as many to lower its forms again
PART = 10_000  # the largest denominator that a share of people is counted in
KEPT = 20_000_000  # numbers of forms that are kept from one flow to the next


def shared(forms: Forms, codes: np.ndarray, rows: np.ndarray, least: np.ndarray, high: float) -> np.ndarray | None:
    """int64[x, d]: levels at or above ``least`` at which people can be shared out, rows / high each, at low loss.

    codes int[x, d], rows int64[x].  By Hall's theorem they can unless some set of tuples has more rows than the share
    ``high`` of the people it covers; a flow finds such a set, the tuples of it that gain people most cheaply are
    raised, and so on; then each is lowered again as far as it may.  None where no levels do, or where that would take
    too many flows.
    """
    levels = forms.cheapest(codes, least, np.ceil(rows / high - 1e-9).astype(np.int64))[1]
    sharing = Sharing(forms, codes, rows, _below(high))
    for _ in range(FLOWS):
        lack = sharing.lack(levels)
        if lack is None:
            return sharing.lowered(least, levels)
        if not sharing.raised(levels, lack):
            return None
    return None


def enough(forms: Forms, codes: np.ndarray, rows: np.ndarray, levels: np.ndarray, high: float) -> bool:
    """Whether people can be shared out to tuples at levels int[x, d], rows / high to each."""
    return Sharing(forms, codes, rows, _below(high)).lack(levels) is None


@dataclass(frozen=True, eq=False)
class Lack:
    """A set of tuples that have more rows than their share of the people they cover.

    people float, how many more they need;  wanting bool[x] the tuples;  covered bool[p] whom they cover
    """

    people: float
    wanting: np.ndarray
    covered: np.ndarray


@dataclass(frozen=True, eq=False)
class Sharing:
    """Tuples int[x, d] of int64[x] rows, and the share of the people they get that these may be at most."""

    forms: Forms
    codes: np.ndarray
    rows: np.ndarray
    share: Fraction
    kept: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, int]] = field(default_factory=dict)

    def numbers(self, node: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """The forms of all tuples at levels int[d], as ``Forms.numbers`` says; found once where there is room."""
        key = tuple(node.tolist())
        if key not in self.kept:
            found = self.forms.numbers(self.codes, node)
            if (len(self.kept) + 1) * (found[0].size + found[1].size) > KEPT:
                return found
            self.kept[key] = found
        return self.kept[key]

    def lack(self, levels: np.ndarray) -> Lack | None:
        """Who lacks people at levels int[x, d]; None where they can be shared out."""
        form, inside, of_form = np.zeros(len(self.codes), np.int64), [], []
        count, p = 0, self.forms.people.size
        number = self.forms.number(levels)
        for v in np.flatnonzero(np.bincount(number)).tolist():
            here = np.flatnonzero(number == v)
            ours, theirs, size = self.numbers(self.forms.lattice[v])
            used = np.full(size, -1, np.int64)
            names = np.flatnonzero(np.bincount(ours[here], minlength=size))
            used[names] = count + np.arange(names.size)
            form[here] = used[ours[here]]
            at = np.flatnonzero(used[theirs] >= 0)
            inside.append(at)
            of_form.append(used[theirs[at]])
            count += names.size
        who, whom = np.concatenate(of_form), np.concatenate(inside)
        need = np.bincount(form, weights=self.rows, minlength=count).astype(np.int64) * self.share.denominator
        room = self.forms.people * self.share.numerator
        if who.size > EDGES or max(int(need.sum()), int(room.sum())) >= 2**31:
            return Lack(0.0, np.zeros(len(self.codes), bool), np.zeros(p, bool))  # nothing to raise: given up
        reached = _cut(who, whom, need, room)
        if reached is None:
            return None
        covered = np.zeros(p, bool)
        covered[whom[reached[who]]] = True
        short = int(need[reached].sum()) - int(room[covered].sum())
        return Lack(short / self.share.numerator, reached[form], covered)

    def raised(self, levels: np.ndarray, lack: Lack) -> bool:
        """Raise some wanting tuples in ``levels``, the cheapest beside what they gain; False where none gains any.

        A tuple gains no more than the people it needs, for what it leaves to the others is those it had.
        """
        at = np.flatnonzero(lack.wanting)
        need = np.minimum(self.rows[at] / float(self.share), lack.people)
        free = np.where(lack.covered, 0, self.forms.people)
        ratio, gain, to = np.full(at.size, np.inf), np.zeros(at.size), levels[at].copy()
        now = self.forms.loss(self.codes[at], levels[at])
        for node in self.forms.lattice:
            tried = np.flatnonzero((levels[at] <= node).all(axis=1))
            ours, theirs, size = self.numbers(node)
            new = np.minimum(np.bincount(theirs, weights=free, minlength=size)[ours[at[tried]]], need[tried])
            tried, new = tried[new > 0], new[new > 0]
            price = (self.forms.loss(self.codes[at[tried]], node) - now[tried]) * self.rows[at[tried]] / new
            better = price < ratio[tried]
            tried, new, price = tried[better], new[better], price[better]
            ratio[tried], gain[tried], to[tried] = price, new, node
        order = np.argsort(ratio, kind="stable")
        order = order[np.isfinite(ratio[order])]
        enough = int(np.searchsorted(np.cumsum(gain[order]), lack.people)) + 1
        levels[at[order[:enough]]] = to[order[:enough]]
        return bool(order.size)

    def lowered(self, least: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Levels at which every tuple is as low as it may be, the others as they are; within ``FLOWS`` flows."""
        left = FLOWS
        loss = self.forms.loss(self.codes, levels)
        saved = (loss - self.forms.loss(self.codes, least)) * self.rows
        lattice = self.forms.lattice
        for i in np.argsort(-saved, kind="stable").tolist():
            if saved[i] <= 0:
                break
            some = lattice[((least[i] <= lattice).all(axis=1))]
            price = self.forms.loss(np.repeat(self.codes[i : i + 1], len(some), axis=0), some)
            for node in some[np.argsort(price, kind="stable")][: int((price < loss[i] - 1e-12).sum())]:
                if not self._room(i, node, levels):
                    continue
                if not left:
                    return levels
                left -= 1
                tried = levels.copy()
                tried[i] = node
                if self.lack(tried) is None:
                    levels = tried
                    break
        return levels

    def _room(self, i: int, node: np.ndarray, levels: np.ndarray) -> bool:
        """Whether a form covers enough people for its tuples and one more, if nobody else had any of them."""
        ours, theirs, _ = self.numbers(node)
        form = ours[i]
        rows = self.rows[i] + self.rows[(ours == form) & (levels == node).all(axis=1)].sum()
        people = self.forms.people[theirs == form].sum()
        return bool(rows * self.share.denominator <= people * self.share.numerator)


def _cut(who: np.ndarray, whom: np.ndarray, need: np.ndarray, room: np.ndarray) -> np.ndarray | None:
    """bool[f]: forms on the near side of a least cut; None where a flow gives every form what it needs.

    who, whom int64[e]  pairs of a form and a tuple of the population that it covers; need int64[f], room int64[p]
    """
    count, p = need.size, room.size
    source, sink = count + p, count + p + 1
    start = np.concatenate([np.full(count, source), who, np.arange(count, count + p)])
    end = np.concatenate([np.arange(count), count + whom, np.full(p, sink)])
    most = np.concatenate([need, need[who], room]).astype(np.int32)
    graph = csr_matrix((most, (start, end)), shape=(count + p + 2, count + p + 2))
    flow = maximum_flow(graph, source, sink)
    if flow.flow_value == int(need.sum()):
        return None
    left = graph - flow.flow
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    seen = np.zeros(count + p + 2, bool)
    seen[breadth_first_order(left, source, return_predecessors=False)] = True
    return np.asarray(seen[:count])


def _below(high: float) -> Fraction:
    """The largest share of a small denominator that is at most ``high``."""
    share = Fraction(high).limit_denominator(PART)
    return share if share <= Fraction(high + 1e-9) else Fraction(math.floor(high * PART), PART)
