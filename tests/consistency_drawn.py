"""Requests drawn at random, with whatever may be combined: kinds of columns, models, ways to publish, files, engines.

``drawn_case(seed)`` is one request and the small tables to which it is put, as ``tests.consistency`` compares them.
What a policy refuses to combine is refused there too, and such a case releases no table.
"""

import datetime
import itertools
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.engines.geography import Geography
from shoal.model.conditions import AREA_CONDITIONS
from shoal.publishing.crosswalks.areas import areas_of, as_merged
from shoal.publishing.crosswalks.grouped import as_split
from tests.consistency import SECRET, Case, key_of, of_answer

# the values of a quasi-identifier, and hierarchies that it may have
COLUMNS: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
    "age": ((20, 23, 31), ("intervals:10,20", "intervals")),
    "born": (tuple(datetime.date(1990 + y, m, 3) for y, m in ((0, 2), (0, 7), (4, 2))), ("dates:month,year",)),
    "seen": (
        tuple(datetime.datetime(2020, 1, d, h) for d, h in ((1, 8), (1, 19), (2, 8))), ("dates:day,month",),
    ),
    "share": ((0.1, 0.30000000000000004, 2.5), ("intervals:1,2",)),
    "town": (
        ("Ulm", "Bonn", "Köln"),
        ([["Ulm", "south"], ["Bonn", "west"], ["Köln", "west"]], "labels", "prefixes:1", "stars"),
    ),
    "plz": (("89073", "53111", "53225"), ("prefixes:3,1",)),
    "smokes": ((True, False, None), ("stars",)),
    "note": (("a, b", "*", ""), ("stars",)),
    "tall": ((1.5, None, 1.75), ()),
    "came": (("03.02.2020", "12.01.2020", "1.3.2019", None), ("stars",)),
    "costs": (("1.250,5", "980", "-3,25"), ("stars",)),
    "code": (("07", "7", "7.0"), ("stars", "prefixes:1")),
    "wage": ((-7, 10, 40, 90, 95), ("intervals:10,40", "labels", "stars")),
    "rent": ((9.25, 10.0, 40.5, 91.0, 97.125), ("intervals:10,40", "stars")),
}  # fmt: skip
FAR = {"wage": (10, 90), "rent": (10, 90)}  # limits below and above of columns with several values beyond each
LIMITS = {"age": 23, "share": 0.30000000000000004, "tall": 1.5}  # two of the values reach one of them, up or down
ILLS, JOBS = ("flu", "gout", "cold"), ("nurse", "cook")
MODELS: Sequence[dict[str, Any]] = (
    {"k": 2}, {"k": 3}, {"l": 2}, {"k": 2, "distinct_l": 2}, {"entropy_l": 1.5}, {"recursive_cl": (2.0, 2)},
    {"alpha_k": (0.7, 2)}, {"k": 2, "t": 0.4}, {"k": 2, "t_ordered": 0.4}, {"k": 2, "t_hierarchical": 0.5},
    {"k": 2, "beta": 1.0}, {"k": 2, "beta_basic": 1.0}, {"k": 2, "delta": 1.5}, {"simultaneous_l": 2},
    {"preset": "k3"}, {"k": 2, "preset": "hipaa-safe-harbor"}, {"k_map": 2}, {"presence": (0.1, 0.8)},
)  # fmt: skip
WIDER = 1000  # the first seed that may draw what follows; the tests name seeds below it, whose requests stay
RARE_METHODS = (
    "cascade", "hilbert", "three_phase_hilbert", "two_anonymity", "matching", "top_down", "coarsen", "fewest_tuples",
    "halving", "forest", "pattern_cover",
)  # fmt: skip
SECOND_MODELS: Sequence[dict[str, Any]] = (
    {"k": 3},
    {"l": 2},
    {"distinct_l": 2},
    {"t": 0.6},
    {"recursive_cl": (3.0, 2)},
)
NULLABLE: dict[Any, str] = {pl.Int64: "Int64", pl.Float64: "Float64", pl.String: "string", pl.Boolean: "boolean"}
ENDINGS = (".csv", ".parquet", ".xlsx", ".csv.gz", "")


def _asked(drawn: random.Random, names: Sequence[str]) -> dict[str, Any]:
    """Settings that are drawn one by one."""
    publish = drawn.choice(["stars", "stars", "ranges", "hierarchy", "hierarchy", "centers"])
    asked: dict[str, Any] = {"publish": publish, **drawn.choice(MODELS)}
    trees = {n: drawn.choice(COLUMNS[n][1]) for n in names if COLUMNS[n][1] and drawn.random() < 0.7}
    if publish == "hierarchy" and trees:
        asked["hierarchies"] = trees
    elif publish == "hierarchy":
        asked["publish"] = "stars"
    if asked.get("t_hierarchical"):
        asked["hierarchies"] = {**asked.get("hierarchies", {}), "ill": [["flu", "x"], ["gout", "x"], ["cold", "y"]]}

    def may(chance: float, **more: Any) -> None:
        if drawn.random() < chance:
            asked.update(more)

    may(0.2, weights={names[0]: drawn.choice([0.5, 2.0, 7.0])})
    may(0.2, missing=drawn.choice(["apart", "filled"]))
    may(0.15, max_suppressed=drawn.choice([0.5, 1.0]))
    may(0.1, max_average_risk=0.45)
    may(0.15, minimality=drawn.choice([0.5, 0.7]))
    may(0.1, shards=2)
    may(0.1, bound="none")
    may(0.1, star="?")
    may(0.2, numeric_stars="text")
    may(0.1, effort="balanced")
    may(0.15, method=drawn.choice(["three_phase", "mondrian", "optimal", "improve", "global_recoding"]))
    if "came" in names:
        may(0.8, dates={"came": "%d.%m.%Y"})
    if "costs" in names:
        may(0.8, decimal={"costs": ","})
    if publish == "hierarchy":
        may(0.2, global_recoding=True)
        may(0.2, coarsen="auto")
        may(0.2, max_level={names[0]: 1})
    if publish == "ranges":
        steps = {
            "age": 10,
            "wage": 10,
            "rent": 10,
            "share": 0.5,
            "born": drawn.choice(["month", "year"]),
            "seen": 7,
            "tall": 1,
        }
        steps |= {"came": "month"} if "dates" in asked else {}
        steps |= {"costs": 500} if "decimal" in asked else {}
        may(0.4, range_step={n: steps[n] for n in names if n in steps})
    return asked


def _rows(
    drawn: random.Random, names: Sequence[str], size: int, insides: int, gap: int | None
) -> tuple[list[Any], list[str]]:
    """Rows of which few values differ, so that tables have much in common; some of column ``gap`` have no value."""
    columns = [*names, "ill", *(["job"] if insides > 1 else [])]
    values: list[Sequence[Any]] = [drawn.sample(COLUMNS[n][0], drawn.choice([2, 2, 3])) for n in names]
    values += [ILLS[: drawn.choice([2, 3])], JOBS][:insides]
    if gap is not None:
        values[gap % len(values)] = [None, *values[gap % len(values)][1:]]
    every = list(itertools.product(*values))
    return drawn.sample(every, min(size, len(every))), columns


def drawn_case(seed: int, *, rows: int = 4, size: int = 4) -> Case:
    """One request; see the module."""
    drawn = random.Random(seed)
    names = drawn.sample(sorted(COLUMNS.keys() - {"came", "costs", *FAR}), drawn.choice([1, 2, 2, 3]))
    apart = random.Random(f"more {seed}")  # what came later is drawn apart, so that a seed still means its request
    if apart.random() < 0.1:
        names[-1] = "came"
    if random.Random(f"costs {seed}").random() < 0.05:
        names[-1] = "costs"
    far = random.Random(f"far {seed}")
    if far.random() < 0.12:
        names[-1] = far.choice(sorted(FAR))
    insides = drawn.choice([1, 1, 1, 2])
    asked = _asked(drawn, names)
    limits = random.Random(f"limits {seed}")
    if limits.random() < 0.2:
        asked |= {limits.choice(["top", "bottom"]): {n: LIMITS[n] for n in names if n in LIMITS}}
    beyond = {n: FAR[n] for n in names if n in FAR}
    if beyond:
        asked |= {
            "bottom": {n: low for n, (low, _) in beyond.items()},
            "top": {n: high for n, (_, high) in beyond.items()},
        }
    more = random.Random(f"gaps {seed}")
    cells, columns = _rows(drawn, names, size, insides, more.randrange(12) if more.random() < 0.15 else None)
    if beyond:  # two rows of which only the number beyond a limit differs
        at, above = len(names) - 1, far.random() < 0.5
        low, high = beyond[names[at]]
        for i, number in enumerate(n for n in COLUMNS[names[at]][0] if (n >= high if above else n <= low)):
            cells[i % len(cells)] = (*cells[0][:at], number, *cells[0][at + 1 :])
    if "k_map" in asked or "presence" in asked:
        asked["population"] = pl.DataFrame(
            list(itertools.product(*(COLUMNS[n][0] for n in names))) * 2, schema=list(names), orient="row", strict=False
        )
    roles: dict[str, Any] = {"quasi_identifiers": list(names), "sensitive": columns[len(names) :]}
    if insides > 1 and drawn.random() < 0.5:
        roles = {**roles, "sensitive": ["ill"], "insensitive": ["job"]}
    elif insides > 1 and drawn.random() < 0.3:
        roles = {**roles, "sensitive": ["ill"], drawn.choice(["person", "household"]): "job"}
    if apart.random() < 0.1:
        roles["strict_roles"] = True
    wide = random.Random(f"wide {seed}")

    def chance() -> float:
        return wide.random() if seed >= WIDER else 1.0

    if chance() < 0.15:
        asked["method"] = wide.choice(RARE_METHODS)
    if chance() < 0.1:
        asked = {**wide.choice(SECOND_MODELS), **asked}
    if chance() < 0.1:
        asked |= {"weights": {n: wide.choice([0.5, 3.0]) for n in names}, "max_suppressed": wide.choice([0.25, 0.75])}
    if insides > 1 and chance() < 0.25 and "job" not in [roles.get("person"), roles.get("household")]:
        roles = {**{n: held for n, held in roles.items() if n != "insensitive"}, "sensitive": ["ill"]}
        roles["identifiers"] = ["job"]
    ordered = chance() < 0.03
    if ordered:
        cells, asked["keep_order"] = cells[:3], True
    sign = apart.random() < 0.1
    ending = drawn.choice(ENDINGS)
    if ending == ".xlsx" and seed % 2 == 0:
        ending = ".sav" if seed % 4 else ".dta"
    source = drawn.choice(["polars", "polars", "pandas", "levels", "csv", "duckdb"]) if ending else "duckdb"
    if source == "pandas":
        source = more.choice(["pandas", "pandas", "pandas nullable", "pandas arrow"])
    elif source == "polars" and chance() < 0.3:
        source = wide.choice(["lazy", "arrow"])
    if ending == ".csv" and chance() < 0.2:
        ending = ".tsv"
    kind = f"{source}{ending or ' parts'}{' signed' * sign} {roles} {asked}"
    release = _release(source, ending, {**roles, **asked}, sign)
    return Case(f"drawn {seed}", cells, columns, rows, release, kind, ordered, limits=beyond)


def _given(table: pl.DataFrame, source: str, folder: Path) -> Any:
    """A table in one of the forms in which it may come."""
    if source == "pandas":
        return table.to_pandas()
    if source == "pandas nullable":
        # by the column's type: pandas' own choice hangs on the values, and a column without any would tell of them
        kinds = {n: next((name for kind, name in NULLABLE.items() if t == kind), None) for n, t in table.schema.items()}
        return table.to_pandas().astype({n: kind for n, kind in kinds.items() if kind is not None})
    if source in ("lazy", "arrow"):
        return table.lazy() if source == "lazy" else table.to_arrow()
    if source == "pandas arrow":
        return table.to_pandas(use_pyarrow_extension_array=True)
    if source == "levels":  # a table's own categories, and an enumeration that lists more than the table has
        texts = [c for c, t in table.schema.items() if t == pl.String]
        every = pl.Enum(sorted({v for c in texts for v in (*COLUMNS.get(c, ((), ()))[0], *ILLS, *JOBS)} - {None}))
        return table.with_columns(pl.col(c).cast(every if i % 2 else pl.Categorical) for i, c in enumerate(texts))
    if source == "csv":
        table.write_csv(folder / "in.csv")
        return folder / "in.csv"
    if source == "duckdb":
        table.write_parquet(folder / "in.parquet")
        return folder / "in.parquet"
    return table


def held(frame: Any) -> Any:
    """What a frame shows and what it carries beside its rows, as text: levels, index, attributes."""
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    if hasattr(frame, "to_pandas") and not isinstance(frame, pl.DataFrame):
        return repr(frame)
    if isinstance(frame, pl.DataFrame):
        arrays = {c.name: c.to_arrow() for c in frame if c.dtype in (pl.Categorical, pl.Enum)}
        levels = {name: (a.dictionary.to_pylist(), a.indices.to_pylist()) for name, a in arrays.items()}
        return re.sub(r'Categories\("[0-9a-f-]{36}"\)', "", repr((frame.rows(), frame.schema, levels)))
    levels = {n: list(c.cat.categories) for n, c in frame.items() if str(c.dtype) == "category"}
    return repr((frame.to_dict("split"), frame.dtypes.to_dict(), levels, frame.attrs))


def _release(source: str, ending: str, asked: dict[str, Any], sign: bool) -> Callable[[pl.DataFrame, Path], Path]:
    def release(table: pl.DataFrame, folder: Path) -> Path:
        how = {"engine": "duckdb"} if source == "duckdb" else {}
        given = _given(table, source, folder)
        made = shoal.anonymize(given, **{"effort": "fast", "seed": 1, "secret": SECRET, **asked, **how})
        beside = made.write(folder / f"out{ending}", sign=key_of(folder) if sign else None)
        page = made.report(folder / "page.html")
        said = json.loads(page.with_suffix(".json").read_text())
        said["html"] = page.read_text()
        if source not in ("csv", "duckdb"):
            said["frame"] = held(made.table)
        page.with_suffix(".json").write_text(json.dumps(said))
        return beside

    return release


# the conditions on groups of the other problems; those of areas and places name columns of the drawn table
OF_AREAS: Sequence[dict[str, Any]] = (
    {"boundary": "side"}, {"soft_boundary": "side"}, {"fixed": "side"}, {"apart": "side"}, {"at_most": {"areas": 2}},
    {"at_most": {"n": 7}}, {"sensitive": ["p", "q"], "l": 2}, {"similar": ["p"]}, {"regions": 2}, {"water": "wet"},
    {"sums": ["p"]}, {"means": ["p"]}, {"max_diameter": 2.5},
)  # fmt: skip
OF_PLACES: Sequence[dict[str, Any]] = (
    {"boundary": "side"}, {"sensitive": "d", "l": 2}, {"sensitive": "d", "distinct_l": 2}, {"person": "who"},
    {"household": "who"}, {"max_width": 4.0, "sparse": "leave-out"}, {"grid": 2.0}, {"extent": "data"},
    {"center": "draw", "seed": 1}, {"sparse": "leave-out"},
)  # fmt: skip
OF_CLUSTERS: Sequence[dict[str, Any]] = (
    {"epsilon": 0.2}, {"epsilon": 0.4}, {"l": 2}, {"distinct_l": 2}, {"metric": "manhattan"}, {"metric": "chebyshev"},
    {"improve": True}, {"effort": "fast"},
)  # fmt: skip


def drawn_answer(seed: int, *, rows: int = 5) -> Case:
    """A request to regions, tiles, labels, intervals, or clusters, with its conditions, methods, and outputs."""
    drawn = random.Random(f"answer {seed}")
    problem: Callable[..., Case] = drawn.choice([_of_areas, _of_places, _of_labels, _of_intervals, _of_clusters])
    case = problem(drawn, rows)
    return case._replace(name=f"answer {seed}")


def _some(drawn: random.Random, conditions: Sequence[dict[str, Any]], most: int) -> dict[str, Any]:
    return {n: v for held in drawn.sample(conditions, drawn.randint(0, most)) for n, v in held.items()}


def _of_areas(drawn: random.Random, rows: int) -> Case:
    """Five areas in a row; one more pair of neighbors, centers, and columns for the conditions."""
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4), *drawn.sample([(0, 2), (1, 4), (0, 4)], drawn.choice([0, 1]))]
    asked = _some(drawn, OF_AREAS, 3)
    cells = drawn.sample([*itertools.product((1, 2, 3, 5), "ab", (0, 1))], 4)
    how: dict[str, Any] = {"method": drawn.choice(["auto", "auto", "tree", "search", "exact"]), "seed": 1}
    how["effort"] = drawn.choice(["fast", "balanced"])
    if "regions" not in asked:
        how["objective"] = drawn.choice(["count", "sumsq", "excess", "compact"])
    ks = drawn.choice([[4], [4], [3], [3, 7]])

    def solve(given: Geography) -> Any:
        wanted = {**as_merged({entry.key: asked.get(n, entry.setting.default) for n, entry in AREA_CONDITIONS.items()},
                              given), **how, "geographic": False, "coordinates": given.centers()}  # fmt: skip
        wanted = {name: value for name, value in wanted.items() if value is not None}
        weights = given.whole("n")
        if len(ks) > 1:
            return shoal.regions.nested(given.edges, weights, ks, **wanted)
        return shoal.regions.merge(given.edges, weights, ks[0], **wanted)

    def release(table: pl.DataFrame, folder: Path) -> Path:
        place = [float(i) for i in range(table.height)]
        named = table.with_columns(
            id=pl.Series([f"a{i}" for i in range(table.height)]), x=pl.Series(place), y=pl.Series(place) * 0.5,
            q=2 - pl.col("p"), wet=pl.when(pl.int_range(pl.len()) == 2).then(pl.lit("no")).otherwise(pl.lit("")),
        )  # fmt: skip
        given = areas_of(named, np.array(pairs), "id")
        return of_answer(lambda _: solve(given), weight="n", edges=np.array(pairs), id="id", geographic=False, **asked)(
            named, folder
        )

    return Case("", cells, ("n", "side", "p"), rows, release, f"regions {ks} {asked} {how}")


def _of_places(drawn: random.Random, rows: int) -> Case:
    asked, weighed = _some(drawn, OF_PLACES, 3), drawn.random() < 0.5
    spots = ((0.0, 0.0), (0.0, 3.0), (5.0, 1.0), (5.0, 1.5))
    cells = drawn.sample([(*p, n, s, d, w) for p in spots for n in (1, 2) for s in "ab" for d in "fg" for w in "uv"], 5)
    if weighed and {"person", "household"} & asked.keys():
        weighed = False
    how = {
        "objective": drawn.choice(["tiles", "max", "perimeter", "sumsq"]),
        "coordinates": drawn.choice(["projected", "projected", "geographic"]),
        "rule": drawn.choice(["widest", "widest", "median", "least_waste"]),
        "method": drawn.choice(["auto", "auto", "kd_tree", "least_waste", "proportional", "best_cuts", "mondrian"]),
        "effort": drawn.choice(["fast", "balanced"]),
    }
    if how["method"] != "kd_tree":  # which alone reads the rule
        del how["rule"]
    also = drawn.choice([None, None, "tiles", "table"])
    k = drawn.choice([2, 3])

    def solve(table: pl.DataFrame) -> Any:
        weights = table["n"].to_numpy() if weighed else None
        return shoal.tiles.split(table.select("x", "y").to_numpy(), k, weights, **how, **as_split({**asked}, table))

    named = {n: asked[n] for n in ("boundary", "sensitive", "person", "household") if n in asked}
    more = {"weight": "n"} if weighed else {}
    if also == "table":
        more |= {"insensitive": [c for c in ("n", "side", "d") if c not in (*named.values(), *more.values())]}
        more |= {"identifiers": ["who"]} if "who" not in named.values() else {}
        more |= {"secret": SECRET}
    release = of_answer(solve, also=also, x="x", y="y", **named, **more)
    return Case("", cells, ("x", "y", "n", "side", "d", "who"), rows, release, f"tiles {k} {asked} {how} {more} {also}")


def _of_labels(drawn: random.Random, rows: int) -> Case:
    how = {
        "method": drawn.choice(["auto", "fold", "spread", "five_halves", "scheme", "exact"]),
        "order": drawn.choice(["sorted", "given"]),
        "effort": drawn.choice(["fast", "balanced"]),
    }
    if how["method"] not in ("fold", "spread"):  # which alone read the order
        del how["order"]
    if how["method"] in ("auto", "exact"):
        how["objective"] = drawn.choice(["max", "count", "squares"])
    naming, k = drawn.choice(["ends", "largest", "numbers"]), drawn.choice([3, 4])

    def release(table: pl.DataFrame, folder: Path) -> Path:
        named = table.with_columns(value=pl.Series([f"v{i}" for i in range(table.height)]))
        return of_answer(
            lambda t: shoal.labels.cover(t["n"].to_numpy(), k, **how), label="value", count="n", naming=naming
        )(named, folder)

    return Case("", [(c,) for c in (1, 2, 3, 5)], ("n",), rows, release, f"labels {k} {naming} {how}")


def _of_intervals(drawn: random.Random, rows: int) -> Case:
    """Values of several records, each by its count or in as many lines."""
    objective, counted, k = (
        drawn.choice(["max", "count", "squares", "range"]),
        drawn.random() < 0.5,
        drawn.choice([2, 3]),
    )
    values = drawn.choice([(17, 18, 25, 40), (1.5, 2.25, 9.0, 10.0), ("2020-01-03", "2020-02-01", "2021-05-05")])
    cells = [(v, n) for v in values for n in ((1, 2) if counted else (1,))]

    def release(table: pl.DataFrame, folder: Path) -> Path:
        weights = table["n"].to_numpy() if counted else None
        made = shoal.intervals.cut(table["value"].to_list(), weights, k, objective)
        more = {"count": "n"} if counted else {}
        return of_answer(lambda _: made, value="value", **more)(table, folder)

    return Case("", drawn.sample(cells, min(len(cells), 5)), ("value", "n"), rows, release,
                f"intervals {k} {objective} {counted} {values[0]}")  # fmt: skip


def _of_clusters(drawn: random.Random, rows: int) -> Case:
    name, asked = drawn.choice(["gather", "cellular"]), _some(drawn, OF_CLUSTERS, 3)
    if "metric" in asked and drawn.random() < 0.5:
        del asked["metric"]
    methods = {
        "gather": ["auto", "local", "disjoint", "threshold", "peeling", "rounds", "exact"],
        "cellular": ["auto", "auto", "search", "tight", "three_step", "exact"],
    }
    diverse = bool({"l", "distinct_l"} & asked.keys())
    asked["method"] = "auto" if diverse else drawn.choice(methods[name])
    if name == "gather" and (diverse or asked["method"] == "exact"):  # which don't go on
        asked.pop("improve", None)
    if name == "gather" and drawn.random() < 0.3:
        asked["max_clusters"] = 1
    if name == "cellular":
        asked |= {"seed": 1} | drawn.choice([{}, {"setup_costs": 0.5}, {"max_diameter": 4.5}])
    center, also = drawn.choice(["record", "mean", "medoid"]), drawn.choice([None, "assignments"])
    wide = drawn.random() < 0.4
    columns = ["x", "y"] if wide else ["x"]
    spots = (
        [(0.0, 0.0), (1.0, 0.0), (4.0, 2.0), (4.0, None)] if wide else [(0.0, 0.0), (1.0, 0.0), (4.0, 0.0), (9.0, 0.0)]
    )
    cells = drawn.sample([(x, y if y is not None else 5.0, d) for x, y in spots for d in "pq"], 4)

    def solve(table: pl.DataFrame) -> Any:
        codes = {"sensitive": table["d"].replace_strict({"p": 0, "q": 1}).to_numpy()} if diverse else {}
        return getattr(shoal.gathering, name)(table.select(columns).to_numpy(), 2, **asked, **codes)

    release = of_answer(solve, also=also, columns=columns, sensitive=["d"], center=center,
                        **({"secret": SECRET} if also else {}))  # fmt: skip
    return Case("", cells, ("x", "y", "d"), rows, release, f"{name} {columns} {asked} {center} {also}")
