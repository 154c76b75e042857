"""Refusals of requests that contradict themselves, one sentence each, and texts for ways to treat missing values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import number, whole_number
from shoal.model.cards import several
from shoal.model.hierarchy import GENERATED, REGIONS, Hierarchy, is_built
from shoal.model.privacy import DeltaPresence
from shoal.model.settings import SETTINGS

READINGS = {  # texts for the ways to treat missing values
    "category": "a missing value is a value of its own, never a wildcard",
    "apart": "rows with a missing quasi-identifier are grouped among themselves, never with rows without one; among "
    "them a missing value is a value of its own",
    "filled": "a missing quasi-identifier was filled with the most frequent value of its column before anything was "
    "counted, so cost, bound and levels are those of the filled table; a filled cell is no value of its row and counts "
    "as lost, with any value that it shows",
}


def with_filled(ncp: float, cells: Mapping[str, int] | None, rows: int) -> dict[str, float]:
    """An upper bound of the NCP if each filled cell counts as completely lost, in addition to its recoding's loss.

    cells  number of filled cells of each quasi-identifier; None: no filling was requested, and the result is {}
    """
    return {} if cells is None else {"ncp_with_filled": ncp + sum(cells.values()) / max(rows * len(cells), 1)}


def filled_words(cells: Mapping[str, int] | None) -> list[str]:
    """A sentence on the filled cells, if there are any."""
    filled = ", ".join(f"{count:,} of {name!r}" for name, count in (cells or {}).items() if count)
    words = f"missing values filled with the most frequent one of their column: {filled}; each counts as lost"
    return [words] if filled else []


def without_k(asked: Any, smallest: int) -> list[str]:
    """A sentence if a policy file asks for no k, because nobody sees a line that was removed; asked is a ``Policy``.

    smallest  the least number of rows, or of persons, that the other models allow in a group
    """
    if asked.source is None or any(hasattr(model, "k") for model in asked.privacy):
        return []
    return [f"{Path(asked.source).name!r} asks for no k, and its other models allow groups of {smallest:,}"]


def with_regions(values: Mapping[str, Any]) -> dict[str, Any]:
    """``publish`` by columns, converted to one word and the hierarchies of regions; {} if it is already one word."""
    asked = values.get("publish")
    if not isinstance(asked, Mapping):
        return {}
    named = [name for name, word in asked.items() if word == REGIONS]
    other = {word for word in asked.values() if word != REGIONS} - {"hierarchy", "stars"}
    if not named or other:
        raise PolicyError(
            f"⟨publish={dict(asked)!r}⟩: by columns, a way is 'regions', 'hierarchy', or 'stars'; for one "
            "way for all columns, say ⟨publish='ranges'⟩"
        )
    given = values.get("hierarchies") or {}
    starred = [name for name, word in asked.items() if word == "stars" and name in given]
    if both := [name for name in named if name in given and given[name] != REGIONS] + starred:
        raise PolicyError(f"column {both[0]!r} has a hierarchy, and ⟨publish⟩ says otherwise; leave one of them out")
    bare = [name for name, word in asked.items() if word == "hierarchy" and name not in given]
    if bare:
        raise PolicyError(f"⟨publish⟩ says that {bare[0]!r} has a hierarchy; say which, ⟨hierarchies={{column: ...}}⟩")
    return {"publish": "hierarchy", "hierarchies": {**given, **dict.fromkeys(named, REGIONS)}}


def refuse_regions(asked: Any) -> None:
    """PolicyError for regions without areas, or areas without regions; asked is a ``Policy``."""
    own = [n for n, h in asked.hierarchies.items() if h == REGIONS or getattr(h, "kind", None) == REGIONS]
    if any(name in asked.sensitive for name in own):
        raise PolicyError("regions are of quasi-identifiers; a sensitive column needs another hierarchy")
    if asked.areas is None and any(asked.hierarchies[name] == REGIONS for name in own):
        raise PolicyError(
            f"column {own[0]!r} is published as regions; name the areas and their neighbors: ⟨areas=FILE⟩ and "
            "⟨edges=FILE⟩"
        )
    if asked.areas is not None and not own:
        raise PolicyError(
            "⟨areas⟩ have no effect if no column is published as regions; name one in ⟨publish⟩, or leave them out"
        )
    if asked.areas is None and asked.edges is not None:
        raise PolicyError("⟨edges⟩ are pairs of areas; name the areas, too: ⟨areas=FILE⟩")
    if not own and asked.region_loss != SETTINGS["region_loss"].default:
        raise PolicyError(
            "⟨region_loss⟩ has no effect if no column is published as regions; name one in ⟨publish⟩, or leave it out"
        )
    if not isinstance(asked.region_loss, str) or not asked.region_loss:
        raise PolicyError(f"⟨region_loss={asked.region_loss!r}⟩: name one column of the areas")


def refuse_generated(asked: Any) -> None:
    """PolicyError for a hierarchy made from a table's counts, if several tables share it; asked is a ``Policy``."""
    for name, source in asked.hierarchies.items():
        if isinstance(source, str) and source in GENERATED:
            raise PolicyError(
                f"⟨hierarchies[{name!r}] = {source!r}⟩ is made from the table's own counts, which another table has "
                "not; name a file, or a builder such as 'intervals:5,10'"
            )


def refuse_hierarchies(asked: Any) -> None:
    """PolicyError for an invalid hierarchy, and for a distance without its hierarchy; asked is a ``Policy``."""
    for name, source in asked.hierarchies.items():
        if isinstance(source, (bytes, bytearray)) or not isinstance(source, (Hierarchy, Path, Mapping, Sequence)):
            raise PolicyError(
                f"hierarchies[{name!r}] is of type {type(source).__name__}; give the path of a file, rows, a "
                "nested mapping, a Hierarchy or its builder, or 'labels' or 'intervals'"
            )
        if name in asked.sensitive and isinstance(source, str) and source in GENERATED:
            raise PolicyError(
                f"⟨hierarchies[{name!r}] = {source!r}⟩ is made from counts and says nothing about how far sensitive "
                "values are apart; give a file, rows or a builder"
            )
    for model in asked.privacy:
        if model.unbound is None:
            continue
        for name in asked.sensitive if model.column is None else (model.column,):
            if name in asked.sensitive and name not in asked.hierarchies:
                raise PolicyError(
                    f"t-closeness by the hierarchical distance needs the hierarchy of {name!r}; say "
                    "⟨hierarchies={column: ...}⟩"
                )


def refuse_idle_hierarchies(asked: Any, given: Collection[str], tried: Collection[str] = ()) -> None:
    """PolicyError for a hierarchy on a command line that has no effect; asked is a ``Policy``.

    given  the columns whose hierarchies the command line names
    tried  the ways to publish that are tried; by default that of the policy
    """
    tried = tried or (asked.publish,)
    if not set(given) <= set(asked.sensitive) and not {"hierarchy", "centers"} & {*tried}:
        way = repr(",".join(tried))
        raise PolicyError(
            f"⟨hierarchies⟩ has no effect with ⟨publish={way}⟩; say ⟨publish='hierarchy'⟩, or leave it out"
        )
    near = [m for m in asked.privacy if m.unbound is not None]
    idle = [n for n in given if n in asked.sensitive and not any(m.column in (None, n) for m in near)]
    if idle:
        raise PolicyError(
            f"the hierarchy of the sensitive column {idle[0]!r} has no effect without ⟨t_hierarchical⟩; say that too, "
            "or leave it out"
        )


def refuse_population(asked: Any) -> None:
    """PolicyError for a model of a population without one, and for settings that exclude a population; asked: a
    ``Policy``."""
    models = [m for m in asked.privacy if m.applies_to == "population"]
    column = asked.population_weights
    if column is not None and (not isinstance(column, str) or not column):
        raise PolicyError(f"⟨population_weights={column!r}⟩ names no column")
    known = asked.population is not None or column is not None
    if asked.population is not None and column is not None:
        raise PolicyError("population and ⟨population_weights⟩ are two ways to say the same; give one of them")
    if models and not known:
        raise PolicyError(
            f"{models[0].name} counts people in the population; say ⟨population=TABLE⟩, or "
            "⟨population_weights=COLUMN⟩ for a sample with weights"
        )
    if column is not None and any(isinstance(m, DeltaPresence) for m in models):
        raise PolicyError("delta-presence needs the population itself (⟨population=TABLE⟩); weights estimate it only")
    if known and asked.publish == "centers":
        raise PolicyError(
            "⟨publish='centers'⟩ publishes records, which cover nobody else; a population goes with stars, hierarchy "
            "and ranges"
        )
    if known and asked.units:
        unit = "household" if asked.person is None else "person"
        raise PolicyError(
            f"a population is counted in rows, and ⟨{unit}=⟩ counts {unit}s, who may have several; pass one row "
            f"of each {unit} in both tables without ⟨{unit}=⟩, or leave the population out"
        )


def refuse_empty_names(asked: Any) -> None:
    """PolicyError for a role of a column with an empty name, which engines can't select; asked is a ``Policy``."""
    if "" in asked.quasi_identifiers or "" in asked.sensitive:
        raise PolicyError("a column without a name is no quasi-identifier and not sensitive; give it a name first")


def refuse_missing(asked: Any) -> None:
    """PolicyError for a treatment of missing values that can't be kept; asked is a ``Policy``."""
    if not isinstance(asked.missing, str):
        raise PolicyError(f"⟨missing={asked.missing!r}⟩: say 'category', 'apart' or 'filled'")
    if asked.missing == "wildcard":
        raise PolicyError(
            "⟨missing='wildcard'⟩ lets one row hide in many classes, so it is a reading of shoal.audit alone; take "
            "⟨missing='category'⟩, ⟨missing='apart'⟩ or ⟨missing='filled'⟩"
        )
    if asked.missing not in READINGS:
        raise PolicyError.unknown("reading of missing values", str(asked.missing), tuple(READINGS))
    if asked.missing == "filled" and (asked.population is not None or asked.population_weights is not None):
        raise PolicyError(
            "⟨missing='filled'⟩ gives rows values that are not theirs, and a population is counted by the "
            "values that people have; say ⟨missing='category'⟩ too"
        )
    if asked.missing == "filled" and asked.coordinates is not None:
        raise PolicyError("⟨missing='filled'⟩ would put rows without a place where most are; drop or place them first")
    if asked.missing == "apart" and asked.publish == "centers":
        raise PolicyError("⟨publish='centers'⟩ gathers all rows together; ⟨missing='apart'⟩ goes with the other ways")
    if asked.missing == "apart" and asked.coarsen is not None:
        raise PolicyError(
            "coarsen puts a column at one level for all rows, and ⟨missing='apart'⟩ groups rows in two parts, each "
            "with levels of its own; leave one of them out"
        )


def refuse_coarsen(asked: Any) -> None:
    """PolicyError for settings that exclude ``coarsen``; asked is a ``Policy``."""
    if asked.coarsen is None:
        if asked.method == "coarsen":
            raise PolicyError("⟨method='coarsen'⟩ finds levels that the release would not show; say ⟨coarsen='auto'⟩")
        return
    if not isinstance(asked.coarsen, str) or asked.coarsen != "auto":
        raise PolicyError(f"⟨coarsen={asked.coarsen!r}⟩: say ⟨coarsen='auto'⟩, or leave it out")
    if asked.publish != "hierarchy":
        raise PolicyError("coarsen puts columns at levels of hierarchies; say ⟨publish='hierarchy'⟩ too")
    if asked.global_recoding:
        raise PolicyError("coarsen and ⟨global_recoding=True⟩ are two ways to choose levels; leave one of them out")
    if asked.method not in ("auto", "coarsen"):
        raise PolicyError(f"coarsen has a method of its own; leave ⟨method={asked.method!r}⟩ out")
    if asked.population is not None or asked.population_weights is not None:
        raise PolicyError("coarsen counts rows of the table; leave it out with a population")


def limits_of(asked: Any) -> dict[str, Any]:
    """The average risk, the share of suppressed rows, and the number of shards as plain numbers.

    Raises PolicyError for impossible values, and for settings that exclude each other.
    """
    risk, shards = asked.max_average_risk, asked.shards
    if risk is not None:
        risk = number("max_average_risk", risk, "a risk is above 0 and at most 1", lambda x: 0 < x <= 1)
    if risk is not None and (asked.publish == "centers" or asked.units):
        other = "⟨publish='centers'⟩" if asked.publish == "centers" else "⟨person=⟩ or ⟨household=⟩"
        raise PolicyError(
            f"⟨max_average_risk⟩ counts rows of classes, and is not enforced with {other}; with "
            f"⟨k={math.ceil(1 / risk - 1e-9)}⟩ instead every risk, and so their mean, is at most {risk:g}"
        )
    share = number("max_suppressed", asked.max_suppressed, "a share of the rows, from 0 to 1", lambda x: 0 <= x <= 1)
    if shards is not None:
        shards = whole_number("shards", shards)
    if shards is not None and (asked.global_recoding or asked.publish == "centers"):
        raise PolicyError("shards are searched one by one; leave them out with ⟨global_recoding⟩ and centers")
    if shards is not None and (asked.coarsen is not None or asked.missing == "apart"):
        other = "coarsen" if asked.coarsen is not None else "⟨missing='apart'⟩"
        raise PolicyError(f"shards and {other} both cut the table in parts; leave one of them out")
    return {"max_average_risk": risk, "max_suppressed": share, "shards": shards}


_INSTEAD = {"dates": "publish the year alone", "decimal": "write its numbers as 1234.5"}


def limits_of_columns(asked: Any) -> dict[str, dict[str, float]]:
    """The top and bottom limits of columns as plain numbers; asked is a ``Policy``.

    Raises PolicyError for a limit that is no number, and for columns and requests that can't have limits.
    """
    found: dict[str, dict[str, float]] = {}
    for what in ("top", "bottom"):
        found[what] = {}
        for name, limit in getattr(asked, what).items():
            says = "a limit is a number, of dates that of a year; it and all beyond are published as one value"
            held = number(f"{what}[{name!r}]", limit, says, math.isfinite)
            found[what][name] = int(held) if held == int(held) else held
    for name in {**found["top"], **found["bottom"]}:
        low, high = found["bottom"].get(name, -math.inf), found["top"].get(name, math.inf)
        if low >= high:
            raise PolicyError(
                f"⟨bottom[{name!r}] = {low:g}⟩ is not below ⟨top[{name!r}] = {high:g}⟩; correct one of them"
            )
        noted = next((setting for setting in ("dates", "decimal") if name in getattr(asked, setting)), None)
        if noted is not None:
            raise PolicyError(
                f"column {name!r} is in ⟨{noted}⟩, and only plain numbers have limits; {_INSTEAD[noted]} and take it "
                f"out of ⟨{noted}⟩, or out of ⟨top⟩ and ⟨bottom⟩"
            )
        source = asked.hierarchies.get(name)
        other = isinstance(source, Hierarchy) and source.kind not in ("rows", "stars", "intervals")
        if other or (is_built(source) and source != "stars" and not source.startswith("intervals:")):
            raise PolicyError(
                f"column {name!r} has limits, and of built hierarchies only intervals:5,10 and the like have a class "
                "for the values beyond one; take these, or a file with a row for them, such as >=90, or publish ranges"
            )
    if any(found.values()) and (asked.population is not None or asked.population_weights is not None):
        raise PolicyError(
            "⟨top⟩ and ⟨bottom⟩ change values before anything is counted, and a population is counted by the values "
            "that people have; leave one of them out"
        )
    return found


def with_limits(ncp: float, shown: Mapping[str, Mapping[str, float]], rows: int, columns: int) -> dict[str, float]:
    """An upper bound of the NCP if values beyond a limit count as lost; {} if no column has a limit.

    shown  for each column, the number of rows that show the limits, "rows_bottom" and "rows_top", alone or in a range,
           and the shares of the span "below" and "above" them
    """
    if not shown:
        return {}
    lost = sum(held["rows_bottom"] * held["below"] + held["rows_top"] * held["above"] for held in shown.values())
    return {"ncp_with_limits": ncp + lost / max(rows * columns, 1)}


def limit_words(limits: Mapping[str, str], counted: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A sentence for each column with limits: the number of values that reach them.

    limits  column -> its limits, such as ``<=18 >=90``

    Only the record has the shares beyond the limits, because they reveal the lowest and the highest value.
    """
    found = []
    for name, notation in limits.items():
        many = [int(counted[name]["bottom" if text[0] == "<" else "top"]) for text in notation.split()]
        parts = [
            f"{several(n, 'value')} {'is' if n == 1 else 'are'} {text}"
            for n, text in zip(many, notation.split(), strict=True)
        ]
        found.append(
            f"column {name!r} was coded before anything was counted: {', '.join(parts)}; what lies beyond a limit "
            "counts as lost"
        )
    return found


def minimality_of(asked: Any) -> dict[str, Any]:
    """The largest chance of inferring a person's value, as a plain number; asked is a ``Policy``.

    Raises PolicyError for an impossible value, and for every setting with which the theorem doesn't hold.
    """
    if asked.minimality is None:
        return {}
    share = number("minimality", asked.minimality, "a share above 0 and below 1", lambda x: 0 < x < 1)
    if not asked.sensitive:
        raise PolicyError("minimality is about the values of sensitive columns; name one with ⟨sensitive=[...]⟩")
    known = asked.population is not None or asked.population_weights is not None
    beside = {
        "⟨publish='centers'⟩": asked.publish == "centers",
        "⟨person=⟩ or ⟨household=⟩, whose rows are not dealt one by one": bool(asked.units),
        "a population": known,
        "coordinates": asked.coordinates is not None,
        "global_recoding": asked.global_recoding,
        "coarsen": asked.coarsen is not None,
        "⟨max_level⟩, above which a merger with decoys may end": bool(asked.max_level),
        "max_average_risk": asked.max_average_risk is not None,
        "⟨missing='apart'⟩": asked.missing == "apart",
        "shards": asked.shards is not None,
        "⟨keep_order⟩, with which the place of a row tells whose it is": bool(asked.keep_order),
        f"⟨method={asked.method!r}⟩, since it has a method of its own": asked.method != "auto",
    }
    for what, there in beside.items():
        if there:
            raise PolicyError(f"⟨minimality={share:g}⟩ is not proved with {what}; leave one of them out")
    return {"minimality": share}


STARS = (
    "*",
    "hidden",
    "suppressed",
    "withheld",
)  # texts of a suppressed value, in the order in which they are proposed


def free_star(held: Iterable[str]) -> str:
    """A text of a suppressed value that is none of these values."""
    taken = set(held)
    return next(text for text in (*STARS, *(f"hidden {i}" for i in range(len(taken) + 1))) if text not in taken)


def refuse_stars(asked: Any, texts: Mapping[str, Sequence[str | None]]) -> None:
    """InputError with the name of a column that contains the text of a star; asked is a ``Policy``."""
    for name, values in texts.items():
        if asked.star in values:
            raise InputError(
                f"column {name!r} holds the value {asked.star!r}, which is how a suppressed value is written; "
                f"choose another text, such as ⟨star={free_star(t for held in texts.values() for t in held if t)!r}⟩"
            )
