"""The conditions on groups of the other problems, such as regions or clusters: one table for each problem.

Each entry defines the option of the command line, the argument of the problem's function, the line on the certificate,
the sentence in the report, and the question of ``prove``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from shoal.errors import InputError
from shoal.model.settings import Setting, kind_of

Read = Literal["texts", "says", "table", "counts", "maxima", "distance", "plain"]


class Condition(NamedTuple):
    """A condition on the groups of a problem other than tables: one entry of the problem's table.

    setting  name, section, text, default, option, and place on the certificate, as for a setting of a policy
    read     how the value is converted for the function that solves the problem, such as ``shoal.regions.merge``:
             "texts" or "says" (yes or no) of a column, "table" of numbers or "counts" of several columns, "maxima" of
             sums; unchanged, without a column: "distance", which needs the centers of areas, and "plain"
    keyword  of that function, by default the entry's name; "" if it doesn't influence the groups
    key      on the certificate, by default the entry's name
    sentence in the report: what the condition means for every {group}, by its {value}, and by {name} if it has several;
             "" if the table of the request states it
    """

    setting: Setting
    read: Read
    keyword: str
    key: str
    sentence: str

    @property
    def names_columns(self) -> bool:
        """Whether the value is one or several column names."""
        return self.read not in ("distance", "plain")


def asked(
    name: str,
    kind: Any,
    section: str,
    help: str,
    read: Read = "plain",
    *,
    keyword: str | None = None,
    key: str = "",
    sentence: str = "",
    **more: Any,
) -> Condition:
    """An entry of a table. kind: the type of its values; more: further fields of its ``Setting``."""
    written, values = kind_of(kind)
    setting = Setting(section, help, kind=written, values=values, name=name, **more)
    return Condition(setting, read, name if keyword is None else keyword, key or name, sentence)


def _table(*entries: Condition) -> dict[str, Condition]:
    return {entry.setting.name: entry for entry in entries}


UNMIXED = "No {group} mixes values of {value}."
VALUES = "The sensitive values are those of {value}."
SHARE = "At most one in {value:g} of a {group}'s records share a sensitive value."
WIDTH = "No {group} is wider than {value:g}."

AREA_CONDITIONS = _table(  # conditions on regions other than their thresholds
    asked("boundary", str, "Columns", "Column such as state: no region mixes its values.", "texts", sentence=UNMIXED),
    asked(
        "soft_boundary", str, "Columns",
        "Column that a region mixes only to include areas too light for a region of their own.", "texts",
        sentence="A {group} mixes values of {value} only where it must.",
    ),
    asked(
        "fixed", str, "Columns", "Column: areas with the same value stay together.", "texts",
        sentence="What has the same value of {value} stays together.",
    ),
    asked(
        "apart", str, "Columns", "Column: areas with the same value share no region.", "texts",
        sentence="What has the same value of {value} shares no {group}.",
    ),
    asked(
        "at_most", Mapping[str, int | tuple[int, ...]], "Request",
        "COLUMN=VALUE: largest sum of a region; areas=VALUE counts areas. Repeat for several; with --levels "
        "COLUMN=VALUE,VALUE gives each level its own.",
        "maxima", default={}, sentence="No {group} has more than {value:,} {name}.",
    ),
    asked(
        "sensitive", Sequence[str], "Columns",
        "Columns that count sensitive values, separated by commas; needs --l.", "counts", default=(), sentence=VALUES,
    ),
    asked(
        "l", int, "Request", "In each region no sensitive value has more than 1/l of the records.", default=1,
        sentence=SHARE,
    ),
    asked(
        "similar", Sequence[str], "Columns",
        "Columns of numbers in which a region's areas are similar, separated by commas.", "table", default=(),
    ),
    asked(
        "regions", int | tuple[int, ...], "Request",
        "Exactly this many regions, not as many as possible; with --levels, one number for each: 100,20.",
    ),
    asked(
        "max_diameter", float, "Request",
        "Largest distance between centers of areas in a region, in km or the plane's units.", "distance",
        sentence=WIDTH,
    ),
    asked(
        "water", str, "Columns",
        "Column: areas with yes, true, or 1 connect no others, and join a neighboring region.", "says",
        stated="asked",
    ),
    asked(
        "sums", Sequence[str], "Columns", "Columns to sum over each region, separated by commas.", "table",
        default=(), flag="--sum", stated="asked", keyword="", key="sum",
    ),
    asked(
        "means", Sequence[str], "Columns",
        "Columns to average over each region by the first weight, separated by commas.", "table",
        default=(), flag="--mean", stated="asked", keyword="", key="mean",
    ),
)  # fmt: skip

TILE_CONDITIONS = _table(  # conditions on tiles other than k, and how tiles are published
    asked("boundary", str, "Columns", "Column such as state: no tile mixes its values.", "texts", sentence=UNMIXED),
    asked(
        "sensitive", str, "Columns", "Sensitive column; with --l, every tile is diverse in it.", "texts",
        sentence=VALUES,
    ),
    asked("person", str, "Columns", "Column that identifies persons: k counts persons.", "texts"),
    asked("household", str, "Columns", "Column that identifies households: k counts households.", "texts"),
    asked("l", float, "Request", "At most 1/l of a tile's records share a sensitive value.", sentence=SHARE),
    asked("distinct_l", int, "Request", "Minimum number of different sensitive values in a tile."),
    asked(
        "max_width", float, "Request",
        "Longest side of a tile, in km for degrees, otherwise in units of the coordinates.",
        sentence="No side of a {group} is longer than {value:g}.",
    ),
    asked("grid", float, "Release", "All sides are multiples of this, in the coordinates' unit."),
    asked(
        "extent", str, "Release", "plane: tiles cover it, some without an end; data: tiles end near their points.",
        words=("plane", "data"),
    ),
    asked(
        "center", str, "Release", "mean of a tile's points (default), or draw: a random place in it.",
        default="mean", words=("mean", "draw"),
    ),
    asked(
        "sparse", str, "Release", "Records that fit no tile: refuse (default), or leave-out.",
        default="refuse", words=("refuse", "leave-out"),
    ),
    asked("seed", int, "Search", "Seed of --center draw. It never fixes the row order.", stated="never"),
)  # fmt: skip

_GROUPS = (  # conditions on groups of labels, and on intervals
    asked(
        "count", str, "Columns", "Column with the number of records of each line; by default, a line is one record.",
        "counts", keyword="",
    ),
    asked("k", int, "Request", "Minimum number of records in a group."),
)  # fmt: skip
LABEL_CONDITIONS = _table(
    *_GROUPS,
    asked(
        "objective", str, "Search", "max (default): the largest group; count: most groups; squares: squared sizes.",
        words=("max", "count", "squares"),
    ),
)  # fmt: skip
INTERVAL_CONDITIONS = _table(
    *_GROUPS,
    asked(
        "objective", str, "Search", "max (default), count, squares or range.",
        words=("max", "count", "squares", "range"),
    ),
)  # fmt: skip

_CLUSTERS = (
    asked("r", int, "Request", "Minimum number of records in a cluster."),
    asked("epsilon", float, "Request", "Share of the records that may be left out; none by default."),
    asked(
        "sensitive", Sequence[str], "Columns", "Columns published as multisets per cluster.", "texts", sentence=VALUES
    ),
    asked("l", int, "Request", "At most 1/l of a cluster share a sensitive value.", sentence=SHARE),
    asked("distinct_l", int, "Request", "Minimum number of sensitive values in a cluster."),
)
GATHER_CONDITIONS = _table(*_CLUSTERS, asked("max_clusters", int, "Request", "At most this many clusters."))
CELLULAR_CONDITIONS = _table(
    *_CLUSTERS,
    asked("setup_cost", float, "Request", "Cost of each cluster.", keyword="setup_costs"),
    asked("max_diameter", float, "Request", "Largest diameter of a cluster.", sentence=WIDTH),
)

CONDITIONS: Mapping[str, Mapping[str, Condition]] = {
    "regions": AREA_CONDITIONS,
    "tiles": TILE_CONDITIONS,
    "labels": LABEL_CONDITIONS,
    "intervals": INTERVAL_CONDITIONS,
    "gather": GATHER_CONDITIONS,
    "cellular": CELLULAR_CONDITIONS,
}


def complete(table: Mapping[str, Condition], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every condition of a table: the given one, otherwise its default."""
    return {name: given.get(name, entry.setting.default) for name, entry in table.items()}


Form = Any  # see ``misfit``


class Each(NamedTuple):
    """The form of an object with any names: each of its values has this form."""

    form: Form


def is_text(held: Any) -> bool:
    """Whether a value of JSON is a text."""
    return isinstance(held, str)


def is_flag(held: Any) -> bool:
    """Whether it is true or false."""
    return isinstance(held, bool)


def is_whole(held: Any) -> bool:
    """Whether it is a whole number from 0."""
    return type(held) is int and held >= 0


def is_positive(held: Any) -> bool:
    """Whether it is a whole number from 1."""
    return type(held) is int and held >= 1


def is_number(held: Any) -> bool:
    """Whether it is a number from 0, and finite."""
    return type(held) in (int, float) and 0 <= held < math.inf


def is_null(held: Any) -> bool:
    """Whether it is null."""
    return held is None


class Unknown(str):
    """The name of an entry that has no form."""


def misfit(held: Any, form: Form, name: str = "") -> str | None:
    """The name of the first entry of a value of JSON that has another form, is missing, or is ``Unknown``; None: all
    fit.

    form  a function of the value; a tuple of forms, of which one fits; a list of one form, for every item; ``Each``; or
          a mapping from names to forms. An object has all these names and no others; it may lack "name?"

    O(entries).
    """
    if callable(form):
        return None if form(held) else name
    if isinstance(form, tuple) and not isinstance(form, Each):
        odd = [misfit(held, one, name) for one in form]
        return None if None in odd else next((o for o in odd if isinstance(o, Unknown)), name)
    parts: list[tuple[Any, Form, str]]
    if isinstance(form, list):
        if not isinstance(held, list):
            return name
        parts = [(x, form[0], name) for x in held]
    elif not isinstance(held, dict):
        return name
    elif isinstance(form, Each):
        parts = [(x, form.form, n) for n, x in held.items()]
    else:
        known = {n.removesuffix("?"): own for n, own in form.items()}
        for lacking in (n for n in form if n not in held and not n.endswith("?")):
            return lacking
        for unknown in (n for n in held if n not in known):
            return Unknown(unknown)
        parts = [(x, known[n], n) for n, x in held.items()]
    return next((o for x, own, n in parts if (o := misfit(x, own, n)) is not None), None)


def refuse_misfit(odd: str | None, what: str, kind: str) -> None:
    """InputError for the entry that ``misfit`` names. what: "certificate file" or "record", of this kind."""
    if isinstance(odd, Unknown):
        raise InputError(f"the {what} holds {odd!r}, which no {what.removesuffix(' file')} of {kind} has")
    if odd is not None:
        raise InputError(f"the {what} lacks {odd!r}, or states it in a wrong form")


def is_above(held: Any) -> bool:
    """Whether it is a number above 0, and finite."""
    return is_number(held) and held > 0


def _pair(form: Form) -> Form:
    return lambda held: misfit(held, [form]) is None and len(held) == 2


MAYBE = (is_text, is_null)  # a column, or none
_BY_KIND: dict[str, Form] = {
    "text": MAYBE, "names": [is_text], "number": (is_number, is_null), "whole": (is_whole, is_null),
    "levels": (is_positive, is_null), "mapping": Each(is_number),
}  # fmt: skip
_NUMBERED = {
    "name": is_text,
    "columns": [is_text],
    "weight": is_above,
    "unit": is_text,
    "notation?": is_text,
    "period?": is_number,
}
_PLACED = {**_NUMBERED, "geometry": is_text}
_FEATURES: dict[str, Form] = {  # of clusters, by their kind
    "category": {"name": is_text, "columns": [is_text], "weight": is_above, "levels": is_whole},
    "number": _NUMBERED,
    "date": _NUMBERED,
    "place": _PLACED,
    "coded place": _PLACED,
}
_CLUSTERED: dict[str, Form] = {
    "problem": is_text, "columns": [is_text], "place": (_pair(is_text), is_null), "features": lambda held: bool(held),
    "norm": is_text, "unit": is_text, "center": is_text, "hierarchies": Each({"source": is_text, "sha256": MAYBE}),
    "eligible": is_flag, "r": is_positive, "epsilon": is_number, "l": [is_number], "distinct_l": [is_whole],
}  # fmt: skip
_JOINED = {"joined": [[is_text]], "regions": (is_positive, is_null), "at_most": Each(is_number), "k": [is_positive]}
_DRAWN = {
    "shape_id": MAYBE, "coordinates": MAYBE, "layer?": is_text, "tolerance": (is_number, is_null), "unit": MAYBE,
    "centers": _pair(MAYBE),
}  # fmt: skip
OTHERS: dict[str, dict[str, Form]] = {  # entries of a request besides its conditions, and conditions of another form
    "labels": {"column": MAYBE, "k": is_positive},
    "intervals": {"column": MAYBE, "k": is_positive, "notation?": is_text},
    "regions": {
        "column": MAYBE, "source": MAYBE, "target": MAYBE, "drawn": _DRAWN, "weight": [is_text], "objective": is_text,
        "geographic": is_flag, "decimal?": Each(is_text), "l": is_positive, **_JOINED, "levels?": [_JOINED],
    },
    "tiles": {
        "x": is_text, "y": is_text, "weight": MAYBE, "k": is_positive, "objective": is_text, "coordinates": is_text,
        "seam": (is_null, lambda held: type(held) in (int, float) and -360 <= held <= 360),
        "identifiers?": [is_text], "insensitive?": [is_text], "decimal?": Each(is_text),
    },
    "gather": _CLUSTERED,
    "cellular": {
        **_CLUSTERED, "max_diameter": (is_above, is_null), "setup_cost": (is_number, lambda held: held == "per record"),
    },
}  # fmt: skip


def request_form(kind: str) -> dict[str, Form]:
    """The form of the request of a problem other than tables on its certificate, for ``misfit``."""
    entries = CONDITIONS[kind].values()
    stated = {e.key + "?" * (e.setting.stated == "asked"): _BY_KIND[e.setting.kind] for e in entries
              if e.setting.stated != "never"}  # fmt: skip
    return {**stated, **OTHERS[kind]}


def misstated(kind: str, asked: Any, private: bool = False) -> str | None:
    """The first name in the request of a problem other than tables that is missing, or whose value has another form
    than any request has.

    private  whether it is the request of a record, which has the scales of features
    None for a problem without an entry in ``CONDITIONS``, which has no form here.
    """
    if kind not in CONDITIONS:
        return None
    odd = misfit(asked, request_form(kind), "parameters")
    if odd is not None or "features" not in asked:
        return odd
    for feature in asked["features"] if isinstance(asked["features"], list) else [None]:
        kind_of_it = feature.get("kind") if isinstance(feature, dict) else None
        own = _FEATURES.get(kind_of_it) if isinstance(kind_of_it, str) else None
        if own is None or misfit(feature, own | {"kind": is_text} | _scaled(own, private)) is not None:
            return "features"
    return None


def _scaled(form: Mapping[str, Form], private: bool) -> dict[str, Form]:
    return {"scale": is_number} if private and "unit" in form else {}
