"""The settings of a release: tables with an entry for each setting.

An entry is the annotation of a keyword, so that type checkers read the same line. Each entry defines the keyword, the
key of a policy file, the option of the command line with its section, the default, the line on the certificate, whether
verification checks it again, the field of the workbench, and the row in the guide. To add a setting, add an entry here,
the attribute in ``Policy``, and its implementation.

Privacy models and ways to publish have tables of their own with a line each, and so have the other problems
(``conditions``). The module imports nothing heavy, so that the command line starts quickly.
"""

# annotations are not deferred in this module, because the tables are built from them, and deferred ones would be
# compiled at every start
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypedDict, Union, get_args, get_origin, get_type_hints

from shoal.model.rule_books import RULE_BOOKS

Names = Sequence[str] | str
Pair = tuple[float, float] | Sequence[float]
Kind = Literal["names", "mapping", "switch", "whole", "levels", "number", "numbers", "text", "file", "models", "ways"]
EFFORTS = ("fast", "balanced", "thorough")


class AnyModel(Protocol):
    """The protocol of a privacy model for type checkers: see ``shoal.model.privacy``."""

    def words(self) -> str:
        """The condition on every group, as text."""
        ...


class Shorthand(NamedTuple):
    """A keyword that stands for a privacy model.

    file, model  the module and the class of the model
    help         one line of text
    fixed        parameters that the keyword fixes
    kinds        the type of each number that it takes, in the order of its parameters
    """

    file: str
    model: str
    help: str
    fixed: tuple[tuple[str, Any], ...] = ()
    kinds: tuple[type, ...] = ()


class RecodingEntry(NamedTuple):
    """One way to publish.

    file, recoding  the module and the class of the recoding of a column; the judge's counterpart is a module of the
                    same name in ``shoal.judge.recodings``; "" if rows are published unchanged
    words           its description in a report
    """

    file: str
    recoding: str
    words: str

    def load(self) -> Any:
        """The class, a ``shoal.model.recoding.ColumnRecoding``."""
        from importlib import import_module

        return getattr(import_module(f"shoal.model.recoding.{self.file}"), self.recoding)


RECODINGS: dict[str, RecodingEntry] = {
    "stars": RecodingEntry("levels", "Levels", "values hidden as stars"),
    "hierarchy": RecodingEntry("levels", "Levels", "classes of a hierarchy"),
    "ranges": RecodingEntry("ranges", "Ranges", "ranges of numbers and dates, sets of other values"),
    "centers": RecodingEntry("", "", "one real record of each group, for all of its rows"),
}


class Setting(NamedTuple):
    """One entry of the table.

    section   of a command's help: "Columns", "Request", "Release", "Search", or "Files"
    help      its effect in one line, for the option, the workbench, and the guide
    more      further effects, for the guide
    default   its value if none is given
    flag      its option, by default its name with dashes; "" if the command line has none
    meant     the value that a flag without a value stands for
    words     the allowed words, the first is the default; empty if it is not a word
    stated    on the certificate: "always", "asked" (if it is not the default), or "never"
    shown     whether a release shows it, so that verification checks it again
    promised  whether a theorem's guarantee holds for every value; until this is shown, the setting voids the guarantee
    private   whether only the record contains it, because no receiver needs it
    kind, values  the form of its values and the types of its numbers, from the type of the keyword
    name      the keyword
    """

    section: str
    help: str
    more: str = ""
    default: Any = None
    flag: str | None = None
    meant: Any = True
    words: Collection[str] = ()
    stated: str = "always"
    shown: bool = False
    promised: bool = False
    private: bool = False
    kind: Kind = "text"
    values: tuple[type, ...] = ()
    name: str = ""

    @property
    def option(self) -> str:
        """Its long option; "" if the command line has none."""
        return f"--{self.name.replace('_', '-')}" if self.flag is None else self.flag

    def is_stated(self, value: Any) -> bool:
        """Whether the certificate states a value of it."""
        if self.stated != "asked":
            return self.stated == "always"
        # a frame compares its cells, not itself
        return value is not None if self.default is None else bool(value != self.default)


class SizeAndShare(TypedDict, total=False):
    """The two models that ``explore`` varies."""

    k: Annotated[int, Shorthand("size_and_diversity", "KAnonymity", "At least k rows in every group.")]
    l: Annotated[
        int, Shorthand("size_and_diversity", "LDiversity", "At most 1/l of every group share a sensitive value.")
    ]


class OtherModels(TypedDict, total=False):
    """All other models. Each line is a model's keyword, key, option, and type."""

    distinct_l: Annotated[
        int,
        Shorthand("size_and_diversity", "DistinctLDiversity", "At least l different sensitive values in every group."),
    ]
    entropy_l: Annotated[
        float, Shorthand("size_and_diversity", "EntropyLDiversity", "The entropy of every group is at least log l.")
    ]
    recursive_cl: Annotated[
        Pair,
        Shorthand("size_and_diversity", "RecursiveLDiversity", "Recursive (c,l)-diversity, as c,l.", (), (float, int)),
    ]
    alpha_k: Annotated[
        Pair, Shorthand("size_and_diversity", "AlphaKAnonymity", "(alpha,k)-anonymity, as alpha,k.", (), (float, int))
    ]
    t: Annotated[
        float,
        Shorthand("closeness", "TCloseness", "Every group is within t of the table's distribution (equal distance)."),
    ]
    t_ordered: Annotated[
        float,
        Shorthand(
            "closeness", "TCloseness", "The same with the earth mover's distance on the values' order.",
            (("distance", "ordered"),),
        ),
    ]  # fmt: skip
    t_hierarchical: Annotated[
        float,
        Shorthand(
            "closeness", "TCloseness", "The same with the hierarchy of the sensitive column; see --hierarchy.",
            (("distance", "hierarchical"),),
        ),
    ]  # fmt: skip
    beta: Annotated[float, Shorthand("closeness", "BetaLikeness", "Enhanced beta-likeness.")]
    beta_basic: Annotated[float, Shorthand("closeness", "BetaLikeness", "Basic beta-likeness.", (("enhanced", False),))]
    delta: Annotated[
        float, Shorthand("closeness", "DeltaDisclosure", "Delta-disclosure: |log(p / q)| < delta for every value.")
    ]
    simultaneous_l: Annotated[
        int,
        Shorthand(
            "size_and_diversity", "SimultaneousLDiversity",
            "Every row is in l rows that differ in every sensitive column.",
        ),
    ]  # fmt: skip
    k_map: Annotated[
        int, Shorthand("population", "KMap", "Every group fits at least k rows of the population; see --population.")
    ]
    presence: Annotated[
        Pair,
        Shorthand(
            "population", "DeltaPresence", "A group's share of the people it fits, as low,high.", (),
            (float, float),
        ),
    ]  # fmt: skip


class WayAndMethod(TypedDict, total=False):
    """The way to publish and the method, which ``explore`` also varies."""

    publish: Annotated[
        str | Mapping[str, str],
        Setting(
            "Release",
            f"Way to publish: {', '.join(RECODINGS)}; the first by default. column=regions: connected sets of areas.",
            'A mapping such as {"zip": "regions"} needs `areas`; the other columns are then published by '
            "hierarchies, or as value or star.",
            default="stars",
            words=RECODINGS,
            kind="ways",
            promised=True,
        ),
    ]
    method: Annotated[
        str, Setting("Search", "Method of the catalogue; auto by default.", default="auto", promised=True)
    ]


class Preset(TypedDict, total=False):
    """Models as the name of a rule book, or as a list."""

    preset: Annotated[
        str,
        Setting(
            "Request", f"A rule book: {', '.join(RULE_BOOKS)}.",
            "Its model is in force in addition to the others; the guide lists what it leaves open.",
            words=RULE_BOOKS, shown=True, promised=True,
        ),
    ]  # fmt: skip
    privacy: Annotated[
        AnyModel | Sequence[AnyModel | str | Mapping[str, Any]] | str,
        Setting(
            "Request", "Privacy models that every group must meet.",
            "In a policy file, a list of tables, each with the name of its model. k, l, and the other keywords add "
            "theirs. If you copy a policy with another k, it replaces the previous one. On the command line, each "
            "model has an option.",
            default=(), flag="", shown=True, promised=True, kind="models",
        ),
    ]  # fmt: skip


class ModelSettings(SizeAndShare, OtherModels, Preset, total=False):
    """Privacy models by keyword."""


class Measured(TypedDict, total=False):
    """Settings for any table, also for tables that shoal didn't release."""

    quasi_identifiers: Annotated[
        Names,
        Setting(
            "Columns", "Quasi-identifiers: columns that others may know, separated by commas.", "They are recoded.",
            default=(), flag="--quasi", shown=True, promised=True,
        ),
    ]  # fmt: skip
    sensitive: Annotated[
        Names,
        Setting(
            "Columns", "Sensitive columns, separated by commas.", "They are published unchanged.",
            default=(), shown=True, promised=True,
        ),
    ]  # fmt: skip
    person: Annotated[
        str | None,
        Setting(
            "Columns",
            "Column that identifies the person of a row: all models count persons. It is removed.",
            shown=True,
        ),
    ]
    household: Annotated[str | None, Setting("Columns", "The same for the household of a row.", shown=True)]
    population: Annotated[
        Any,
        Setting(
            "Request", "Table from which the rows were drawn, for --k-map and --presence.",
            "A path or a frame with the quasi-identifiers as columns. The journalist's risk uses it too.",
            shown=True, kind="file",
        ),
    ]  # fmt: skip
    population_weights: Annotated[
        str | None,
        Setting(
            "Request", "Column with the number of people that a row represents.",
            "It is removed unless you name it in `insensitive`.", shown=True,
        ),
    ]  # fmt: skip
    hierarchies: Annotated[
        Mapping[str, Any],
        Setting(
            "Release",
            "column=file.csv; or built: column=intervals:5,10, prefixes:4,3, dates:month,year, stars; or from its "
            "counts: column=labels, column=intervals. Repeatable.",
            "In Python, also rows, a nested dict, or a Hierarchy. For a sensitive column, it defines the distances of "
            "its values, for t-closeness by the hierarchical distance.",
            default={}, flag="--hierarchy", promised=True,
        ),
    ]  # fmt: skip
    areas: Annotated[
        Any,
        Setting(
            "Release",
            "The areas of columns published as regions: a table with a row for each area, or polygons.",
            "A path, or what `shoal.engines.geography.read` returns.", stated="asked", kind="file", promised=True,
        ),
    ]  # fmt: skip
    edges: Annotated[
        str | Path | None,
        Setting(
            "Release", "Pairs of neighbors among the areas, a row for each; not needed if the areas are polygons.",
            stated="asked", kind="file", promised=True,
        ),
    ]  # fmt: skip
    region_loss: Annotated[
        str,
        Setting(
            "Release", "Column of the areas by which a region loses, such as land_m2; population by default.",
            "Whole numbers. A region loses its share of their sum; an area by itself loses nothing.",
            default="population", stated="asked", promised=True,
        ),
    ]  # fmt: skip
    max_average_risk: Annotated[
        float | None, Setting("Request", "Highest mean over the rows of 1 / (size of the row's group).", shown=True)
    ]
    dates: Annotated[
        Mapping[str, str],
        Setting(
            "Columns", "column=notation of its dates, such as %d.%m.%Y or %m/%d/%Y. Repeatable.",
            "For texts that are dates: %d is the day, %m the month, %Y the year; %y is a year of two digits, from 1969 "
            "to 2068. They are then ordered as dates, and ranges of them are published in the same notation. Dates as "
            "in 2024-12-31 need no notation.",
            default={}, flag="--date", stated="asked", shown=True, promised=True,
        ),
    ]  # fmt: skip
    decimal: Annotated[
        Mapping[str, str],
        Setting(
            "Columns", "column=decimal mark of its numbers, a comma or a point. Repeatable.",
            "For texts that are numbers: a comma reads 1.234,5, and a point reads 1,234.5; thousands may also be "
            "separated by a blank or an apostrophe. They are then ordered as numbers, and ranges of them are published "
            "in the same notation. Numbers as in 1234.5 need no mark. Tiles of coordinates are written with points.",
            default={}, stated="asked", shown=True, promised=True,
        ),
    ]  # fmt: skip


class OtherSettings(Measured, OtherModels, Preset, total=False):
    """The settings that ``explore`` does not vary."""

    identifiers: Annotated[
        Names, Setting("Columns", "Columns to remove, separated by commas.", default=(), shown=True, promised=True)
    ]
    insensitive: Annotated[
        Names,
        Setting(
            "Columns", "Columns to publish unchanged, even if they single people out.",
            "A column without a role is also published, unless it is a direct identifier or singles people out.",
            default=(), shown=True, promised=True,
        ),
    ]  # fmt: skip
    strict_roles: Annotated[
        bool, Setting("Columns", "Refuse a column without a role.", default=False, stated="asked", promised=True)
    ]
    coordinates: Annotated[
        tuple[str, str] | Sequence[str] | None,
        Setting(
            "Columns", "x,y: two columns of numbers to publish as tiles.",
            "They become one quasi-identifier, `place`; with `publish=\"hierarchy\"`.", promised=True,
        ),
    ]  # fmt: skip
    weights: Annotated[
        Mapping[str, float],
        Setting(
            "Columns", "column=factor of its loss. Repeatable.", "1 by default, from 0.000001 to 1,000,000.",
            default={}, flag="--weight", shown=True,
        ),
    ]  # fmt: skip
    minimality: Annotated[
        float | None,
        Setting(
            "Request",
            "Highest chance with which a reader who knows the method can infer a sensitive value.",
            "Above 0 and below 1. shoal then forms groups without the sensitive values, and merges groups that do not "
            "meet the request with decoys.",
            stated="asked", shown=True,
        ),
    ]  # fmt: skip
    missing: Annotated[
        str,
        Setting(
            "Request",
            "A missing value is a value (category, the default), its row is grouped separately (apart), or it becomes "
            "the most frequent value of its column and counts as lost (filled).",
            default="category", words=("category", "apart", "filled"), shown=True, promised=True,
        ),
    ]  # fmt: skip
    top: Annotated[
        Mapping[str, float],
        Setting(
            "Release", "column=number: it and all above are published as one value, such as >=90. Repeatable.",
            "Top coding, of quasi-identifiers that are numbers, before anything is counted. What lies beyond the limit "
            "counts as lost.", default={}, stated="asked", shown=True, promised=True,
        ),
    ]  # fmt: skip
    bottom: Annotated[
        Mapping[str, float],
        Setting(
            "Release", "column=number: it and all below are published as one value, such as <=18. Repeatable.",
            "Bottom coding, as `top`.", default={}, stated="asked", shown=True, promised=True,
        ),
    ]  # fmt: skip
    max_level: Annotated[Mapping[str, int], Setting("Release", "column=highest level. Repeatable.", default={})]
    range_step: Annotated[
        Mapping[str, float | str],
        Setting(
            "Release", "column=step (dates: days, month, or year) at which ranges end. Repeatable.",
            "Ranges are widened outward to multiples of the step.", default={}, promised=True,
        ),
    ]  # fmt: skip
    global_recoding: Annotated[
        bool, Setting("Release", "One level for each column in the whole table.", default=False, shown=True)
    ]
    coarsen: Annotated[
        str | None,
        Setting(
            "Release", "auto: one level for each column, found by the search, and stars if a group differs there.",
            "With `publish=\"hierarchy\"`.", words=("auto",),
        ),
    ]  # fmt: skip
    max_suppressed: Annotated[
        float,
        Setting(
            "Release", "Share of rows that may be starred completely; 0 by default for global recoding.",
            "Global recoding stars them if the rest then loses less. Other recodings star rows if that loses least; "
            "for them, this is a limit, and 0 is no limit.",
            default=0.0, shown=True,
        ),
    ]  # fmt: skip
    keep_order: Annotated[
        bool,
        Setting(
            "Release", "Keep the order of the rows, which can reveal who is who.",
            "A pandas frame keeps its index too. An index that is more than a numbering of the rows is refused.",
            default=False, promised=True,
        ),
    ]  # fmt: skip
    star: Annotated[
        str, Setting("Release", "Text of a suppressed value; * by default.", default="*", shown=True, promised=True)
    ]
    numeric_stars: Annotated[
        str,
        Setting(
            "Release", "In a frame, a suppressed number is a missing value (null), or its column becomes text (text).",
            default="null", flag="", words=("null", "text"), promised=True,
        ),
    ]  # fmt: skip
    bound: Annotated[
        str,
        Setting(
            "Files", "Omit the proved ratio, which reveals a little about the original.",
            "In Python and in a policy file: `ratio` or `none`.",
            default="ratio", flag="--no-bound", meant="none", words=("ratio", "none"), promised=True,
        ),
    ]  # fmt: skip
    judge: Annotated[
        str,
        Setting(
            "Files",
            "Who counts what was written: this process (here, the default), or the engine that wrote it (engine).",
            "With `engine`, the workers of Spark, or DuckDB, count the parts of a folder; some are counted here again.",
            default="here", words=("here", "engine"), stated="asked", private=True, promised=True,
        ),
    ]  # fmt: skip
    effort: Annotated[
        str | float,
        Setting(
            "Search",
            "How long to search: fast, balanced (default), thorough, or seconds.",
            default="balanced",
            words=EFFORTS,
            promised=True,
        ),
    ]
    shards: Annotated[
        int | None,
        Setting(
            "Search", "Cut the cells of a large table into at most this many shards.",
            "With Spark, the workers search them.", stated="asked",
        ),
    ]  # fmt: skip
    seed: Annotated[
        int | None,
        Setting(
            "Search", "Number that fixes the search, never the row order.", "By default, one is drawn and recorded.",
            private=True, promised=True,
        ),
    ]  # fmt: skip


class Settings(SizeAndShare, WayAndMethod, OtherSettings, total=False):
    """All settings that define what is published."""


class PolicySettings(Settings, total=False):
    """All settings of a policy, including those for reading a file."""

    engine: Annotated[
        str | None,
        Setting(
            "Search", "Engine: polars (default for one file), duckdb (for folders and parts), or spark.",
            stated="never", promised=True,
        ),
    ]  # fmt: skip
    memory: Annotated[
        str | None,
        Setting(
            "Files",
            "Memory that the whole work may take, such as 2GB; DuckDB writes the rest to disk.",
            stated="never",
            promised=True,
        ),
    ]
    threads: Annotated[int | None, Setting("Files", "Threads of DuckDB.", stated="never", promised=True)]
    temporary: Annotated[
        str | Path | None, Setting("Files", "Folder for DuckDB's temporary files.", stated="never", promised=True)
    ]


def kind_of(hint: Any) -> tuple[Kind, tuple[type, ...]]:
    """The form of values of a keyword's type, and the types of its numbers or words."""
    options = [o for o in get_args(hint) if o is not type(None)] if get_origin(hint) in (Union, UnionType) else [hint]
    origins = {get_origin(o) or o for o in options}
    if Mapping in origins:
        held = get_args(options[0])[1]
        types = [get_origin(t) or t for t in get_args(held)] if get_origin(held) in (Union, UnionType) else [held]
        return "mapping", tuple(t for t in types if isinstance(t, type))
    if Sequence in origins:
        return "names", (str,)
    of_types: dict[Kind, set[Any]] = {
        "switch": {bool}, "whole": {int}, "number": {float}, "file": {str, Path}, "levels": {int, tuple}
    }  # fmt: skip
    for kind, own in of_types.items():
        if origins == own:
            return kind, tuple(own)
    return "text", (str,)


def _table() -> tuple[dict[str, Shorthand], dict[str, Setting]]:
    models, entries = {}, {}
    for name, hint in get_type_hints(PolicySettings, include_extras=True).items():
        (entry,) = hint.__metadata__
        if isinstance(entry, Shorthand):
            models[name] = entry if entry.kinds else entry._replace(kinds=(hint.__origin__,))
        else:
            kind, values = kind_of(hint.__origin__) if entry.kind == "text" else (entry.kind, ())
            entries[name] = entry._replace(name=name, kind=kind, values=values)
    return models, entries


SHORTHANDS, SETTINGS = _table()


def entry_of(name: str) -> Setting | None:
    """The entry of a setting or of a model's keyword; None for other names."""
    short = SHORTHANDS.get(name)
    if short is None:
        return SETTINGS.get(name)
    number: Kind = "numbers" if len(short.kinds) > 1 else "whole" if short.kinds[0] is int else "number"
    return Setting("Request", short.help, kind=number, values=short.kinds, name=name, shown=True, promised=True)


# Names of settings in sdcMicro, ARX, anjana, and other tools, in lower case without marks -> name in shoal
_ELSEWHERE = {short.model.lower(): name for name, short in reversed(SHORTHANDS.items())} | {
    "keyvars": "quasi_identifiers", "qi": "quasi_identifiers", "qis": "quasi_identifiers", "qid": "quasi_identifiers",
    "quasiids": "quasi_identifiers", "quasiident": "quasi_identifiers", "numvars": "quasi_identifiers",
    "featurecolumns": "quasi_identifiers", "columns": "quasi_identifiers", "quasiidentifying": "quasi_identifiers",
    "sensiblevar": "sensitive", "sensitiveattributes": "sensitive", "sensatt": "sensitive", "sa": "sensitive",
    "sensitivecolumns": "sensitive", "sensitivecolumn": "sensitive", "ident": "identifiers", "ids": "identifiers",
    "identifying": "identifiers", "delete": "identifiers", "drop": "identifiers", "excludevars": "identifiers",
    "hhid": "household", "weightvar": "population_weights", "researchsubset": "population", "importance": "weights",
    "attributeweight": "weights", "suppressionlimit": "max_suppressed", "supplevel": "max_suppressed",
    "maxoutliers": "max_suppressed", "maximumgeneralization": "max_level",
    "fulldomain": "global_recoding", "globalrecode": "hierarchies", "topcoding": "top", "bottomcoding": "bottom",
    "kanon": "k", "ldiv": "l", "averagerisk": "max_average_risk", "recoding": "publish", "generalization": "publish",
    "seconds": "effort", "maxseconds": "effort", "time": "effort", "timeout": "effort", "timelimit": "effort",
    "budget": "effort", "randomstate": "seed", "randomseed": "seed",
}  # fmt: skip


def named_elsewhere(name: str) -> str | None:
    """The setting of a policy that has this name in another tool; None if there is none."""
    return _ELSEWHERE.get(re.sub("[-_ ]", "", name.lower()))
