"""The report of a table for a review board: an HTML page that opens offline, explains, and never recomputes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from shoal.report.exploring import exploration_picture
from shoal.report.exploring import exploration_table as choices
from shoal.report.parts import (
    again,
    code,
    decision,
    drawing,
    glossary,
    in_guide,
    listed,
    paragraph,
    part,
    proof,
    table,
    term,
    whole,
)
from shoal.report.pictures import class_sizes, heat, paired_bars, trade_off
from shoal.report.sections import (
    asked,
    assumptions,
    attacks,
    files_and_roles,
    stated,
    unchanged_columns,
    verdict,
    warnings,
)
from shoal.report.words import (
    BOUNDS_PAGE,
    MEASURES,
    METHOD_PAGES,
    UNITS,
    certificate_words,
    model_words,
    promise,
    share,
)
from shoal.report.words import theorem_words as explained


def release_page(figures: Mapping[str, Any]) -> str:
    """The report of a release as a page. figures: from ``publishing.tables.figures``.

    The page contains them as JSON too.
    """
    release = figures["release"]
    written = figures["written"]
    name = written["file"] if written else "a table that is not written yet"
    notes = [*figures["before"].get("notes", ()), *figures["audit"]["notes"]]
    choices_too = [("What other choices would cost", _choices(figures["explored"]))] if figures.get("explored") else []
    sections = [
        ("Who decided", decision(figures, _source_of_k(figures))),
        ("What holds", _holds(figures)),
        ("Privacy after" if from_release_alone(figures) else "Privacy before and after", _before_after(figures)),
        ("The request", asked(figures)),
        ("The certificate", _certificate(figures)),
        ("What this does not promise", listed(attacks(figures["policy"], figures["audit"]["exposed_classes"]))),
    ]
    appendix = [
        ("What was released", files_and_roles(figures)),
        ("Columns kept unchanged", unchanged_columns(release["carried"], release["rows"])),
        ("Sizes of the groups", _sizes(figures)),
        ("What it cost, column by column", _columns(figures)),
        ("How the columns are distributed", _distributions(figures)),
        *([("Two columns together", _pairs(figures))] if figures["pairs"] else []),
        ("Rows as they are published", _rows(figures)),
        *([("How it was found", tried)] if (tried := _tried(figures)) else []),
        *choices_too,
        *([("What was checked for this report", _checked(figures["checked"]))] if "checked" in figures else []),
        *([("What to look at", listed(notes))] if notes else []),
        ("What was assumed", listed(assumptions(figures["policy"]))),
        ("How to make and check it again", again(figures, _command_to_repeat(figures))),
        ("Words", glossary()),
    ]
    below = f"{name}, {release['rows']:,} rows in {release['groups']:,} groups, {figures['made_at'][:10]}"
    return whole(
        "Release report", name, below, promise(figures), sections, figures, first=warnings(figures),
        verdict=verdict(figures), appendix=appendix,
    )  # fmt: skip


def _source_of_k(figures: Mapping[str, Any]) -> str:
    """The source of k: the name of a rule, or the equivalent risk."""
    rule = figures["release"].get("rule_book")
    if rule:
        return f"{rule['name']}: {rule['why']} ({rule['source']})"
    k = _asked_k(figures)
    return f"k = {k:,}: a risk of at most {1 / k:.3g} to be found by the quasi-identifiers" if k > 1 else ""


def _choices(explored: Mapping[str, Any]) -> Markup:
    """A grid of requests that was explored, as on its own page."""
    sentence = (
        f"{len(explored['points']):,} requests were tried on {explored['rows']:,} rows. Loss is the mean loss of a "
        "published value; of ringed points no other has as little risk, as much diversity and as little loss."
    )
    drawn = drawing(exploration_picture(explored["points"]), "loss against risk")
    return paragraph(sentence, "soft") + drawn + choices(explored["points"])


def from_release_alone(figures: Mapping[str, Any]) -> bool:
    """Whether the figures come only from a release and its certificate."""
    return not figures["before"]


def _checked(found: Sequence[Mapping[str, Any]]) -> Markup:
    """The basis of a report that is made later, and what such a report can't know."""
    sentence = (
        "This report was made later, from the release and its certificate alone. It cannot say how the table was "
        "before, what single columns and groups lost, or which columns were changed in the same rows."
    )
    lines = [(f["check"], f["found"], f["how"]) for f in found]
    return paragraph(sentence) + table(("check", "found", "how it is known"), lines, 3, "Checks")


def _holds(figures: Mapping[str, Any]) -> Markup:
    """A table of the requested models, the levels that the release reaches, and whether they suffice."""
    checks: list[tuple[Any, ...]] = [
        (
            c["model"] + (f" of {c['column']}" if c["column"] else ""),
            model_words(c),
            c["level"],
            part("parts.html", "holds", c["passes"]),
        )
        for c in figures["audit"]["checks"]
    ]
    checks += [
        (
            f"k-anonymity by {name}",
            f"the rows of every group show at least {_asked_k(figures)} different values of {name}, which was removed",
            least,
            part("parts.html", "holds", least >= _asked_k(figures)),
        )
        for name, least in (figures["release"].get("persons") or {}).items()
    ]
    checks += [(name, words, "", "stated, not judged") for name, words in stated(figures)]
    out = table(("model", "meaning", "level reached", ""), checks, 2, "Judged on the published rows")
    out += _shown_alone(figures["audit"])
    levels = figures["audit"]["sensitive"]
    if not levels:
        return out + paragraph(
            "No sensitive column was named, so nothing is promised about what a group has in common."
        )
    rows = [
        [name, found["alpha"], found["distinct_l"], found["entropy_l"], found["t_equal"]]
        for name, found in levels.items()
    ]
    head = ("column", "largest share of a value", "fewest values", "entropy l", "distance t")
    sentence = (
        "Entropy l: so many equally frequent values would tell as little as the worst group's do. Distance t: how "
        "far the worst group's values are distributed otherwise than the whole table's, 0 not at all, 1 entirely."
    )
    return out + table(head, rows, 1, "What the groups give away at worst") + paragraph(sentence, "soft")


def _asked_k(figures: Mapping[str, Any]) -> int:
    """The requested k."""
    return max((m["k"] for m in figures["policy"]["privacy"] if m["model"] == "KAnonymity"), default=1)


def _shown_alone(audit: Mapping[str, Any]) -> Markup:
    """For each column, the number of groups that show a value that only one of their rows has."""
    if audit["exposed_classes"] is None:
        return Markup()
    rows = [(name, f"{100 * share:.1f} %") for name, share in audit["exposed"].items()]
    return table(
        ("column", "of the groups show a value of one row"), rows, 1, "Ends of ranges and regions, members of sets"
    )


def _before_after(figures: Mapping[str, Any]) -> Markup:
    """A table of group sizes and risks before and after."""
    before, audit = figures["before"], figures["audit"]
    risk, rows = audit["risk"], figures["release"]["rows"]
    if not before:
        before = {"classes": None, "smallest_class": None, "uniques": None}
    least, classes = before["smallest_class"], before["classes"]
    lines = [
        ("groups of rows alike", before["classes"], audit["classes"]),
        ("smallest group", least, audit["smallest_class"]),
        ("people alone in their group", before["uniques"], audit["uniques"]),
        ("highest risk to be found (" + term("prosecutor") + ")", _over(1, least), risk["prosecutor_max"]),
        ("mean risk (" + term("marketer") + ")", _over(classes, rows), risk["marketer"]),
    ]
    known = classes is not None
    shown = lines if known else [(what, after) for what, _, after in lines]
    return (
        table(("", "before", "after") if known else ("", "after"), shown, 1, "Privacy")
        + paragraph("The risk from a " + term("journalist") + f" is {_journalist(risk)}.", "soft")
        + _thresholds(figures["at_risk"], before.get("at_risk"))
    )


def _sizes(figures: Mapping[str, Any]) -> Markup:
    """Groups by size, and the rows that single columns identified before."""
    audit, rows = figures["audit"], figures["release"]["rows"]
    found = _smallest(audit["sizes"], rows) + drawing(class_sizes(audit["sizes"]), "rows by size of their group")
    return found + _identifying_sets(figures["before"].get("dangerous") or (), rows)


def _thresholds(after: Sequence[Mapping[str, float]], before: Sequence[Mapping[str, float]] | None) -> Markup:
    """Rows at risk by threshold, after and, if known, before."""
    shares = [[share(r["rows"], 1) for r in found] for found in (before, after) if found is not None]
    lines = [(f"{r['above']:.3g}", round(1 / r["above"]), *figures) for r, *figures in zip(after, *shares, strict=True)]
    head = ("risk above", "that is, a group of fewer rows than", *("rows before", "rows after")[-len(shares) :])
    return table(head, lines, 1, "Rows at risk by threshold")


def _smallest(sizes: Mapping[str, int], rows: int) -> Markup:
    """The groups with the highest risk, by size alone."""
    found = sorted((int(size), groups) for size, groups in sizes.items())[:5]
    lines = [(size, groups, size * groups, share(size * groups, rows)) for size, groups in found]
    return table(("rows in a group", "such groups", "rows in them", "of all"), lines, 1, "The smallest groups")


def _over(a: int | None, b: int | None) -> float:
    return a / b if a is not None and b else 0.0


def _journalist(risk: Mapping[str, Any]) -> str:
    if "journalist_mean" not in risk:
        return "at most the prosecutor's, as no population table was given"
    return f"at most {risk['journalist_max']:.3g}, {risk['journalist_mean']:.3g} on the mean, with the population"


def _identifying_sets(found: Sequence[Mapping[str, Any]], rows: int) -> Markup:
    """The rows that sets of columns single out in the original table."""
    lines = [
        (
            " + ".join(d["columns"]),
            round(d["distinction"] * rows),
            share(d["distinction"], 1),
            f"{100 * d['separation']:.3f} %",
        )
        for d in found
    ]
    head = (
        "columns together",
        f"different combinations on {rows:,} rows",
        "as a share of the rows",
        "pairs of rows that differ",
    )
    return table(head, lines, 1, "What the columns single out together, as the table came") if lines else Markup()


def _columns(figures: Mapping[str, Any]) -> Markup:
    rows = max(figures["release"]["rows"], 1)
    lines = [
        (*(c[n] for n in ("name", "before", "after", "changed")), _share(c["changed"], rows), c["hidden"], c["loss"])
        for c in figures["columns"]
    ]
    head = ["column", "different values before", "after", "values changed", "of rows", "of them hidden", "mean loss"]
    known = not from_release_alone(figures)
    if not known:
        head, lines = [head[0], *head[2:-1]], [(line[0], *line[2:-1]) for line in lines]
    measures = [
        (*MEASURES.get(name, (name.replace("_", " "), "")), value) for name, value in figures["release"]["loss"].items()
    ]
    return (
        table(head, lines, 1, "Columns")
        + (_together(figures["together"], rows) + _by_loss(figures["by_loss"], rows) if known else "")
        + table(("measure", "meaning", "value"), measures, 2, "Loss")
    )


def _share(changed: int | None, rows: int) -> str:
    """The share of changed rows in words; unknown if labels don't list their values."""
    return "not shown" if changed is None else share(changed, rows)


def _together(found: Mapping[str, Any], rows: int) -> Markup:
    """Which columns were changed in the same rows."""
    lines = [
        (", ".join(c["hidden"]) or "none", ", ".join(c["coarser"]) or "none", c["rows"], share(c["rows"], rows))
        for c in found["combinations"]
    ]
    if found["others"]:
        lines.append(("other combinations", "", found["others"], share(found["others"], rows)))
    coarser = any(c["coarser"] for c in found["combinations"])
    head = ("hidden together", *(["coarser together"] if coarser else []), "rows", "of all")
    shown = lines if coarser else [(first, *last) for first, _, *last in lines]
    return table(head, shown, len(head) - 2, "What was changed in the same rows")


def _by_loss(found: Sequence[Mapping[str, Any]], rows: int) -> Markup:
    """The distribution of the loss over the groups."""
    lines = [
        (_span(b["above"], b["most"]), b["groups"], b["rows"], share(b["rows"], rows)) for b in found if b["groups"]
    ]
    return table(("mean loss of a value", "groups", "rows", "of all"), lines, 1, "Groups by what they lost")


def _span(above: float, most: float) -> str:
    return f"above {above:g}, at most {most:g}" if most > 0 else "0: published as it came"


def _distributions(figures: Mapping[str, Any]) -> Markup:
    step, rows = figures["step"], max(figures["release"]["rows"], 1)
    apart = "A coarser value counts evenly for all values that it covers; hidden values are counted separately."
    sentence = (
        f"Counts before are rounded to multiples of {step}, more coarsely than published figures,"
        f" and not shown below {step} or if the release leaves too little open, so that no difference reveals "
        "whose value was hidden. " + apart
    )
    drawn = [part("parts.html", "titled", c["name"], _bars(c, rows)) for c in figures["columns"]]
    return paragraph(apart if from_release_alone(figures) else sentence, "soft") + Markup().join(drawn)


def _bars(column: Mapping[str, Any], rows: int) -> Markup:
    if column["before"] is not None and not column["changed"]:
        bars = [{**b, "before": None} for b in column["distribution"]]
        sentence = "No value of this column was changed: before and after are the same."
        return paired_bars(bars, 0, rows, column["name"]) + paragraph(sentence, "soft")
    pictured = paired_bars(column["distribution"], column["hidden"], rows, column["name"])
    if column["before_shown"] or column["before"] is None:
        return pictured
    return pictured + paragraph(
        f"Only {column['changed']:,} values of this column were changed, too few to compare with the counts before "
        "without revealing them.",
        "soft",
    )


def _pairs(figures: Mapping[str, Any]) -> Markup:
    sentence = (
        "The columns that reveal most about each other in the release, rounded as above. A line is "
        f"left out of the counts before (–) where fewer than {4 * figures['step']:,} of its rows were changed, and a "
        f"count below {figures['step']:,}. A coarser value counts evenly for all values that it covers."
    )
    same = {c["name"] for c in figures["columns"] if c["before"] is not None and not c["changed"]}
    drawn = [_pair(found, same.issuperset(found["columns"])) for found in figures["pairs"]]
    return paragraph(sentence, "soft") + Markup().join(drawn)


def _pair(found: Mapping[str, Any], same: bool) -> Markup:
    """Two columns as a pair of tables. same: neither column was changed"""
    first, second = found["columns"]
    known = [n is not None for line in found["before"] for n in line]
    enough = same or 3 * sum(known) >= len(known) > 0
    tables = [("before", found["before"])] if enough and not same else []
    tables.append(("before and after alike" if same else "after", found["after"]))
    lines, columns = _filled(tables)
    labels = [[found["labels"][0][i] for i in lines], [found["labels"][1][j] for j in columns]]
    peak = max([1.0, *(n or 0 for _, counts in tables for line in counts for n in line)])
    drawn = [
        heat(
            [[counts[i][j] for j in columns] for i in lines], labels, f"{first} (down), {second} (across), {when}", peak
        )
        for when, counts in tables
    ]
    few = "Too few counts" if any(known) else "No count"
    notes = [] if enough else [f"{few} before can be compared with these without revealing too much."]
    if found["unplaced"] >= 1:
        notes.append(f"{found['unplaced']:,.0f} rows in which either value is hidden are not among them.")
    return part("parts.html", "pair", f"{first} and {second}", drawn, notes)


def _filled(tables: Sequence[tuple[str, Any]]) -> tuple[list[int], list[int]]:
    """The rows and the columns that have a nonempty cell."""
    held = [[any(table[i][j] for _, table in tables) for j in range(len(line))] for i, line in enumerate(tables[0][1])]
    return [i for i, line in enumerate(held) if any(line)], [j for j in range(len(held[0])) if any(x[j] for x in held)]


def _rows(figures: Mapping[str, Any]) -> Markup:
    found = figures["shown"]
    if not found["rows"]:
        return paragraph("No group is large enough to be shown here.")
    lines = [(f"{i}", n, *row) for i, (row, n) in enumerate(zip(found["rows"], found["groups"], strict=True), 1)]
    head = ("row", "rows alike", *found["columns"])
    sentence = (
        f"Each from another group of at least {figures['least']} rows. A sensitive value that fewer than "
        f"{figures['least']} rows hold is not repeated here; columns kept unchanged are left out."
    )
    return paragraph(sentence, "soft") + table(head, lines, len(head), "Published rows")


def _certificate(figures: Mapping[str, Any]) -> Markup:
    certificate = figures["release"]["certificate"]
    return proof(certificate, certificate_words(figures["release"]), _guide(figures["release"]))


def _tried(figures: Mapping[str, Any]) -> Markup:
    """All computed bounds and all methods that ran; empty in a public page."""
    certificate, out = figures["release"]["certificate"], Markup()
    unit, details = certificate["unit"], certificate.get("details", {})
    bounds = details.get("bounds")
    if isinstance(bounds, Mapping):
        lines = [
            (name.replace("_", " "), value, in_guide(explained(name) or "The proof.", BOUNDS_PAGE))
            for name, value in sorted(bounds.items(), key=lambda b: -b[1] if isinstance(b[1], (int, float)) else 0)
        ]
        head = ("argument", f"at least ({UNITS.get(unit, unit)})", "idea")
        out += table(head, lines, 3, "Every bound that was computed; the highest counts")
    out += _curve(details)
    tried = figures["release"]["attempts"]
    if tried:
        lines = [(str(a["method"]).replace("_", " "), a.get("cost"), a.get("seconds")) for a in tried]
        out += table(("method", UNITS.get(unit, unit), "seconds"), lines, 1, "What each method got")
    return out


def _curve(details: Mapping[str, Any]) -> Markup:
    """Stars against width for coarsened columns: the Pareto frontier of the choices of levels that were tried."""
    points = details.get("curve")
    if not points:
        return Markup()
    names = list(details["levels"])
    at = points.index(next(p for p in points if p["levels"] == details["levels"]))
    lines = [
        ("this release" if i == at else "", *(p["levels"][n] for n in names), p["stars"], p["width"], p["loss"])
        for i, p in enumerate(points)
    ]
    head = ("", *names, "stars", "width", "loss")
    sentence = (
        "The levels of the columns, the stars they need, and how much a value that is no star has lost on the mean"
    )
    return part("parts.html", "titled", "", trade_off(points, at)) + table(head, lines, 1, sentence)


def _guide(release: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pages of the guide that prove the certificate's statements: its bound and its method's promise."""
    if release["certificate"]["unit"] == "distance":
        return [("docs/gathering.md", "")]
    promised = METHOD_PAGES.get(release.get("method", ""))
    return [BOUNDS_PAGE, *([promised] if promised else [])]


def _command_to_repeat(figures: Mapping[str, Any]) -> Markup:
    """The command that repeats the request."""
    written = figures["written"]
    if not written:
        return Markup()
    return " Ask for the same again: " + code(f"shoal anonymize TABLE --policy {written['certificate']}") + "."
