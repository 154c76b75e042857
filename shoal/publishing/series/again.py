"""Mode "again": the whole table each time, while people come, stay, change and go.

m-invariance (Xiao, Tao 2007): whoever stays keeps the set of values that remain possible.  A published class consists
of groups; a group has a signature, a set of at least l values, and shows every one of them equally often, its *copies*.
Who stays is seated in the group of the part before; the seat of somebody who left is taken by a newcomer of the same
value, by somebody of the same signature who returns, or by a made-up row.  Newcomers without a seat form new classes by
the search, and these are dealt out into groups.  The proof is in docs/series.md.

Source: X. Xiao, Y. Tao, m-invariance: towards privacy preserving re-publication of dynamic datasets, SIGMOD 2007.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

from shoal.engines.order import Lot, permutation
from shoal.errors import InfeasibleError, InputError
from shoal.judge.tables.parts import count_release
from shoal.model.policy import Policy
from shoal.publishing.series.cells import Text, columns_of, tuple_loss, widened
from shoal.publishing.series.increment import Added, Search
from shoal.publishing.series.ledger import SCHEMA, Keyed, Ledger

Tuple = tuple[Text, ...]
Signature = tuple[str, ...]  # hashes of values, sorted

MADE_UP = 0.5  # a made-up row is held as dear as half a row starred whole
DENSEST = 4_000_000  # pairs of newcomers and seats that are weighed at once


@dataclass(eq=False)
class _Group:
    """Rows by value, and how often each value of the signature stands there."""

    copies: int = 0
    rows: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def open(self, value: str) -> int:
        """Seats of a value that nobody has."""
        return self.copies - len(self.rows[value])


@dataclass(eq=False)
class _Class:
    """Rows published alike: its tuple and its groups by signature."""

    texts: Tuple
    groups: dict[Signature, _Group] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Rows, made-up ones included."""
        return sum(g.copies * len(s) for s, g in self.groups.items())

    def group(self, signature: Signature) -> _Group:
        """The group of a signature, made where there is none."""
        return self.groups.setdefault(signature, _Group())

    def missing(self) -> int:
        """Seats that nobody has."""
        return sum(g.open(v) for s, g in self.groups.items() for v in s)


class _Table:
    """A table at hand: published values, sensitive value and keyed hashes of every row."""

    def __init__(self, frame: pl.DataFrame, persons: Sequence[str], policy: Policy, keyed: Keyed) -> None:
        self.quasi: list[Tuple] = frame.select(policy.grouped).rows()
        self.texts: list[Text] = frame[policy.sensitive[0]].to_list()
        known = {v: keyed.one("value", [v]) for v in set(self.texts)}
        self.value = [known[v] for v in self.texts]
        self.persons = persons
        self.words = {h: v for v, h in known.items()}  # hash -> value, for made-up rows
        self.columns = columns_of(policy, {n: frame[n].to_list() for n in policy.grouped})
        self.k = max((m.k for m in policy.privacy if m.short == "k"), default=1)  # type: ignore[attr-defined]
        self.l = max(m.l for m in policy.privacy if m.short == "l")  # type: ignore[attr-defined]


def add(
    frame: pl.DataFrame,
    persons: Sequence[str] | None,
    ledger: Ledger,
    keyed: Keyed,
    search: Search,
    policy: Policy,
    *,
    releases: Sequence[Path],
    counterfeits: bool,
) -> Added:
    """The next part, of the whole table as it now is.

    frame     the table's columns as text;  persons: keyed hash of each row's person
    search    publishes a table so that it meets the models, rows in their order
    releases  the tables published so far

    Raises InputError for a table without persons or with columns that made-up rows could not have, InfeasibleError
    where no part can exist.  The search of the newcomers without a seat, a minimum-cost assignment of the others for
    each sensitive value, O(n) beside them.
    """
    if persons is None:
        raise InputError("mode 'again' knows people again; name the column of persons with --person (person=...)")
    twice = len(persons) - len(set(persons))
    if twice:
        raise InputError(f"{twice:,} rows are a second row of a person; a series of this mode takes one row a person")
    extra = [c for c in frame.columns if c not in (*policy.grouped, *policy.sensitive)]
    if extra:
        raise InputError(
            f"column {extra[0]!r} is carried along, and a made-up row could have no value there; name it among the "
            "identifiers, so that it leaves the table"
        )
    table = _Table(frame, persons, policy, keyed)
    classes, movers, fresh = _seated(table, ledger, keyed, policy, releases)
    held: list[int] = []
    for i, signature in movers:
        _move(i, signature, table, classes)
    _enough(classes, table.k)
    fresh = _fill(fresh, table, classes)
    if not counterfeits:
        fresh, held = _hold_back(fresh, table, classes, {i for i, _ in movers}, ledger)
    rest, hard = _eligible(fresh, table)
    if rest:
        try:
            _new_classes(rest, table, search(frame[rest]), policy, classes)
        except InfeasibleError:
            if not classes:
                raise
            hard += rest
    if not counterfeits:
        held += hard
    elif hard:
        if not classes:
            search(frame)  # says what cannot be met
        for i in sorted(hard, key=lambda i: table.value[i]):
            _squeeze(i, table, classes)
    return _written(table, classes, ledger, keyed, policy, len(held))


def _seated(
    table: _Table, ledger: Ledger, keyed: Keyed, policy: Policy, releases: Sequence[Path]
) -> tuple[list[_Class], list[tuple[int, Signature]], list[int]]:
    """The classes of the part before with those who stay, those who must move with their signature, the newcomers."""
    shown: dict[str, Tuple] = {}
    for path in releases:
        held = count_release(path, [*policy.grouped, *policy.sensitive]).cells
        cells = held.with_columns(pl.all().cast(pl.String))
        cells = cells.with_columns(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())
        for value in cells[policy.sensitive[0]].unique().to_list():
            table.words.setdefault(keyed.one("value", [value]), value)
        if path == releases[-1]:
            shown = {keyed.one("tuple", t): t for t in set(cells.select(policy.grouped).rows())}
    before = {p: (part, t, v, s) for p, part, t, v, s in ledger.persons.rows()}
    known: dict[str, _Class] = {}
    movers, fresh = [], []
    for i, person in enumerate(table.persons):
        part, of, value, possible = before.get(person, (0, "", "", ""))
        if value != table.value[i]:
            fresh.append(i)
            continue
        signature = tuple(possible.split())
        texts = shown.get(of) if part == ledger.number else None
        if texts is None or not all(c.fits(t, q) for c, t, q in zip(table.columns, texts, table.quasi[i], strict=True)):
            movers.append((i, signature))
            continue
        group = known.setdefault(of, _Class(texts)).group(signature)
        group.rows[value].append(i)
        group.copies = max(group.copies, len(group.rows[value]))
    for of, possible, _ in ledger.units:  # groups whose people all left may be needed where a class became too small
        if of in known:
            known[of].group(tuple(possible.split()))
    return list(known.values()), movers, fresh


def _price(held: _Class, i: int, table: _Table) -> float:
    """What a class and a row lose, in rows starred whole, when the row is published with it."""
    texts = widened(table.columns, held.texts, table.quasi[i])
    after = tuple_loss(table.columns, texts)
    return held.size * (after - tuple_loss(table.columns, held.texts)) + after


def _sit(held: _Class, signature: Signature, i: int, table: _Table) -> None:
    group, value = held.group(signature), table.value[i]
    group.rows[value].append(i)
    group.copies = max(group.copies, len(group.rows[value]))
    held.texts = widened(table.columns, held.texts, table.quasi[i])


def _move(i: int, signature: Signature, table: _Table, classes: list[_Class]) -> None:
    """Somebody who returns, or whose quasi-identifiers changed, keeps the signature in whichever class is cheapest."""
    value, empty = table.value[i], MADE_UP * (len(signature) - 1)

    def price(held: _Class) -> float:
        group = held.groups.get(signature)
        return _price(held, i, table) + (0.0 if group is not None and group.open(value) > 0 else empty)

    own = _Class(tuple(c.own(v) for c, v in zip(table.columns, table.quasi[i], strict=True)))
    alone = MADE_UP * max(table.k, len(signature))
    best = min(classes, key=price, default=own)
    if best is own or price(best) > alone:
        best = own
        classes.append(own)
    _sit(best, signature, i, table)


def _enough(classes: list[_Class], k: int) -> None:
    """Classes that leavers made too small get further seats, of the smallest signature they have."""
    for held in classes:
        while held.size < k:
            least = min(held.groups, key=lambda s: (len(s), s))
            held.groups[least].copies += 1


def _fill(fresh: list[int], table: _Table, classes: list[_Class]) -> list[int]:
    """Seat newcomers where somebody of the same value left, by minimum-cost assignment for each value; who is left."""
    seats: dict[str, list[tuple[_Class, Signature]]] = defaultdict(list)
    for held in classes:
        for signature, group in held.groups.items():
            for value in signature:
                seats[value] += [(held, signature)] * group.open(value)
    by_value: dict[str, list[int]] = defaultdict(list)
    for i in fresh:
        by_value[table.value[i]].append(i)
    usual = _usual(classes, table)
    left: list[int] = []
    for value, people in by_value.items():
        waiting = people
        step = max(DENSEST // max(len(people), 1), 1)
        for start in range(0, len(seats[value]), step):
            some = seats[value][start : start + step]
            if not waiting:
                break
            cost = _costs([c for c, _ in some], waiting, table) - usual
            rows, columns = linear_sum_assignment(np.minimum(cost, MADE_UP))
            taken = set()
            for r, c in zip(rows, columns, strict=True):
                if cost[r, c] < MADE_UP:
                    held, signature = some[c]
                    _sit(held, signature, waiting[r], table)
                    taken.add(r)
            waiting = [i for r, i in enumerate(waiting) if r not in taken]
        left += waiting
    return sorted(left)


def _usual(classes: Iterable[_Class], table: _Table) -> float:
    """Mean loss of a row of these classes: what a newcomer may expect elsewhere."""
    sizes = [(c.size, tuple_loss(table.columns, c.texts)) for c in classes]
    rows = sum(n for n, _ in sizes)
    return sum(n * x for n, x in sizes) / rows if rows else 0.0


def _costs(seats: Sequence[_Class], people: Sequence[int], table: _Table) -> np.ndarray:
    """float64[people, seats]: ``_price``, column by column over distinct texts and values."""
    total = np.zeros((len(people), len(seats)))
    size = np.array([c.size for c in seats], float)
    for j, column in enumerate(table.columns):
        texts, at = _coded([c.texts[j] for c in seats])
        values, of = _coded([table.quasi[i][j] for i in people])
        after = np.array([[column.loss(column.widened(t, v)) for t in texts] for v in values], float)
        before = np.array([column.loss(t) for t in texts], float)
        wide = after[np.ix_(of, at)]
        total += size * (wide - before[at]) + wide
    return total / len(table.columns)


def _coded(items: Sequence[Text]) -> tuple[list[Text], np.ndarray]:
    known: dict[Text, int] = {}
    codes = np.array([known.setdefault(x, len(known)) for x in items], int)
    return list(known), codes


def _hold_back(
    fresh: list[int], table: _Table, classes: list[_Class], movers: set[int], ledger: Ledger
) -> tuple[list[int], list[int]]:
    """Take classes with an empty seat out; newcomers go on looking, those published before are held back."""
    new = set(range(len(table.persons))) - movers
    before = dict(ledger.persons.select("person", "value").rows())
    new -= {i for i in new if before.get(table.persons[i]) == table.value[i]}
    held: list[int] = []
    for one in [c for c in classes if c.missing()]:
        classes.remove(one)
        rows = [i for g in one.groups.values() for some in g.rows.values() for i in some]
        fresh += [i for i in rows if i in new]
        held += [i for i in rows if i not in new]
    return sorted(fresh), held


def _eligible(fresh: list[int], table: _Table) -> tuple[list[int], list[int]]:
    """The most newcomers that can be groups of their own, and the others: too many of one value, or too few in all."""
    counts = Counter(table.value[i] for i in fresh)
    if not counts:
        return [], []
    value, most = counts.most_common(1)[0]
    allowed = min(most, (len(fresh) - most) // (table.l - 1))
    rest, hard, seen = [], [], 0
    for i in fresh:
        if table.value[i] == value:
            seen += 1
            if seen > allowed:
                hard.append(i)
                continue
        rest.append(i)
    if len(rest) < max(table.k, table.l) or max(Counter(table.value[i] for i in rest).values()) * table.l > len(rest):
        return [], fresh
    return rest, hard


def _new_classes(
    rest: list[int], table: _Table, published: pl.DataFrame, policy: Policy, classes: list[_Class]
) -> None:
    """Newcomers in classes of their own, each dealt out into groups of l or more different values.

    A class of n rows meets l, so no value stands there more than floor(n / l) times; dealt in the order of their values
    to floor(n / l) hands, equal values come into different hands, and every hand has at least l.
    """
    known = {c.texts: c for c in classes}
    rows: dict[Tuple, list[int]] = defaultdict(list)
    for i, texts in zip(rest, published.select(policy.grouped).rows(), strict=True):
        rows[texts].append(i)
    order = permutation(len(table.persons), Lot.of(None).order)
    for texts, members in rows.items():
        if texts not in known:
            known[texts] = _Class(texts)
            classes.append(known[texts])
        counts = Counter(table.value[i] for i in members)
        members.sort(key=lambda i: (-counts[table.value[i]], table.value[i], order[i]))
        hands = len(members) // table.l
        for h in range(hands):
            hand = members[h::hands]
            group = known[texts].group(tuple(sorted(table.value[i] for i in hand)))
            group.copies += 1
            for i in hand:
                group.rows[table.value[i]].append(i)


def _squeeze(i: int, table: _Table, classes: list[_Class]) -> None:
    """Somebody for whom nobody is left to stand beside: a seat, or seats with made-up rows, where it costs least."""
    value = table.value[i]
    if not any(value in s for c in classes for s in c.groups):
        best = min(classes, key=lambda c: _price(c, i, table))
        others = [v for v in dict.fromkeys([*table.value, *table.words]) if v != value][: table.l - 1]
        _sit(best, tuple(sorted([value, *others])), i, table)
        return

    def price(held: _Class, signature: Signature) -> float:
        empty = 0.0 if held.groups[signature].open(value) > 0 else MADE_UP * (len(signature) - 1)
        return _price(held, i, table) + empty

    places = [(c, s) for c in classes for s in c.groups if value in s]
    _sit(*min(places, key=lambda p: price(*p)), i, table)


def _written(table: _Table, classes: list[_Class], ledger: Ledger, keyed: Keyed, policy: Policy, held: int) -> Added:
    """The published rows, and the ledger after them."""
    rows: list[tuple[Text, ...]] = []
    lines: list[tuple[str, int, str, str, str]] = []
    units: Counter[tuple[str, str]] = Counter()
    made_up = 0
    for one in classes:
        of = keyed.one("tuple", one.texts)
        for signature, group in one.groups.items():
            possible = " ".join(signature)
            if group.copies:
                units[of, possible] += group.copies
            for value in signature:
                rows += [(*one.texts, table.words[value])] * group.copies
                made_up += group.open(value)
                lines += [(table.persons[i], ledger.number + 1, of, value, possible) for i in group.rows[value]]
    now = pl.DataFrame(lines, schema=SCHEMA, orient="row")
    persons = pl.concat([ledger.persons.join(now, on="person", how="anti"), now])
    names = [*policy.grouped, *policy.sensitive]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    after = Ledger(number=ledger.number + 1, persons=persons, units=[(t, s, n) for (t, s), n in sorted(units.items())])
    return Added(frame, after, made_up=made_up, held=held)
