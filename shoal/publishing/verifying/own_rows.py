"""Checks of a table's release against its certificate by its own rows, and of figures that these no longer show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import VerificationError
from shoal.judge.file import seal, stale
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding, as_number
from shoal.judge.finding import shown as texts_of
from shoal.judge.recodings.levels import AreaGraph
from shoal.judge.recodings.ranges import range_steps
from shoal.judge.tables.large import (
    ReleaseContents,
    ReleaseRequirement,
    digest_of,
    is_parquet,
    judge_held,
    read_rows,
    sample_uniques,
)
from shoal.judge.tables.shown import NOT_GIVEN, ColumnRecodings, breach, levels_kept, shown_loss
from shoal.model.audit import Audit, largest_share
from shoal.model.cards import number
from shoal.model.certificate import PRIVATE_SETTINGS, PROVED, Certificate, Guarantee, PublicCertificate, promised
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.notation import held_in, limits_of
from shoal.model.privacy import KAnonymity, KMap
from shoal.model.refusals import with_filled, with_limits
from shoal.publishing.verifying.recheck import Record


def persons(record: Record) -> Finding:
    """Whether the certificate's counts of persons suffice; the release doesn't show persons."""
    found = record.raw.get("persons")
    asked = max((getattr(m, "k", 1) for m in record.policy.privacy if m.applies_to != "population"), default=1)
    entry = found if isinstance(found, dict) else {}
    counts = {n: entry.get(n) for n in record.policy.units}
    good = all(isinstance(x, int) and not isinstance(x, bool) and asked <= x for x in counts.values())
    good = good or not record.rows
    named = ", ".join(f"{x} different values of {n!r}" for n, x in counts.items())
    text = f"{named} in the class with fewest, counted before the column left; {asked} asked"
    for model in record.policy.privacy:
        if model in record.policy.of_rows:
            continue
        wanted = getattr(model, fields(model)[0].name)  # type: ignore[arg-type]
        level = record.levels.get(model.short)
        kept = level is not None and (level >= wanted - 1e-9 if model.weaker is min else level <= wanted + 1e-9)
        good = good and (kept or not record.rows)
        text += f"; by persons {model.short} = {level}, {wanted} asked"
    return Finding("persons", good, text, STATED)


def incomplete(record: Record, shown: int = 0, original: pl.DataFrame | None = None) -> Finding:
    """The rows that lack a quasi-identifier, counted if the original is given; only the certificate has their classes.

    shown  number of rows of the release with a missing value, which can't exceed the certified number
    """
    entry = record.raw.get("incomplete")
    counts = dict(entry) if isinstance(entry, dict) else {}
    rows, own, others = (
        x if type(x) is int else -1 for x in (counts.get(n) for n in ("rows", "smallest", "smallest_of_others"))
    )
    asked = max((m.k for m in record.policy.privacy if isinstance(m, KAnonymity)), default=1)
    columns = counts.get("columns")
    parts = [(part, least) for part, least in ((rows, own), (record.rows - rows, others)) if part or least]
    good = shown <= rows and all(part >= least >= asked for part, least in parts)
    good = good and isinstance(columns, list) and bool(columns) == (rows > 0)
    if parts:  # a class has rows of one or both parts; if there is one part, its classes are those of the release
        least = min(least for _, least in parts)
        good = good and (least == record.smallest if len(parts) == 1 else least <= record.smallest)
    text = (
        f"{rows} rows lack a quasi-identifier and are grouped apart; in a class at least {own} of them, {others} others"
    )
    if original is None:
        return Finding("missing values", good, text, STATED)
    gone = lacking_values(original, record.policy.quasi_identifiers)
    there = gone.height
    same = good and there == rows and columns == [lacks.name for lacks in gone if lacks.any()]
    return Finding("missing rows", same, f"{there} rows of the original lack a quasi-identifier")


def lacking_values(original: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """bool[rows, names]: which values are missing, for the rows that lack one."""
    gone = {
        name: (column.fill_nan(None) if column.dtype.is_float() else column).is_null()
        for name, column in ((n, original[n]) for n in names)
    }
    return pl.DataFrame(gone).filter(pl.any_horizontal(pl.all()))


def lacking(path: Path, held: ReleaseContents, record: Record) -> int:
    """A lower bound for the rows with a missing value that isn't a star. In a typed column, stars are missing values
    too.

    In a text file, an empty cell of a column without missing values is an empty text.
    """
    counts = record.raw.get("incomplete")
    texts = None if is_parquet(path) or not isinstance(counts, dict) else counts.get("columns")
    lack = pl.Series([False]).new_from_index(0, held.cells.height)
    beyond = 0
    for name in record.policy.quasi_identifiers:
        column, stars = held.cells[name], record.release.stars[name]
        is_text = isinstance(column.dtype, (pl.String, pl.Categorical))  # texts of a CSV may be read as categories
        if is_text and isinstance(texts, list) and name not in texts:
            continue
        if name in record.release.blanks or (not is_text and stars):
            beyond = max(beyond, int(held.counts[column.is_null().to_numpy()].sum()) - stars)
        else:
            lack = lack | column.is_null()
    return max(beyond, int(held.counts[lack.to_numpy()].sum()))


def filled_cells(record: Record, cells: Mapping[str, int] | None = None) -> Finding:
    """The number of filled cells. cells: counted in the original, if it is given."""
    entry = record.raw.get("filled")
    counts = dict(entry) if isinstance(entry, dict) else {}
    good = set(counts) == set(record.policy.quasi_identifiers)
    good = good and all(type(x) is int and 0 <= x <= record.rows for x in counts.values())
    total = (
        with_filled((record.release.loss or {})["ncp"], counts, record.rows)["ncp_with_filled"] if good else math.nan
    )
    stated = record.raw["loss"].get("ncp_with_filled")
    good = good and isinstance(stated, (int, float)) and math.isclose(stated, total, rel_tol=1e-9, abs_tol=1e-12)
    if cells is None:
        text = (
            f"{sum(counts.values()) if good else 'no one knows how many'} missing values were filled and count as lost"
        )
        return Finding("filled values", good, text, STATED)
    text = f"{sum(cells.values())} values of the original are missing, and were filled"
    return Finding("filled cells", good and dict(cells) == counts, text)


def limited_cells(record: Record, seen: Mapping[str, Mapping[str, float]]) -> Finding:
    """The values at and beyond the limits of columns. seen: counted in the original."""
    entry = record.raw.get("limited")
    limits = entry if isinstance(entry, dict) else {}
    good = set(limits) == set(seen) and all(
        isinstance(limits[name], dict)
        and all(math.isclose(limits[name].get(what, -1.0), x, rel_tol=1e-9, abs_tol=1e-12) for what, x in held.items())
        for name, held in seen.items()
    )
    many = sum(held["bottom"] + held["top"] for held in seen.values())
    return Finding("values at limits", good, f"{many:,.0f} values of the original reach a limit of their column")


def limits_kept(held: ReleaseContents, record: Record) -> list[Finding]:
    """Whether no published value is beyond its column's limits; with a record, also the loss that counts values
    beyond."""
    limits, counted = record.policy.limits, {}
    for name, notation in limits.items():
        low, high = limits_of(notation)
        texts = texts_of(held.cells[name])
        ends = {text: held_in(text) for text in set(texts) if text}
        step = record.policy.range_step.get(name)  # rounded outwards, a range may end at the limit, and not beyond
        named = ((text, end) for text, held in ends.items() for end in held if end)
        plain = {end for text, end in named if step is None or not _ends_at(text, end, notation)}
        plain -= {*notation.split(), record.policy.star}
        for at in (as_number(end, None) for end in plain):
            if record.release.publish != "hierarchy" if at is None else not low < at < high:
                return [Finding("limits", False, f"column {name!r} shows a value at or beyond its limit")]
        rows = {"rows_bottom": 0, "rows_top": 0}
        for limit in notation.split():
            there = pl.Series([limit in ends.get(text or "", ()) for text in texts], dtype=pl.Boolean).to_numpy()
            rows["rows_bottom" if limit[0] == "<" else "rows_top"] = int(held.counts[there].sum())
        counted[name] = rows
    found = [Finding("limits", True, f"no value of {', '.join(map(repr, limits))} lies at or beyond its limit")]
    if record.private:
        entry = record.raw.get("limited")
        entries = entry if isinstance(entry, dict) else {}
        good = all(
            isinstance(entries.get(n), dict) and rows.items() <= entries[n].items() for n, rows in counted.items()
        )
        ncp = (record.release.loss or {}).get("ncp", math.nan)
        try:
            total = with_limits(ncp, entries, record.rows, len(record.policy.quasi_identifiers)).get(
                "ncp_with_limits", 0.0
            )
            stated = record.raw["loss"].get("ncp_with_limits")
            good = good and math.isclose(stated, total, rel_tol=1e-9, abs_tol=1e-12)
        except (KeyError, TypeError):
            good = False
        text = (
            f"the NCP with what lies beyond limits is {total:.6g}" if good else "another loss or other rows are stated"
        )
        found.append(Finding("loss beyond limits", good, text, CONSISTENT))
    return found


def _ends_at(text: str, end: str, notation: str) -> bool:
    """Whether a range is above the bottom or below the top of its column, and ends there."""
    named, (low, high) = held_in(text), limits_of(notation)
    at = as_number(end, None)
    return text[0] == "[" and len(named) == 2 and (at == high if end == named[1] else at == low)


def unchanged_columns(record: Record, original: pl.DataFrame) -> Finding:
    """The number of rows that the insensitive columns single out, counted again."""
    carried = dict(record.raw["carried"])
    names = [n for n in carried["columns"] if n in original.columns]
    alone = {name: _single([original[name]]) for name in names}
    found: dict[str, Any] = {"alone": alone, "together": _single([original[name] for name in names])}
    same = found == {name: carried.get(name) for name in found}
    text = f"the insensitive columns single out {found['together']} rows"
    return Finding("carried", same, text if same else f"{text}; the certificate says otherwise")


def _single(columns: Sequence[pl.Series]) -> int:
    """The number of rows whose values in some columns no other row has; 0 without columns."""
    held = pl.DataFrame([column.alias(f"c{i}") for i, column in enumerate(columns)])
    return int((held.group_by(held.columns).len("n")["n"] == 1).sum()) if columns else 0


def _alike(stated: Any, found: Any) -> bool:
    """Whether two figures, or the figures of two mappings or lists, are equal."""
    if isinstance(found, Mapping):
        mine = isinstance(stated, Mapping) and set(stated) == set(map(str, found))
        return mine and all(_alike(stated[str(name)], value) for name, value in found.items())
    if isinstance(found, (list, tuple)):
        mine = isinstance(stated, (list, tuple)) and len(stated) == len(found)
        return mine and all(_alike(a, b) for a, b in zip(stated, found, strict=True))
    if isinstance(found, float) and type(stated) in (int, float):
        return math.isclose(stated, found, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stated == found) and isinstance(stated, bool) is isinstance(found, bool)


def population_of(record: Record, audit: Audit) -> Finding:
    """The population's figures, counted again if it is given, otherwise as stated."""
    entry = record.raw.get("population")
    figures = dict(entry) if isinstance(entry, dict) else {}
    if audit.population is not None:
        fits = f"every group fits at least {audit.population['k_map']} of {audit.population['rows']} people"
        same = all(_alike(figures.get(name), value) for name, value in audit.population.items() if name != "from")
        return Finding("population", same, fits if same else f"{fits}; the certificate says otherwise")
    least, people = figures.get("k_map"), figures.get("rows")
    asked = max((m.k for m in record.policy.privacy if isinstance(m, KMap)), default=0)
    good = not record.rows or (type(least) is int and type(people) is int and asked <= least <= people)
    source = (
        "the column of weights, which was removed" if record.policy.weighed else "the population, which was not given"
    )
    return Finding("population", good, f"every group fits at least {least} of {people} people, by {source}", STATED)


Outer = Callable[[pl.DataFrame, Audit], Audit]
ORDERS = ("kept", "fresh secret", "caller's secret")


def own_findings(
    path: Path, held: ReleaseContents, record: Record, outer: Outer, trees: Mapping[str, Any]
) -> tuple[list[Finding], Audit]:
    """The findings on a release by itself, and with its population if it is given.

    record  its certificate file, or its private record, which allows more checks
    trees   given hierarchies, by column
    """
    policy, release = record.policy, record.release
    audit, shown = _judged(held, record, trees)
    if policy.population is not None or policy.weighed:
        # published weights are a separate column, so they aren't in the counted tuples
        audit = outer(read_rows(path, record.separator) if policy.weighed else held.rows(), audit)
    findings = [*_same_file(path, record), *shown]
    findings.append(Finding("rows", audit.rows == record.rows, f"{audit.rows:,} rows, {record.rows:,} certified"))
    for check in audit.checks:
        where = f" of {check.column}" if check.column else ""
        wanted = ", ".join(f"{name} = {value}" for name, value in check.asked.items())
        level = _level(check.level, check.passes)
        text = f"asked {wanted}{where}, reached {level}"
        if check.model == "k-anonymity" and check.asked == {"k": 1}:  # the rule book isn't about groups
            text = f"no size of a group was asked, reached {level}"
        findings.append(Finding(check.model, check.passes, text))
    groups = audit.classes == record.groups and audit.smallest_class == record.smallest
    seen = f"{audit.classes} classes, the smallest of {audit.smallest_class} rows"
    findings.append(Finding("groups", groups, f"{seen}; {record.groups} and {record.smallest} certified"))
    findings.append(_levels(record, audit))
    if not record.private:
        findings += [_agrees(record), *_loss(held, record, trees)]
    elif release.loss is not None and release.changed is not None and release.cost is not None:
        findings.append(_consistent(record, release.loss, release.changed, release.cost))
    for name, tree in trees.items():
        if isinstance(tree, Hierarchy) and tree.kind == REGIONS and name in policy.quasi_identifiers:
            wrong = AreaGraph(tree).wrong(texts_of(held.cells[name].unique()), policy.star)
            text = wrong or "every published set of areas is connected in the graph"
            findings.append(Finding(f"regions of {name}", wrong is None, text))
    highest = dict(record.raw["policy"].get("max_level") or {})
    if (policy.global_recoding or highest) and release.publish in ("stars", "hierarchy"):
        findings.append(levels_kept(held.cells, _recodings(record, trees), policy.global_recoding, highest))
    if policy.limits:
        findings += limits_kept(held, record)
    if policy.range_step:
        findings.append(range_steps(held.cells, policy.range_step, policy.notations, policy.star))
    if policy.max_suppressed:
        findings.append(_suppressed(held, record))
    if release.changed is not None and release.publish == "ranges":
        findings.append(_coarser(held, record, release.changed))
    limit = policy.max_average_risk
    if limit is not None:
        mean = audit.risk["prosecutor_mean"]
        kept = mean <= limit + 1e-9
        findings.append(Finding("mean risk", kept, f"asked at most {limit}, reached {_level(mean, kept)}"))
    if policy.minimality is not None:
        most = largest_share(audit)
        text = f"no value on more than the share {most:.6g} of a class, {policy.minimality:g} asked; that groups tell "
        text += "nothing more rests on the method that formed them"
        findings.append(Finding("minimality", most <= policy.minimality + 1e-9, text))
    if not record.private:
        findings += [_singled(path, held, record), *_not_shown(record, audit)]
    else:
        if policy.units:
            findings.append(persons(record))
        if policy.missing == "apart":
            findings.append(incomplete(record, lacking(path, held, record)))
        if policy.missing == "filled":
            findings.append(filled_cells(record))
        if policy.population is not None or policy.weighed:
            findings.append(population_of(record, audit))
    if record.harbor is not None:
        wrong = breach(read_rows(path, record.separator), record.harbor)
        text = wrong or f"{', '.join(record.harbor.columns) or 'no column'} shown as the rule allows"
        findings.append(Finding("safe harbor", wrong is None, text))
    return [*findings, *_columns(held, record)], audit


def _level(level: Any, kept: bool) -> str:
    """A level with four digits; with six if a promise isn't kept, because the two may differ by little."""
    return number(level) if kept or not isinstance(level, float) else f"{level:.6g}"


def _loss(held: ReleaseContents, record: Record, trees: Mapping[str, Any]) -> list[Finding]:
    """The stars, coarser cells, and loss that the file shows, counted again.

    Without a hierarchy, the loss of its labels can't be computed.
    """
    policy, release, raw = record.policy, record.release, record.raw
    names = policy.quasi_identifiers
    how = _recodings(record, trees)
    wanted = how.trees
    found = shown_loss(held.cells, held.counts, how)
    lacking = [n for n in wanted if wanted[n] == NOT_GIVEN] if release.publish == "hierarchy" else []
    odd = next((n for n in names if found.stars[n] != release.stars[n]), None)
    odd = odd or next((n for n in names if n not in lacking and found.changed[n] != raw["changed"][n]), None)
    cells = "starred and coarser cells of every column, as certified"
    if odd is not None:
        text = f"column {odd!r} has {found.stars[odd]} stars and {found.changed[odd]} coarser cells"
        cells = f"{text}, {release.stars[odd]} and {raw['changed'][odd]} were certified"
    findings = [Finding("cells", odd is None, cells)]
    if lacking:
        text = f"it rests on the hierarchy of {', '.join(map(repr, lacking))}; hand it over to have it counted again"
        return [*findings, Finding("loss", True, text, STATED)]
    cost = found.cost(release.unit, bool(policy.weights))
    pairs = [(raw["loss"].get(name), value, name) for name, value in found.loss.items()]
    pairs.append((record.stated.cost, cost, "cost"))
    wrong = next((p for p in pairs if not _alike(p[0], p[1])), None)
    if wrong is not None:
        return [*findings, Finding("loss", False, f"{wrong[2]}: {wrong[1]} counted, {wrong[0]} certified")]
    words = {"stars": "{:,.0f} stars", "suppressed_tuples": "{:,.0f} rows changed", "ncp": "NCP {:.6g}"}
    shown = ", ".join(words[name].format(value) for _, value, name in pairs[:-1] if value is not None)
    return [*findings, Finding("loss", True, f"{shown or 'nothing'} by what the file shows, as certified")]


def _recodings(record: Record, trees: Mapping[str, Any]) -> ColumnRecodings:
    """How the certificate says that columns were recoded, with the hierarchies at hand."""
    policy, release, names = record.policy, record.release, record.policy.quasi_identifiers
    wanted = {n: trees.get(n, NOT_GIVEN) for n in record.hierarchies if n in names}
    return ColumnRecodings(
        names, release.publish, policy.star, release.blanks, wanted, policy.weights, policy.notations
    )


def _no(why: str) -> Finding:
    return Finding("certificate", False, why, CONSISTENT)


def _agrees(record: Record) -> Finding:
    """Whether a certificate file is consistent, and states the theorem's guarantee for this request."""
    raw, stated = record.raw, record.stated
    assert isinstance(stated, PublicCertificate)
    if not _order(raw):
        return _no("its statements about the order of its rows contradict each other")
    if stated.guarantee != _guarantee(raw, stated):
        return _no("it promises what no theorem does")
    if stated.ratio_at_most is not None and (raw["policy"]["bound"] == "none" or "series" in raw):
        return _no("it states a ratio, and its policy asks that none be stated, or it is a part of a series")
    if any(name in raw["policy"] for name in PRIVATE_SETTINGS):
        return _no("its policy holds what belongs into the record")
    if raw.get("seal") != seal(raw):
        return _no("it was changed after it was written")
    return Finding("certificate", True, "agrees with itself", CONSISTENT)


def _guarantee(raw: Mapping[str, Any], stated: PublicCertificate) -> Guarantee:
    """The guarantee that may be stated: none for a part of a series, whose groups depend on earlier parts."""
    if "series" in raw:
        return Guarantee()
    return PROVED if stated.ratio_at_most == 1 else promised(raw["policy"])


def _order(raw: Mapping[str, Any]) -> bool:
    """Whether the statement about the row order agrees with the request."""
    order, kept = raw.get("order"), raw["policy"].get("keep_order", False)
    return order in ORDERS and kept is (order == "kept") and raw.get("shuffled") is (not kept)


def _not_shown(record: Record, audit: Audit) -> list[Finding]:
    """Requested conditions that are judged when a release is made, but can't be checked on its rows."""
    policy, found = record.policy, []
    if policy.units:
        columns: dict[str, list[str]] = {}  # the words of each model -> the sensitive columns that it is asked of
        for model in policy.privacy:
            if model not in policy.of_rows and model.applies_to != "population":
                columns.setdefault(model.words(), []).extend([] if model.column is None else [model.column])
        models = [words + (f" of {', '.join(map(repr, of))}" if of else "") for words, of in columns.items()]
        also = f"; by persons also: {'; '.join(models)}" if models else ""
        named = " and ".join(map(repr, policy.units))
        text = f"k counts {named}, removed from the release; the private record states how many{also}"
        found.append(Finding("persons", True, text, STATED))
    if policy.missing != "category":
        done = {"apart": "rows that lack a quasi-identifier were grouped apart", "filled": "missing values were filled"}
        found.append(Finding("missing values", True, f"{done[policy.missing]}, as asked", STATED))
    if policy.population is None and not policy.weighed:
        return found
    people = audit.population
    if people is None:
        source = "the column of weights, which was removed" if policy.weighed else "the population, which was not given"
        return [*found, Finding("population", True, f"its request was judged by {source}", STATED)]
    text = f"every group fits at least {people['k_map']} of {people['rows']} people"
    return [*found, Finding("population", True, text)]


def _judged(held: ReleaseContents, record: Record, trees: Mapping[str, Any]) -> tuple[Audit, list[Finding]]:
    """The audit of the rows, and whether stars and ordered values agree with the certificate."""
    policy, release = record.policy, record.release
    shown = {name: held.cells[name].cast(pl.String).drop_nulls() for name in record.orders}
    odd = {name for name, levels in record.orders.items() if not shown[name].is_in(levels).all()}
    why = "it has a value that the certificate's order does not name"
    found = [Finding(f"order of {name}", False, why) for name in sorted(odd)]
    wanted = ReleaseRequirement(
        quasi=policy.quasi_identifiers,
        sensitive=policy.sensitive,
        models=policy.of_rows,
        star=policy.star if release.publish != "centers" else None,
        stars=dict(release.stars) | dict.fromkeys(release.blanks, 0),
        orders={name: levels for name, levels in record.orders.items() if name not in odd},
        trees={name: tree for name, tree in trees.items() if name in policy.sensitive and isinstance(tree, Hierarchy)},
        notations=policy.notations,
    )
    try:
        audit = judge_held(held, wanted, "")
    except VerificationError as error:
        audit = judge_held(held, wanted._replace(star=None, orders={}), "")
        return audit, [Finding("stars", False, str(error)), *found]
    return audit, [Finding("stars", True, f"{sum(release.stars.values()):,} starred cells, as certified"), *found]


def _same_file(path: Path, record: Record) -> list[Finding]:
    """Whether the bytes are the certified ones, and for a folder which part isn't."""
    try:
        about = record.raw["release"]
        same, parts = digest_of(path) == record.sha256, []
        files = list(path.iterdir()) if path.is_dir() else [path]
        same = same and about.get("bytes") in (None, sum(file.stat().st_size for file in files))
        same = same and about.get("parts", len(files) - 1) == len(files) - 1
    except VerificationError as error:
        same, parts = False, [Finding("parts", False, str(error))]
    return [Finding("file", same, "the file is the one certified" if same else stale(path, record.raw)), *parts]


def _columns(held: ReleaseContents, record: Record) -> list[Finding]:
    """The columns of the release: identifiers must be absent, and columns without a promise are listed."""
    policy = record.policy
    left = [name for name in policy.identifiers if name in held.columns]
    others = [c for c in held.columns if c not in policy.quasi_identifiers and c not in policy.sensitive]
    kept = f"published without a promise: {', '.join(map(repr, others))}" if others else "every column has a promise"
    asked = "only the certificate tells that this was the request"
    stray = sorted({*others} - record.carried - {*policy.identifiers})
    named = f"column {stray[0]!r} is there, and the certificate does not name it" if stray else "as certified"
    nested = [name for name, kind in held.cells.schema.items() if kind.is_nested()]
    if nested:
        stray, named = nested, f"column {nested[0]!r} holds lists or parts, which no group publishes"
    return [
        Finding("columns named", not stray, named),
        Finding("identifiers", not left, f"column {left[0]!r} is still there" if left else "gone"),
        Finding("request", True, f"{kept}; {asked}", STATED),
    ]


def _singled(path: Path, held: ReleaseContents, record: Record) -> Finding:
    """The unchanged columns, and the number of rows that they single out, counted in the file."""
    policy, carried = record.policy, dict(record.raw["carried"])
    roles = {*policy.quasi_identifiers, *policy.sensitive, *policy.identifiers}
    names = [c for c in held.columns if c not in roles]
    asked = [c for c in carried["columns"] if c in policy.insensitive]
    same = sorted(carried["columns"]) == sorted(names) and carried.get("insensitive") == asked
    for zeros in (False, True):
        found = sample_uniques(path, names, int(held.counts.sum()), record.separator, zeros=zeros)
        if same and carried.get("alone") == found.alone and carried.get("together") == found.together:
            return Finding("singled out", True, f"{found.together} rows, by the columns without a promise")
    return Finding("singled out", False, f"{found.together} rows; the certificate says otherwise of these columns")


def _coarser(held: ReleaseContents, record: Record, changed: Mapping[str, int]) -> Finding:
    """The sets, ranges, and stars of every text column; they are recognizable because ambiguous values are quoted."""
    for name in record.policy.quasi_identifiers:
        column = held.cells[name]
        column = column.cast(pl.String) if isinstance(column.dtype, pl.Categorical) else column
        if column.dtype != pl.String or name in record.release.blanks:
            continue
        joined = column.str.starts_with("[") | column.str.starts_with("{") | (column == record.policy.star)
        found = int(held.counts[joined.fill_null(False).to_numpy()].sum())
        if found != changed[name]:
            text = f"column {name!r} has {found} sets, ranges and stars, {changed[name]} were certified"
            return Finding("coarser values", False, text)
    return Finding("coarser values", True, "sets, ranges and stars of every column of text, as certified")


def _whole_stars(held: ReleaseContents, record: Record) -> tuple[int, int, bool]:
    """The rows with certainly a star in every quasi-identifier, those that may have, and whether a column has other
    blanks.

    In a typed column, stars and missing values are the same, unless missing values were filled.
    """
    surely = pl.Series([True]).new_from_index(0, held.cells.height)
    maybe, others = surely, False
    for name in record.policy.quasi_identifiers:
        column, stars = held.cells[name], record.release.stars[name]
        starred = (column.cast(pl.String) == record.policy.star).fill_null(False)
        blank = column.is_null()
        typed = not isinstance(column.dtype, (pl.String, pl.Categorical)) or name in record.release.blanks
        none_lacking = record.policy.missing == "filled"
        surely = surely & (starred | blank if typed and none_lacking else starred)
        maybe = maybe & (starred | blank if stars and typed else starred)
        others = others or (typed and int(held.counts[blank.to_numpy()].sum()) > stars)
    return int(held.counts[surely.to_numpy()].sum()), int(held.counts[maybe.to_numpy()].sum()), others


def _suppressed(held: ReleaseContents, record: Record) -> Finding:
    """Whether the number of completely starred rows agrees with the certificate and its limit."""
    allowed = int(record.policy.max_suppressed * record.rows + 1e-9)
    surely, there, others = _whole_stars(held, record)
    if not isinstance(record.stated, Certificate):
        if there <= allowed or surely > allowed:
            return Finding("suppressed rows", there <= allowed, f"{there} rows starred whole, {allowed} allowed")
        text = f"{surely} to {there} rows starred whole, for a star may be a missing value; {allowed} allowed"
        return Finding("suppressed rows", True, text, CONSISTENT)
    certified = record.stated.details.get("suppressed_rows", 0)
    if isinstance(certified, bool) or not isinstance(certified, int):
        return Finding("suppressed rows", False, "the certificate names no whole number of rows starred whole")
    text = f"{there} rows starred whole, {certified} certified, {allowed} allowed"
    exact = there == certified
    # in a typed column, rows that lack a value may look completely starred
    return Finding("suppressed rows", certified <= allowed and (exact or (others and there > certified)), text,
                   RECOMPUTED if exact else CONSISTENT)  # fmt: skip


def least_suppressed_rows(held: ReleaseContents, record: Record, original: pl.DataFrame) -> Finding:
    """A lower bound for completely starred rows: those that look so, minus the rows that lack a value in the
    original."""
    allowed = int(record.policy.max_suppressed * record.rows + 1e-9)
    surely, there, _ = _whole_stars(held, record)
    least = max(surely, there - lacking_values(original, record.policy.quasi_identifiers).height)
    text = f"at least {least} rows starred whole, {allowed} allowed"
    return Finding("suppressed rows, with the original", least <= allowed, text)


def _levels(record: Record, audit: Audit) -> Finding:
    """Whether the certified levels are reached, and every requested model has one."""
    reached: dict[str, list[float | None]] = {"k": [audit.k]}
    for check in audit.checks:
        reached.setdefault(check.short, []).append(check.level)
    apart = {m.short for m in record.policy.privacy if m.applies_to == "population" or m not in record.policy.of_rows}
    if record.private:
        apart -= set(reached)
    else:  # a certificate has no levels of models of persons or a population
        reached = {short: levels for short, levels in reached.items() if short not in apart}
    lacking = sorted((set(reached) | (apart if record.private else set())) - set(record.levels))
    stray = [] if record.private else sorted(apart & set(record.levels))
    if stray:
        return Finding("levels", False, f"it states {stray[0]}, which no release shows")
    if audit.rows and lacking:
        return Finding("levels", False, f"it does not state {lacking[0]}")
    for name, level in record.levels.items():
        if name in apart:  # not without population or persons; ``population_of`` and ``persons`` report what is stated
            continue
        found = [v for v in reached.get(name, []) if v is not None and math.isfinite(v)]
        if bool(found) if level is None else not any(math.isclose(level, v, rel_tol=1e-9) for v in found):
            return Finding("levels", False, f"it states {name} = {level}, which the release does not have")
    return Finding("levels", True, ", ".join(f"{n} = {number(v)}" for n, v in record.levels.items() if v is not None))


def _consistent(record: Record, loss: Mapping[str, float], changed: Mapping[str, int], cost: float) -> Finding:
    """Whether the record is consistent."""
    release, stated, written = record.release, record.stated, record.raw["certificate"]
    assert isinstance(stated, Certificate)
    total = sum(release.stars.values())
    starred = release.publish == "stars"
    most = total if release.publish != "centers" else 0
    if (
        total > most
        or loss["stars"] > most
        or (release.publish in ("stars", "ranges") and loss["stars"] != total)
        or (starred and release.stars != changed)
    ):
        return _no("its loss and its stars contradict each other")
    # a column without a hierarchy shows values or stars
    bare = [name for name in release.stars if name not in record.hierarchies]
    if release.publish == "hierarchy" and (
        bare == [*release.stars] or any(release.stars[n] != changed[n] for n in bare)
    ):
        return _no("it names no hierarchy for a column whose values it counts as changed")
    cells = max(record.rows * len(release.stars), 1)
    if starred and not math.isclose(loss["ncp"], total / cells, rel_tol=1e-9, abs_tol=1e-12):
        return _no("its stars and its NCP contradict each other")
    known = {"stars": loss["stars"], "suppressed tuples": loss["suppressed_tuples"]}
    if release.unit == "ncp" and not release.weights:
        known["ncp"] = loss["ncp"]
    if release.publish != "centers" and not math.isclose(known.get(release.unit, cost), cost, rel_tol=1e-9):
        return _no("its cost and its loss contradict each other")
    weighted = record.raw["loss"].get("weighted_ncp", cost)
    if weighted != cost or ("weighted_ncp" in record.raw["loss"] and (not release.weights or release.unit != "ncp")):
        return _no("its loss by weights is not what it says it cost")
    if not _order(record.raw):
        return _no("its statements about the order of its rows contradict each other")
    ratio, number = stated.ratio, record.ratio
    if (ratio is None) != (number is None) or not math.isclose(float(ratio or 0), number or 0, rel_tol=1e-9):
        return _no("its ratio is not cost over lower bound")
    if "optimal" in written and written["optimal"] is not stated.optimal:
        return _no("it says optimal where cost and lower bound do not")
    if record.raw.get("seal") != seal(record.raw):
        return _no("it was changed after it was written")
    return Finding("certificate", True, "agrees with itself", CONSISTENT)
