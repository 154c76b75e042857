"""The report: one HTML file that opens offline, for a review board.  Explains a release, never recomputes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from shoal.report.pictures import bars, class_sizes
from shoal.report.words import assumptions, attacks, certificate_words, model_words, promise

_STYLE = """
:root { color-scheme: light; --ink: #1d2733; --soft: #5b6b7b; --line: #d9e0e6; --accent: #14688a;
        --good: #1b7f4b; --bad: #b3261e; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: #fff; margin: 0 auto; max-width: 60rem;
       padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p.lead { font-size: 1.08rem; border-left: 4px solid var(--accent); padding-left: 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; } .soft { color: var(--soft); }
.good { color: var(--good); } .bad { color: var(--bad); }
svg { max-width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
figure { margin: 0; overflow-x: auto; }
@media print { body { font-size: 11pt; padding: 0; } h2 { break-after: avoid; }
               figure, table { break-inside: avoid; } }
"""


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], numeric: int = 1) -> str:
    """Columns from ``numeric`` on are right-aligned."""

    def cell(tag: str, i: int, value: Any) -> str:
        shown = value if isinstance(value, _Html) else escape(_number(value))
        return f"<{tag}{' class=n' if i >= numeric else ''}>{shown}</{tag}>"

    top = "".join(cell("th", i, h) for i, h in enumerate(head))
    body = "".join("<tr>" + "".join(cell("td", i, v) for i, v in enumerate(row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


class _Html(str):
    """Text that is HTML already."""


def _number(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def page(
    release: Mapping[str, Any], audit: Mapping[str, Any], policy: Mapping[str, Any], before: Mapping[str, Any]
) -> str:
    """The whole page.

    release  ``Release.as_dict()``; audit  ``Audit.as_dict()``; policy  ``Policy.describe()``
    before   rows, classes, smallest_class, uniques and distinct_values of the table as it came
    """
    rows = release["rows"]
    changed = release["changed"]
    columns = [
        (name, before["distinct_values"].get(name, 0), changed[name], 100 * changed[name] / rows if rows else 0.0)
        for name in policy["quasi_identifiers"]
    ]
    shown_columns = [(*facts, f"{share:.1f}") for *facts, share in columns]
    checks = [
        (
            c["model"] + (f" of {c['column']}" if c["column"] else ""),
            model_words(c),
            c["level"],
            _Html('<span class="good">holds</span>' if c["passes"] else '<span class="bad">does not hold</span>'),
        )
        for c in audit["checks"]
    ]
    risk = audit["risk"]
    sections = [
        ("What was asked", _asked(policy)),
        ("What is carried along", _carried(release["carried"], rows)),
        ("What holds", _table(["model", "meaning", "level reached", ""], checks, 2)),
        (
            "Before and after",
            _table(
                ["", "before", "after"],
                [
                    ("rows", before["rows"], rows),
                    ("classes of rows alike", before["classes"], audit["classes"]),
                    ("smallest class", before["smallest_class"], audit["smallest_class"]),
                    ("people alone in their class", before["uniques"], audit["uniques"]),
                    (
                        "highest risk to be found (prosecutor)",
                        1 / before["smallest_class"] if before["smallest_class"] else 0.0,
                        risk["prosecutor_max"],
                    ),
                    ("mean risk (marketer)", before["classes"] / rows if rows else 0.0, risk["marketer"]),
                ],
            )
            + f'<p class="soft">Records at risk above {risk["threshold"]}: {100 * risk["records_at_risk"]:.2f} %. '
            "The journalist's risk is bounded by the prosecutor's, as no population table was given.</p>",
        ),
        (
            "What it cost, column by column",
            _table(["column", "different values before", "cells published coarser", "%"], shown_columns)
            + f"<figure>{bars([(n, share) for n, _, _, share in columns], '% of cells published coarser')}</figure>"
            + _table(["measure", "value"], sorted(release["loss"].items())),
        ),
        ("The certificate", f"<p>{escape(certificate_words(release))}</p>" + _certificate(release["certificate"])),
        *([("What to look at", _notes(before["notes"]))] if before.get("notes") else []),
        ("How large the classes are", f"<figure>{class_sizes(audit['sizes'])}</figure>"),
        ("Sensitive columns", _sensitive(audit["sensitive"])),
        ("What was assumed", "<ul>" + "".join(f"<li>{escape(a)}</li>" for a in assumptions(policy)) + "</ul>"),
        ("What this does not promise", "<ul>" + "".join(f"<li>{escape(a)}</li>" for a in attacks(policy)) + "</ul>"),
    ]
    if release["attempts"]:
        keys = list(release["attempts"][0])
        table = _table(keys, [[a.get(k) for k in keys] for a in release["attempts"]])
        sections.insert(5, ("What each method got", table))
    body = "".join(f"<h2>{escape(title)}</h2>{content}" for title, content in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Release report</title>'
        f"<style>{_STYLE}</style></head><body><h1>Release report</h1>"
        f'<p class="soft">{rows:,} rows, {release["groups"]:,} groups, method {escape(release["method"])}</p>'
        f'<p class="lead">{escape(promise(release, audit))}</p>{body}</body></html>\n'
    )


def _notes(notes: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"


def _asked(policy: Mapping[str, Any]) -> str:
    rows = [
        ("quasi-identifiers (others may know them; recoded)", ", ".join(policy["quasi_identifiers"])),
        ("sensitive (published as they are)", ", ".join(policy["sensitive"]) or "none"),
        ("identifiers (left out)", ", ".join(policy["identifiers"]) or "none"),
        ("insensitive (carried along knowingly)", ", ".join(policy["insensitive"]) or "none"),
        ("published as", policy["publish"]),
        ("hierarchies", ", ".join(f"{c}: {h}" for c, h in policy["hierarchies"].items()) or "none"),
        ("seed", "fresh randomness" if policy["seed"] is None else str(policy["seed"])),
        ("row order", "kept as it came" if policy["keep_order"] else "shuffled"),
    ]
    return _table(["setting", "value"], rows, 2)


def _carried(carried: Mapping[str, Any], rows: int) -> str:
    if not carried["columns"]:
        return "<p>No column is carried along unchanged.</p>"
    lines = [
        (name, "insensitive" if name in carried["insensitive"] else "none", carried["alone"][name])
        for name in carried["columns"]
    ]
    together = carried["together"]
    said = (
        f'<p class="bad">Together these columns single out {together:,} of {rows:,} rows: who knows them finds these '
        "people in spite of the groups.</p>"
        if together
        else "<p>Together these columns single out nobody: every combination stands in two rows or more.</p>"
    )
    return said + _table(["column", "role named", "rows whose value no other row holds"], lines, 2)


def _certificate(certificate: Mapping[str, Any]) -> str:
    rows: list[tuple[str, Any]] = [
        ("cost", f"{_number(certificate['cost'])} {certificate['unit']}"),
        ("lower bound", f"{_number(certificate['lower_bound'])} {certificate['unit']}"),
        ("ratio proved for this release", certificate["ratio"]),
        ("argument for the bound", certificate["bound"]),
        ("promise of the method", certificate["guarantee"]["theorem"]),
    ]
    rows += [(f"detail: {name}", value) for name, value in certificate["details"].items()]
    return _table(["", ""], rows, 2)


def _sensitive(levels: Mapping[str, Mapping[str, Any]]) -> str:
    if not levels:
        return (
            "<p>No sensitive column was named, so nothing is promised about what a group's members have in common.</p>"
        )
    names = ["l", "distinct_l", "entropy_l", "recursive_c", "alpha", "t_equal", "t_ordered"]
    rows = [[column, *(found[n] for n in names)] for column, found in levels.items()]
    return _table(
        ["column", "l", "distinct l", "entropy l", "recursive c (l = 2)", "alpha", "t equal", "t ordered"], rows
    )
