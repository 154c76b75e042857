"""A first look at a table: a proposed role for every column, with the reason and warnings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from shoal.engines.files import read_table
from shoal.engines.oddities import alike, codes

_WORDS: list[tuple[str, str, str]] = [
    # pattern on the column's name, role, why
    (
        r"(^|_)(name|surname|firstname|lastname|forename|vorname|nachname)($|_)",
        "identifier",
        "its name says a person's name",
    ),
    (
        r"(^|_)(ssn|passport|mrn|nhs|email|e_mail|mail|phone|tel|mobile|fax|iban|account|url|ip)($|_)",
        "identifier",
        "its name says a direct identifier",
    ),
    (
        r"(^|_)(id|uuid|guid|nbr|no|key|patient|record|case|person)(_?id|_?no|_?nbr|_?key)?$",
        "identifier",
        "its name says a record or person number",
    ),
    (
        r"(diag|disease|icd|condition|symptom|hiv|drug|medic|treat|salary|income|wage|earn|affair|crime|offen|religio|"
        r"politic|vote|sexual|orient|grade|score|result|outcome|status_hiv|debt|default)",
        "sensitive",
        "its name says something people keep to themselves",
    ),
    (
        r"(^|_)(age|birth|dob|born|yob|year_of_birth|birthdate|geburt)",
        "quasi-identifier",
        "its name says age or birth date",
    ),
    (
        r"(zip|postal|postcode|plz|zcta|county|city|town|state|region|district|address|street|lat|lon|lng|country|nation|"
        r"birthplace|puma|fips)",
        "quasi-identifier",
        "its name says a place",
    ),
    (
        r"(sex|gender|race|ethnic|marital|marri|educ|occup|profess|job|workclass|employ|household|children|relig|language|"
        r"citizen|height|weight|hours)",
        "quasi-identifier",
        "its name says something others may know about a person",
    ),
    (r"(date|admission|discharge|visit)", "quasi-identifier", "its name says a date or an event others may know"),
]


@dataclass(frozen=True)
class Proposal:
    """One column: role "identifier", "quasi-identifier", "sensitive" or "insensitive", and why."""

    name: str
    role: str
    reason: str
    distinct: int
    missing: int
    warnings: tuple[str, ...] = ()


def propose(
    path: str | Path, *, l: int = 2, separator: str | None = None, encoding: str | None = None
) -> list[Proposal]:
    """Proposals for every column of a file, in the file's order.  O(n) per column."""
    frame = read_table(path, separator=separator, encoding=encoding)
    return [_column(frame[name], frame.height, l) for name in frame.columns]


def _column(series: pl.Series, rows: int, l: int) -> Proposal:
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        return Proposal(series.name, "insensitive", f"holds {series.dtype}, which cannot be grouped", 0, 0)
    distinct, missing = series.n_unique(), series.null_count()
    name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", series.name).lower()).strip("_")
    share = distinct / rows if rows else 0.0
    role, reason = "", ""
    for pattern, found, why in _WORDS:
        if re.search(pattern, name):
            role, reason = found, why
            break
    text_length = (
        series.cast(pl.String, strict=False).str.len_chars().mean() if series.dtype == pl.String and rows else 0
    )
    free_text = isinstance(text_length, float) and text_length > 40 and share > 0.5
    warnings: list[str] = []
    if free_text:
        role, reason = "identifier", "free text: it can name people, so it leaves the table"
        warnings.append("free text; read it before you publish any of it")
    elif rows > 20 and share > 0.95 and role not in ("quasi-identifier", "sensitive"):
        role, reason = "identifier", f"{100 * share:.0f} % of its values are different: it points at one row each"
    elif not role:
        if distinct <= 1:
            role, reason = "insensitive", "one value only"
        elif share > 0.5 and rows > 20:
            role, reason = "quasi-identifier", f"{distinct:,} different values single people out"
        else:
            role, reason = "insensitive", "nothing in its name or values says otherwise; decide yourself"
    if role == "quasi-identifier" and rows > 20 and share > 0.5:
        warnings.append(f"{100 * share:.0f} % of its values are different; coarsen it or expect it to be starred")
    if role == "sensitive" and rows:
        top = int(series.value_counts(sort=True)["count"][0]) if distinct else 0
        if top * l > rows:
            warnings.append(
                f"one value is {100 * top / rows:.1f} % of the rows, too frequent for l = {l}; "
                f"the largest l possible is {rows // top}"
            )
    warnings += codes(series)
    if role in ("quasi-identifier", "sensitive") and series.dtype == pl.String and distinct < rows:
        told = series.value_counts()
        found_alike = alike(series.name, told[series.name].to_list(), told["count"].to_list(), role == "sensitive")
        warnings += [sentence.split(": ", 1)[1] for sentence in found_alike]
    if missing and role == "sensitive":
        warnings.append(f"{missing:,} missing values; they count as a sensitive value of their own")
    elif missing:
        warnings.append(f"{missing:,} missing values; each counts as a value of its own")
    return Proposal(series.name, role, reason, distinct, missing, tuple(warnings))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def write_policy(file: str, found: Sequence[Proposal], *, k: int, l: int) -> str:
    """A commented TOML policy; columns without a role stand in a comment."""

    def block(title: str, role: str, comment: str) -> list[str]:
        lines = [f"# {comment}", f"{title} = ["]
        for c in found:
            if c.role == role:
                lines.append(f"    {_quoted(c.name)},  # {c.distinct:,} values; {c.reason}")
                lines += [f"    #   warning: {w}" for w in c.warnings]
        return [*lines, "]", ""]

    sensitive = [c for c in found if c.role == "sensitive"]
    blocked = any("too frequent" in w for c in sensitive for w in c.warnings)
    lines = [
        f"# Policy for {file}: a proposal from names and numbers of values. Read it: you know what others may know.",
        "",
        *block(
            "quasi_identifiers", "quasi-identifier", "Columns that others may know about a person; they are recoded."
        ),
        *block("sensitive", "sensitive", "Columns that nobody may learn about a person; published as they are."),
        *block("identifiers", "identifier", "Columns that leave the table."),
        "# Carried along unchanged, row by row:",
        *[f"#   {_quoted(c.name)}  {c.distinct:,} values; {c.reason}" for c in found if c.role == "insensitive"],
        "",
        f"k = {k}  # at least {k} rows in every group",
    ]
    if sensitive:
        off = "# " if blocked else ""
        why = "; a sensitive column above is too unequal for it" if blocked else ""
        lines.append(f"{off}l = {l}  # at most 1/{l} of a group share a sensitive value{why}")
    lines += ['publish = "stars"  # or "hierarchy" with [hierarchies], or "ranges"', 'effort = "balanced"', ""]
    return "\n".join(lines)
