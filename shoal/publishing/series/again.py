"""Mode "again": each part is the whole table, while people enter, stay, change, and leave.

m-invariance (Xiao, Tao 2007): a person who stays keeps the *signature*, the set of at least l values that remain
possible. A published class consists of *buckets*. A bucket has a signature and one row for each of its values, of a
person or made up. A made-up row is a *free place* for a person with its value. A person who stays keeps the signature,
but not necessarily the bucket or the class, so each part is formed anew:

1. A search groups the table without regard to earlier parts. Its classes and those of the previous part give the
   candidate tuples.
2. For each tuple, the finest first, buckets are formed from people whom it covers: people who stay and share a
   signature, with newcomers for missing values, or newcomers alone.
3. People who stay and have no bucket are matched: first with each other, if more than two values are possible, then
   with a newcomer who has the missing value, with a person of the same signature, or with a made-up row. The remaining
   newcomers form classes of their own.
4. Buckets move between classes, classes are dissolved, and new ones are formed, while this lowers the loss.
5. Newcomers with too large a loss wait for the next part, which may have more newcomers like them.

If few signatures are requested, buckets of newcomers have one of a few from the first part on. Then each signature has
more people, so more of those who leave are replaced, but classes are coarser.

The proof is in docs/series.md.

Source: X. Xiao, Y. Tao, m-invariance: towards privacy preserving re-publication of dynamic datasets, SIGMOD 2007.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from shoal.engines.order import ShuffleKey, permutation
from shoal.errors import InfeasibleError, InputError
from shoal.model.policy import Policy
from shoal.publishing.series.buckets import Bucket, ClassBuilder, HashedRows, Signature, Tuple
from shoal.publishing.series.increment import Added, Search, Text, refuse_twice, spellings
from shoal.publishing.series_folder import SCHEMA, Keyed, Ledger

Shown = Callable[[int], pl.DataFrame]


def add(
    frame: pl.DataFrame,
    persons: pl.Series | None,
    ledger: Ledger,
    keyed: Keyed,
    search: Search,
    policy: Policy,
    *,
    shown: Shown,
    counterfeits: bool,
    wait: int = 0,
    wait_above: float = 0.3,
    signatures: int | None = None,
) -> Added:
    """The next part, from the whole current table.

    frame     the table's columns as text
    persons   keyed hash of each row's person
    search    publishes a table that meets the models, and keeps the order of its rows
    shown     number of a part -> its distinct published rows as text
    wait, wait_above  after the first part, newcomers whose loss exceeds this share wait, for at most this many parts
    signatures  approximate number of signatures for newcomers; None: any

    Raises InputError for a table without persons or with columns that made-up rows can't have, InfeasibleError if no
    part exists. Runs a search of the table and one of the remaining newcomers, and minimum-cost assignments for each
    sensitive value and signature. O(buckets x classes) for each round of moves.
    """
    if persons is None:
        raise InputError("mode 'again' recognizes people; name the column of persons with ⟨person=...⟩")
    refuse_twice(persons)
    _refuse_respelled(frame[policy.sensitive[0]], persons, ledger, keyed)
    extra = [c for c in frame.columns if c not in (*policy.grouped, *policy.sensitive)]
    if extra:
        raise InputError(
            f"column {extra[0]!r} is insensitive, and a made-up row could have no value there; leave it out with "
            f"⟨identifiers={extra}⟩"
        )
    people = HashedRows(frame, persons.to_list(), policy, keyed)
    builder = ClassBuilder(people)
    fresh = _initial_classes(people, builder, ledger, keyed, search, policy, shown, signatures)
    builder.tighten()
    builder.merge(least=3)
    fresh = builder.fill(fresh)
    builder.merge()
    held = [] if counterfeits else _hold_back(fresh, people, builder)
    fresh, hard = _eligible(sorted(fresh), people)
    rest = builder.alike(fresh)
    if rest:
        try:
            published = search(frame[rest])
        except InfeasibleError:
            if not builder.classes:
                raise
            hard += rest
        else:
            _new_classes(rest, people, published, policy, builder)
    if not counterfeits:
        held += hard
    elif hard:
        if not builder.classes:
            search(frame)  # raises an error with the unmet condition
        builder.squeeze(sorted(hard, key=lambda i: people.value[i]))
    may = {i for i, p in enumerate(people.persons) if i not in people.known and ledger.waiting.get(p, 0) < wait}
    waiting = builder.defer(may, wait_above) if ledger.number else []
    builder.improve()
    if waiting:
        waiting += builder.defer(may, wait_above)
    if not counterfeits:
        held += builder.drop_small()
    else:
        builder.enough()
    waited = {people.persons[i]: ledger.waiting.get(people.persons[i], 0) + 1 for i in waiting}
    return _written(people, builder, ledger, keyed, policy, waited)._replace(held=len(held))


def _refuse_respelled(values: pl.Series, persons: pl.Series, ledger: Ledger, keyed: Keyed) -> None:
    """InputError if people who stay have their value in another spelling, such as 1.0 for 1.

    Each of them would count as one person who leaves and one who joins, and would get other possible values. A spelling
    that someone has in this table is another value. O(n) for n people, and about 20 hashes for each different value.
    """
    if not ledger.number:
        return
    here = pl.DataFrame([persons.alias("person"), values.alias("text")])
    both = here.join(ledger.persons.select("person", "value"), on="person").drop_nulls("text")
    own = set(values.drop_nulls())
    others = [(text, other) for text in sorted(own) for other in spellings(text) if other not in own]
    known = pl.DataFrame(others, schema={"text": pl.String, "other": pl.String}, orient="row")
    known = known.with_columns(keyed.column("value", known["other"]).alias("value"))
    if many := both.join(known, on=["text", "value"], how="semi").height:
        raise InputError(
            f"column {values.name!r} has {many:,} values in another spelling than before, such as 1.0 for 1; write the "
            "values as in the earlier tables"
        )


def _initial_classes(
    people: HashedRows, builder: ClassBuilder, ledger: Ledger, keyed: Keyed, search: Search, policy: Policy,
    shown: Shown, signatures: int | None,
) -> list[int]:  # fmt: skip
    """Put people who stay, with newcomers, in classes of the search or of the previous part; returns the others.

    People who stay but find no bucket get a bucket of their own, so the others are newcomers. The first part is handled
    here only if few signatures are requested.
    """
    last = ledger.persons
    texts = _read(people, last, ledger.number, keyed, policy, shown)
    before = dict(zip(last["person"], zip(last["value"], last["possible"], strict=True), strict=True))
    kept: dict[int, Signature] = {}
    for i, person in enumerate(people.persons):
        value, possible = before.get(person, ("", ""))
        if value == people.value[i]:
            kept[i] = tuple(possible.split())
    people.known.update(kept)
    few = _few_signatures(people, kept, signatures)
    if not ledger.number and few is None:
        return [*range(len(people.persons))]
    tuples = Counter(texts.values())
    with contextlib.suppress(InfeasibleError):  # without made-up rows, the people who stay may have too similar values
        tuples.update(search(people.frame).select(policy.grouped).rows())
    if few is not None:
        _offer_coarser(tuples, policy.star)
    left = _form_buckets(people, builder, kept, tuples, few) if tuples else [*range(len(people.persons))]
    for i in left:
        if i in kept:
            builder.found([Bucket(kept[i], {people.value[i]: i})])
    return [i for i in left if i not in kept]


RowsByValue = dict[str, list[int]]  # value -> people with this value
OFFERED = 100_000  # maximum number of tuples to which coarser ones are added


class _Few:
    """A small set of signatures of l values for buckets of newcomers."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self.signatures = signatures
        self._at = {v: i for i, v in enumerate(sorted({v for s in signatures for v in s}))}
        self._has = np.zeros((len(signatures), len(self._at)), np.float32)
        for i, signature in enumerate(signatures):
            self._has[i, [self._at[v] for v in signature]] = 1

    def buckets(self, fresh: RowsByValue) -> list[Bucket]:
        """Buckets from newcomers, who are removed from ``fresh``; each has the signature whose values are most frequent
        among them."""
        many = np.zeros(len(self._at), np.float32)
        for v in fresh.keys() & self._at.keys():
            many[self._at[v]] = len(fresh[v])
        able = np.flatnonzero(self._has @ (many == 0) == 0)
        found = []
        while able.size:
            signature = self.signatures[int(able[np.argmax(self._has[able] @ many)])]
            found.append(Bucket(signature, {v: fresh[v].pop() for v in signature}))
            many[[self._at[v] for v in signature]] -= 1
            able = able[self._has[able] @ (many == 0) == 0]
        return found


def _few_signatures(people: HashedRows, kept: Mapping[int, Signature], most: int | None) -> _Few | None:
    """About ``most`` signatures for newcomers; None if all are allowed.

    The most frequent signatures of people who stay. If no one stays, those of random deals: all people are sorted by
    value and dealt to the maximum number of buckets, and no value occurs more often than there are buckets.
    """
    values, buckets = Counter(people.value), len(people.persons) // people.l
    if most is None or math.comb(len(values), people.l) <= most or max(values.values()) > buckets:
        return None
    held = Counter(signature for signature in kept.values() if len(signature) == people.l)
    if held:
        return _Few([signature for signature, _ in held.most_common(most)])
    drawn, names, found = random.Random(people.order[0]), sorted(values), dict[Signature, None]()
    for _ in range(most):
        drawn.shuffle(names)
        row = [v for v in names for _ in range(values[v])]
        found |= dict.fromkeys(tuple(sorted(row[h : buckets * people.l : buckets])) for h in range(buckets))
        if len(found) >= most:
            break
    return _Few([*found])


def _offer_coarser(tuples: Counter[Tuple], star: str) -> None:
    """Add the same tuples with one or two more stars, because people with few signatures need wider classes."""
    given = [*tuples]
    for stars in (1, 2):
        if len(tuples) > OFFERED:
            return
        for texts in given:
            for starred in itertools.combinations(range(len(texts)), stars):
                coarser = tuple(star if j in starred else text for j, text in enumerate(texts))
                tuples[coarser] = tuples.get(coarser, 1)


def _form_buckets(
    people: HashedRows, builder: ClassBuilder, kept: Mapping[int, Signature], tuples: Mapping[Tuple, int],
    few: _Few | None = None,
) -> list[int]:  # fmt: skip
    """Form buckets and classes of at least k rows with the given tuples, the finest first; returns the other people.

    kept    signature of each person who stays
    tuples  published tuple -> the number of rows it had
    few     the possible signatures for buckets of newcomers; None: any

    O(classes x (tuples of the table in the class's rarest column + people there without a bucket)).
    """
    cover = _Cover(people)
    lacking = _lacking(people, kept)
    names = [*tuples]
    offered = np.array([[c.number(t) for c, t in zip(people.columns, of, strict=True)] for of in names], np.int64)
    loss = sum((c.loss[offered[:, j]] for j, c in enumerate(people.columns)), np.zeros(len(names)))
    for at in np.lexsort((-np.array([*tuples.values()]), loss)).tolist():
        rows = cover.inside(offered[at])
        buckets = _buckets_of(people, kept, lacking, rows.tolist(), few) if rows.size >= people.k else []
        if buckets and sum(bucket.size for bucket in buckets) >= people.k:
            builder.found(buckets, names[at])
            for bucket in buckets:
                cover.taken([*bucket.rows.values()])
                beside = [v for v, i in bucket.rows.items() if i not in kept]
                if len(beside) < bucket.size:
                    lacking[bucket.signature].subtract(beside)
    return cover.left()


def _lacking(people: HashedRows, kept: Mapping[int, Signature]) -> dict[Signature, Counter[str]]:
    """The number of newcomers of each value who may join people who stay, by signature.

    This is the number that the smallest possible number of buckets lacks; more newcomers would later leave free places,
    which are made-up rows. For signatures of two values, any number may join, because saving a star is worth more there
    than a made-up row.
    """
    held: dict[Signature, Counter[str]] = defaultdict(Counter)
    for i, signature in kept.items():
        held[signature][people.value[i]] += 1
    most = {signature: max(counts.values()) for signature, counts in held.items()}
    return {
        s: Counter({v: most[s] - counts[v] if len(s) > 2 else len(people.persons) for v in s})
        for s, counts in held.items()
    }


def _buckets_of(
    people: HashedRows,
    kept: Mapping[int, Signature],
    lacking: Mapping[Signature, Mapping[str, int]],
    rows: Sequence[int],
    few: _Few | None = None,
) -> list[Bucket]:
    """The buckets that people of a class can form: people who stay with newcomers, and newcomers alone.

    lacking  the number of newcomers of each value who may still join people of a signature
    """
    staying: dict[Signature, RowsByValue] = defaultdict(lambda: defaultdict(list))
    fresh: RowsByValue = defaultdict(list)
    for i in rows:
        signature = kept.get(i)
        (fresh if signature is None else staying[signature])[people.value[i]].append(i)
    buckets = []
    for signature, some in staying.items():
        while all(some.get(v) for v in signature):
            buckets.append(Bucket(signature, {v: some[v].pop() for v in signature}))
    for signature, some in staying.items():
        left = Counter(lacking[signature])
        while any(some.get(v) for v in signature):
            beside = [v for v in signature if not some.get(v)]
            if not all(fresh.get(v) and left[v] > 0 for v in beside):
                break
            left.subtract(beside)
            buckets.append(Bucket(signature, {v: (some if some.get(v) else fresh)[v].pop() for v in signature}))
    if few is not None:
        return buckets + few.buckets(fresh)
    most = _most_buckets({v: len(some) for v, some in fresh.items()}, people.l)
    common = sorted(fresh.values(), key=len, reverse=True)
    # in buckets of exactly l, which are the easiest to keep
    dealt = [i for some in common for i in some[:most]][: people.l * most]
    return buckets + people.dealt(dealt)


class _Cover:
    """Finds the people without a bucket whom a published tuple covers."""

    def __init__(self, people: HashedRows) -> None:
        self.people = people
        self.tuples, self.of = np.unique(people.code, axis=0, return_inverse=True)
        self.of = self.of.reshape(-1)
        self.rows = np.argsort(self.of, kind="stable")
        self.start = np.searchsorted(self.of[self.rows], np.arange(len(self.tuples) + 1))
        self.free = np.ones(len(self.of), bool)
        self.many = np.diff(self.start)
        self.by_value = [self._by_value(j) for j in range(len(people.columns))]
        self.known: dict[tuple[int, int], np.ndarray] = {}

    def _by_value(self, j: int) -> list[np.ndarray]:
        """The indices of the tuples with each value of a column."""
        order = np.argsort(self.tuples[:, j], kind="stable")
        cut = np.searchsorted(self.tuples[order, j], np.arange(len(self.people.columns[j].values) + 1))
        return [order[a:b] for a, b in itertools.pairwise(cut)]

    def _takes(self, j: int, text: int) -> np.ndarray:
        """bool[values]: the values that a text of a column covers."""
        if (j, text) not in self.known:
            column = self.people.columns[j]
            every = range(len(column.values))
            self.known[j, text] = np.array([column.joined_one(text, v) == text for v in every], bool)
        return self.known[j, text]

    def inside(self, texts: np.ndarray) -> np.ndarray:
        """The rows without a bucket that a tuple covers."""
        takes = [self._takes(j, text) for j, text in enumerate(texts.tolist())]
        if not takes:
            return np.flatnonzero(self.free)
        values = [np.flatnonzero(t) for t in takes]
        reach = [sum(self.by_value[j][v].size for v in some.tolist()) for j, some in enumerate(values)]
        rarest = int(np.argmin(reach))
        cells = np.concatenate([self.by_value[rarest][v] for v in values[rarest].tolist()] or [np.zeros(0, np.int64)])
        cells = cells[self.many[cells] > 0]
        for j, t in enumerate(takes):
            if j != rarest:
                cells = cells[t[self.tuples[cells, j]]]
        pieces = [self.rows[self.start[c] : self.start[c + 1]] for c in cells.tolist()]
        rows = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
        found: np.ndarray = rows[self.free[rows]]
        return found

    def taken(self, rows: list[int]) -> None:
        """Record that these rows have a bucket."""
        self.free[rows] = False
        np.subtract.at(self.many, self.of[rows], 1)

    def left(self) -> list[int]:
        """The people without a bucket."""
        return np.flatnonzero(self.free).tolist()


def _read(
    people: HashedRows, last: pl.DataFrame, parts: int, keyed: Keyed, policy: Policy, shown: Shown
) -> dict[str, Tuple]:
    """Hash -> previously published tuple; also adds the texts of the values that may be needed for made-up rows."""
    texts: dict[str, Tuple] = {}
    wanted = {v for s in last["possible"].unique().to_list() for v in s.split()} - set(people.words)
    for number in range(parts, 0, -1):
        if number < parts and not wanted:
            break
        cells = shown(number)
        for value in cells[policy.sensitive[0]].unique().to_list():
            people.words.setdefault(keyed.one("value", [value]), value)
        wanted -= set(people.words)
        if number == parts:
            texts = {keyed.one("tuple", t): t for t in set(cells.select(policy.grouped).rows())}
    return texts


def _hold_back(fresh: list[int], people: HashedRows, builder: ClassBuilder) -> list[int]:
    """Remove incomplete buckets: their newcomers stay available, people who were published before are held back."""
    held: list[int] = []
    for bucket in builder.take_gaps():
        for i in bucket.rows.values():
            (held if i in people.known else fresh).append(i)
    return held


def _eligible(fresh: list[int], people: HashedRows) -> tuple[list[int], list[int]]:
    """The largest set of newcomers that can form buckets of their own, and the others: too frequent values, or too few
    people."""
    most = _most_buckets(Counter(people.value[i] for i in fresh), people.l)
    rest: list[int] = []
    hard: list[int] = []
    seen: Counter[str] = Counter()
    for i in fresh:
        seen[people.value[i]] += 1
        (rest if seen[people.value[i]] <= most else hard).append(i)
    return (rest, hard) if people.eligible(rest) else ([], fresh)


def _most_buckets(counts: Mapping[str, int], l: int) -> int:
    """The largest number of buckets of at least l different values for people with these counts of values."""
    most = sum(counts.values()) // l
    while most and sum(min(many, most) for many in counts.values()) < l * most:
        most -= 1
    return most


def _new_classes(
    rest: list[int], people: HashedRows, published: pl.DataFrame, policy: Policy, builder: ClassBuilder
) -> None:
    """Newcomers in classes of their own, each divided into buckets of at least l different values."""
    rows: dict[Tuple, list[int]] = defaultdict(list)
    for i, texts in zip(rest, published.select(policy.grouped).rows(), strict=True):
        rows[texts].append(i)
    for texts, members in rows.items():
        builder.found(people.dealt(members), texts)


def _written(
    people: HashedRows, builder: ClassBuilder, ledger: Ledger, keyed: Keyed, policy: Policy, waiting: dict[str, int]
) -> Added:
    """The published rows and the ledger after them. waiting: person -> number of parts for which they have waited."""
    rows: list[tuple[Text, ...]] = []
    lines: list[tuple[str, int, str, str, str]] = []
    units: Counter[tuple[str, str]] = Counter()
    made_up = 0
    for texts, buckets in builder.published():
        of = keyed.one("tuple", texts)
        for bucket in buckets:
            possible = " ".join(bucket.signature)
            units[of, possible] += 1
            rows += [(*texts, people.words[value]) for value in bucket.signature]
            made_up += bucket.gaps
            lines += [(people.persons[i], ledger.number + 1, of, v, possible) for v, i in bucket.rows.items()]
    now = pl.DataFrame(lines, schema=SCHEMA, orient="row").sort("person").lazy()
    names = [*policy.grouped, *policy.sensitive]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    after = ledger.after(now, units=[(t, s, n) for (t, s), n in sorted(units.items())], waiting=waiting)
    shuffled = frame[permutation(frame.height, ShuffleKey.of(None).order)]
    return Added(shuffled.lazy(), after, made_up=made_up, waiting=len(waiting))
