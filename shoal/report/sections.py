"""Sections of the report on a table: verdict and warnings, the request and the release, assumptions, and attacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from shoal.model.cards import number, several
from shoal.model.hierarchy import REGIONS
from shoal.model.notation import named_notations
from shoal.model.privacy import restore
from shoal.model.refusals import READINGS
from shoal.model.settings import RECODINGS
from shoal.report.parts import paragraph, released, table, term
from shoal.report.words import ALL_BUT, as_sentence, model_words, percent_up, share


def assumptions(policy: Mapping[str, Any]) -> list[str]:
    """The assumptions of the promise."""
    return [
        "The attacker knows that a person is in the table and all of that person's quasi-identifiers ("
        + ", ".join(policy["quasi_identifiers"])
        + "), and nothing about the sensitive columns"
        + (" (" + ", ".join(policy["sensitive"]) + ")" if policy["sensitive"] else "")
        + ".",
        "Columns without a role are published unchanged; the person who chose the roles is responsible for them.",
        as_sentence(READINGS[policy["missing"]]),
        "A star is a value of its own too: fully starred rows are a group like any other and keep every promise.",
        "Which of several equal rows went into which group was chosen at random.",
        "The rows have the order of the input." if policy["keep_order"] else "The rows were shuffled.",
        _who(policy),
        *([_SPAN] if policy["publish"] == "centers" else []),
        *_outside(policy),
    ]


_SPAN = (
    "Distance: from the least to the greatest number or date of a column counts 1, another value of any other column 1 "
    "as well, or as far as its hierarchy says; each times the column's weight."
)


def _outside(policy: Mapping[str, Any]) -> list[str]:
    """The assumptions of a model of the population."""
    asked = {m["model"] for m in policy["privacy"]}
    out = []
    if "KMap" in asked:
        out.append(
            "k-map counts people of the population: it protects from who does not know that a person is in the table. "
            "From who knows, only k does."
        )
    if asked & {"KMap", "DeltaPresence"}:
        source = "the weights are right" if policy.get("population_weights") else "the population is whole"
        out.append(f"That {source} depends on the person who provided it.")
    return out


def _who(policy: Mapping[str, Any]) -> str:
    """Whom a row represents."""
    units = [policy[name] for name in ("person", "household") if policy.get(name)]
    if units:
        return (
            f"k counts the different values of {' and of '.join(units)} in a group, not its rows alone, and what is "
            "asked of sensitive values counts each of them once for a value. Rows of one in several groups can be set "
            "side by side by who knows which they are."
        )
    return "One row is one person. Where a person has several rows, name the column that says so (person)."


def _ends(policy: Mapping[str, Any], exposed: float | None) -> str:
    """What the ends of ranges, the members of sets, and the ends of regions reveal.

    A public page has no share of it.
    """
    steps = policy.get("range_step") or {}
    exception = (
        ""
        if exposed is None
        else f"; {100 * exposed:.1f} % of the groups show a value that only one of their rows holds"
    )
    if REGIONS in policy["hierarchies"].values():
        return (
            "Ends of regions: a region has the areas of its rows and those that join them, so an area without which "
            f"it is connected is the area of a row{exception}."
        )
    grid = (
        f" {', '.join(steps)} {'ends' if len(steps) == 1 else 'each ends'} on a grid and shows none." if steps else ""
    )
    return (
        "Ends of ranges: a range goes from the least to the greatest value of its group, and a set names them all. So "
        f"each end and each member is the value of at least one row of the group{exception}. range_step (--range-step) "
        f"widens ranges to round ends.{grid}"
    )


def _minimality(policy: Mapping[str, Any]) -> str:
    """What the forming of the groups reveals, or why it reveals nothing."""
    if policy.get("minimality") is None:
        return (
            "Minimality: knowing that nothing was coarsened needlessly can reveal something (Wong, Fu, Wang, Pei 2007)."
        )
    return (
        "Minimality: someone who knows the method and everyone's quasi-identifiers can infer no value with more than "
        f"{policy['minimality']:g}, if before the release any two people might equally well have each other's "
        "values. Someone who knows more about the people, or has a second release of them, might infer more."
    )


def attacks(policy: Mapping[str, Any], exposed: float | None = None) -> list[str]:
    """What such a release can't promise, by the name of the attack.

    exposed  share of the groups that show a value that only one of their rows has. None if no published form shows one,
             or if only the release is known
    """
    out = [
        "Composition: two releases about the same people, such as this month's and the next, can be intersected: the "
        "groups that a person has in each may have fewer than k people in common (Ganta, Kasiviswanathan, Smith 2008). "
        "Publish once, publish the same release again, or publish new people alone.",
        _minimality(policy),
        "Background knowledge: an attacker who knows more than the quasi-identifiers learns more; t in the table above "
        "says how far a group's distribution lies from the whole table's.",
        "For statistics rather than rows, publication with noise (differential privacy) promises more.",
    ]
    if policy["publish"] == "centers":
        out.insert(
            2, "Centers: the rows of a group show the record of one of its people, unchanged. Someone who knows that "
            "a person with these values is in the table has found that person's group."
        )  # fmt: skip
    if policy["publish"] == "hierarchy":
        out.insert(
            2, "Downcoding: minimal recodings along a hierarchy can be partly undone from statistics (Cohen 2022)."
        )
    if exposed is not None or policy["publish"] == "ranges" or REGIONS in policy["hierarchies"].values():
        out.insert(2, _ends(policy, exposed))
    bare = _unguarded(policy)
    if not policy["sensitive"]:
        out.insert(0, "Homogeneity: no sensitive column was named, so a group may agree on something private.")
    elif bare:
        out.insert(
            0,
            f"Homogeneity: no model was asked for that keeps the values of {', '.join(bare)} apart, so a group may "
            "agree on them (Machanavajjhala et al. 2007); ask for l, entropy l, alpha or t.",
        )
    return out


def _unguarded(policy: Mapping[str, Any]) -> list[str]:
    """Sensitive columns without a model, or only with a model that every group meets."""
    weak: list[dict[str, Any]] = [{"model": name} for name in ("KAnonymity", "KMap", "DeltaPresence")]
    weak += [{name: 1} for name in ("l", "alpha", "t")]
    strong = [m for m in policy["privacy"] if not any(w.items() <= m.items() for w in weak)]
    return [c for c in policy["sensitive"] if not any(m.get("column") in (None, c) for m in strong)]


def asked(figures: Mapping[str, Any]) -> Markup:
    """The complete request; settings with their default only if readers need them."""
    policy = figures["policy"]
    checks = ((c["model"], c["column"], model_words(c)) for c in figures["audit"]["checks"])
    models = map(": ".join, (*_by_words(checks), *stated(figures)))
    rows = [
        (term("quasi-identifiers") + " (made coarser)", ", ".join(policy["quasi_identifiers"])),
        (term("sensitive") + " (published as they are)", ", ".join(policy["sensitive"]) or "none"),
        ("identifiers (left out)", ", ".join(policy["identifiers"]) or "none"),
        ("privacy", "; ".join(models) or "nothing"),
        *_limits(figures),
        ("published as", RECODINGS[policy["publish"]].words),
        *_forms(policy),
        ("missing values", READINGS[policy["missing"]]),
        ("search", f"method {policy['method']}, effort {policy['effort']}"),
        *([("seed of the search", str(policy["seed"]))] if policy.get("seed") is not None else []),
        ("order of the rows", "kept" if policy["keep_order"] else "shuffled"),
    ]
    return table(("", ""), rows, 2, "The request")


def stated(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Requested models that these rows can't show, because the column that they count was removed: (model, words)."""
    judged = {(c["model"], c["column"]) for c in figures["audit"]["checks"]}
    units = [figures["policy"][u] for u in ("person", "household") if figures["policy"].get(u)]
    models = [(restore(asked), asked.get("column")) for asked in (figures["policy"]["privacy"] if units else ())]
    yield from _by_words(
        (model.name, column, f"{model.words()}, counted by {' and '.join(units)}")
        for model, column in models
        if model.applies_to != "population" and not {(model.name, column), (model.name, None)} & judged
    )


def _by_words(models: Iterable[tuple[str, str | None, str]]) -> Iterator[tuple[str, str]]:
    """(model of its columns, words): columns with the same model in the same words are listed together."""
    columns: dict[tuple[str, str], list[str]] = {}
    for model, column, words in models:
        columns.setdefault((model, words), []).extend([column] if column else [])
    for (model, words), named in columns.items():
        yield model + (f" of {', '.join(named)}" if named else ""), words


def _limits(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Requests other than models: the preset, who is counted, the population, how much may be suppressed."""
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
        yield "population", f"estimated: {policy['population_weights']} states how many people a row represents"
    if policy["max_average_risk"] is not None:
        yield "mean risk", f"at most {number(policy['max_average_risk'])}"
    if policy.get("minimality") is not None:
        detail = f"with a share of at most {number(policy['minimality'])}"
        yield "someone who knows the method can infer a value", detail
    if policy["max_suppressed"]:
        whole = release["certificate"].get("details", {}).get("suppressed_rows")
        found = "" if whole is None else f"; {share(whole, release['rows'])} are ({whole:,})"
        yield "rows hidden whole", f"at most {100 * policy['max_suppressed']:g} % of all{found}"


def _forms(policy: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Requests about the published form."""
    if policy["global_recoding"]:
        yield "levels", "one for each column, the same in all rows"
    if policy.get("coarsen"):
        yield "levels", "one for each column, found by the search, and hidden values where the rows of a group differ"
    if policy.get("dates"):
        yield "dates are written as", ", ".join(f"{notation} in {n}" for n, notation in policy["dates"].items())
    if policy.get("decimal"):
        yield "decimal marks", ", ".join(f"{mark!r} in {n}" for n, mark in policy["decimal"].items())
    if policy.get("range_step"):
        yield "ranges end at steps of", ", ".join(f"{number(step)} in {n}" for n, step in policy["range_step"].items())
    limits = named_notations({"top": policy.get("top") or {}, "bottom": policy.get("bottom") or {}})
    if limits:
        notations = ", ".join(f"{' and '.join(notation.split())} in {name}" for name, notation in limits.items())
        yield "values beyond limits are written", f"{notations}; the loss counts such a value as one that is published"
    if policy["star"] != "*":
        yield "a hidden value is written", policy["star"]


def files_and_roles(figures: Mapping[str, Any]) -> Markup:
    """The released files, and the role of every column."""
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
    """The columns of each role in a line, with the settings of each column."""
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
    """A quasi-identifier with its hierarchy, weight, and ceiling, if any."""
    source = policy["hierarchies"].get(column["name"])
    more = [f"hierarchy {source}"] if source else []
    more += [f"weight {number(column['weight'])}"] if column["weight"] != 1 else []
    more += [f"level {column['ceiling']} at most"] if column["ceiling"] is not None else []
    return column["name"] + (f" ({', '.join(more)})" if more else "")


def _left_out(name: str, policy: Mapping[str, Any]) -> str:
    """A removed column, and what it was used to count."""
    counted = next((u for u in ("person", "household") if policy.get(u) == name), None)
    if counted:
        return f"{name} (names the {counted})"
    return f"{name} (states how many people a row represents)" if policy.get("population_weights") == name else name


_HARBOR = {
    "zip": "the first three digits of a zip, 000 where 20,000 people or fewer live",
    "age": "years, above 89 as 90+",
    "birth": "the year of birth, those of people above 89 in one category",
    "date": "the year alone",
}


def _harbor(release: Mapping[str, Any]) -> Markup:
    """Which columns the Safe Harbor rule changed, and how."""
    found = (release.get("safe_harbor") or {}).get("columns") or {}
    lines = [(name, _HARBOR[rule]) for name, rule in found.items()]
    return table(("column", "shown as"), lines, 2, "Safe Harbor") if found else Markup()


def unchanged_columns(found: Mapping[str, Any], rows: int) -> Markup:
    """Columns published unchanged, and how many rows they single out."""
    if not found["columns"]:
        return paragraph("None: every column of the release is a quasi-identifier or sensitive.")
    known = [name for name in found["columns"] if name in found["insensitive"]]
    others = [name for name in found["columns"] if name not in known]
    listed = [f"{what}: {', '.join(names)}." for what, names in
              (("Named insensitive", known), ("No role named", others)) if names]  # fmt: skip
    lines = sorted(((name, alone) for name, alone in found["alone"].items() if alone), key=lambda line: -line[1])
    together = found["together"]
    markup = (
        paragraph(
            f"Together these columns single out {together:,} of {rows:,} rows: someone who knows their values finds "
            "these people despite the groups.",
            "bad",
        )
        if together
        else paragraph("Together these columns single out no one: every combination occurs in at least two rows.")
    )
    markup += paragraph(" ".join(listed))
    head = ("column", "rows whose value no other row holds")
    return markup + (table(head, lines, 1, "Columns that single out rows by themselves") if lines else "")


SINGLED = 0.05  # if insensitive columns single out more than this share of the rows, a release is weak
HIGH, COMMON = 0.2, 0.5  # a release is strong up to this risk of re-identification and this share of a value


def warnings(figures: Mapping[str, Any]) -> list[str]:
    """Sentences about what the release reveals although it keeps its promises, the worst first.

    Insensitive columns that single people out; a group with one sensitive value; a group far from the table's
    distribution; sets that list the value of each person; ranges that end at one row's value.
    """
    release, audit = figures["release"], figures["audit"]
    rows = release["rows"]
    carried = release["carried"]
    found: list[tuple[float, str]] = []
    if carried["together"]:
        number = len(carried["columns"])
        columns = f"{number:,} columns" if number > 1 else f"The column {carried['columns'][0]!r}"
        part = carried["together"] / max(rows, 1)
        text = (
            f"{columns} kept unchanged single{'' if number > 1 else 's'} out {carried['together']:,} of "
            f"{rows:,} rows ({share(part, 1)}). Someone who knows these values finds these people despite the groups."
        )
        found.append((1 + part, text))
    found += [(most, text) for most, text in (*_shared(audit["sensitive"]), *_far(audit["sensitive"]))]
    if own := _often(figures, "listed"):
        text = (
            f"In {share(max(own.values()), 1)} of the groups, the set of {_or(list(own))} names as many values as the "
            "group has rows. So each is the value of one row, and anyone who knows it knows that this person is here."
        )
        found.append((-1.0, text))
    if ends := _often(figures, "sole_ends"):
        text = (
            f"In {share(max(ends.values()), 1)} of the groups, the range of {_or(list(ends))} ends at a value that no "
            "other group shows. Such a value is very likely that of one row, and anyone who knows it knows that this "
            "person is here. For numbers and dates, range_step (--range-step) rounds the ends."
        )
        found.append((-2.0, text))
    return [text for _, text in sorted(found, key=lambda pair: -pair[0])]


def _shared(sensitive: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    """A group in which all or almost all rows have one value, (severity, sentence)."""
    shares = {name: levels["alpha"] for name, levels in sensitive.items() if (levels["alpha"] or 0.0) >= ALL_BUT}
    whole = [name for name, most in shares.items() if most >= 1]
    if whole:
        yield 1.0, f"In some group all rows share a value of {_or(whole)}. Anyone known to be in it has that value."
    rest = sorted((name for name in shares if name not in whole), key=lambda name: -shares[name])
    if rest:
        shown = [f"{percent_up(shares[name])} % of the rows share a value of {name}" for name in rest]
        text = f"In some group {_or(shown)}. Anyone known to be in it very probably has that value."
        yield shares[rest[0]], text


def _far(sensitive: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    """Groups whose values are distributed almost completely differently from the table's, so little is protected."""
    far = {name: t for name, levels in sensitive.items() if (t := levels.get("t_equal") or 0.0) >= ALL_BUT}
    if far:
        worst = sorted(far, key=lambda name: -far[name])
        shown = [f"{name} (t = {far[name]:.3f})" for name in worst]
        yield (
            far[worst[0]] - 1,  # less severe than a disclosed value
            f"In some group the values of {_or(shown)} differ widely from the whole table's. Anyone known to be in "
            "it is known to have one of few values.",
        )


def _often(figures: Mapping[str, Any], what: str) -> dict[str, float]:
    """Columns that reveal values of single rows in more than half of the groups, with the share of these groups.

    what  listed: as members of sets; sole_ends: as ends of ranges
    """
    held = figures.get(what, {})
    return {name: held[name] for name in sorted(held, key=lambda n: -held[n]) if held[name] > COMMON}


def _or(names: Sequence[str]) -> str:
    """Names in a sentence; of many, only the first few."""
    if len(names) > 4:
        return f"{', '.join(names[:4])} or of {several(len(names) - 4, 'more column')}"
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def risk_word(risk: float) -> str:
    """Weak, fair, or strong, by the highest risk of re-identification alone."""
    return "weak" if risk > COMMON else "fair" if risk > HIGH else "strong"


def verdict(figures: Mapping[str, Any]) -> str:
    """Weak, fair, or strong, with the figures that are the reason."""
    release, audit = figures["release"], figures["audit"]
    rows = release["rows"]
    if not rows:
        return "Verdict: the table is empty."
    failed = [c["model"] for c in audit["checks"] if not c["passes"]]
    if failed:
        return f"Verdict: not to be published. {failed[0]} does not hold."
    singled = release["carried"]["together"] / rows
    risk = audit["risk"]["prosecutor_max"]
    shares = {name: levels["alpha"] or 0.0 for name, levels in audit["sensitive"].items()}
    worst = max(shares, key=shares.__getitem__, default=None)
    most = 0.0 if worst is None else shares[worst]
    far = max((levels.get("t_equal") or 0.0 for levels in audit["sensitive"].values()), default=0.0)
    reasons = [f"the highest risk to be found by the recoded columns is {risk:.3g}"]
    if worst is not None:
        reasons.append(f"up to {percent_up(most) if most < 1 else '100'} % of a group share a value of {worst}")
    if worst is None:
        reasons.append("no sensitive column was named")
    if singled:
        reasons.append(f"columns kept unchanged single out {share(singled, 1)} of the rows")
    if own := _often(figures, "listed"):
        reasons.append(f"most groups list each person's {next(iter(own))}")
    if ends := _often(figures, "sole_ends"):
        reasons.append(f"most groups show a value of {next(iter(ends))} that is very likely one person's")
    word = risk_word(risk)
    if singled > SINGLED or most >= ALL_BUT:
        word = "weak"
    elif word == "strong" and (singled or own or ends or most > COMMON or far >= ALL_BUT):
        word = "fair"
    return f"Verdict: {word}. T{'; '.join(reasons)[1:]}."
