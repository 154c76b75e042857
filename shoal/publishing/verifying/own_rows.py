"""What a release of a table shows by its own rows, against its certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from shoal.errors import VerificationError
from shoal.judge.file import seal, stale
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding
from shoal.judge.tables.grid import range_steps
from shoal.judge.tables.parts import Held, Required, digest_of, judge_held, read_rows
from shoal.judge.tables.safe_harbor import breach
from shoal.model.audit import Audit
from shoal.model.hierarchy import Hierarchy
from shoal.publishing.verifying.recorded import Record
from shoal.publishing.verifying.stated import filled_cells, incomplete, lacking, persons, population_of

Outer = Callable[[pl.DataFrame, Audit], Audit]
ORDERS = ("kept", "fresh secret", "caller's secret")


def own_findings(
    path: Path, held: Held, record: Record, outer: Outer, trees: Mapping[str, Hierarchy]
) -> tuple[list[Finding], Audit]:
    """What a release shows by itself, and beside its population where that is at hand.

    trees  the hierarchies of its sensitive columns
    """
    policy, said = record.policy, record.said
    audit, shown = _judged(held, record, trees)
    if policy.population is not None or policy.weighed:
        # weights that were carried stand row by row, outside the tuples counted
        audit = outer(read_rows(path, record.separator) if policy.weighed else held.rows(), audit)
    findings = [*_same_file(path, record), *shown]
    findings.append(Finding("rows", audit.rows == record.rows, f"{audit.rows} rows, {record.rows} certified"))
    for check in audit.checks:
        where = f" of {check.column}" if check.column else ""
        wanted = ", ".join(f"{name} = {value}" for name, value in check.asked.items())
        text = f"asked {wanted}{where}, reached {check.level}"
        if check.model == "k-anonymity" and check.asked == {"k": 1}:  # of a rule book that is not about groups
            text = f"no size of a group was asked, reached {check.level}"
        findings.append(Finding(check.model, check.passes, text))
    groups = audit.classes == record.groups and audit.smallest_class == record.smallest
    seen = f"{audit.classes} classes, the smallest of {audit.smallest_class} rows"
    findings.append(Finding("groups", groups, f"{seen}; {record.groups} and {record.smallest} certified"))
    findings += [_levels(record, audit), _consistent(record)]
    if policy.range_step:
        findings.append(range_steps(held.cells, policy.range_step))
    if policy.max_suppressed:
        findings.append(_suppressed(held, record))
    if said.publish == "ranges":
        findings.append(_coarser(held, record))
    limit = policy.max_average_risk
    if limit is not None:
        mean = audit.risk["prosecutor_mean"]
        findings.append(Finding("mean risk", mean <= limit + 1e-9, f"asked at most {limit}, reached {mean:.6g}"))
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
        text = wrong or f"{', '.join(record.harbor.columns) or 'no column'} shown as the rule lets them stand"
        findings.append(Finding("safe harbor", wrong is None, text))
    return [*findings, *_columns(held, record)], audit


def _judged(held: Held, record: Record, trees: Mapping[str, Hierarchy]) -> tuple[Audit, list[Finding]]:
    """The audit of what stands there, and whether its stars are those certified and its ordered values the known."""
    policy, said = record.policy, record.said
    odd = {name for name, levels in record.orders.items() if not _ordered(held.cells[name], levels)}
    why = "a value stands there that the certificate's order of them does not name"
    found = [Finding(f"order of {name}", False, why) for name in sorted(odd)]
    wanted = Required(
        quasi=policy.quasi_identifiers,
        sensitive=policy.sensitive,
        models=policy.of_rows,
        star=policy.star if said.publish != "centers" else None,
        stars=dict(said.stars) | dict.fromkeys(said.blanks, 0),
        orders={name: levels for name, levels in record.orders.items() if name not in odd},
        trees=trees,
    )
    try:
        audit = judge_held(held, wanted, "")
    except VerificationError as error:
        audit = judge_held(held, wanted._replace(star=None, orders={}), "")
        return audit, [Finding("stars", False, str(error)), *found]
    return audit, [Finding("stars", True, f"{sum(said.stars.values())} starred cells, as certified"), *found]


def _ordered(column: pl.Series, levels: list[str]) -> bool:
    return bool(column.cast(pl.String).drop_nulls().is_in(levels).all())


def _same_file(path: Path, record: Record) -> list[Finding]:
    """Whether the bytes are the ones certified, and of a folder which part is not."""
    try:
        same, parts = digest_of(path) == record.sha256, []
    except VerificationError as error:
        same, parts = False, [Finding("parts", False, str(error))]
    return [Finding("file", same, "the file is the one certified" if same else stale(path, record.raw)), *parts]


def _columns(held: Held, record: Record) -> list[Finding]:
    """The columns that stand there: none that names people, and which of them nothing is promised of."""
    policy = record.policy
    left = [name for name in policy.identifiers if name in held.columns]
    others = [c for c in held.columns if c not in policy.quasi_identifiers and c not in policy.sensitive]
    asked = "that this is what was asked for, and of these columns, rests on the certificate"
    listed = ", ".join(map(repr, others)) or "none"
    stray = sorted({*others} - record.carried - {*policy.identifiers})
    named = f"column {stray[0]!r} stands there, and the certificate names it nowhere" if stray else "as certified"
    return [
        Finding("columns named", not stray, named),
        Finding("identifiers", not left, f"column {left[0]!r} is still there" if left else "gone"),
        Finding("what was asked", True, f"columns without a promise: {listed}; {asked}", STATED),
    ]


def _coarser(held: Held, record: Record) -> Finding:
    """Sets, ranges and stars of every column of text: where values by themselves are quoted, these tell themselves."""
    for name in record.policy.quasi_identifiers:
        column = held.cells[name]
        column = column.cast(pl.String) if isinstance(column.dtype, pl.Categorical) else column
        if column.dtype != pl.String or name in record.said.blanks:
            continue
        joined = column.str.starts_with("[") | column.str.starts_with("{") | (column == record.policy.star)
        found = int(held.counts[joined.fill_null(False).to_numpy()].sum())
        if found != record.said.changed[name]:
            text = f"column {name!r} has {found} sets, ranges and stars, {record.said.changed[name]} were certified"
            return Finding("coarser values", False, text)
    return Finding("coarser values", True, "sets, ranges and stars of every column of text, as certified")


def _suppressed(held: Held, record: Record) -> Finding:
    """Rows starred whole: as many as certified are there, and the certificate keeps the budget."""
    said = record.stated.details.get("suppressed_rows", 0)
    if isinstance(said, bool) or not isinstance(said, int):
        return Finding("suppressed rows", False, "the certificate names no whole number of rows starred whole")
    policy = record.policy
    allowed = int(policy.max_suppressed * record.rows + 1e-9)
    whole, twofold = pl.Series([True]).new_from_index(0, held.cells.height), False
    for name in policy.quasi_identifiers:
        column, stars = held.cells[name], record.said.stars[name]
        starred = (column.cast(pl.String) == policy.star).fill_null(False)
        blank = column.is_null()
        typed = not isinstance(column.dtype, (pl.String, pl.Categorical)) or name in record.said.blanks
        whole = whole & (starred | blank if stars and typed else starred)
        twofold = twofold or (typed and int(held.counts[blank.to_numpy()].sum()) > stars)
    there = int(held.counts[whole.to_numpy()].sum())
    text = f"{there} rows starred whole, {said} certified, {allowed} allowed"
    exact = there == said
    # a star of a typed column is a missing value, so beside rows that lack one more may seem to be starred whole
    return Finding("suppressed rows", said <= allowed and (exact or (twofold and there > said)), text,
                   RECOMPUTED if exact else CONSISTENT)  # fmt: skip


def _levels(record: Record, audit: Audit) -> Finding:
    """The levels certified against those reached; every model asked for has its level."""
    reached: dict[str, list[float | None]] = {"k": [audit.k]}
    for check in audit.checks:
        reached.setdefault(check.short, []).append(check.level)
    apart = {m.short for m in record.policy.privacy if m.speaks == "population" or m not in record.policy.of_rows}
    apart -= set(reached)
    lacking = sorted((set(reached) | apart) - set(record.levels))
    if audit.rows and lacking:
        return Finding("levels", False, f"it does not state {lacking[0]}")
    for name, level in record.levels.items():
        if name in apart:  # not without population or persons; ``population_of`` and ``persons`` say what is stated
            continue
        found = [v for v in reached.get(name, []) if v is not None and math.isfinite(v)]
        if level is not None and not any(math.isclose(level, v, rel_tol=1e-9) for v in found):
            return Finding("levels", False, f"it states {name} = {level}, which the release does not have")
    return Finding("levels", True, ", ".join(f"{n} = {v:.6g}" for n, v in record.levels.items() if v is not None))


def _consistent(record: Record) -> Finding:
    """Whether the certificate file agrees with itself."""

    def no(why: str) -> Finding:
        return Finding("certificate", False, why, CONSISTENT)

    said, stated, written = record.said, record.stated, record.raw["certificate"]
    total = sum(said.stars.values())
    starred = said.publish == "stars"
    most = total if said.publish != "centers" else 0
    if (
        total > most
        or said.loss["stars"] > most
        or (said.publish in ("stars", "ranges") and said.loss["stars"] != total)
        or (starred and said.stars != said.changed)
    ):
        return no("its loss and its stars contradict each other")
    bare = [name for name in said.stars if name not in record.hierarchies]  # shows its values, or stars
    if said.publish == "hierarchy" and (bare == [*said.stars] or any(said.stars[n] != said.changed[n] for n in bare)):
        return no("it names no hierarchy for a column whose values it counts as changed")
    cells = max(record.rows * len(said.stars), 1)
    if starred and not math.isclose(said.loss["ncp"], total / cells, rel_tol=1e-9, abs_tol=1e-12):
        return no("its stars and its NCP contradict each other")
    known = {"stars": said.loss["stars"], "suppressed tuples": said.loss["suppressed_tuples"]}
    if said.unit == "ncp" and not said.weights:
        known["ncp"] = said.loss["ncp"]
    if said.publish != "centers" and said.unit not in (*known, "ncp"):
        return no("its unit is none of a table's")
    if said.publish != "centers" and not math.isclose(known.get(said.unit, said.cost), said.cost, rel_tol=1e-9):
        return no("its cost and its loss contradict each other")
    weighted = record.raw["loss"].get("weighted_ncp", said.cost)
    if weighted != said.cost or ("weighted_ncp" in record.raw["loss"] and (not said.weights or said.unit != "ncp")):
        return no("its loss by weights is not what it says it cost")
    order, kept = record.raw.get("order"), record.raw["policy"].get("keep_order", False)
    if order not in ORDERS or kept is not (order == "kept") or record.raw.get("shuffled") is kept:
        return no("what it says of the order of its rows contradicts itself")
    ratio, number = stated.ratio, record.ratio
    if (ratio is None) != (number is None) or not math.isclose(float(ratio or 0), number or 0, rel_tol=1e-9):
        return no("its ratio is not cost over lower bound")
    if "optimal" in written and written["optimal"] is not stated.optimal:
        return no("it says optimal where cost and lower bound do not")
    if record.raw.get("seal") != seal(record.raw):
        return no("it was changed after it was written")
    return Finding("certificate", True, "agrees with itself", CONSISTENT)
