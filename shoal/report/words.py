"""The texts of reports: a release, its certificate, and each theorem and argument in sentences; the terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from shoal.model.cards import floored, number, several, times
from shoal.model.certificate import LADDER, MORE, ROUNDING
from shoal.model.privacy import MODELS

NAMED = 3  # most columns in a sentence
ALL_BUT = 0.9  # if one value has this share of a group or more, the report warns


def as_sentence(words: str) -> str:
    """Words with a capital letter and one full stop."""
    return words[:1].upper() + words[1:].removesuffix(".") + "."


def promise(figures: Mapping[str, Any]) -> str:
    """The answer in one paragraph: group sizes, what a group reveals, the cost, and the proof."""
    release, audit = figures["release"], figures["audit"]
    if not release["rows"]:
        return "The table is empty; there is nobody to protect."
    k = audit["smallest_class"]
    parts = [
        f"Every row of this release looks exactly like at least {k - 1:,} others in the columns that others may know"
        if k > 1
        else "Some rows of this release look like no other"
    ]
    parts += [f"each group's rows are of at least {n:,} different {unit}" for unit, n in _persons(figures)]
    people = audit.get("population")
    if people is not None:
        source = "by its weights" if people["from"] == "weights" else "counted"
        parts.append(
            f"what every group shows fits at least {people['k_map']:,} of the {people['rows']:,} people of the "
            f"population, {source}"
        )
    shares = {n: found["alpha"] for n, found in audit["sensitive"].items() if found["alpha"] is not None}
    kept = sorted((n for n in shares if shares[n] < ALL_BUT), key=lambda n: -shares[n])
    if kept:
        text = f"in no group do more than {percent_up(shares[kept[0]])} % of the rows share a value of {kept[0]}"
        more = [f"{percent_up(shares[n])} % one of {n}" for n in kept[1:NAMED]]
        more += [f"less of {several(len(kept) - NAMED, 'more column')}"] * (len(kept) > NAMED)
        parts.append(", ".join([text, *more]))
    changed, hidden = release["loss"]["suppressed_tuples"], sum(release["stars"].values())
    ruled = ", ".join((release.get("safe_harbor") or {}).get("columns", ()))
    many = f"{hidden:,} values"
    if changed is None:  # a public page of centers can't know it
        cost = f"{many} were hidden. "
    else:
        cost = f"{changed:,} of {release['rows']:,} rows were changed, and {many} were hidden. "
    if ruled:
        first = f"The rule book made {ruled} coarser first; what is called before is the table after that."
        cost = f"{first} Beyond it, {cost}"
    return "; ".join(parts) + ". " + cost + certificate_words(release)


def _persons(figures: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The unit that is counted (such as persons), and the fewest of them in a group."""
    held = figures["release"].get("persons") or {}
    named = {figures["policy"].get(unit): unit for unit in ("person", "household")} if held else {}
    return [(f"{named.get(column, column)}s", n) for column, n in held.items()]


def percent_up(part_of: float) -> str:
    """A share below 1 in percent, rounded up, but never to 100."""
    digits = next(d for d in range(1, 16) if d == 15 or math.ceil(10 ** (d + 2) * part_of - 1e-9) < 10 ** (d + 2))
    return f"{math.ceil(10 ** (digits + 2) * part_of - 1e-9) / 10**digits:.{digits}f}".rstrip("0").rstrip(".")


def model_words(check: Mapping[str, Any]) -> str:
    """One requested model, in words."""
    return next((m(**check["asked"]).words() for m in MODELS.values() if m.name == check["model"]), str(check["asked"]))


UNITS = {
    "ncp": "mean loss per value",
    "stars": "values hidden",
    "suppressed tuples": "rows changed",
    "distance": "largest distance from a center",
}


def shown(value: float, unit: str, least: bool = False) -> str:
    """A cost with its unit in plain words. least: it is a lower bound, and is rounded down"""
    counted = isinstance(value, int)
    figure = floored(value) if least else number(value)
    if unit.startswith("points x "):
        return f"{figure} {unit.removeprefix('points x ')}, each record with its cluster's radius added up"
    named = UNITS.get(unit, unit)
    if value == 1 and named.split(" ")[0] == "units":
        named = "unit" + named.removeprefix("units")
    return f"a {named} of {figure}" if unit in UNITS and not counted else f"{figure} {named}"


def share(part_of: float, whole_of: float) -> str:
    """A share in percent; only 0 itself is written as 0 %."""
    percent = 100 * part_of / max(whole_of, 1)
    return "under 0.1 %" if 0 < percent < 0.1 else f"{percent:.1f} %"


def certificate_words(release: Mapping[str, Any]) -> str:
    """The certificate in words: the cost, the lower bound, and what follows."""
    if "ratio_at_most" in release["certificate"]:
        return public_words(release["certificate"])
    what, proof = _comparable_releases(release), release["certificate"]
    if proof["unit"] not in UNITS:  # a length, for centers
        far = "from a center to the farthest row of its group (1 is the whole span of a column)"
        proof = {**proof, "unit": f"{proof['unit']} {far}"}
    words = proved(proof, f"every release {what}", what == _OF_THIS_KIND)
    return (
        words.replace(f"a {UNITS['ncp']}", "a weighted loss per value")
        if "weighted_ncp" in release.get("loss", ())
        else words
    )


def public_words(certificate: Mapping[str, Any]) -> str:
    """A public certificate in words: the loss that the file shows, and its distance from the proved bound."""
    cost, unit, ratio = (certificate[name] for name in ("cost", "unit", "ratio_at_most"))
    paid = "" if cost is None else f"The file shows {shown(cost, unit)}{_SCALE if unit == 'ncp' else ''}. "
    if ratio is None:
        text = f"{paid}How near that is to the least loss possible is not stated."
    elif ratio == MORE:
        text = f"{paid}It may lose more than {LADDER[-1]:g} times the least possible."
    elif ratio == 1:
        return f"{paid}No release of this kind that keeps these promises loses less: that is proved."
    else:
        text = f"{paid}It is proved to lose at most {ratio:g} times the least possible."
    factor = certificate["guarantee"]["factor"]
    return text if factor is None else f"{text} Of every table, at most {factor:g} times the least is promised."


def proved(certificate: Mapping[str, Any], subject: str, comparable: bool = True, begins: str = "It costs") -> str:
    """A certificate in words.

    subject      the releases for which the bound holds: "every release of this kind"
    comparable   this release is one of them
    begins       the first words
    """
    c = certificate
    text = f"{begins} {shown(c['cost'], c['unit'])}{_SCALE if c['unit'] == 'ncp' else ''}"
    if c["optimal"]:
        return text + ", and that is the least possible, proved."
    if not c["lower_bound"]:
        return text + "; nothing is proved about how little would do."
    if c["ratio"] <= 1 + ROUNDING:
        return text + ", and that is the least possible up to rounding, proved."
    text += f"; {subject} costs at least {shown(c['lower_bound'], c['unit'], least=True)}"
    if comparable:
        text += f", so this one costs at most {times(c['ratio'])} possible, proved"
    text += "."
    factor, additive = c["guarantee"]["factor"], c["guarantee"]["additive"]
    if factor is not None:
        more = f" plus {additive:g}" if additive else ""
        text += f" Before seeing the table, the method promised at most {factor:g} times the least{more}."
    return text


_SCALE = " (0: every value as it came, 1: nothing left)"
_OF_THIS_KIND = "of this kind that keeps these promises"


def _comparable_releases(release: Mapping[str, Any]) -> str:
    """The releases for which the bound holds.

    Releases with one level per column aren't compared with local recodings.
    """
    if "uniform_cost" in release["certificate"]["details"]:
        return "that may choose row by row, which this one may not,"
    return _OF_THIS_KIND


# where the guide proves a method's promise: page and section; bounds of tables have their own section
BOUNDS_PAGE = ("docs/cascade.md", "The bounds")
METHOD_PAGES = {
    "cascade": ("docs/cascade.md", "The cascade"),
    "improve": ("docs/cascade.md", "The search"),
    "three_phase": ("docs/methods.md", ""),
    "hilbert": ("docs/methods.md", "Groups along a curve: hilbert"),
    "three_phase_hilbert": ("docs/methods.md", "TP+: three_phase_hilbert"),
    "matching": ("docs/methods.md", "Two sensitive values: matching"),
    "top_down": ("docs/methods.md", "Single-dimensional: top_down and global_recoding"),
    "global_recoding": ("docs/methods.md", "Single-dimensional: top_down and global_recoding"),
    "coarsen": ("docs/methods.md", "Coarsen first, then suppress: coarsen"),
    "mondrian": ("docs/methods.md", "Mondrian"),
    "two_anonymity": ("docs/exact.md", "Two-anonymity, proved"),
    "optimal": ("docs/exact.md", "Small tables under any requirement"),
    "halving": ("docs/exact.md", "Small tables under any requirement"),
    "fewest_tuples": ("docs/exact.md", "The fewest changed rows: fewest_tuples"),
    "forest": ("docs/exact.md", "Approximations with a promise"),
    "pattern_cover": ("docs/exact.md", "Approximations with a promise"),
}

# the same for texts of other theorems
PROOFS = {
    "2009, Theorem 7": ("docs/labels.md", "Fold (Theorem 7) and Spread"),
    "2009, Theorem 9": ("docs/labels.md", "5/2 (Theorem 9), all cases"),
    "2009, Theorem 10": ("docs/labels.md", "The scheme (Theorem 10)"),
    "2009, Theorem 11": ("docs/labels.md", "Slightly short groups (Theorem 11)"),
    "spanning tree": ("docs/regions.md", "tree, and why its promise holds"),
    "no tile can be cut": ("docs/tiles.md", "kd_tree, and why its factor is 5"),
    "gathering.md, Theorem 1:": (
        "docs/gathering.md",
        "Theorem 1: disjoint nearest-r balls, factor 3, and 4 with centers anywhere",
    ),
    "gathering.md, Theorem 3:": (
        "docs/gathering.md",
        "Theorem 3: at most k clusters and s points left out, factor 5 at points, 6 anywhere",
    ),
    "gathering.md, Theorem 5": ("docs/gathering.md", "Theorem 5: set-up costs, factor 3"),
    "gathering.md, Theorem 6": ("docs/gathering.md", "Theorem 6: at least r points, factor 36"),
    "gathering.md, Theorem 7": ("docs/gathering.md", "Theorem 7: at least r points, a share left out, factor 63"),
    "Lemma 1": ("docs/gathering.md", "Lemma 1: the bound"),
    "Lemma 3": ("docs/gathering.md", "Lemma 3: prices"),
}


def proof_of(text: str, otherwise: tuple[str, str]) -> tuple[str, str]:
    """The page and section of the guide that prove the theorem or argument named in a text."""
    return next((found for named, found in PROOFS.items() if named in text), otherwise)


_FITTING = "Each row is charged the cheapest of what it may show so that enough people of the population fit it."
_NEAREST = "Each row is charged what it must lose with its nearest rows, as many as the smallest group needs."
_WIDENED = "Where ranges end on a grid, a row loses what its own value is widened by, even in no group at all."

_BOXES = (
    "Prices are found with which no possible box of values costs less than its rows pay: boxes are added until none "
    "does; their sum is a bound."
)

# bounds by their short names
BOUNDS = {
    "nothing": "A loss is never below 0.",
    "population": _FITTING,
    "neighbors": _NEAREST,
    "alone": _WIDENED,
    "combined": "Rows whose combination is too rare change at least one value each; rows that no group with so few "
    "changes can hold add the further values that they must lose.",
    "tuples": "Rows whose combination is too rare change in every release, each of them at least one value.",
    "least steps": "Rows whose combination is too rare change in every release, each of them by at least the cheapest "
    "second value.",
    "boxes": "Each row is charged the cheapest box of values with enough rows for it; no group costs its rows less.",
    "raised boxes": "Prices are found under which every possible box of values costs at least what its rows pay; their "
    "sum is a bound.",
    "close classes": "Prices are found under which no group that the table's levels allow, with sensitive values as "
    "near the table's as is required, costs less than its rows pay; their sum is a bound.",
    "limited shares": "Prices are found under which no group that the table's levels allow, with no sensitive value "
    "more common than is allowed, costs less than its rows pay; their sum is a bound.",
    "columns of boxes": _BOXES,
    "pieces": "The rows of each value are cut into pieces, and pieces of different values form groups. Every release "
    "is such a cut, and the best cut, in fractions, is a bound.",
    "shards": "Every shard has prices that hold for the whole table; they add up.",
}

# the first key found in the text of a theorem or an argument decides, so longer keys come before shorter ones
THEOREMS = {
    "multipliers": "Each row is given the cheapest group that it could be in, and values too common for groups "
    "alone pay for the rarer ones they need; no release can do with less than these prices add up to.",
    "by column generation": _BOXES,
    "dynamic programming": "The best cut of the first values is known for every number of values; each longer one is "
    "made of a shorter one and one more interval, so that no cut is missed.",
    "no loss is below": "A loss is never below 0.",
    "no assignment of rows": "An integer program chooses among all answers; its solver proved that none costs less.",
    "suppressed tuples": "Rows whose combination is too rare change in every release, each of them at least one value.",
    "counting: total": "All records are shared among the most tiles that there can be; the largest holds no less.",
    "shared among the most regions": "The connected areas are shared among the most regions that they can "
    "make; the heaviest weighs no less.",
    "largest label": "The most frequent label is in some group, which holds no less.",
    "Lemma 3": "Every record has a price, and no possible cluster costs less than its records' prices; they add up.",
    "population: per row": _FITTING,
    "nearest rows": _NEAREST,
    "what the grid takes": _WIDENED,
    "cheapest": "Each row is charged the cheapest group that has enough rows for it; no group can cost its rows less.",
    "bisection over integer": "For each radius an integer program says whether an answer exists; the least is "
    "found by halving.",
    "integer program": "An integer program chooses among all answers; its solver proved that none costs less.",
    "program": "The question is relaxed to a linear program, whose least value is computed; no release lies below it.",
    "subgradients": "Prices are moved up and down until every possible group costs at least what its rows pay; their "
    "sum is a bound.",
    "dual": "Prices are found under which every possible group costs at least what its rows pay; their sum is a bound.",
    "Xiao": "Groups are built in three phases, each adding at most a known multiple of what any answer must lose.",
    "spanning tree": "The areas are connected by a tree in which none has many branches. It is cut wherever a branch "
    "has reached k, so that what is left at an area is less than k from each of its branches.",
    "no tile can be cut": "A rectangle that no line cuts into two of at least k weighs at most four times k - 1 and "
    "its heaviest place.",
    "2009, Theorem 7": "Groups are filled with the largest first until each has k; the last label put in a group is "
    "all that it can have too much.",
    "2009, Theorem 9": "Groups are filled with the largest first, and what is left over is shared out to the lightest.",
    "2009, Theorem 10": "Sizes are rounded to few, and these are tried in all combinations.",
    "2009, Theorem 11": "Sizes are rounded to few, and these are tried in all combinations; groups may be below k.",
    "gathering.md, Theorem 1:": "Every record has a ball that holds its r nearest. Balls that share no record become "
    "clusters, the smallest first; the rest goes to the nearest, at most three such radii away.",
    "gathering.md, Theorem 3:": "A radius is guessed, and the balls that hold most free records are taken in rounds; a "
    "guess that fails is below the least radius possible.",
    "gathering.md, Theorem 5": "Records pay for clusters as time goes on; of clusters that share a payer the widest is "
    "kept, and the prices add up to no more than any answer costs.",
    "gathering.md, Theorem": "Records pay for clusters as time goes on; of clusters that share a payer the widest is "
    "kept, and clusters of too few records are filled up with the nearest.",
    "Lemma 1": "A record in a cluster is within its radius of a center that has r records as near; the least such "
    "distance of every record is known.",
    "whose test failed": "At too small a radius more records lie far apart than clusters can be filled; half of a "
    "distance at which that was seen is less than any answer needs.",
    "core large enough": "Where the records that have r others near are too few, no answer is that narrow.",
    "2006, Theorem 2.2": "A radius is guessed; records more than two radii apart need clusters of their own, and a "
    "flow gives each of these its r records. A guess that fails is below the least radius possible.",
    "2006, Theorem 2.3": "A radius is guessed, and the balls that hold most free records are taken one by one.",
    "2006, Theorem 3.3": "Records pay for clusters as time goes on; a cluster is shut down where a payer of it has "
    "another open one.",
    "2005": "Rows are joined into trees of k rows or more along their least differences; then the trees are split.",
    "matching": "Groups of two or three rows are found as a cheapest matching, known to be the least possible.",
    "set cover": "Groups are chosen greedily, each time the cheapest per new row: a logarithm from the least.",
    "heuristic": "No theorem bounds this method in advance; only the bound computed for this very input judges it.",
    "lattice": "Every way to coarsen the columns is looked at once; rows are charged the least that frees them.",
    "fewest": "Rows whose combination is too rare must change in every release; counting them bounds the cost.",
}


def theorem_words(text: str) -> str:
    """A theorem or an argument in a sentence; empty if the text already is a sentence."""
    return BOUNDS.get(text) or next((words for word, words in THEOREMS.items() if word.lower() in text.lower()), "")


MEASURES = {
    "stars": (
        "values starred",
        "published as a star, as a set of all values is; a range over a whole column is no star",
    ),
    "suppressed_tuples": ("rows changed", "rows in which at least one value is hidden or coarser"),
    "ncp": ("loss (NCP)", "mean loss of a published value: 0 is the value itself, 1 is nothing left"),
    "ncp_with_filled": ("loss, filled cells lost", "at most: the NCP, and a filled cell counts as nothing left"),
    "ncp_with_limits": ("loss, values beyond limits lost", "at most: the NCP, and what lies beyond a limit is lost"),
    "weighted_ncp": ("weighted loss", "the same, columns counted by their weights"),
    "precision": ("precision", "one less the mean share of the way to the star"),
    "discernibility": ("discernibility", "sum over the rows of the size of their group"),
    "average_class_size": ("mean group", "rows per group"),
    "normalized_class_size": ("mean group over k", "1 is the least possible"),
    "largest_class": ("largest group", "rows"),
    "class_excess": ("group excess", "discernibility beyond groups of k rows"),
    "non_uniform_entropy": ("information lost", "bits per value"),
    "kl_divergence": ("divergence (KL)", "how far the released distribution is from the original's, in nats"),
}

GLOSSARY = {
    "quasi-identifiers": "columns that others may know about a person, such as age or town; they are made coarser",
    "sensitive": "columns that nobody should learn about a person; published as they are",
    "group": "all rows that show the same in the quasi-identifiers",
    "k-anonymity": "every group has at least k rows",
    "l-diversity": "in no group do more than one in l rows share a sensitive value",
    "entropy l": "as many equally frequent values as would tell as little as the values of the worst group",
    "distance t": "how far a group's values are distributed otherwise than the whole table's: 0 not at all, 1 entirely",
    "kept unchanged": "published unchanged; someone who knows their values might find a person by them",
    "prosecutor": "somebody who knows that a person is in the table and looks for that person's row",
    "journalist": "somebody who looks for any person, without knowing who is in the table",
    "marketer": "somebody who links as many rows as possible; the mean risk counts",
    "loss": "0 where a value is published as it is, 1 where nothing of it is left",
    "SHA-256": "a fingerprint of the file's bytes: it changes when any of them does",
    "certificate": "the file next to the release that states what holds and what it cost; shoal verify checks it",
    "lower bound": "what every other release of this kind costs at least, proved for this table",
}


def sentence(text: str) -> str:
    """A text as a sentence: with a full stop, and with a capital letter unless it begins with the name of a page."""
    begins = text[:5] if text.startswith("docs/") else text[:1].upper() + text[1:5]
    return begins + text[5:] + ("" if text.endswith((".", "!", "?")) else ".")
