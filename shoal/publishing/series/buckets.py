"""Buckets and classes of a series in mode "again": a bucket has a row for each value of a signature.

A class is a set of buckets with the same published tuple. Two invariants hold: a person's signature never changes, and
a bucket has one row, of a person or made up, for each value of its signature. A made-up row is a free place for a
person with its value. The loss of a class is its size times the loss of its tuple (mean over the columns, from 0 for a
value to 1 for a star).
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

from shoal.engines.order import ShuffleKey, permutation
from shoal.model.policy import Policy
from shoal.publishing.series.increment import Text, Widening, columns_of
from shoal.publishing.series_folder import Keyed

Tuple = tuple[Text, ...]
Signature = tuple[str, ...]  # hashes of values, sorted

MADE_UP = 1.0  # the cost of a made-up row, in completely starred rows
DENSEST = 4_000_000  # number of pairs of people and places in one assignment
WORK = 150_000_000  # maximum number of pairs of a bucket and a class that the moves may examine
ROUNDS = 4
_EPS = 1e-9


@dataclass(eq=False)
class Bucket:
    """A row for each value of a signature. rows: value -> row of the table; the other rows are made up.

    least  cached loss of the finest tuple that covers all its people
    """

    signature: Signature
    rows: dict[str, int]
    least: float | None = None

    def joined(self, rows: dict[str, int]) -> None:
        """Add people, each with a value that no person in the bucket has."""
        self.rows |= rows
        self.signature = tuple(sorted({*self.signature, *rows}))
        self.least = None

    @property
    def size(self) -> int:
        """Number of rows, including made-up ones."""
        return len(self.signature)

    @property
    def gaps(self) -> int:
        """Number of made-up rows."""
        return len(self.signature) - len(self.rows)


class HashedRows:
    """The current table: published values, sensitive value, and keyed hash of every row.

    frame  the table
    code   int64[rows, columns], numbers of the values
    words  hash -> value
    known  rows of people who keep a signature
    order  a secret order of the rows
    """

    def __init__(self, frame: pl.DataFrame, persons: Sequence[str], policy: Policy, keyed: Keyed) -> None:
        self.frame, self.persons = frame, persons
        texts: list[Text] = frame[policy.sensitive[0]].to_list()
        hashed = {v: keyed.one("value", [v]) for v in set(texts)}
        self.value = [hashed[v] for v in texts]
        self.words = {h: v for v, h in hashed.items()}
        self.known: set[int] = set()
        self.k = max((m.k for m in policy.privacy if m.short == "k"), default=1)  # type: ignore[attr-defined]
        self.l = max(m.l for m in policy.privacy if m.short == "l")  # type: ignore[attr-defined]
        values = {n: frame[n].to_list() for n in policy.grouped}
        self.columns = [Widening(c, values[c.name]) for c in columns_of(policy, values)]
        self.code = np.array([c.numbers(values[c.column.name]) for c in self.columns]).T.reshape(len(texts), -1)
        self.tuple = [tuple(row) for row in self.code.tolist()]
        self.order = permutation(len(texts), ShuffleKey.of(None).order).tolist()

    def eligible(self, rows: Sequence[int]) -> bool:
        """Whether rows can be divided into buckets: there are none, or enough, and no value is too frequent."""
        most = max(Counter(self.value[i] for i in rows).values(), default=0)
        return not rows or (len(rows) >= max(self.k, self.l) and most * self.l <= len(rows))

    def dealt(self, members: list[int]) -> list[Bucket]:
        """Newcomers of one eligible class in buckets of at least l different values.

        In n rows, no value occurs more than floor(n / l) times. Rows are sorted by value and dealt to floor(n / l)
        buckets, so equal values are in different buckets, and every bucket has at least l rows.
        """
        counts = Counter(self.value[i] for i in members)
        members = sorted(members, key=lambda i: (-counts[self.value[i]], self.value[i], self.tuple[i], self.order[i]))
        many = len(members) // self.l
        found = []
        for h in range(many):
            rows = {self.value[i]: i for i in members[h::many]}
            found.append(Bucket(tuple(sorted(rows)), rows))
        return found


@dataclass(eq=False)
class _Class:
    """Buckets with the same published tuple, in an order; the index of the class in the arrays of ``ClassBuilder``."""

    number: int
    buckets: dict[Bucket, None]
    held: list[Counter[int]]  # for each column: value -> number of people who have it


class ClassBuilder:
    """The classes of a part while it is formed.

    text  int64[classes, columns], numbers of the published texts
    size  number of rows of each class
    loss  loss of one row of each class
    """

    def __init__(self, people: HashedRows) -> None:
        self.people = people
        self.classes: dict[int, _Class] = {}
        self.text = np.zeros((16, len(people.columns)), np.int64)
        self.size, self.loss, self.alive = np.zeros(16), np.zeros(16), np.zeros(16, bool)
        self.used = 0
        self.work = 0

    # classes

    def found(self, buckets: list[Bucket], texts: Tuple | None = None) -> _Class:
        """Create a class. texts: its tuple; None: the finest that covers all its people."""
        if self.used == self.size.size:
            for name in ("text", "size", "loss", "alive"):
                held = getattr(self, name)
                setattr(self, name, np.concatenate([held, np.zeros_like(held)]))
        one = _Class(self.used, dict.fromkeys(buckets), [Counter() for _ in self.people.columns])
        self._count(one, [i for bucket in buckets for i in bucket.rows.values()])
        self.used += 1
        self.classes[one.number] = one
        self.alive[one.number] = True
        self.size[one.number] = sum(bucket.size for bucket in buckets)
        if texts is None:
            at = self._closure(one, None)
        else:
            at = np.array([c.number(t) for c, t in zip(self.people.columns, texts, strict=True)])
        self._set(one, at)
        return one

    def _count(self, one: _Class, rows: Sequence[int], sign: int = 1) -> None:
        """Add people to a class's counts, or remove them."""
        for j, held in enumerate(one.held):
            for i in rows:
                v = self.people.tuple[i][j]
                held[v] += sign
                if not held[v]:
                    del held[v]

    def _set(self, one: _Class, texts: np.ndarray) -> None:
        self.text[one.number] = texts
        self.loss[one.number] = self._lost(texts)

    def _lost(self, texts: np.ndarray) -> float:
        return sum(float(c.loss[t]) for c, t in zip(self.people.columns, texts, strict=True)) / len(texts)

    def _closure(self, one: _Class, now: np.ndarray | None) -> np.ndarray:
        """The finest tuple that covers all people of a class. now: its current tuple, which an empty class keeps."""
        return self._finest([sorted(held) for held in one.held], now)

    def _finest(self, held: Sequence[Iterable[int]], now: np.ndarray | None) -> np.ndarray:
        """The finest tuple that covers given values. now: the text of a column without values."""
        out = np.zeros(len(self.people.columns), np.int64) if now is None else now.copy()
        for j, (column, values) in enumerate(zip(self.people.columns, held, strict=True)):
            at = -1
            for v in values:
                at = column.own(v) if at < 0 else column.joined_one(at, v)
                if at == column.star:
                    break
            if at >= 0:
                out[j] = at
        return out

    def _own(self, one: _Class, bucket: Bucket) -> np.ndarray:
        """The finest tuple that covers the people of a bucket."""
        tuples = [self.people.tuple[i] for i in bucket.rows.values()]
        held = [sorted(set(of)) for of in zip(*tuples, strict=True)] if tuples else [()] * len(self.people.columns)
        return self._finest(held, self.text[one.number])

    def _with(self, texts: np.ndarray, rows: Sequence[int]) -> np.ndarray:
        """A tuple after rows are added."""
        out = texts.copy()
        for j, column in enumerate(self.people.columns):
            for v in {self.people.tuple[i][j] for i in rows}:
                out[j] = column.joined_one(out[j], v)
        return out

    def _least(self, one: _Class, bucket: Bucket) -> float:
        """A lower bound for the loss of a bucket's row in any class."""
        if bucket.least is None:
            bucket.least = self._lost(self._own(one, bucket))
        return bucket.least

    def tighten(self) -> None:
        """Set the tuple of every class to the finest that covers its people."""
        for one in self.classes.values():
            self._set(one, self._closure(one, self.text[one.number]))

    def _close(self, one: _Class) -> None:
        del self.classes[one.number]
        self.alive[one.number] = False

    def published(self) -> Iterator[tuple[Tuple, list[Bucket]]]:
        """The tuple and the buckets of every class."""
        for one in self.classes.values():
            at = self.text[one.number]
            yield tuple(c.texts[t] for c, t in zip(self.people.columns, at, strict=True)), [*one.buckets]

    # prices

    def _offers(self, rows: Sequence[int], size: int) -> np.ndarray:
        """float64[classes]: the increase of the loss if a class gets this many new rows with the given values."""
        used = slice(0, self.used)
        after = np.zeros(self.used)
        for j, column in enumerate(self.people.columns):
            at = self.text[used, j]
            for v in {self.people.tuple[i][j] for i in rows}:
                at = column.joined(at, v)
            after += column.loss[at]
        after /= len(self.people.columns)
        cost: np.ndarray = self.size[used] * (after - self.loss[used]) + size * after
        cost[~self.alive[used]] = np.inf
        self.work += self.used
        return cost

    def _costs(self, classes: np.ndarray, people: Sequence[int]) -> np.ndarray:
        """float64[people, places]: the increase of the loss if a newcomer takes a place."""
        total = np.zeros((len(people), classes.size))
        for j, column in enumerate(self.people.columns):
            texts, at = np.unique(self.text[classes, j], return_inverse=True)
            values, of = np.unique(self.people.code[people, j], return_inverse=True)
            wide = np.stack([column.lost(texts, v) for v in values.tolist()])
            before = column.loss[texts]
            total += self.size[classes] * (
                wide[np.ix_(of, at)] - before[at]
            )  # the row of the place is published anyway
        return total / len(self.people.columns)

    def _usual(self) -> float:
        """The mean loss of a row, as an estimate for a newcomer elsewhere."""
        many = float((self.size * self.alive).sum())
        return float((self.size * self.loss * self.alive).sum()) / many if many else 0.0

    # gaps

    def _gaps(self) -> Iterator[tuple[_Class, Bucket]]:
        for one in self.classes.values():
            for bucket in one.buckets:
                if bucket.gaps:
                    yield one, bucket

    def take_gaps(self) -> list[Bucket]:
        """Remove every bucket with a made-up row."""
        found = list(self._gaps())
        for one, bucket in found:
            self._leave(one, bucket)
        return [bucket for _, bucket in found]

    def fill(self, fresh: list[int]) -> list[int]:
        """Let newcomers take places of their value, by minimum-cost assignments; returns the people left over."""
        usual = self._usual()
        places: dict[str, list[tuple[_Class, Bucket]]] = defaultdict(list)
        for one, bucket in self._gaps():
            for value in bucket.signature:
                if value not in bucket.rows:
                    places[value].append((one, bucket))
        by_value: dict[str, list[int]] = defaultdict(list)
        for i in fresh:
            by_value[self.people.value[i]].append(i)
        left: list[int] = []
        # Solve one assignment for each value and block of places, small enough for memory. A place stays free if it
        # costs more than a made-up row.
        for value, people in by_value.items():
            waiting = people
            step = max(DENSEST // max(len(people), 1), 1)
            for start in range(0, len(places[value]), step):
                some = places[value][start : start + step]
                if not waiting:
                    break
                cost = self._costs(np.array([c.number for c, _ in some]), waiting) - usual
                rows, columns = linear_sum_assignment(np.minimum(cost, MADE_UP))
                taken = set()
                for r, c in zip(rows, columns, strict=True):
                    if cost[r, c] < MADE_UP:
                        one, bucket = some[c]
                        self._join(one, bucket, {value: waiting[r]})
                        taken.add(r)
                waiting = [i for r, i in enumerate(waiting) if r not in taken]
            left += waiting
        return left

    def merge(self, least: int = 2) -> None:
        """Merge pairs of buckets with one signature and made-up rows if their people have different values.

        least  minimum number of values of a signature
        """
        by_signature: dict[Signature, list[tuple[_Class, Bucket]]] = defaultdict(list)
        for one, bucket in self._gaps():
            by_signature[bucket.signature].append((one, bucket))
        for signature, some in by_signature.items():
            if len(signature) < least:
                continue
            if len(signature) == 2:
                self._match(signature, some)
                continue
            # the bucket with the fewest made-up rows merges with the cheapest one that fits, while this lowers the cost
            while some:
                some.sort(key=lambda p: -p[1].gaps)
                one, bucket = some.pop()
                fit = [p for p in some if not p[1].rows.keys() & bucket.rows.keys()]
                if not bucket.gaps or not fit:
                    continue
                price = [self._price_of_merging(one, p) for p in fit]
                best = int(np.argmin(price))
                if price[best] < MADE_UP * len(signature):
                    self._take_in(one, bucket, *fit[best])
                    some = [p for p in some if p[1] is not fit[best][1]] + [(one, bucket)]

    def _price_of_merging(self, one: _Class, other: tuple[_Class, Bucket]) -> float:
        texts = self._with(self.text[one.number], [*other[1].rows.values()])
        more = self.size[one.number] * (self._lost(texts) - self.loss[one.number])
        return float(more - other[1].size * self.loss[other[0].number])

    def _match(self, signature: Signature, some: list[tuple[_Class, Bucket]]) -> None:
        """The minimum-cost matching of buckets that have only the first value with those that have only the second."""
        sides = [[p for p in some if v in p[1].rows] for v in signature]
        if not all(sides):
            return
        numbers = [np.array([c.number for c, _ in side]) for side in sides]
        rows = [[h.rows[v] for _, h in side] for v, side in zip(signature, sides, strict=True)]
        gain = [2 * self.loss[n] for n in numbers]
        into_first = self._costs(numbers[0], rows[1]).T - gain[1][None, :]
        into_second = self._costs(numbers[1], rows[0]) - gain[0][:, None]
        cost = np.minimum(into_first, into_second)
        for r, c in zip(*linear_sum_assignment(np.minimum(cost, 2 * MADE_UP)), strict=True):
            if cost[r, c] < 2 * MADE_UP:
                if into_first[r, c] <= into_second[r, c]:
                    self._take_in(*sides[0][r], *sides[1][c])
                else:
                    self._take_in(*sides[1][c], *sides[0][r])

    def _take_in(self, one: _Class, bucket: Bucket, other: _Class, gone: Bucket) -> None:
        """Move the people of a bucket to another bucket of the same signature."""
        self._join(one, bucket, gone.rows)
        self._leave(other, gone)

    # newcomers

    def alike(self, fresh: list[int]) -> list[int]:
        """Newcomers in buckets of their own if a class publishes exactly their tuple; returns the people left over.

        The people left over can still be divided into buckets.
        """
        people, l = self.people, self.people.l
        by_tuple: dict[tuple[int, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for i in fresh:
            by_tuple[people.tuple[i]][people.value[i]].append(i)
        counts = Counter(people.value[i] for i in fresh)
        total = len(fresh)
        exact = {tuple(self.text[c.number].tolist()): c for c in self.classes.values()}
        taken: set[int] = set()
        for held, groups in sorted(by_tuple.items()):
            there = exact.get(tuple(c.own(v) for c, v in zip(people.columns, held, strict=True)))
            while there is not None:
                values = sorted((v for v in groups if groups[v]), key=lambda v: (-counts[v], v))[:l]
                rest = total - l
                after = counts - Counter(values)
                if len(values) < l or 0 < rest < max(people.k, l) or max(after.values(), default=0) * l > rest:
                    break
                counts, total = after, rest
                rows = {v: groups[v].pop() for v in values}
                taken |= set(rows.values())
                self._enter(there.number, Bucket(tuple(sorted(rows)), rows))
        return [i for i in fresh if i not in taken]

    def squeeze(self, hard: Iterable[int]) -> None:
        """Place people for whom no partners are left: in buckets of newcomers, otherwise with made-up rows.

        hard  in the order of their values
        """
        people = self.people
        open_to: list[tuple[int, Bucket]] = []
        shortest: dict[str, Signature] = {}
        for one in self.classes.values():
            for bucket in one.buckets:
                if not bucket.gaps and people.known.isdisjoint(bucket.rows.values()):
                    open_to.append((one.number, bucket))
                for v in bucket.signature:
                    shortest[v] = min(shortest.get(v, bucket.signature), bucket.signature, key=lambda s: (len(s), s))
        every = [*dict.fromkeys([*people.value, *people.words])]
        for value, some in itertools.groupby(hard, lambda i: people.value[i]):
            others = itertools.islice((v for v in every if v != value), people.l - 1)
            signature = shortest.get(value) or tuple(sorted([value, *others]))
            room: dict[int, list[Bucket]] = defaultdict(list)
            for number, bucket in open_to:
                if value not in bucket.rows:
                    room[number].append(bucket)
            for i in some:
                alone = Bucket(signature, {value: i})
                offers, price = self._offers([i], 1), self._offers([i], alone.size)
                best = min(room, key=lambda c: offers[c], default=None)
                if best is None or offers[best] >= MADE_UP * alone.gaps + float(price.min()):
                    self._enter(int(np.argmin(price)), alone)
                    continue
                self._join(self.classes[best], room[best].pop(), {value: i})
                if not room[best]:
                    del room[best]

    # moves

    def _leave(self, one: _Class, bucket: Bucket) -> None:
        del one.buckets[bucket]
        self._count(one, [*bucket.rows.values()], -1)
        self.size[one.number] -= bucket.size
        if one.buckets:
            self._set(one, self._closure(one, self.text[one.number]))
        else:
            self._close(one)

    def _enter(self, number: int, bucket: Bucket) -> None:
        one = self.classes[number]
        one.buckets[bucket] = None
        self.size[number] += bucket.size
        self._took(one, [*bucket.rows.values()])

    def _join(self, one: _Class, bucket: Bucket, rows: dict[str, int]) -> None:
        """Add people to a bucket of a class."""
        before = bucket.size
        bucket.joined(rows)
        self.size[one.number] += bucket.size - before
        self._took(one, [*rows.values()])

    def _took(self, one: _Class, rows: Sequence[int]) -> None:
        self._count(one, rows)
        self._set(one, self._with(self.text[one.number], rows))

    def _best(self, one: _Class, bucket: Bucket) -> tuple[float, int]:
        """The cheapest other class for a bucket, and its cost; infinite if there is none."""
        cost = self._offers([*bucket.rows.values()], bucket.size)
        cost[one.number] = np.inf
        best = int(np.argmin(cost))
        return float(cost[best]), best

    def improve(self) -> None:
        """Move buckets, dissolve classes that are too small or too costly, and form new ones, while the loss falls."""
        self._fill_small_classes()
        for _ in range(ROUNDS):
            before = self.work
            moved = self._gather()
            for number in np.argsort(-self.loss[: self.used] * self.alive[: self.used], kind="stable").tolist():
                if self.work > WORK or number not in self.classes or self.loss[number] <= _EPS:
                    continue
                one = self.classes[number]
                moved += self._spare(one) or self._dissolve(one, forced=False)
            if not moved or self.work > WORK or self.work == before:
                break

    def _spare(self, one: _Class) -> int:
        """Move buckets out of a class that doesn't need them if this lowers the loss."""
        moved = 0
        for bucket in list(one.buckets):
            if self.size[one.number] - bucket.size < self.people.k or not self._odd(one, bucket):
                continue
            rest = self._without(one, bucket)
            size, loss = self.size[one.number], self.loss[one.number]
            gain = size * loss - (size - bucket.size) * self._lost(rest)
            price, best = self._best(one, bucket)
            if price < gain - _EPS:
                self._leave(one, bucket)
                self._enter(best, bucket)
                moved += 1
        return moved

    def _without(self, one: _Class, bucket: Bucket) -> np.ndarray:
        """The finest tuple of a class without a bucket."""
        rows = [*bucket.rows.values()]
        self._count(one, rows, -1)
        found = self._closure(one, self.text[one.number])
        self._count(one, rows)
        return found

    def _odd(self, one: _Class, bucket: Bucket) -> bool:
        """Whether a bucket may have a smaller loss elsewhere, or the class without it."""
        if self._least(one, bucket) < self.loss[one.number] - _EPS:
            return True
        # empty for a bucket without people
        columns = zip(*(self.people.tuple[i] for i in bucket.rows.values()), strict=True)
        return any(held[v] == of.count(v) for held, of in zip(one.held, columns, strict=False) for v in of)

    def _dissolve(self, one: _Class, *, forced: bool) -> int:
        """Move all buckets of a class to others if this lowers the loss; returns the number of moved buckets."""
        if not forced:
            least = sum(h.size * self._least(one, h) for h in one.buckets)
            if least >= self.size[one.number] * self.loss[one.number] - _EPS:
                return 0
        found = [self._best(one, bucket) for bucket in one.buckets]
        price = sum(p for p, _ in found)
        if not np.isfinite(price) or (not forced and price >= self.size[one.number] * self.loss[one.number] - _EPS):
            return 0
        buckets = list(one.buckets)
        self._close(one)
        for bucket in buckets:
            cost = self._offers([*bucket.rows.values()], bucket.size)
            self._enter(int(np.argmin(cost)), bucket)
        return len(buckets)

    def _gather(self) -> int:
        """Form classes of buckets that the same tuple covers and that their classes don't need."""
        by_text: dict[tuple[int, ...], list[tuple[_Class, Bucket]]] = defaultdict(list)
        for one in self.classes.values():
            if self.loss[one.number] > _EPS and self.size[one.number] > self.people.k:
                for bucket in one.buckets:
                    if bucket.rows and self._least(one, bucket) < self.loss[one.number] - _EPS:
                        own = self._own(one, bucket)
                        by_text[tuple(own.tolist())].append((one, bucket))
        moved = 0
        for text, some in by_text.items():
            going: list[tuple[_Class, Bucket]] = []
            gone: Counter[int] = Counter()
            for one, bucket in some:
                left = self.size[one.number] - gone[one.number] - bucket.size
                if one.number in self.classes and (left >= self.people.k or left == 0):
                    gone[one.number] += bucket.size
                    going.append((one, bucket))
            if sum(h.size for _, h in going) < self.people.k:
                continue
            for one, bucket in going:
                self._leave(one, bucket)
            made = self.found([h for _, h in going], None)
            self._set(made, np.array(text))
            moved += len(going)
        return moved

    def _fill_small_classes(self) -> None:
        """Ensure that no class has fewer than k rows: move its buckets, or add made-up rows, whichever is cheaper."""
        while True:
            small = [c for c in self.classes.values() if self.size[c.number] < self.people.k]
            if not small:
                return
            one = min(small, key=lambda c: (self.size[c.number], c.number))
            price = sum(self._best(one, bucket)[0] for bucket in one.buckets)
            if not np.isfinite(price) or not self._dissolve(one, forced=True):
                return

    def defer(self, may: set[int], above: float) -> list[int]:
        """Remove buckets of newcomers who may wait from classes with a larger loss than ``above``; returns their
        people."""
        away: list[int] = []
        for one in list(self.classes.values()):
            if self.loss[one.number] <= above + _EPS:
                continue
            going = [bucket for bucket in one.buckets if bucket.rows and may.issuperset(bucket.rows.values())]
            if len(going) < len(one.buckets):  # the remaining buckets must stay eligible
                left = self.size[one.number] - self.people.k
                going = [bucket for bucket in going if (left := left - bucket.size) >= 0]
            for bucket in going:
                self._leave(one, bucket)
                away += bucket.rows.values()
        return away

    def enough(self) -> None:
        """If the last class is too small, add made-up buckets of its smallest signature."""
        self._fill_small_classes()
        for one in self.classes.values():
            while self.size[one.number] < self.people.k:
                least = min((h.signature for h in one.buckets), key=lambda s: (len(s), s))
                self._enter(one.number, Bucket(least, {}))

    def drop_small(self) -> list[int]:
        """Remove classes that stay too small; returns their people."""
        self._fill_small_classes()
        small = [c for c in self.classes.values() if self.size[c.number] < self.people.k]
        for one in small:
            self._close(one)
        return [i for c in small for h in c.buckets for i in h.rows.values()]
