"""The request and what left: of the report of a table, the sections that repeat rather than judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from shoal.model.cards import number
from shoal.model.missing import missing_words
from shoal.model.privacy import restore
from shoal.model.ways import WAYS
from shoal.report.parts import paragraph, released, table, term
from shoal.report.words import model_words, share


def asked(figures: Mapping[str, Any]) -> Markup:
    """Everything that was asked for; what was left at its default only where a reader would ask for it."""
    policy = figures["policy"]
    models = [*map(_model, figures["audit"]["checks"]), *map(": ".join, stated(figures))]
    rows = [
        (term("quasi-identifiers") + " (made coarser)", ", ".join(policy["quasi_identifiers"])),
        (term("sensitive") + " (published as they are)", ", ".join(policy["sensitive"]) or "none"),
        ("identifiers (left out)", ", ".join(policy["identifiers"]) or "none"),
        (
            "privacy",
            "; ".join(models) or "nothing",
        ),
        *_limits(figures),
        ("published as", WAYS[policy["publish"]].words),
        *_forms(policy),
        ("missing values", missing_words(policy["missing"])),
        ("search", f"method {policy['method']}, effort {policy['effort']}"),
        *([("seed of the search", str(policy["seed"]))] if policy.get("seed") is not None else []),
        ("order of the rows", "kept as it came" if policy["keep_order"] else "shuffled"),
    ]
    return table(("", ""), rows, 2, "The request")


def stated(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Models that were asked for and that these rows cannot show, since who they count left the table."""
    judged = {(c["model"], c["column"]) for c in figures["audit"]["checks"]}
    units = [figures["policy"][u] for u in ("person", "household") if figures["policy"].get(u)]
    for asked in figures["policy"]["privacy"] if units else ():
        model, column = restore(asked), asked.get("column")
        if model.speaks == "population" or {(model.name, column), (model.name, None)} & judged:
            continue
        yield model.name + (f" of {column}" if column else ""), f"{model.words()}, counted by {' and '.join(units)}"


def _model(check: Mapping[str, Any]) -> str:
    return check["model"] + (f" of {check['column']}" if check["column"] else "") + f": {model_words(check)}"


def _limits(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was asked beside the models: the rule, who is counted, beside whom, how much may go."""
    policy, release = figures["policy"], figures["release"]
    rule = release.get("rule_book")
    if rule:
        yield "rule", f"{rule['name']} ({rule['source']}): {rule['why']}. It leaves to others: {rule['does_not_cover']}"
    for name in ("person", "household"):
        if policy.get(name):
            yield f"one {name}", f"the rows with one value of {policy[name]}: k counts these, not rows alone"
    if policy.get("population"):
        yield "population", policy["population"]
    if policy.get("population_weights"):
        yield "population", f"estimated: a row stands for as many people as {policy['population_weights']} says"
    if policy["max_average_risk"] is not None:
        yield "mean risk", f"at most {number(policy['max_average_risk'])}"
    if policy.get("minimality") is not None:
        told = f"with a share of at most {number(policy['minimality'])}"
        yield "a value is told to who knows the method", told
    if policy["max_suppressed"]:
        whole = release["certificate"].get("details", {}).get("suppressed_rows")
        found = "" if whole is None else f"; {share(whole, release['rows'])} are ({whole:,})"
        yield "rows hidden whole", f"at most {100 * policy['max_suppressed']:g} % of all{found}"


def _forms(policy: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was asked of how it is published."""
    if policy["global_recoding"]:
        yield "levels", "one for each column, the same in all rows"
    if policy.get("coarsen"):
        yield "levels", "one for each column, found by the search, and hidden values where the rows of a group differ"
    if policy.get("range_step"):
        yield "ranges end at steps of", ", ".join(f"{number(step)} in {n}" for n, step in policy["range_step"].items())
    if policy["star"] != "*":
        yield "a hidden value is written", policy["star"]


def left(figures: Mapping[str, Any]) -> Markup:
    """The files that left, and the role of every column."""
    release = figures["release"]
    more = [("rows", release["rows"])]
    if release.get("method"):
        more.append(("method that won", release["method"].replace("_", " ")))
    filled = {n: count for n, count in (release.get("filled") or {}).items() if count}
    if filled:
        more.append(("missing values filled", ", ".join(f"{count:,} of {n}" for n, count in filled.items())))
    if release.get("incomplete"):
        more.append(("rows with a missing value, grouped apart", release["incomplete"]["rows"]))
    return released(figures, more) + table(("", ""), list(_roles(figures)), 2, "Its columns") + _harbor(release)


def _roles(figures: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The columns of each role in a line, with what was asked of a column beside its name."""
    policy = figures["policy"]
    yield term("quasi-identifiers"), ", ".join(_asked_of(column, policy) for column in figures["columns"])
    if policy["sensitive"]:
        held = {name: policy["hierarchies"].get(name) for name in policy["sensitive"]}
        yield term("sensitive"), ", ".join(f"{n} (hierarchy {found})" if found else n for n, found in held.items())
    if figures["release"]["carried"]["columns"]:
        yield term("kept unchanged"), ", ".join(figures["release"]["carried"]["columns"])
    if policy["identifiers"]:
        yield "left out", ", ".join(_left_out(name, policy) for name in policy["identifiers"])


def _asked_of(column: Mapping[str, Any], policy: Mapping[str, Any]) -> str:
    """A quasi-identifier, with its hierarchy, weight and ceiling where it has any."""
    source = policy["hierarchies"].get(column["name"])
    more = [f"hierarchy {source}"] if source else []
    more += [f"weight {number(column['weight'])}"] if column["weight"] != 1 else []
    more += [f"level {column['ceiling']} at most"] if column["ceiling"] is not None else []
    return column["name"] + (f" ({', '.join(more)})" if more else "")


def _left_out(name: str, policy: Mapping[str, Any]) -> str:
    """A column that left, with what it was counted by."""
    counted = next((u for u in ("person", "household") if policy.get(u) == name), None)
    if counted:
        return f"{name} (names the {counted})"
    return f"{name} (says how many people a row stands for)" if policy.get("population_weights") == name else name


_HARBOR = {
    "zip": "the first three digits of a zip, 000 where 20,000 people or fewer live",
    "age": "years, above 89 as 90+",
    "birth": "the year of birth, those of people above 89 in one category",
    "date": "the year alone",
}


def _harbor(release: Mapping[str, Any]) -> Markup:
    """What the Safe Harbor rule did to which columns."""
    found = (release.get("safe_harbor") or {}).get("columns") or {}
    lines = [(name, _HARBOR[rule]) for name, rule in found.items()]
    return table(("column", "shown as"), lines, 2, "Safe Harbor") if found else Markup()


def carried(found: Mapping[str, Any], rows: int) -> Markup:
    """Columns that are published as they came, and how far they single people out."""
    if not found["columns"]:
        return paragraph("None: every column of the release is a quasi-identifier or sensitive.")
    known = [name for name in found["columns"] if name in found["insensitive"]]
    others = [name for name in found["columns"] if name not in known]
    listed = [f"{what}: {', '.join(names)}." for what, names in
              (("Named insensitive", known), ("No role named", others)) if names]  # fmt: skip
    lines = sorted(((name, alone) for name, alone in found["alone"].items() if alone), key=lambda line: -line[1])
    together = found["together"]
    said = (
        paragraph(
            f"Together these columns single out {together:,} of {rows:,} rows: who knows them finds these people in "
            "spite of the groups.",
            "bad",
        )
        if together
        else paragraph("Together these columns single out nobody: every combination stands in two rows or more.")
    )
    said += paragraph(" ".join(listed))
    head = ("column", "rows whose value no other row holds")
    return said + (table(head, lines, 1, "Columns that single out rows by themselves") if lines else "")
