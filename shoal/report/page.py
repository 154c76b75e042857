"""The report: one HTML file that opens offline, for a review board.  Explains a release, never recomputes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from shoal.model.cards import number
from shoal.report.pictures import beside, class_sizes, trade_off
from shoal.report.style import STYLE
from shoal.report.words import MEASURES, UNITS, assumptions, attacks, certificate_words, model_words, promise, shown
from shoal.report.words import theorem_words as explained

GLOSSARY = {
    "quasi-identifiers": "columns that others may know about a person, such as age or town; they are made coarser",
    "sensitive": "columns that nobody should learn about a person; published as they are",
    "group": "all rows that show the same in the quasi-identifiers",
    "k-anonymity": "every group has at least k rows",
    "l-diversity": "in no group do more than one in l rows share a sensitive value",
    "prosecutor": "somebody who knows that a person is in the table and looks for that person's row",
    "journalist": "somebody who looks for any person, without knowing who is in the table",
    "marketer": "somebody who links as many rows as possible; the mean risk counts",
    "loss": "0 where a value is published as it is, 1 where nothing of it is left",
    "SHA-256": "a fingerprint of the file's bytes: it changes when any of them does",
    "lower bound": "what every other release of this kind costs at least, proved for this table",
}


class Html(str):
    """Text that is HTML already."""


def term(word: str, shown_as: str | None = None) -> Html:
    """A word with its meaning on hover."""
    return Html(f'<abbr title="{escape(GLOSSARY[word])}">{escape(shown_as or word)}</abbr>')


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], numeric: int = 1, caption: str = "") -> Html:
    """A table that scrolls by itself where it is wide; columns from ``numeric`` on are right-aligned."""

    def cell(tag: str, i: int, value: Any) -> str:
        said = value if isinstance(value, Html) else escape(number(value))
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{scope}{' class=n' if i >= numeric else ''}>{said}</{tag}>"

    top = "".join(cell("th", i, h) for i, h in enumerate(head))
    body = "".join("<tr>" + "".join(cell("td", i, v) for i, v in enumerate(row)) + "</tr>" for row in rows)
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    first = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return Html(
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption or head[0] or "table")}">'
        f"<table>{named}{first}<tbody>{body}</tbody></table></div>"
    )


def listed(texts: Sequence[str]) -> str:
    """Sentences as an HTML list, escaped."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def page(figures: Mapping[str, Any]) -> str:
    """The whole page.  figures: what ``publishing.figures`` gives; they stand in the page as JSON too."""
    release = figures["release"]
    written = figures["written"]
    name = written["file"] if written else "a table that is not written yet"
    notes = [*figures["before"].get("notes", ()), *figures["audit"]["notes"]]
    sections = [
        ("What was asked", _asked(figures)),
        ("What was released", _released(figures)),
        ("Columns carried along untouched", _carried(release["carried"], release["rows"])),
        ("What holds", _holds(figures)),
        ("Privacy before and after", _before_after(figures)),
        ("What it cost, column by column", _columns(figures)),
        ("How the columns are distributed", _distributions(figures)),
        ("Rows as they are published", _rows(figures)),
        ("The certificate", _certificate(figures)),
        *([("What to look at", listed(notes))] if notes else []),
        ("What was assumed", listed(assumptions(figures["policy"]))),
        ("What this does not promise", listed(attacks(figures["policy"], figures["audit"]["exposed_classes"]))),
        ("How to make and check it again", _again(figures)),
        ("Words", _words()),
    ]
    body = "".join(f"<section><h2>{escape(title)}</h2>{content}</section>" for title, content in sections)
    inside = json.dumps(figures, ensure_ascii=False, default=str).replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Release report: {escape(name)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>Release report</h1><p class="soft">{escape(name)}, {release["rows"]:,} rows in '
        f"{release['groups']:,} groups, {figures['made_at'][:10]}</p>"
        f'<p class="lead">{escape(promise(figures))}</p>{body}</main>'
        f'<script type="application/json" id="figures">{inside}</script></body></html>\n'
    )


def _asked(figures: Mapping[str, Any]) -> str:
    policy = figures["policy"]
    kinds = {
        "stars": "values hidden as stars",
        "hierarchy": "classes of a hierarchy",
        "centers": "one record a cluster",
    }
    rows = [
        (Html(f"{term('quasi-identifiers')} (made coarser)"), ", ".join(policy["quasi_identifiers"])),
        (Html(f"{term('sensitive')} (published as they are)"), ", ".join(policy["sensitive"]) or "none"),
        ("identifiers (left out)", ", ".join(policy["identifiers"]) or "none"),
        ("privacy", "; ".join(_model(c) for c in figures["audit"]["checks"]) or "nothing"),
        ("published as", kinds.get(policy["publish"], policy["publish"])),
        ("search", f"method {policy['method']}, effort {policy['effort']}"),
        ("seed of the search", "fresh randomness" if policy["seed"] is None else str(policy["seed"])),
        ("order of the rows", "kept as it came" if policy["keep_order"] else "shuffled"),
    ]
    return table(("", ""), rows, 2, "The request")


def _model(check: Mapping[str, Any]) -> str:
    return check["model"] + (f" of {check['column']}" if check["column"] else "") + f": {model_words(check)}"


def _released(figures: Mapping[str, Any]) -> str:
    written, policy, release = figures["written"], figures["policy"], figures["release"]
    rows: list[tuple[Any, Any]] = [
        ("file", written["file"] if written else "not written yet"),
        ("made from", figures["source"] or "a table in memory"),
        ("date", figures["made_at"].replace("T", " ")),
        ("rows", release["rows"]),
    ]
    if written:
        rows += [(Html(str(term("SHA-256"))), Html(f"<code>{escape(written['sha256'])}</code>"))]
        rows += [("bytes", written["bytes"]), ("certificate", written["certificate"])]
    rows += [("method that won", release["method"].replace("_", " "))]
    roles = []
    for column in figures["columns"]:
        source = policy["hierarchies"].get(column["name"])
        ceiling = "none" if column["ceiling"] is None else f"level {column['ceiling']}"
        roles.append((column["name"], "quasi-identifier", source or "none", number(column["weight"]), ceiling))
    roles += [(name, "sensitive", "", "", "") for name in policy["sensitive"]]
    roles += [(name, "carried along", "", "", "") for name in release["carried"]["columns"]]
    roles += [(name, "identifier, left out", "", "", "") for name in policy["identifiers"]]
    return table(("", ""), rows, 2, "The file") + table(
        ("column", "role", "hierarchy", "weight", "coarsest allowed"), roles, 3, "Its columns"
    )


def _carried(carried: Mapping[str, Any], rows: int) -> str:
    if not carried["columns"]:
        return "<p>None: every column of the release is a quasi-identifier or sensitive.</p>"
    lines = [
        (name, "named insensitive" if name in carried["insensitive"] else "no role named", carried["alone"][name])
        for name in carried["columns"]
    ]
    together = carried["together"]
    said = (
        f'<p class="bad">Together these columns single out {together:,} of {rows:,} rows: who knows them finds these '
        "people in spite of the groups.</p>"
        if together
        else "<p>Together these columns single out nobody: every combination stands in two rows or more.</p>"
    )
    return said + table(("column", "", "rows whose value no other row holds"), lines, 2, "Carried columns")


def _holds(figures: Mapping[str, Any]) -> str:
    checks = [
        (
            c["model"] + (f" of {c['column']}" if c["column"] else ""),
            model_words(c),
            c["level"],
            Html('<span class="good">✓ holds</span>' if c["passes"] else '<span class="bad">✗ does not hold</span>'),
        )
        for c in figures["audit"]["checks"]
    ]
    out = str(table(("model", "meaning", "level reached", ""), checks, 2, "Judged on the published rows"))
    out += _shown_alone(figures["audit"])
    levels = figures["audit"]["sensitive"]
    if not levels:
        return out + "<p>No sensitive column was named, so nothing is promised about what a group has in common.</p>"
    rows = [
        [name, found["alpha"], found["distinct_l"], found["entropy_l"], found["t_equal"]]
        for name, found in levels.items()
    ]
    head = ("column", "largest share of a value", "fewest values", "entropy l", "distance t")
    return out + table(head, rows, 1, "What the groups give away at worst")


def _shown_alone(audit: Mapping[str, Any]) -> str:
    """How many groups show a value that one of their rows holds, column by column."""
    if audit["exposed_classes"] is None:
        return ""
    rows = [(name, f"{100 * share:.1f} %") for name, share in audit["exposed"].items()]
    return table(("column", "of the groups show a value of one row"), rows, 1, "Ends of ranges and members of sets")


def _before_after(figures: Mapping[str, Any]) -> str:
    before, audit = figures["before"], figures["audit"]
    risk, rows = audit["risk"], figures["release"]["rows"]
    least = before["smallest_class"]
    lines = [
        ("groups of rows alike", before["classes"], audit["classes"]),
        ("smallest group", least, audit["smallest_class"]),
        ("people alone in their group", before["uniques"], audit["uniques"]),
        (Html(f"highest risk to be found ({term('prosecutor')})"), 1 / least if least else 0.0, risk["prosecutor_max"]),
        (Html(f"mean risk ({term('marketer')})"), before["classes"] / rows if rows else 0.0, risk["marketer"]),
    ]
    return (
        table(("", "before", "after"), lines, 1, "Privacy")
        + f'<p class="soft">Rows at risk above {risk["threshold"]}: {100 * risk["records_at_risk"]:.2f} %. The risk '
        f"from a {term('journalist')} is {_journalist(risk)}.</p>"
        + _dangerous(before.get("dangerous") or (), rows)
        + f"<figure>{class_sizes(audit['sizes'])}</figure>"
    )


def _journalist(risk: Mapping[str, Any]) -> str:
    if "journalist_mean" not in risk:
        return "at most the prosecutor's, as no population table was given"
    return f"at most {risk['journalist_max']:.3g}, {risk['journalist_mean']:.3g} on the mean, beside the population"


def _dangerous(found: Sequence[Mapping[str, Any]], rows: int) -> str:
    """What sets of columns single out in the table as it came."""
    lines = [
        (" + ".join(d["columns"]), round(d["distinction"] * rows), d["distinction"], f"{100 * d['separation']:.3f} %")
        for d in found
    ]
    head = ("columns together", f"different combinations on {rows:,} rows", "distinction", "pairs of rows that differ")
    return table(head, lines, 1, "What the columns single out together, as the table came") if lines else ""


def _columns(figures: Mapping[str, Any]) -> str:
    rows = max(figures["release"]["rows"], 1)
    lines = [
        (c["name"], c["before"], c["after"], c["changed"], f"{100 * c['changed'] / rows:.1f} %", c["hidden"])
        for c in figures["columns"]
    ]
    head = ("column", "different values before", "after", "values changed", "of rows", "of them hidden")
    measures = [
        (*MEASURES.get(name, (name.replace("_", " "), "")), value) for name, value in figures["release"]["loss"].items()
    ]
    return table(head, lines, 1, "Columns") + table(("measure", "meaning", "value"), measures, 2, "Loss")


def _distributions(figures: Mapping[str, Any]) -> str:
    step, rows = figures["step"], max(figures["release"]["rows"], 1)
    said = (
        f'<p class="soft">Counts before are rounded to multiples of {step}, and fewer than {step} are said as '
        "that, so that no difference gives away whose value was hidden. A coarser value counts evenly for all it may "
        "stand for; hidden values are counted apart.</p>"
    )
    return said + "".join(
        f"<figure><h3>{escape(c['name'])}</h3>{_bars(c, step, rows)}</figure>" for c in figures["columns"]
    )


def _bars(column: Mapping[str, Any], step: int, rows: int) -> str:
    pictured = beside(column["distribution"], column["hidden"], step, rows, column["name"])
    if column["before_shown"] or not column["changed"]:
        return pictured
    return pictured + (
        f'<p class="soft">Only {column["changed"]:,} values of this column were changed, too few to set the counts '
        "before beside these without giving them away.</p>"
    )


def _rows(figures: Mapping[str, Any]) -> str:
    found = figures["shown"]
    if not found["rows"]:
        return "<p>No group is large enough to be shown here.</p>"
    lines = [(*row, n) for row, n in zip(found["rows"], found["groups"], strict=True)]
    head = (*found["columns"], "rows alike")
    return (
        f'<p class="soft">Each from another group of at least {figures["least"]} rows. A sensitive value that fewer '
        f"than {figures['least']} rows hold is not repeated here; columns carried along are left out.</p>"
    ) + table(head, lines, len(head) - 1, "Published rows")


def _certificate(figures: Mapping[str, Any]) -> str:
    certificate = figures["release"]["certificate"]
    bound, theorem, unit = certificate["bound"], certificate["guarantee"]["theorem"], certificate["unit"]
    rows: list[tuple[Any, Any]] = [
        ("cost", shown(certificate["cost"], unit)),
        (term("lower bound"), shown(certificate["lower_bound"], unit)),
    ]
    if bound:
        rows.append(("why nobody can do with less", Html(f"{escape(bound)}. {escape(explained(bound))}")))
    rows.append(("promise of the method", Html(f"{escape(theorem)}. {escape(explained(theorem))}")))
    out = f"<p>{escape(certificate_words(figures['release']))}</p>" + table(("", ""), rows, 2, "Cost and proof")
    bounds = certificate["details"].get("bounds")
    if isinstance(bounds, Mapping):
        lines = [
            (name.replace("_", " "), value, explained(name))
            for name, value in sorted(bounds.items(), key=lambda b: -b[1] if isinstance(b[1], (int, float)) else 0)
        ]
        head = ("argument", f"at least ({UNITS.get(unit, unit)})", "idea")
        out += table(head, lines, 3, "Every bound that was computed; the highest counts")
    out += _curve(certificate["details"])
    tried = figures["release"]["attempts"]
    if tried:
        lines = [(str(a["method"]).replace("_", " "), a.get("cost"), a.get("seconds")) for a in tried]
        out += table(("method", UNITS.get(unit, unit), "seconds"), lines, 1, "What each method got")
    return out


def _curve(details: Mapping[str, Any]) -> str:
    """Stars against width for coarsened columns: every choice of levels that was tried and is not beaten in both."""
    points = details.get("curve")
    if not points:
        return ""
    names = list(details["levels"])
    at = points.index(next(p for p in points if p["levels"] == details["levels"]))
    lines = [
        (Html("<b>this release</b>") if i == at else "", *(p["levels"][n] for n in names),
         p["stars"], p["width"], p["loss"])
        for i, p in enumerate(points)
    ]  # fmt: skip
    head = ("", *names, "stars", "width", "loss")
    said = "The levels of the columns, the stars they need, and how much a value that is no star has lost on the mean"
    return f"<figure>{trade_off(points, at)}</figure>" + table(head, lines, 1, said)


def _again(figures: Mapping[str, Any]) -> str:
    written, made = figures["written"], figures["made_by"]
    rows = [("shoal", made["shoal"]), ("Python", made["python"]), ("Polars", made["polars"])]
    rows += [
        (f"hierarchy of {name}", Html(f"<code>{escape(found['sha256'])}</code>"))
        for name, found in figures["hierarchies"].items()
    ]
    out = str(table(("", ""), rows, 2, "Versions and hashes"))
    if written:
        name, beside_it = escape(written["file"]), escape(written["certificate"])
        out += (
            f"<p>Check the file: <code>shoal verify {name} {beside_it}</code>. Ask for the same again: "
            f"<code>shoal anonymize TABLE --policy {beside_it}</code>.</p>"
        )
    return out


def _words() -> str:
    return "<dl>" + "".join(f"<dt>{escape(w)}</dt><dd>{escape(m)}</dd>" for w, m in GLOSSARY.items()) + "</dl>"
