"""What two or more releases of overlapping people reveal together (a composition attack).

An equivalence class (group) of a release is all rows with the same published quasi-identifiers. A person in two
releases is in one group of each. An adversary who knows this intersects the two groups: the intersection can have fewer
people and fewer sensitive values than either group (Ganta, Kasiviswanathan, Smith 2008).

The module computes figures for two adversaries. *Groups known*: the adversary knows the group of each person in each
release. *Groups unknown*: the adversary has a register of everyone's quasi-identifiers, and knows who is in which
release.

``shoal.judge.fitting`` computes the posterior of both adversaries. If a group has the same texts and the same sensitive
values in every release, it counts as the same people in all of them.

This module shares no code with the code that makes releases.
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

CLOSE = 1e-3  # a posterior counts as above 1/l if it is above by more than this
_AT_ONCE = 1 << 24  # pairs of a tuple and a group in one batch

__all__ = ["Composition", "Learned", "ReleaseOfPeople", "RowsAlone", "Worst", "compose"]


@dataclass(frozen=True, eq=False)
class ReleaseOfPeople:
    """One release, with the original table if it is available.

    table              the published rows
    quasi_identifiers  columns of ``table``; ``sensitive`` is one too
    hierarchies        per column what ``Hierarchy.of`` takes, to read labels; other notations need none
    notations          per column the notation of its dates or numbers
    original           the original values in the same columns, one row for each person of the release
    placed             int64[rows of the original]: the published row of each original row, if known
    """

    table: pl.DataFrame
    quasi_identifiers: Sequence[str]
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    original: pl.DataFrame | None = None
    placed: np.ndarray | None = None
    notations: Mapping[str, str] = field(default_factory=dict)


class _Release(NamedTuple):
    """The groups of a release: int64 group of each row, first row and size of each group, int64[groups, values] counts.

    names  the quasi-identifiers
    texts  the published texts of each group
    """

    group: np.ndarray
    first: np.ndarray
    size: np.ndarray
    counts: np.ndarray
    names: tuple[str, ...]
    texts: pl.DataFrame


class _Register(NamedTuple):
    """The original rows of a release: tuple of each row, a row of each tuple, csr[tuples, groups] of coverage."""

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
    """The figures of a composition of releases.

    sensitive  a column of every release and every original; None: compute only sizes of intersections
    person     the column of every original that identifies a row's person; None: row i of every original is one person
    l          frequency l-diversity: no value may be more likely than 1/l
    known_alone  if every release has an original, compute only the adversary who knows everyone's groups; the other
                 adversary takes more time

    If a release has no original, it is assumed to contain all people of the other originals that it covers.
    Quasi-identifiers that these originals lack cover everyone. If no release has an original, the published rows
    themselves are compared.

    Raises InputError if a column is missing, or if a person has two rows in an original.
    O(n + e v) for n rows, e pairs of a tuple and a group that covers it, and v sensitive values, times the rounds of
    the fitting. Finding the pairs takes O(tuples groups / 8) bit operations.
    """
    if len(releases) < 2:
        raise InputError("composition sets two or more releases against each other")
    for i, release in enumerate(releases, 1):
        _refuse_missing(release, i, sensitive, person)
        if not release.table.height:
            raise InputError(f"release {i} of the composition has no rows; leave it out")
    given = [r.original for r in releases if r.original is not None]
    values = _values(releases, given, sensitive)
    seen = [_groups(r, v, values.width) for r, v in zip(releases, values.published, strict=True)]
    if not given:
        alone = _rows_alone(releases, seen, sensitive is not None)
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
    """The figures if at least one release has an original.

    rows  int64[originals, people]: the row of each person, or -1
    """
    sensitive, k, l = asked
    n = rows.shape[1]
    stand, tuples = np.full((len(releases), n), -1), np.full((len(releases), n), -1)
    truth = np.full(n, -1)
    fits, placed = [], []
    used = 0
    # The group of each person in a release comes from the release's own original. If it has none, it comes from the
    # person's values in the other originals.
    for i, (release, groups, published) in enumerate(zip(releases, seen, values.published, strict=True)):
        if release.original is None:
            at, table = _table_of_people(release, given, rows)
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


def _table_of_people(
    release: ReleaseOfPeople, given: Sequence[pl.DataFrame], rows: np.ndarray
) -> tuple[np.ndarray, pl.DataFrame]:
    """int64[people]: a row for each person, and the table of these rows.

    Originals with more of the columns come first.
    """
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


def _rows_alone(releases: Sequence[ReleaseOfPeople], seen: Sequence[_Release], valued: bool) -> RowsAlone:
    """Rows of the last release, compared with the groups of earlier releases that can contain the same person.

    O(groups of the last times groups of the others) bit operations.
    """
    last = seen[-1]
    shown = last.counts > 0
    union = np.zeros(shown.shape, bool)
    may, beside = np.zeros(last.size.size, bool), np.zeros(last.size.size, bool)
    for release, groups in zip(releases[:-1], seen[:-1], strict=True):
        head, tail = _compatible_groups(releases[-1], last, release, groups).nonzero()
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


def _compatible_groups(
    left: ReleaseOfPeople, left_groups: _Release, right: ReleaseOfPeople, right_groups: _Release
) -> csr_matrix:
    """csr[left groups, right groups]: pairs that can have equal values in every common quasi-identifier."""
    bits = []
    for name in (q for q in left_groups.names if q in right_groups.names):
        texts = left_groups.texts[name], right_groups.texts[name]
        once = [own.unique(maintain_order=True) for own in texts]
        notations = left.notations.get(name), right.notations.get(name)
        met = _overlap(_meanings(once[0], left, name), _meanings(once[1], right, name), *notations)
        bits.append((np.packbits(met[:, _index(texts[1], once[1])], axis=1), _index(texts[0], once[0])))
    return _covering(bits, left_groups.size.size, right_groups.size.size)


def _meanings(texts: pl.Series, release: ReleaseOfPeople, name: str) -> list[Members]:
    """The values that each text can mean, without the original: labels of a hierarchy, or values, sets, and ranges."""
    source = release.hierarchies.get(name)
    return meanings(
        texts.to_list(),
        "ranges" if source is None else "hierarchy",
        source,
        starred=True,
        notation=release.notations.get(name),
    )


def _overlap(left: list[Members], right: list[Members], notation: str | None, other: str | None) -> np.ndarray:
    """bool[left, right]: whether two cells can mean the same value. Cells in different notations always can.

    notation, other  the notations of the left and the right cells
    """
    if notation != other and all(n is None or of_limits(n) for n in (notation, other)):  # plain numbers, or with limits
        left, right, notation = _with_open_ends(left, notation), _with_open_ends(right, other), "number"
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
    ruled: np.ndarray = met | free | (low < high)  # comparisons with NaN are false
    patterns = np.array([[x.pattern is not None and y.pattern is not None for y in right] for x in left])
    return ruled | patterns.reshape(ruled.shape)


def _with_open_ends(cells: list[Members], notation: str | None) -> list[Members]:
    """Cells of a column with limits as ranges of plain numbers, open at each end that reaches a limit."""
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
    """int64: the position of every text among the distinct texts."""
    numbered = pl.DataFrame({"v": distinct, "i": np.arange(len(distinct))})
    joined = texts.alias("v").to_frame().join(numbered, on="v", how="left", nulls_equal=True, maintain_order="left")
    found: np.ndarray = joined["i"].to_numpy().astype(np.int64)
    return found


def _people(originals: Sequence[pl.DataFrame], person: str | None) -> np.ndarray:
    """int64[releases, people]: the row of each person in each original, -1 if the original lacks the person."""
    if person is None:
        if len({o.height for o in originals}) > 1:
            raise InputError(
                "the originals differ in their number of rows; name the column that says who a row is about"
            )
        return np.tile(np.arange(originals[0].height), (len(originals), 1))
    texts = [canonical(o[person]).alias("p") for o in originals]
    if any(t.null_count() for t in texts):
        raise InputError(f"column {person!r} has no value in some row")
    who = codes(pl.concat(texts))
    out = np.full((len(originals), int(who.max(initial=-1)) + 1), -1)
    start = 0
    for r, text in enumerate(texts):
        own = who[start : start + len(text)]
        if np.unique(own).size < own.size:
            raise InputError(
                f"column {person!r} has the same person in two rows of one original; give one row for each person"
            )
        out[r, own] = np.arange(own.size)
        start += len(text)
    return out[:, (out >= 0).any(axis=0)]


class _Values(NamedTuple):
    """Codes of the sensitive values, common to all tables: int64 for each row of each release and each original."""

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
    """A column as text. An empty text becomes missing, because a CSV can't distinguish the two."""
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
        raise InputError(f"{groups:,} groups with {width:,} sensitive values are too many to compare")
    counts = np.bincount(group * width + values, minlength=groups * width).reshape(groups, width)
    return _Release(group, first, np.bincount(group, minlength=groups), counts, names, texts[first])


def _register(release: ReleaseOfPeople, original: pl.DataFrame, seen: _Release) -> _Register:
    """Which groups can contain which tuples. O(tuples groups q / 8) bit operations."""
    numbers = [np.zeros(original.height, np.int64)]
    masks = [np.packbits(np.ones((1, seen.size.size), bool), axis=1)]  # without any column, every group covers everyone
    # For each column, a bit mask shows which published texts can mean which value. A group covers a tuple if it does so
    # in all columns.
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
        mask[:, cover.wild & ~_stars(texts)] = False  # a value that no original row has
        masks.append(np.packbits(mask[:, _index(shown, texts)], axis=1))
    of = number(numbers, original.height)
    tuples = int(of.max(initial=-1)) + 1
    row = np.zeros(tuples, np.int64)
    row[of] = np.arange(of.size)
    return _Register(of, _covering([(m, n[row]) for m, n in zip(masks, numbers, strict=True)], tuples, seen.size.size))


def _members(texts: pl.Series) -> list[str | None]:
    """The values that appear in sets; some may not occur in the original."""
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
    """bool[texts]: whether a text is a star in any tool's notation."""
    return np.array([t is None or t in STARS or set(t) == {"*"} for t in texts.to_list()], bool)


def _covering(bits: Sequence[tuple[np.ndarray, np.ndarray]], tuples: int, groups: int) -> csr_matrix:
    """csr[tuples, groups]: the pairs for which the bits of all columns are set.

    bits  per column uint8[values, groups / 8], and int64[tuples], the value of each tuple
    """
    step = max(1, _AT_ONCE // max(groups, 1))
    heads, tails = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, tuples, step):
        whole = np.full((min(step, tuples - start), (groups + 7) // 8), 255, np.uint8)
        for mask, value in bits:
            whole &= mask[value[start : start + step]]
        if groups % 8:
            whole[:, -1] &= 0xFF << (8 - groups % 8) & 0xFF  # clear the padding bits after the last group
        head, tail = set_bits(whole)
        heads.append(head + start)
        tails.append(tail)
    head, tail = np.concatenate(heads), np.concatenate(tails)
    return csr_matrix((np.ones(head.size), (head, tail)), shape=(tuples, groups))


class _Placement(NamedTuple):
    """int64[rows of the original]: the group of each row, -1 if no group covers it; and how the placement was found."""

    group: np.ndarray
    how: str


def _placed(
    release: ReleaseOfPeople, seen: _Release, register: _Register, own: np.ndarray, published: np.ndarray
) -> _Placement:
    """The group of every row of the original.

    own, published  int64: the sensitive value of every original row, and of every published row
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
    """An assignment of original rows to groups that agrees with the release, by maximum flow; -1 for rows left over."""
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
    """What an adversary learns about people from the others in their groups.

    state  int64[releases, people]: the group (or the tuple) of each person in each release, -1 if not in the release
    fits   per release csr[states, groups]: the groups that each state can mean
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
        return Learned(few, worst=_highest_risk(two, people, None, None, state, seen, known))
    faces = [_possible_groups(s, f) for s, f in zip(state, fits, strict=True)]
    left = np.ones((profiles, seen[0].counts.shape[1]), bool)
    for s, face, release in zip(state, faces, seen, strict=True):
        left &= (face @ (release.counts > 0)).astype(bool) | (s < 0)[:, None]
    remain = left.sum(axis=1)
    alike = [] if known else _identical_groups(seen)
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
        worst=_highest_risk(two, people, remain, high, state, seen, known),
    )


def _identical_groups(seen: Sequence[_Release]) -> list[np.ndarray]:
    """Per release int64[s]: the groups that have the same texts and the same sensitive values in every release."""
    names = seen[0].names
    if any(sorted(r.names) != sorted(names) for r in seen):
        return []
    values = pl.DataFrame(
        {f"v{i}": np.concatenate([r.counts[:, i] for r in seen]) for i in range(seen[0].counts.shape[1])}
    )
    both = pl.concat([r.texts[list(names)] for r in seen])  # "*" would select all columns
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


def _possible_groups(state: np.ndarray, fits: csr_matrix) -> csr_matrix:
    """csr[profiles, groups]: the groups that a profile can be in; an empty row if the profile is not in the release."""
    face = fits[np.maximum(state, 0)].tocsr()
    face.data *= np.repeat(state >= 0, np.diff(face.indptr))
    face.eliminate_zeros()
    return face


def _highest_risk(
    two: np.ndarray,
    people: np.ndarray,
    remain: np.ndarray | None,
    high: np.ndarray | None,
    state: np.ndarray,
    seen: Sequence[_Release],
    known: bool,
) -> Worst | None:
    """The people with the highest risk among those in two or more releases; None if there are none."""
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
