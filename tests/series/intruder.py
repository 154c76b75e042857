"""Small series at random, and an enumeration of what an intruder who holds all their parts can conclude.

Each mode is run by its own functions, with a search that finds any classes that meet the models: what the mode promises
may not lean on how classes are found.  Then every assignment of values to people that agrees with the parts counts as
equally likely, and nobody may have a value with a higher share of them than 1/l.
"""

import itertools
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

import shoal
from shoal.publishing.series import again, increment, views
from shoal.publishing.series_folder import Keyed, Ledger
from tests.series.common import Row, classes, frame, meets, policy

PARTS = 12
LARGEST = 600_000  # assignments that are enumerated at once
QUASI = ["age", "zip"]
Assigned = Sequence[tuple[Sequence[int], Mapping[str, int]]]


class TooMany(Exception):
    """More assignments than are enumerated."""


class Above(AssertionError):
    """Somebody has a value with more than the promise."""


def any_classes(rng: random.Random, k: int, l: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A search that joins random classes until each meets k and l, and stars where they differ."""

    def search(table: pl.DataFrame) -> pl.DataFrame:
        rows = table.select(*QUASI, "ill").rows()
        classes: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            classes[row[:-1]].append(i)

        def meets(some: list[int]) -> bool:
            return len(some) >= k and max(Counter(rows[i][-1] for i in some).values()) * l <= len(some)

        while any(not meets(some) for some in classes.values()):
            if len(classes) == 1:
                raise shoal.InfeasibleError("no classes meet the models")
            poor = rng.choice(sorted(t for t, some in classes.items() if not meets(some)))
            other = rng.choice(sorted(t for t in classes if t != poor))
            joined = classes.pop(poor) + classes.pop(other)
            text = tuple(a if a == b else "*" for a, b in zip(poor, other, strict=True))
            classes[text] += joined
        texts = {i: text for text, some in classes.items() for i in some}
        shown = pl.DataFrame([texts[i] for i in range(len(rows))], schema=QUASI, orient="row")
        return table.with_columns(shown)

    return search


def shares(people: int, values: Sequence[str], most: Assigned, *, exactly: bool) -> list[dict[str, Fraction]]:
    """Of every person the share of all assignments in which each value is theirs.

    most     (people, value -> how often it may stand among them)
    exactly  whether it stands there that often, not at most
    """
    if len(values) ** people > LARGEST:
        raise TooMany
    grid = np.array(list(itertools.product(range(len(values)), repeat=people)), np.int8).reshape(-1, people)
    agree = np.ones(len(grid), bool)
    for who, shown in most:
        for v, value in enumerate(values):
            stands = (grid[:, list(who)] == v).sum(axis=1)
            agree &= stands == shown.get(value, 0) if exactly else stands <= shown.get(value, 0)
    worlds = grid[agree]
    assert len(worlds), "what happened agrees with what was published"
    return [{v: Fraction(int((worlds[:, p] == i).sum()), len(worlds)) for i, v in enumerate(values)}
            for p in range(people)]  # fmt: skip


def never_above(found: Iterable[Mapping[str, Fraction]], l: int) -> int:
    """How many people; Above where one has a value with more than 1/l."""
    many = 0
    for chances in found:
        many += 1
        if max(chances.values()) > Fraction(1, l):
            raise Above(f"{max(chances.values())} is above 1/{l}")
    return many


def _random_row(rng: random.Random, values: str) -> tuple[str, str, str]:
    return rng.choice("12"), rng.choice("xy"), rng.choice(values)


# again

Lives = dict[tuple[str, int], str]  # who was published, and how often they had been corrected by then -> the value


def lives_of(rows: Sequence[Row], months: Sequence[tuple[int, Lives, Ledger]], ledger: Ledger, keyed: Keyed) -> Lives:
    """Of everybody whom a part publishes; a value that changes is one who leaves and one who comes."""
    last: dict[str, tuple[int, str]] = {}
    for _, lives, _ in months:
        last |= {person: (times, value) for (person, times), value in lives.items()}
    part = dict(ledger.persons.select("person", "part").rows())
    found: Lives = {}
    for person, _, _, value in rows:
        if part.get(keyed.one("person", [person])) == ledger.number:
            times, before = last.get(person, (0, value))
            found[person, times + (value != before)] = value
    return found


def tried_again(seed: int, signatures: int | None = None) -> str:
    """Twelve parts of a whole table in which people come, leave, return, move and are corrected."""
    rng = random.Random(seed)
    l, counterfeits, wait = rng.choice([2, 2, 2, 3]), rng.random() < 0.7, rng.choice([0, 0, 1, 2])
    values = "abc" if l == 2 else "abcd"
    k = rng.choice([1, 2, 3])
    asked, keyed, ledger = policy(k=k, l=l), Keyed(seed.to_bytes(32, "big")), Ledger()
    now = {f"p{i}": _random_row(rng, values) for i in range(rng.randint(4, 7))}
    here, published = set(now), []
    months: list[tuple[int, Lives, Ledger]] = []
    for part in range(PARTS):
        if part:
            _changes(rng, now, here, values, part)
        rows: list[Row] = [(p, *now[p]) for p in sorted(here)]
        if not rows:
            continue
        table = frame(rows)
        persons = keyed.column("person", table["id"])
        try:
            added = again.add(
                table.drop("id"), persons, ledger, keyed, any_classes(rng, k, l), asked,
                shown=lambda n: published[n - 1].unique(), counterfeits=counterfeits, wait=wait, wait_above=0.4,
                signatures=signatures,
            )  # fmt: skip
        except shoal.InfeasibleError:
            continue
        shown = added.frame.collect()
        if shown.height == 0:
            continue
        if not meets(shown, k, l):
            raise Above("a class does not meet the models")
        ledger = added.ledger
        published.append(shown)
        months.append((ledger.number, lives_of(rows, months, added.ledger, keyed), added.ledger))
    if len(months) < 2:
        return "too few parts"
    chosen = months if rng.random() < 0.7 else sorted(rng.sample(months, 2), key=lambda m: m[0])
    try:
        many = never_above(whole_tables(chosen, keyed), l)
    except TooMany:
        return "too many assignments"
    return f"{'all' if chosen is months else 'two'} parts of {len(months)}" if many else "nobody published"


def tried_few_signatures(seed: int) -> str:
    """``tried_again`` of newcomers who have few signatures."""
    return tried_again(seed, signatures=1 + seed % 2)


def _changes(rng: random.Random, now: dict[str, tuple[str, str, str]], here: set[str], values: str, part: int) -> None:
    for person in sorted(now):
        what = rng.random()
        age, code, ill = now[person]
        if person in here and what < 0.12:
            here.discard(person)
        elif person not in here and what < 0.25:
            here.add(person)
        elif person in here and what < 0.15:
            now[person] = (age, code, rng.choice(values))
        elif person in here and what < 0.2:
            now[person] = (rng.choice("12"), code, ill)
    if rng.random() < 0.3 and len(now) < 9:
        now[f"q{part}"] = _random_row(rng, values)
        here.add(f"q{part}")


def whole_tables(months: Sequence[tuple[int, Lives, Ledger]], keyed: Keyed) -> list[dict[str, Fraction]]:
    """By an intruder who knows who is in each table, in which class, with whom in a group, and who was corrected."""
    where: dict[tuple[str, int], list[tuple[int, str, str]]] = defaultdict(list)
    copies: dict[tuple[int, str, str], int] = {}
    for number, lives, ledger in months:
        lines = {p: (t, s) for p, _, t, _, s in ledger.persons.rows()}
        copies |= {(number, t, s): n for t, s, n in ledger.units}
        for who in lives:
            where[who].append((number, *lines[keyed.one("person", [who[0]])]))
    grouped: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for who, places in where.items():
        if len({s for _, _, s in places}) > 1:
            raise Above("somebody who stayed has other possible values than before")
        grouped[places[0][2]].add(who)
    found = []
    for signature, people in grouped.items():  # people of other signatures are in no condition with them
        for some in _connected(sorted(people), where):
            stands: dict[tuple[int, str, str], list[int]] = defaultdict(list)
            for i, who in enumerate(some):
                for place in where[who]:
                    stands[place].append(i)
            values = signature.split()
            most = [(who, dict.fromkeys(values, copies[place])) for place, who in stands.items()]
            found += shares(len(some), values, most, exactly=False)
    return found


def _connected(
    people: Sequence[tuple[str, int]], where: Mapping[tuple[str, int], Sequence[tuple[int, str, str]]]
) -> list[list[tuple[str, int]]]:
    """People in parts that share no group: what is known of one tells nothing of another."""
    groups: list[tuple[set[tuple[str, int]], set[tuple[int, str, str]]]] = []
    for who in people:
        mine, places = {who}, set(where[who])
        for other in [g for g in groups if g[1] & places]:
            groups.remove(other)
            mine |= other[0]
            places |= other[1]
        groups.append((mine, places))
    return [sorted(g) for g, _ in groups]


# increment


def new_people(
    table: pl.DataFrame, persons: pl.Series, search: Callable[[pl.DataFrame], pl.DataFrame]
) -> increment.NewPeople:
    """People of a table in memory, published by any search."""
    ordered, number = increment.numbered(persons)
    hashed = table.with_columns(number.alias("id"))
    return increment.NewPeople(ordered, "id", lambda n: table[n].to_list(), lambda: search(hashed).lazy())


def tried_increment(seed: int) -> str:
    """Twelve parts of new people, some of whom wait; the intruder knows, or does not know, when somebody came in."""
    rng = random.Random(seed)
    k, l, wait = rng.choice([1, 2, 3]), 2, rng.choice([0, 1, 2])
    asked, keyed, ledger = policy(k=k, l=l), Keyed(seed.to_bytes(32, "big")), Ledger()
    waiting: list[Row] = []
    parts: list[pl.DataFrame] = []
    for part in range(PARTS):
        rows = waiting + [(f"{part}-{i}", *_random_row(rng, "abc")) for i in range(rng.randint(2, 5))]
        table = frame(rows)
        persons = keyed.column("person", table["id"])
        new = new_people(table, persons, any_classes(rng, k, l))
        try:
            with tempfile.TemporaryDirectory() as scratch:
                added = increment.add(
                    new, ledger, keyed, asked, wait=wait, wait_above=0.4, without_waiting=False, scratch=Path(scratch)
                )
                shown = added.frame.collect()
        except shoal.InfeasibleError:
            waiting = rows[-6:] if not ledger.waiting else rows
            continue
        ledger = added.ledger
        waiting = [row for row, p in zip(rows, persons, strict=True) if p in ledger.waiting]
        if shown.height:
            parts.append(shown)
    if not parts:
        return "too few parts"
    for table in [*parts, pl.concat(parts)]:  # in a class of one part, or of all, everybody may be everybody
        never_above(({v: Fraction(n, c.total()) for v, n in c.items()} for c in classes(table)), l)
    once = ledger.persons["person"].n_unique() == ledger.persons.height == sum(p.height for p in parts)
    if not once:
        raise Above("somebody was published twice")
    return f"{len(parts)} parts"


# views


def tried_views(seed: int, change: Callable[[pl.DataFrame], pl.DataFrame] | None = None) -> str:
    """A table and eleven views of it; the intruder knows in which class of every one a person stands.

    change  what is done to every view, to see that it is noticed

    Who holds all parts takes every assignment for equally likely.  Who holds views without the first part knows also
    that its classes meet l, as the series promises.
    """
    rng = random.Random(seed)
    k, l = rng.choice([1, 2]), 2
    tree = ";".join
    ages = "\n".join(map(tree, [("1", "1-2", "1-4", "*"), ("2", "1-2", "1-4", "*"), ("3", "3-4", "1-4", "*"),
                                ("4", "3-4", "1-4", "*")]))  # fmt: skip
    hierarchy = shoal.Hierarchy.of([row.split(";") for row in ages.splitlines()])
    asked = policy(k=k, l=l, publish="hierarchy", hierarchies={"age": hierarchy})
    people = [(rng.choice("1234"), rng.choice("xy"), rng.choice("abc")) for _ in range(rng.randint(4, 8))]
    table = pl.DataFrame(people, schema=[*QUASI, "ill"], orient="row")
    try:
        first = any_classes(rng, k, l)(table)
    except shoal.InfeasibleError:
        return "too few parts"
    parts = [first]
    for _ in range(PARTS - 1):
        columns = rng.sample([*QUASI, "ill"], rng.randint(1, 3))
        if not {*QUASI} & {*columns}:
            columns.append("age")
        way = rng.choice(["hierarchy", "stars"]) if "age" in columns else "stars"
        levels = {"age": rng.randint(0, 2)} if way == "hierarchy" else None
        made = views.view(first, views.ReaderView.of(asked, columns, way, levels), asked)
        parts.append(made if change is None else change(made))
    values = sorted(set(table["ill"]))

    def told(some: Sequence[pl.DataFrame]) -> list[tuple[list[int], dict[str, int]]]:
        out = []
        for part in some:
            if "ill" not in part.columns:
                continue
            groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
            for i, row in enumerate(part.select(q for q in QUASI if q in part.columns).rows()):
                groups[row].append(i)
            out += [(who, Counter(part["ill"][who].to_list())) for who in groups.values()]
        return out

    if len(values) ** len(people) > LARGEST:
        return "too many assignments"
    never_above(shares(len(people), values, told(parts), exactly=True), l)
    classes = [who for who, _ in told([first])]
    grid = np.array(list(itertools.product(range(len(values)), repeat=len(people))), np.int8)
    agree = np.ones(len(grid), bool)
    for who, shown in told(rng.sample(parts[1:], rng.randint(1, PARTS - 1))):
        for v, value in enumerate(values):
            agree &= (grid[:, who] == v).sum(axis=1) == shown.get(value, 0)
    for who in classes:
        for v in range(len(values)):
            agree &= (grid[:, who] == v).sum(axis=1) * l <= len(who)
    worlds = grid[agree]
    never_above(
        ({str(v): Fraction(int((worlds[:, p] == v).sum()), len(worlds)) for v in range(len(values))}
         for p in range(len(people))), l,
    )  # fmt: skip
    return "all parts, and views without the first"


KINDS = {"again": tried_again, "signatures": tried_few_signatures, "increment": tried_increment, "views": tried_views}
