"""Two or more releases of overlapping people, set against each other: what their groups have in common.

A group (equivalence class) of a release is the rows that it publishes alike.  Whoever stands in two releases stands in
a group of each, and an adversary who knows that knows more than either release tells: among how few people the two
groups hide a person together, and which sensitive values they share (Ganta, Kasiviswanathan, Smith 2008).

Two adversaries are told apart.  *Groups known*: who knows in which group of each release a person stands.  *Groups
unknown*: who has a register of the quasi-identifiers of everybody and knows who is in which release.

``shoal.judge.fitting`` has the posterior of both.  A group that every release shows with the same texts and the same
values is taken for the same people.

Shares no code with what makes releases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix, identity

from shoal.errors import InputError, PolicyError
from shoal.judge.file import canonical, codes, number, set_bits
from shoal.judge.fitting import LARGEST, fitted, fitted_alone
from shoal.model.audit import Composition, Learned, RowsAlone, Worst
from shoal.model.foreign import STARS, domain_of, spread
from shoal.model.hierarchy import GENERATED
from shoal.model.members import Members, known_values, meanings, place, places, ruler_of
from shoal.model.notation import SetOf, limits_of, of_limits, parse

CLOSE = 1e-3  # a posterior counts as above 1/l when it is that much above
_AT_ONCE = 1 << 24  # pairs of a tuple and a group looked at in one go

__all__ = ["Composition", "Learned", "ReleaseOfPeople", "RowsAlone", "Worst", "compose"]


@dataclass(frozen=True, eq=False)
class ReleaseOfPeople:
    """One release, with the table it was made from where that is at hand.

    table              the published rows; quasi_identifiers, and the sensitive column, name columns of it
    hierarchies        per column what ``Hierarchy.of`` takes, for labels; other notations are read as they stand
    notations          per column the notation of its dates or numbers
    original           one row for each person of the release, with the same columns as they came
    placed             int64[rows of the original]: the published row of each, where that is known
    """

    table: pl.DataFrame
    quasi_identifiers: Sequence[str]
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    original: pl.DataFrame | None = None
    placed: np.ndarray | None = None
    notations: Mapping[str, str] = field(default_factory=dict)


class _Release(NamedTuple):
    """Groups of a release: int64 group of each row, first row and size of each, int64[groups, values] of its values.

    names, texts  the quasi-identifiers, and the published texts of each group
    """

    group: np.ndarray
    first: np.ndarray
    size: np.ndarray
    counts: np.ndarray
    names: tuple[str, ...]
    texts: pl.DataFrame


class _Register(NamedTuple):
    """Original rows of a release: tuple of each row, one row of each tuple, csr[tuples, groups] of what covers what."""

    of: np.ndarray
    fits: csr_matrix


def compose(
    releases: Sequence[ReleaseOfPeople],
    *,
    sensitive: str | None = None,
    k: int = 2,
    l: float | None = None,
    person: str | None = None,
    known_alone: bool = False,
) -> Composition:
    """Figures of releases set against each other.

    sensitive  column of every release and every original; None: only who shares groups with whom
    person     column of every original that says who a row is about; None: the originals are one table, row by row
    l          the frequency form: no value is to be likelier than 1/l
    known_alone  whether only the adversary who knows everybody's groups is asked for, where every release has an
               original; the other one costs more

    Of a release without an original it is assumed that it holds everybody of the other originals whom it covers;
    columns that these lack cover anybody.  Where no release has one, the rows themselves are set side by side.

    Raises InputError for columns that are missing, and for a person in two rows of an original.
    O(n + e v) for n rows, e pairs of a tuple and a group that covers it and v sensitive values, times the rounds of
    fitting; finding the pairs is O(tuples groups / 8) in bit operations.
    """
    if len(releases) < 2:
        raise InputError("composition sets two or more releases against each other")
    for i, release in enumerate(releases, 1):
        _refuse_missing(release, i, sensitive, person)
    given = [r.original for r in releases if r.original is not None]
    values = _values(releases, given, sensitive)
    seen = [_groups(r, v, values.width) for r, v in zip(releases, values.published, strict=True)]
    if not given:
        alone = _alongside(releases, seen, sensitive is not None)
        heights = tuple(r.table.height for r in releases)
        return Composition(0, heights, k, l, sensitive, None, None, ("none",) * len(releases), 0, alone)
    rows = _people(given, person)
    return _with_originals(releases, seen, given, values, rows, (sensitive, k, l), known_alone)


def _with_originals(
    releases: Sequence[ReleaseOfPeople],
    seen: Sequence[_Release],
    given: Sequence[pl.DataFrame],
    values: _Values,
    rows: np.ndarray,
    asked: tuple[str | None, int, float | None],
    known_alone: bool,
) -> Composition:
    """The figures where at least one original is at hand.

    rows  int64[originals, people], the row of everybody
    """
    sensitive, k, l = asked
    n = rows.shape[1]
    stand, tuples = np.full((len(releases), n), -1), np.full((len(releases), n), -1)
    truth = np.full(n, -1)
    fits, placed = [], []
    used = 0
    # Where everybody is in a release: told by its own original, else by what the other originals say of them.
    for i, (release, groups, published) in enumerate(zip(releases, seen, values.published, strict=True)):
        if release.original is None:
            at, table = _anybody(release, given, rows)
            register = _register(release, table, groups)
            there = np.diff(register.fits.indptr)[register.of] > 0
            at = np.where((at >= 0) & there[np.maximum(at, 0)], at, -1)
            placed.append("assumed")
        else:
            at, table, own = rows[used], given[used], values.original[used]
            used += 1
            register = _register(release, table, groups)
            truth[at >= 0] = own[at[at >= 0]]
            if len(given) == len(releases):
                group, how = _placed(release, groups, register, own, published)
                stand[i, at >= 0] = group[at[at >= 0]]
                placed.append(how)
            else:
                placed.append("unasked")
        tuples[i, at >= 0] = register.of[at[at >= 0]]
        fits.append(register.fits)
    both = (tuples >= 0).sum(axis=0) >= 2
    unplaced = ((stand < 0) & (tuples >= 0)).any(axis=0)
    known = unknown = None
    if len(given) == len(releases):
        kept = ~unplaced
        one = [identity(s.size.size, format="csr") for s in seen]
        known = _learned(stand[:, kept], both[kept], truth[kept], one, seen, k, l, sensitive is not None, known=True)
    if sensitive is not None and not (known_alone and known):
        unknown = _learned(tuples, both, truth, fits, seen, k, l, True, known=False)
    return Composition(
        people=int(both.sum()), rows=tuple(r.table.height for r in releases), k=k, l=l, sensitive=sensitive,
        known=known, unknown=unknown, placed=tuple(placed),
        unplaced=0 if known is None else int((unplaced & both).sum()),
    )  # fmt: skip


def _anybody(
    release: ReleaseOfPeople, given: Sequence[pl.DataFrame], rows: np.ndarray
) -> tuple[np.ndarray, pl.DataFrame]:
    """int64[people]: a row of everybody, and the table it is one of: the originals that have most columns first."""
    wide = max(given, key=lambda o: sum(q in o.columns for q in release.quasi_identifiers))
    columns = [q for q in release.quasi_identifiers if q in wide.columns]
    table = pl.concat([o.select(_text(o[c]).alias(c) for c in columns) for o in given if set(columns) <= {*o.columns}])
    at = np.full(rows.shape[1], -1)
    start = 0
    for original, own in zip(given, rows, strict=True):
        if set(columns) <= {*original.columns}:
            at = np.where(own >= 0, own + start, at)
            start += original.height
    return at, table


def _refuse_missing(release: ReleaseOfPeople, i: int, sensitive: str | None, person: str | None) -> None:
    names = [*release.quasi_identifiers, *([] if sensitive is None else [sensitive])]
    for name in names:
        if name not in release.table.columns:
            raise InputError(f"release {i} has no column {name!r}")
    if release.original is None:
        return
    for name in [*names, *([] if person is None else [person])]:
        if name not in release.original.columns:
            raise InputError(f"the original of release {i} has no column {name!r}")


def _alongside(releases: Sequence[ReleaseOfPeople], seen: Sequence[_Release], valued: bool) -> RowsAlone:
    """Rows of the last release beside the groups of the earlier ones that may hold the same person.

    O(groups of the last times groups of the others) in bit operations.
    """
    last = seen[-1]
    shown = last.counts > 0
    union = np.zeros(shown.shape, bool)
    may, beside = np.zeros(last.size.size, bool), np.zeros(last.size.size, bool)
    for release, groups in zip(releases[:-1], seen[:-1], strict=True):
        head, tail = _meeting(releases[-1], last, release, groups).nonzero()
        beside[head] = True
        for start in range(0, head.size, _AT_ONCE // max(shown.shape[1], 1) or 1):
            part = slice(start, start + (_AT_ONCE // max(shown.shape[1], 1) or 1))
            common = shown[head[part]] & (groups.counts[tail[part]] > 0)
            may[head[part][common.sum(axis=1) == 1]] = True
            np.logical_or.at(union, head[part], common)
    certain = union.sum(axis=1) == 1
    rows = int(last.size[beside].sum())
    if not valued:
        return RowsAlone(rows, None, None)
    return RowsAlone(rows, int(last.size[may].sum()), int(last.size[certain].sum()))


def _meeting(
    left: ReleaseOfPeople, left_groups: _Release, right: ReleaseOfPeople, right_groups: _Release
) -> csr_matrix:
    """csr[left groups, right groups]: which pairs may mean one value in every quasi-identifier that both have."""
    bits = []
    for name in (q for q in left_groups.names if q in right_groups.names):
        texts = left_groups.texts[name], right_groups.texts[name]
        once = [own.unique(maintain_order=True) for own in texts]
        notations = left.notations.get(name), right.notations.get(name)
        met = _overlap(_meant(once[0], left, name), _meant(once[1], right, name), *notations)
        bits.append((np.packbits(met[:, _index(texts[1], once[1])], axis=1), _index(texts[0], once[0])))
    return _covering(bits, left_groups.size.size, right_groups.size.size)


def _meant(texts: pl.Series, release: ReleaseOfPeople, name: str) -> list[Members]:
    """What texts stand for without the original: labels of a hierarchy, else values, sets and ranges."""
    source = release.hierarchies.get(name)
    return meanings(
        texts.to_list(),
        "ranges" if source is None else "hierarchy",
        source,
        starred=True,
        notation=release.notations.get(name),
    )


def _overlap(left: list[Members], right: list[Members], notation: str | None, other: str | None) -> np.ndarray:
    """bool[left, right]: whether two cells may mean the same value; in different notations any two may.

    notation, other  of each side
    """
    if notation != other and all(n is None or of_limits(n) for n in (notation, other)):  # plain numbers, or with limits
        left, right, notation = _opened(left, notation), _opened(right, other), "number"
        if any(v is not None and place(v, notation) is None for v in known_values([*left, *right])):
            return np.ones((len(left), len(right)), bool)
    elif notation != other:
        return np.ones((len(left), len(right)), bool)
    known = known_values([*left, *right])
    ruler = notation or ruler_of(known)
    at = places(known, ruler)
    a, b = (np.array([c.held(known, at) for c in side]).reshape(len(side), -1) for side in (left, right))
    met: np.ndarray = (a.astype(np.int32) @ b.T.astype(np.int32)) > 0
    free = np.array([c.everything for c in left])[:, None] | np.array([c.everything for c in right])[None, :]
    ends = [
        np.array([[np.nan if c.low is None else c.low, np.nan if c.high is None else c.high] for c in side])
        for side in (left, right)
    ]
    low = np.maximum(ends[0][:, None, 0], ends[1][None, :, 0])
    high = np.minimum(ends[0][:, None, 1], ends[1][None, :, 1])
    ruled: np.ndarray = met | free | (low < high)  # NaN is never below
    patterns = np.array([[x.pattern is not None and y.pattern is not None for y in right] for x in left])
    return ruled | patterns.reshape(ruled.shape)


def _opened(cells: list[Members], notation: str | None) -> list[Members]:
    """Cells of a column with limits as ranges of plain numbers, without an end where they reach a limit."""
    if notation is None:
        return cells
    least, most = limits_of(notation)
    found = []
    for cell in cells:
        low = -math.inf if cell.low is not None and cell.low <= least and not cell.begins_after else cell.low
        high = math.inf if cell.high is not None and cell.high >= most and not cell.open else cell.high
        found.append(replace(cell, low=low, high=high, named=cell.named - {*notation.split()}, ruler="number"))
    return found


def _index(texts: pl.Series, distinct: pl.Series) -> np.ndarray:
    """int64 of every text among the distinct ones."""
    numbered = pl.DataFrame({"v": distinct, "i": np.arange(len(distinct))})
    joined = texts.alias("v").to_frame().join(numbered, on="v", how="left", nulls_equal=True, maintain_order="left")
    found: np.ndarray = joined["i"].to_numpy().astype(np.int64)
    return found


def _people(originals: Sequence[pl.DataFrame], person: str | None) -> np.ndarray:
    """int64[releases, people]: the original's row of everybody, -1 where somebody is not in a release."""
    if person is None:
        if len({o.height for o in originals}) > 1:
            raise InputError(
                "the originals differ in their number of rows; name the column that says who a row is about"
            )
        return np.tile(np.arange(originals[0].height), (len(originals), 1))
    texts = [canonical(o[person]).alias("p") for o in originals]
    if any(t.null_count() for t in texts):
        raise InputError(f"column {person!r} names nobody in some row")
    who = codes(pl.concat(texts))
    out = np.full((len(originals), int(who.max(initial=-1)) + 1), -1)
    start = 0
    for r, text in enumerate(texts):
        own = who[start : start + len(text)]
        if np.unique(own).size < own.size:
            raise InputError(
                f"column {person!r} names somebody in two rows of one original; give one row for each person"
            )
        out[r, own] = np.arange(own.size)
        start += len(text)
    return out[:, (out >= 0).any(axis=0)]


class _Values(NamedTuple):
    """Numbers of the sensitive values, alike in all tables: int64 per row of each release and each original."""

    published: list[np.ndarray]
    original: list[np.ndarray]
    width: int


def _values(releases: Sequence[ReleaseOfPeople], originals: Sequence[pl.DataFrame], sensitive: str | None) -> _Values:
    if sensitive is None:
        return _Values(
            [np.zeros(r.table.height, np.int64) for r in releases], [np.zeros(o.height, np.int64) for o in originals], 1
        )
    tables = [*(r.table for r in releases), *originals]
    number_ = codes(pl.concat([_text(t[sensitive]).alias("v") for t in tables]))
    parts = np.split(number_, np.cumsum([t.height for t in tables])[:-1])
    return _Values(parts[: len(releases)], parts[len(releases) :], int(number_.max(initial=-1)) + 1)


def _text(column: pl.Series) -> pl.Series:
    """A column as text, an empty text missing: a CSV knows no other."""
    text = canonical(column)
    return text.set((text == "").fill_null(False), None) if len(text) else text


def _groups(release: ReleaseOfPeople, values: np.ndarray, width: int) -> _Release:
    n = release.table.height
    names = tuple(release.quasi_identifiers)
    texts = pl.DataFrame([_text(release.table[q]).alias(q) for q in names])
    group = number([codes(texts[q]) for q in names], n)
    groups = int(group.max(initial=-1)) + 1
    first = np.full(groups, n)
    np.minimum.at(first, group, np.arange(n))
    if groups * width > LARGEST:
        raise InputError(
            f"{groups:,} groups with {width:,} sensitive values are more than can be set against each other"
        )
    counts = np.bincount(group * width + values, minlength=groups * width).reshape(groups, width)
    return _Release(group, first, np.bincount(group, minlength=groups), counts, names, texts[first])


def _register(release: ReleaseOfPeople, original: pl.DataFrame, seen: _Release) -> _Register:
    """Which groups may hold which tuples.  O(tuples groups q / 8) on bits."""
    numbers = [np.zeros(original.height, np.int64)]
    masks = [np.packbits(np.ones((1, seen.size.size), bool), axis=1)]  # of no column: anybody
    # For each column, which published texts can stand for which value, as bits; a group may hold a tuple if all columns
    # say so.
    for name in (q for q in release.quasi_identifiers if q in original.columns):
        column = _text(original[name])
        shown = seen.texts[name]
        texts = shown.unique(maintain_order=True)
        source = release.hierarchies.get(name)
        tree = None if isinstance(source, str) and source in GENERATED else source
        own = column.unique(maintain_order=True).to_list()
        held = own if tree is not None else [*dict.fromkeys([*own, *_members(texts)])]
        domain = domain_of(held, notation=release.notations.get(name))
        numbers.append(_index(column, pl.Series(domain.values, dtype=pl.String)))
        try:
            cover = spread(texts.to_list(), domain, tree)
        except PolicyError:
            raise InputError(
                f"the hierarchy of {name!r} lacks a value of the table; add the table's values to it"
            ) from None
        mask = np.zeros((len(domain.values), len(texts)), bool)
        for cell, start, stop in zip(cover.cell.tolist(), cover.start.tolist(), cover.stop.tolist(), strict=True):
            mask[start:stop, cell] = True
        mask[:, cover.wild & ~_stars(texts)] = False  # a value of nobody's in the original
        masks.append(np.packbits(mask[:, _index(shown, texts)], axis=1))
    of = number(numbers, original.height)
    tuples = int(of.max(initial=-1)) + 1
    row = np.zeros(tuples, np.int64)
    row[of] = np.arange(of.size)
    return _Register(of, _covering([(m, n[row]) for m, n in zip(masks, numbers, strict=True)], tuples, seen.size.size))


def _members(texts: pl.Series) -> list[str | None]:
    """The values that sets name: a set may hold some that the original has not."""
    found: list[str | None] = []
    for text in texts.drop_nulls().to_list():
        if text.startswith("{"):
            try:
                read = parse(text)
            except InputError:
                continue
            found += read.values if isinstance(read, SetOf) else []
    return found


def _stars(texts: pl.Series) -> np.ndarray:
    """bool[texts]: a star, as any tool writes it."""
    return np.array([t is None or t in STARS or set(t) == {"*"} for t in texts.to_list()], bool)


def _covering(bits: Sequence[tuple[np.ndarray, np.ndarray]], tuples: int, groups: int) -> csr_matrix:
    """csr[tuples, groups]: where all bits are set.

    bits  per column uint8[values, groups / 8], and int64[tuples], the value of each tuple
    """
    step = max(1, _AT_ONCE // max(groups, 1))
    heads, tails = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, tuples, step):
        whole = np.full((min(step, tuples - start), (groups + 7) // 8), 255, np.uint8)
        for mask, value in bits:
            whole &= mask[value[start : start + step]]
        if groups % 8:
            whole[:, -1] &= 0xFF << (8 - groups % 8) & 0xFF  # masks of no column have bits beyond the last group
        head, tail = set_bits(whole)
        heads.append(head + start)
        tails.append(tail)
    head, tail = np.concatenate(heads), np.concatenate(tails)
    return csr_matrix((np.ones(head.size), (head, tail)), shape=(tuples, groups))


class _Placement(NamedTuple):
    """int64[rows of the original]: the group of each, -1 where none covers it; how it was found."""

    group: np.ndarray
    how: str


def _placed(
    release: ReleaseOfPeople, seen: _Release, register: _Register, own: np.ndarray, published: np.ndarray
) -> _Placement:
    """The group of every row of the original.

    own, published  int64 sensitive value of every original and every published row
    """
    if release.placed is not None:
        return _Placement(seen.group[release.placed], "given")
    fits = register.fits
    if own.size == seen.group.size and np.array_equal(own, published):
        inside = np.asarray(fits[register.of, seen.group]).reshape(-1) > 0
        if inside.all():
            return _Placement(seen.group.copy(), "order")
    return _Placement(_matched(fits, register.of, own, seen), "matched")


def _matched(fits: csr_matrix, of: np.ndarray, own: np.ndarray, seen: _Release) -> np.ndarray:
    """A placement of the original's rows that agrees with the release, by a maximum flow; rows left over have -1."""
    from scipy.sparse.csgraph import maximum_flow

    width = seen.counts.shape[1]
    cell, rows = np.unique(of * width + own, return_inverse=True)
    supply = np.bincount(rows)
    edges = fits[cell // width].tocoo()
    value = (cell % width)[edges.row]
    demand = seen.counts[edges.col, value]
    live = demand > 0
    left, right, demand = edges.row[live], (edges.col * np.int64(width) + value)[live], demand[live]
    slots, right = np.unique(right, return_inverse=True)
    n, m = cell.size, slots.size
    full = np.zeros(m, np.int64)
    full[right] = demand
    source, sink = n + m, n + m + 1
    tail = np.concatenate([left, np.full(n, source), n + np.arange(m)])
    head = np.concatenate([n + right, np.arange(n), np.full(m, sink)])
    room = np.concatenate([np.minimum(supply[left], demand), supply, full]).astype(np.int32)
    flow = maximum_flow(csr_matrix((room, (tail, head)), shape=(sink + 1, sink + 1)), source, sink).flow.tocoo()
    used = (flow.data > 0) & (flow.row < n) & (flow.col >= n) & (flow.col < n + m)
    order = np.lexsort((flow.col[used], flow.row[used]))
    taker, taken, many = flow.row[used][order], flow.col[used][order] - n, flow.data[used][order]
    out = np.full(of.size, -1)
    by_cell = np.argsort(rows, kind="stable")
    start = np.concatenate([[0], np.cumsum(supply)])
    given = np.concatenate([[0], np.cumsum(many)])
    before = np.searchsorted(taker, np.arange(n))
    place = np.repeat(slots[taken] // width, many)
    whose = np.repeat(taker, many)
    rank = np.arange(place.size) - given[before[whose]]
    out[by_cell[start[whose] + rank]] = place
    return out


def _learned(
    state: np.ndarray,
    both: np.ndarray,
    truth: np.ndarray,
    fits: Sequence[csr_matrix],
    seen: Sequence[_Release],
    k: int,
    l: float | None,
    valued: bool,
    *,
    known: bool,
) -> Learned:
    """What is learned of people by who they are alike with.

    state  int64[releases, people]: the group, or the tuple, of everybody in each release, -1 where somebody is in none
    fits   per release csr[states, groups]: the groups that each may mean
    """
    n = state.shape[1]
    profile = number([s + 1 for s in state], n)
    profiles = int(profile.max(initial=-1)) + 1
    people = np.bincount(profile, minlength=profiles)
    example = np.zeros(profiles, np.int64)
    example[profile] = np.arange(n)
    state = state[:, example]
    two = (state >= 0).sum(axis=0) >= 2
    few = int(people[two & (people < k)].sum()) if known else None
    if not valued:
        return Learned(few, worst=_worst(two, people, None, None, state, seen, known))
    faces = [_faced(s, f) for s, f in zip(state, fits, strict=True)]
    left = np.ones((profiles, seen[0].counts.shape[1]), bool)
    for s, face, release in zip(state, faces, seen, strict=True):
        left &= (face @ (release.counts > 0)).astype(bool) | (s < 0)[:, None]
    remain = left.sum(axis=1)
    alike = [] if known else _twins(seen)
    posterior = fitted(people, faces, [s >= 0 for s in state], [r.counts for r in seen], alike)
    alone = [fitted_alone(people, face, s >= 0, r.counts) for face, s, r in zip(faces, state, seen, strict=True)]
    high, likeliest = posterior.max(axis=1, initial=0), posterior.argmax(axis=1)
    guessed = (truth[:, None] == likeliest[profile][:, None]).reshape(-1)
    over = None if l is None else two & (high > 1 / l + CLOSE)
    single = [(a.max(axis=1, initial=0) > (1 / l if l else 1) + CLOSE) & two for a in alone]
    above = None if over is None else int(people[over].sum())
    of_above = None if over is None else over[profile]
    mean = [float(p[profile[both], truth[both]].mean()) if both.any() else None for p in (posterior, *alone)]
    return Learned(
        fewer_than_k=few,
        one_value=int(people[two & (remain == 1)].sum()),
        contradicted=int(people[two & (remain == 0)].sum()),
        above=above,
        alone=None if l is None else max(int(people[o].sum()) for o in single),
        right=float(guessed[of_above].mean()) if of_above is not None and of_above.any() else None,
        highest=float(high[two].max()) if two.any() else None,
        truth=mean[0],
        truth_alone=max((m for m in mean[1:] if m is not None), default=None),
        worst=_worst(two, people, remain, high, state, seen, known),
    )


def _twins(seen: Sequence[_Release]) -> list[np.ndarray]:
    """Per release int64[s]: the groups that every release shows with the same texts and the same values."""
    names = seen[0].names
    if any(sorted(r.names) != sorted(names) for r in seen):
        return []
    values = pl.DataFrame(
        {f"v{i}": np.concatenate([r.counts[:, i] for r in seen]) for i in range(seen[0].counts.shape[1])}
    )
    both = pl.concat([r.texts.select(names) for r in seen])
    same = number([codes(c) for c in (*both, *values)], both.height)
    parts = np.split(same, np.cumsum([r.size.size for r in seen])[:-1])
    kept = parts[0]
    for part in parts[1:]:
        kept = np.intersect1d(kept, part)
    found = []
    for part in parts:
        place = np.zeros(int(same.max(initial=-1)) + 1, np.int64)
        place[part] = np.arange(part.size)
        found.append(place[kept])
    return found


def _faced(state: np.ndarray, fits: csr_matrix) -> csr_matrix:
    """csr[profiles, groups]: what a profile may mean in a release, nothing where it is not in it."""
    face = fits[np.maximum(state, 0)].tocsr()
    face.data *= np.repeat(state >= 0, np.diff(face.indptr))
    face.eliminate_zeros()
    return face


def _worst(
    two: np.ndarray,
    people: np.ndarray,
    remain: np.ndarray | None,
    high: np.ndarray | None,
    state: np.ndarray,
    seen: Sequence[_Release],
    known: bool,
) -> Worst | None:
    """The people who are worst off among those in two releases or more; None if there are none."""
    at = np.flatnonzero(two)
    if not at.size:
        return None
    keys = [people[at]] if remain is None or high is None else [people[at], -np.round(high[at], 6), remain[at]]
    worst = int(at[np.lexsort(keys)[0]])
    rows = None
    if known:
        rows = tuple(None if s[worst] < 0 else int(r.first[s[worst]]) for s, r in zip(state, seen, strict=True))
    return Worst(
        people=int(people[worst]),
        values=None if remain is None else int(remain[worst]),
        posterior=None if high is None else float(high[worst]),
        rows=rows,
    )
