"""The conditions on groups of the other problems, such as regions or clusters: one table for each problem.

An entry is the annotation of a keyword, as in ``settings``. Each entry defines the option of the command line, the
argument of the problem's function, the line on the certificate, the sentence in the report, and the question of
``prove``.
"""

# annotations are not deferred in this module, because the tables are built from them
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, get_type_hints

from shoal.model.settings import Setting, kind_of

Read = Literal["texts", "says", "table", "counts", "maxima", "distance", "plain"]


class Condition(NamedTuple):
    """A condition on the groups of a problem other than tables: one entry of the problem's table.

    setting  section, text, default, option, and place on the certificate, as for a setting of a policy
    read     how the value is converted for the function that solves the problem, such as ``shoal.regions.merge``:
             "texts" or "says" (yes or no) of a column, "table" of numbers or "counts" of several columns, "maxima" of
             sums; unchanged, without a column: "distance", which needs the centers of areas, and "plain"
    keyword  of that function, by default the entry's name; "" if it doesn't influence the groups
    key      on the certificate, by default the entry's name
    sentence in the report: what the condition means for every {group}, by its {value}, and by {name} if it has several;
    ""
             if the table of the request states it
    """

    setting: Setting
    read: Read
    keyword: str = ""
    key: str = ""
    sentence: str = ""

    @property
    def names_columns(self) -> bool:
        """Whether the value is one or several column names."""
        return self.read not in ("distance", "plain")


def asked(
    section: str,
    help: str,
    read: Read = "plain",
    *,
    keyword: str | None = None,
    key: str = "",
    sentence: str = "",
    **more: Any,
) -> Any:
    """An entry of a table, which ``_conditions`` completes."""
    return Setting(section, help, **more), read, keyword, key, sentence


UNMIXED = "No {group} mixes values of {value}."
VALUES = "The sensitive values are those of {value}."
SHARE = "At most one in {value:g} of a {group}'s records share a sensitive value."
WIDTH = "No {group} is wider than {value:g}."


class AreaConditions(NamedTuple):
    """Conditions on regions other than their thresholds, by names of columns."""

    boundary: Annotated[
        str | None,
        asked(
            "Columns",
            "Column such as state: no region mixes its values.",
            "texts",
            sentence=UNMIXED,
        ),
    ] = None
    soft_boundary: Annotated[
        str | None,
        asked(
            "Columns",
            "Column that a region mixes only to include areas too light for a region of their own.",
            "texts",
            sentence="A {group} mixes values of {value} only where it must.",
        ),
    ] = None
    fixed: Annotated[
        str | None,
        asked(
            "Columns",
            "Column: areas with the same value stay together.",
            "texts",
            sentence="What has the same value of {value} stays together.",
        ),
    ] = None
    apart: Annotated[
        str | None,
        asked(
            "Columns",
            "Column: areas with the same value share no region.",
            "texts",
            sentence="What has the same value of {value} shares no {group}.",
        ),
    ] = None
    at_most: Annotated[
        Mapping[str, int | tuple[int, ...]],
        asked(
            "Request",
            "COLUMN=VALUE: largest sum of a region; areas=VALUE counts areas. Repeat for several; with --levels "
            "COLUMN=VALUE,VALUE gives each level its own.",
            "maxima",
            sentence="No {group} has more than {value:,} {name}.",
        ),
    ] = MappingProxyType({})
    sensitive: Annotated[
        Sequence[str],
        asked(
            "Columns",
            "Columns that count sensitive values, separated by commas; needs --l.",
            "counts",
            sentence=VALUES,
        ),
    ] = ()
    l: Annotated[
        int, asked("Request", "In each region no sensitive value has more than 1/l of the records.", sentence=SHARE)
    ] = 1
    similar: Annotated[
        Sequence[str],
        asked("Columns", "Columns of numbers in which a region's areas are similar, separated by commas.", "table"),
    ] = ()
    regions: Annotated[
        int | tuple[int, ...] | None,
        asked(
            "Request", "Exactly this many regions, not as many as possible; with --levels, one number for each: 100,20."
        ),
    ] = None
    max_diameter: Annotated[
        float | None,
        asked(
            "Request",
            "Largest distance between centers of areas in a region, in km or the plane's units.",
            "distance",
            sentence=WIDTH,
        ),
    ] = None
    water: Annotated[
        str | None,
        asked(
            "Columns",
            "Column: areas with yes, true, or 1 connect no others, and join a neighboring region.",
            "says",
            stated="asked",
        ),
    ] = None
    sums: Annotated[
        Sequence[str],
        asked(
            "Columns",
            "Columns to sum over each region, separated by commas.",
            "table",
            flag="--sum",
            stated="asked",
            keyword="",
            key="sum",
        ),
    ] = ()
    means: Annotated[
        Sequence[str],
        asked(
            "Columns",
            "Columns to average over each region by the first weight, separated by commas.",
            "table",
            flag="--mean",
            stated="asked",
            keyword="",
            key="mean",
        ),
    ] = ()


class TileConditions(NamedTuple):
    """Conditions on tiles other than k, and how tiles are published, by names of columns."""

    boundary: Annotated[
        str | None,
        asked("Columns", "Column such as state: no tile mixes its values.", "texts", sentence=UNMIXED),
    ] = None
    sensitive: Annotated[
        str | None,
        asked("Columns", "Sensitive column; with --l, every tile is diverse in it.", "texts", sentence=VALUES),
    ] = None
    person: Annotated[str | None, asked("Columns", "Column that identifies persons: k counts persons.", "texts")] = None
    household: Annotated[
        str | None, asked("Columns", "Column that identifies households: k counts households.", "texts")
    ] = None
    l: Annotated[
        float | None,
        asked("Request", "At most 1/l of a tile's records share a sensitive value.", sentence=SHARE),
    ] = None
    distinct_l: Annotated[int | None, asked("Request", "Minimum number of different sensitive values in a tile.")] = (
        None
    )
    max_width: Annotated[
        float | None,
        asked(
            "Request",
            "Longest side of a tile, in km for degrees, otherwise in units of the coordinates.",
            sentence="No side of a {group} is longer than {value:g}.",
        ),
    ] = None
    grid: Annotated[float | None, asked("Release", "All sides are multiples of this, in the coordinates' unit.")] = None
    extent: Annotated[
        str | None,
        asked(
            "Release",
            "plane: tiles cover it, some without an end; data: tiles end near their points.",
            words=("plane", "data"),
        ),
    ] = None
    center: Annotated[
        str,
        asked("Release", "mean of a tile's points (default), or draw: a random place in it.", words=("mean", "draw")),
    ] = "mean"
    sparse: Annotated[
        str,
        asked("Release", "Records that fit no tile: refuse (default), or leave-out.", words=("refuse", "leave-out")),
    ] = "refuse"
    seed: Annotated[
        int | None, asked("Search", "Seed of --center draw. It never fixes the row order.", stated="never")
    ] = None


class GroupConditions(TypedDict, total=False):
    """Conditions on groups of labels and on intervals."""

    count: Annotated[
        str | None,
        asked(
            "Columns",
            "Column with the number of records of each line; by default, a line is one record.",
            "counts",
            keyword="",
        ),
    ]
    k: Annotated[int, asked("Request", "Minimum number of records in a group.")]


class LabelConditions(GroupConditions, total=False):
    """Conditions on groups of labels."""

    objective: Annotated[
        str,
        asked(
            "Search",
            "max (default): the largest group; count: most groups; squares: squared sizes.",
            words=("max", "count", "squares"),
        ),
    ]


class IntervalConditions(GroupConditions, total=False):
    """Conditions on intervals."""

    objective: Annotated[
        str, asked("Search", "max (default), count, squares or range.", words=("max", "count", "squares", "range"))
    ]


class ClusterConditions(TypedDict, total=False):
    """Conditions on clusters."""

    r: Annotated[int, asked("Request", "Minimum number of records in a cluster.")]
    epsilon: Annotated[float, asked("Request", "Share of the records that may be left out; none by default.")]
    sensitive: Annotated[
        Sequence[str],
        asked("Columns", "Columns published as multisets per cluster.", "texts", sentence=VALUES),
    ]
    l: Annotated[int, asked("Request", "At most 1/l of a cluster share a sensitive value.", sentence=SHARE)]
    distinct_l: Annotated[int, asked("Request", "Minimum number of sensitive values in a cluster.")]


class GatherConditions(ClusterConditions, total=False):
    """Conditions on clusters of minimum radius."""

    max_clusters: Annotated[int, asked("Request", "At most this many clusters.")]


class CellularConditions(ClusterConditions, total=False):
    """Conditions on clusters of minimum sum of size times radius."""

    setup_cost: Annotated[float, asked("Request", "Cost of each cluster.", keyword="setup_costs")]
    max_diameter: Annotated[float, asked("Request", "Largest diameter of a cluster.", sentence=WIDTH)]


def _conditions(kind: Any) -> dict[str, Condition]:
    """The completed entries of a table, by name."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        ((setting, read, keyword, key, sentence),) = hint.__metadata__
        written, values = kind_of(hint.__origin__)
        default = getattr(kind, "_field_defaults", {}).get(name)
        setting = setting._replace(name=name, kind=written, values=values, default=default)
        found[name] = Condition(setting, read, name if keyword is None else keyword, key or name, sentence)
    return found


AREA_CONDITIONS, TILE_CONDITIONS = _conditions(AreaConditions), _conditions(TileConditions)
LABEL_CONDITIONS, INTERVAL_CONDITIONS = _conditions(LabelConditions), _conditions(IntervalConditions)
GATHER_CONDITIONS, CELLULAR_CONDITIONS = _conditions(GatherConditions), _conditions(CellularConditions)
CONDITIONS: Mapping[str, Mapping[str, Condition]] = {
    "regions": AREA_CONDITIONS,
    "tiles": TILE_CONDITIONS,
    "labels": LABEL_CONDITIONS,
    "intervals": INTERVAL_CONDITIONS,
    "gather": GATHER_CONDITIONS,
    "cellular": CELLULAR_CONDITIONS,
}
