"""What groups of the other problems have to keep, such as regions or clusters: a table for each problem.

An entry is the annotation of a keyword, as in ``settings``.  From it derive the option of the command line, what the
problem's function is asked, the line on the certificate, and the question of ``prove``.
"""

# annotations are not deferred here: the tables are read off them
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, get_type_hints

from shoal.model.settings import Setting, kind_of


class Condition(NamedTuple):
    """What groups of a problem besides tables keep, such as regions or clusters: an entry of the problem's table.

    setting  section, words, default, option and place on the certificate, as of a policy's setting
    keyword  of the function that solves the problem, such as ``shoal.regions.merge``; "" where it shapes no group
    read     what the value becomes there: "texts" or "says" (yes or no) of a column, "table" of numbers or "counts" of
             several columns, "maxima" of sums; "plain": itself, for it names no column
    key      on the certificate, where that is not its name
    """

    setting: Setting
    keyword: str
    read: Literal["texts", "says", "table", "counts", "maxima", "plain"]
    key: str = ""


class AreaConditions(NamedTuple):
    """What regions of areas keep besides their thresholds, by names of columns."""

    boundary: Annotated[
        str | None,
        Condition(Setting("Columns", "Column such as state: no region mixes its values."), "boundaries", "texts"),
    ] = None
    soft_boundary: Annotated[
        str | None,
        Condition(
            Setting("Columns", "Column that a region mixes only to include areas too light for a region of their own."),
            "soft_boundaries", "texts",
        ),
    ] = None  # fmt: skip
    fixed: Annotated[
        str | None, Condition(Setting("Columns", "Column: areas with the same value stay together."), "fixed", "texts")
    ] = None
    apart: Annotated[
        str | None,
        Condition(Setting("Columns", "Column: areas with the same value share no region."), "apart", "texts"),
    ] = None
    at_most: Annotated[
        Mapping[str, int | tuple[int, ...]],
        Condition(
            Setting(
                "Request",
                "COLUMN=VALUE: largest sum of a region; areas=VALUE counts areas. Repeat for several; with --levels "
                "COLUMN=VALUE,VALUE gives each level its own.",
            ),
            "at_most", "maxima",
        ),
    ] = MappingProxyType({})  # fmt: skip
    sensitive: Annotated[
        Sequence[str],
        Condition(
            Setting("Columns", "Columns that count sensitive values, separated by commas; needs --l."),
            "sensitive", "counts",
        ),
    ] = ()  # fmt: skip
    l: Annotated[
        int,
        Condition(
            Setting("Request", "In each region no sensitive value has more than 1/l of the records."), "l", "plain"
        ),
    ] = 1
    similar: Annotated[
        Sequence[str],
        Condition(
            Setting("Columns", "Columns of numbers in which a region's areas are similar, separated by commas."),
            "similar", "table",
        ),
    ] = ()  # fmt: skip
    regions: Annotated[
        int | tuple[int, ...] | None,
        Condition(
            Setting(
                "Request",
                "Exactly this many regions, not as many as possible; with --levels, one number for each: 100,20.",
            ),
            "regions", "plain",
        ),
    ] = None  # fmt: skip
    max_diameter: Annotated[
        float | None,
        Condition(
            Setting("Request", "Largest distance between centers of areas in a region, in km or the plane's units."),
            "max_diameter", "plain",
        ),
    ] = None  # fmt: skip
    water: Annotated[
        str | None,
        Condition(
            Setting(
                "Columns",
                "Column: areas with yes, true, or 1 connect no others, and join a neighboring region.",
                stated="asked",
            ),
            "water", "says",
        ),
    ] = None  # fmt: skip
    sums: Annotated[
        Sequence[str],
        Condition(
            Setting(
                "Columns", "Columns to sum over each region, separated by commas.",
                flag="--sum", stated="asked",
            ),
            "", "table", "sum",
        ),
    ] = ()  # fmt: skip
    means: Annotated[
        Sequence[str],
        Condition(
            Setting(
                "Columns", "Columns to average over each region by the first weight, separated by commas.",
                flag="--mean", stated="asked",
            ),
            "", "table", "mean",
        ),
    ] = ()  # fmt: skip


class TileConditions(NamedTuple):
    """What tiles keep besides k, and how they are published, by names of columns."""

    boundary: Annotated[
        str | None,
        Condition(Setting("Columns", "Column such as state: no tile mixes its values."), "boundary", "texts"),
    ] = None
    sensitive: Annotated[
        str | None,
        Condition(Setting("Columns", "Sensitive column; with --l, every tile is diverse in it."), "sensitive", "texts"),
    ] = None
    person: Annotated[
        str | None,
        Condition(Setting("Columns", "Column that identifies persons: k counts persons."), "person", "texts"),
    ] = None
    household: Annotated[
        str | None,
        Condition(Setting("Columns", "Column that identifies households: k counts households."), "household", "texts"),
    ] = None
    l: Annotated[
        float | None,
        Condition(Setting("Request", "At most 1/l of a tile's records share a sensitive value."), "l", "plain"),
    ] = None
    distinct_l: Annotated[
        int | None,
        Condition(Setting("Request", "Minimum number of different sensitive values in a tile."), "distinct_l", "plain"),
    ] = None
    max_width: Annotated[
        float | None,
        Condition(
            Setting("Request", "Longest side of a tile, in km for degrees, otherwise in units of the coordinates."),
            "max_width", "plain",
        ),
    ] = None  # fmt: skip
    grid: Annotated[
        float | None,
        Condition(Setting("Release", "All sides are multiples of this, in the coordinates' unit."), "grid", "plain"),
    ] = None
    extent: Annotated[
        str | None,
        Condition(
            Setting(
                "Release", "plane: tiles cover it, some without an end; data: tiles end near their points.",
                words=("plane", "data"),
            ),
            "extent", "plain",
        ),
    ] = None  # fmt: skip
    center: Annotated[
        str,
        Condition(
            Setting(
                "Release", "mean of a tile's points (default), or draw: a random place in it.", words=("mean", "draw")
            ),
            "center", "plain",
        ),
    ] = "mean"  # fmt: skip
    sparse: Annotated[
        str,
        Condition(
            Setting(
                "Release", "Records that fit no tile: refuse (default), or leave-out.", words=("refuse", "leave-out")
            ),
            "sparse", "plain",
        ),
    ] = "refuse"  # fmt: skip
    seed: Annotated[
        int | None,
        Condition(
            Setting("Search", "Seed of --center draw. It never fixes the row order.", stated="never"),
            "seed", "plain",
        ),
    ] = None  # fmt: skip


class GroupConditions(TypedDict, total=False):
    """What groups of labels keep, and intervals."""

    count: Annotated[
        str | None,
        Condition(
            Setting("Columns", "Column with the number of records of each line; by default, a line is one record."),
            "", "counts",
        ),
    ]  # fmt: skip
    k: Annotated[int, Condition(Setting("Request", "Minimum number of records in a group."), "k", "plain")]


class LabelConditions(GroupConditions, total=False):
    """What groups of labels keep."""

    objective: Annotated[
        str,
        Condition(
            Setting(
                "Search", "max (default): the largest group; count: most groups; squares: squared sizes.",
                words=("max", "count", "squares"),
            ),
            "objective", "plain",
        ),
    ]  # fmt: skip


class IntervalConditions(GroupConditions, total=False):
    """What intervals keep."""

    objective: Annotated[
        str,
        Condition(
            Setting("Search", "max (default), count, squares or range.", words=("max", "count", "squares", "range")),
            "objective", "plain",
        ),
    ]  # fmt: skip


class ClusterConditions(TypedDict, total=False):
    """What clusters keep."""

    r: Annotated[int, Condition(Setting("Request", "Minimum number of records in a cluster."), "r", "plain")]
    epsilon: Annotated[
        float, Condition(Setting("Request", "Share of the records that may be left out; none by default."), "epsilon",
                         "plain"),
    ]  # fmt: skip
    sensitive: Annotated[
        Sequence[str],
        Condition(Setting("Columns", "Columns published as multisets per cluster."), "sensitive", "texts"),
    ]
    l: Annotated[int, Condition(Setting("Request", "At most 1/l of a cluster share a sensitive value."), "l", "plain")]
    distinct_l: Annotated[
        int, Condition(Setting("Request", "Minimum number of sensitive values in a cluster."), "distinct_l", "plain")
    ]


class GatherConditions(ClusterConditions, total=False):
    """What clusters of the least radius keep."""

    max_clusters: Annotated[int, Condition(Setting("Request", "At most this many clusters."), "max_clusters", "plain")]


class CellularConditions(ClusterConditions, total=False):
    """What clusters of the least sum of size times radius keep."""

    setup_cost: Annotated[float, Condition(Setting("Request", "Cost of each cluster."), "setup_costs", "plain")]
    max_diameter: Annotated[
        float, Condition(Setting("Request", "Largest diameter of a cluster."), "max_diameter", "plain")
    ]


def _conditions(kind: Any) -> dict[str, Condition]:
    """The entries of a table, each with what follows from its line there."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        (entry,) = hint.__metadata__
        written, values = kind_of(hint.__origin__)
        default = getattr(kind, "_field_defaults", {}).get(name)
        setting = entry.setting._replace(name=name, kind=written, values=values, default=default)
        found[name] = entry._replace(setting=setting, key=entry.key or name)
    return found


AREA_CONDITIONS, TILE_CONDITIONS = _conditions(AreaConditions), _conditions(TileConditions)
LABEL_CONDITIONS, INTERVAL_CONDITIONS = _conditions(LabelConditions), _conditions(IntervalConditions)
GATHER_CONDITIONS, CELLULAR_CONDITIONS = _conditions(GatherConditions), _conditions(CellularConditions)
