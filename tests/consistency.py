"""Every small original at once: those that give the same released file must give the same certificate and page.

``tell_apart(case, tables)`` releases every table under one secret, puts those together whose released rows are the
same, and returns the entries by which their certificates differ: each is a figure of the original that the rows do not
show.  The step of the proved ratio may differ, and the moment at which a file was made.  The order of the rows may not,
nor any byte of the file: what the certificate says of size and SHA-256 is compared, too.

Of a request with limits, tables that differ in nothing but numbers beyond them must give the same released file, too.
"""

import itertools
import json
import random
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyreadstat

import shoal
from shoal.publishing.documents import make_key

SECRET = b"the same for all of them"
AGES = (20, 23, 31)
TOWNS = ("Ulm", "Bonn", "Köln")
ILLS = ("flu", "gout")
JOBS = ("nurse", "cook")
TOWN_TREE = [["Ulm", "south"], ["Bonn", "west"], ["Köln", "west"]]
GRID = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])


class Case(NamedTuple):
    """A request, the tables to which it is put, and how one is released into a folder.

    cells    the rows that a table may have;  rows: how many it has
    release  (table, folder) -> the certificate's path
    note     what is asked, in words, where the name does not tell
    fewer    tables of so many rows less are among them, down to that
    limits   column -> the numbers at which and beyond which all are published as one value, from below and from above
    ordered  whether tables of the same rows in another order are other tables, as where the order is kept
    """

    name: str
    cells: Sequence[tuple[Any, ...]]
    columns: Sequence[str]
    rows: int
    release: Callable[[pl.DataFrame, Path], Path]
    note: str = ""
    ordered: bool = False
    fewer: int = 0
    limits: Mapping[str, tuple[float, float]] = {}

    def coded(self, table: pl.DataFrame) -> str:
        """The rows of a table in which all numbers beyond a limit are one; in their order where it counts."""
        clipped = [pl.col(name).clip(low, high).alias(name) for name, (low, high) in self.limits.items()]
        rows = [*map(repr, table.with_columns(*clipped).rows())]
        return repr(rows if self.ordered else sorted(rows))

    def tables(self) -> Iterator[pl.DataFrame]:
        """Every multiset (or list) of rows, all of one schema."""
        kinds = pl.DataFrame(self.cells, schema=list(self.columns), orient="row").schema
        for rows in range(self.rows - self.fewer, self.rows + 1):
            chosen = itertools.combinations_with_replacement(self.cells, rows)
            for drawn in itertools.product(self.cells, repeat=rows) if self.ordered else chosen:
                yield pl.DataFrame(drawn, schema=kinds, orient="row")


def of_table(ending: str = ".csv", *, sign: bool = False, **asked: Any) -> Callable[[pl.DataFrame, Path], Path]:
    def release(table: pl.DataFrame, folder: Path) -> Path:
        given: Any = table
        if "engine" in asked:  # engines read files
            given = folder / "people.parquet"
            table.write_parquet(given)
        files = {name: folder / f"{name}.csv" for name in ("areas", "edges") if name in asked}
        for name, file in files.items():
            asked[name].write_csv(file)
        made = shoal.anonymize(
            given,
            **{"quasi_identifiers": ["age", "town"], "effort": "fast", "seed": 1, "secret": SECRET, **asked, **files},
        )
        (folder / "page.json").write_text(json.dumps(made.public_figures(), default=str))
        return made.write(folder / f"out{ending}", sign=key_of(folder) if sign else None)

    return release


def key_of(folder: Path) -> Path:
    """The one private key of a folder of releases."""
    key = folder / "steward.pem"
    return key if key.exists() else make_key(key)[0]


def of_answer(
    solve: Callable[[pl.DataFrame], Any], also: str | None = None, **how: Any
) -> Callable[[pl.DataFrame, Path], Path]:
    def release(table: pl.DataFrame, folder: Path) -> Path:
        made = shoal.release(solve(table), table, **how)
        said = [made.public_figures()] if also is None else []  # before it is known what is written, and after
        out = folder / "out.csv"
        written = made.write(out) if also is None else made.write(None, also={also: out})
        said.append({name: held for name, held in made.public_figures().items() if name not in ("written", "made_at")})
        page = {**said[-1], "first": said[0]}
        if made.drawn_map is not None:
            page["map"] = MOMENT.sub("", made.map(folder / "map.html").read_text())
        (folder / "page.json").write_text(json.dumps(page, default=str))
        return written

    return release


def of_series(
    mode: str, *months: slice, engine: str | None = None, wait: int = 0, **asked: Any
) -> Callable[[pl.DataFrame, Path], Path]:
    """A series of some rows of the table each month, or of views; all that is public of it counts as one certificate.

    months  the people of each part, by their number, which is that of their row
    """

    def release(table: pl.DataFrame, folder: Path) -> Path:
        place = folder / "series"
        shutil.rmtree(place, ignore_errors=True)
        named = table.with_columns(pl.Series("id", [f"p{i}" for i in range(table.height)]))
        given = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "effort": "fast", **asked}
        series = shoal.Series.start(place, shoal.Policy(**given), mode=mode, wait=wait)
        for month in months:
            people: Any = named[month]
            if engine is not None:
                people.write_parquet(folder / "month.parquet")
                people = folder / "month.parquet"
            series.add(people, person="id", engine=engine)
        if mode == "views":
            series.view(["age", "ill"], publish="stars")
        parts = sorted(p for p in place.iterdir() if p.is_dir() and p.name != "private")
        public = {p.name: sorted(f.name for f in p.iterdir()) for p in (place, *parts)}  # no name tells anything
        rows = [pl.read_csv(p / "release.csv", infer_schema=False).with_columns(part=pl.lit(p.name)) for p in parts]
        pl.concat(rows, how="diagonal").write_csv(folder / "out.csv")
        (folder / "page.json").write_text(json.dumps({"names": public}))
        said = {p.name: json.loads((p / "release.certificate.json").read_text()) for p in parts}
        for part in said.values():
            for other in part["series"].get("others", []):
                other.pop("certificate")  # which is another in each series
        said["series"] = json.loads((place / "series.json").read_text())
        made = folder / "out.certificate.json"
        made.write_text(json.dumps({"release": {"file": "out.csv"}, "parts": said}))
        return made

    return release


def _people(*, ages: Sequence[Any] = AGES, towns: Sequence[Any] = TOWNS[:2], more: Sequence[Any] = ILLS) -> list[Any]:
    return list(itertools.product(ages, towns, more))


def _drawn(seed: int, cells: list[Any], size: int) -> list[Any]:
    """Rows of both illnesses, as many of each as may be."""
    drawn = random.Random(seed)
    halves = [[c for c in cells if c[2] == ill] for ill in ILLS]
    return [
        row for half, few in zip(halves, (size // 2, size - size // 2), strict=True) for row in drawn.sample(half, few)
    ]


def cases(seed: int = 0, *, rows: int = 4, size: int = 5) -> list[Case]:
    """Tables of ``rows`` rows out of ``size`` different ones, drawn with a seed, for every kind of request."""
    names = ("age", "town", "ill")
    ill = {"sensitive": ["ill"]}
    tree = {"publish": "hierarchy", "hierarchies": {"town": TOWN_TREE}}
    towns = pl.DataFrame({"town": TOWNS, "population": [10, 20, 40]})
    path = pl.DataFrame({"a": TOWNS[:2], "b": TOWNS[1:]})
    places = {"publish": {"town": "regions"}, "areas": towns, "edges": path}
    land = {**places, "areas": towns.with_columns(land=pl.Series([7, 2, 5]))}
    requests: dict[str, dict[str, Any]] = {
        "stars": {"k": 2, **ill},
        "stars l": {"l": 2, **ill},
        "stars distinct l": {"k": 2, "distinct_l": 2, **ill},
        "stars t": {"k": 2, "t": 0.5, **ill},
        "stars three_phase": {"l": 2, "method": "three_phase", **ill},
        "stars weights": {"k": 2, "weights": {"age": 2.0}, **ill},
        "stars budget": {"k": 2, "max_suppressed": 0.5, **ill},
        "stars risk": {"k": 2, "max_average_risk": 0.5, **ill},
        "stars k alone": {"k": 2, "insensitive": ["ill"]},
        "stars no bound": {"k": 2, "bound": "none", **ill},
        "ranges": {"k": 3, "publish": "ranges", **ill},
        "ranges step": {"k": 3, "publish": "ranges", "range_step": {"age": 10}, **ill},
        "stars top": {"k": 2, "top": {"age": 23}, **ill},
        "ranges limits step": {
            "k": 3,
            "publish": "ranges",
            "bottom": {"age": 20},
            "top": {"age": 30},
            "range_step": {"age": 10},
            **ill,
        },
        "hierarchy bottom": {"k": 2, **tree, "bottom": {"age": 23}, **ill},
        "centers top": {"k": 2, "publish": "centers", "top": {"age": 23}, **ill},
        "stars duckdb top": {"k": 2, "engine": "duckdb", "top": {"age": 23}, **ill},
        "ranges l": {"l": 2, "publish": "ranges", **ill},
        "hierarchy": {"k": 2, **tree, **ill},
        "hierarchy global": {"k": 2, **tree, "global_recoding": True, **ill},
        "hierarchy coarsen": {"k": 2, **tree, "coarsen": "auto", **ill},
        "hierarchy labels": {"k": 2, "publish": "hierarchy", "hierarchies": {"town": "labels"}, **ill},
        "hierarchy intervals": {"k": 2, "publish": "hierarchy", "hierarchies": {"age": "intervals:10,20"}, **ill},
        "hierarchy prefixes": {"k": 2, "publish": "hierarchy", "hierarchies": {"town": "prefixes:1"}, **ill},
        "stars minimality": {"k": 2, "minimality": 0.5, **ill},
        "stars minimality weights": {"l": 2, "minimality": 0.6, "weights": {"age": 2.0}, "max_suppressed": 1.0, **ill},
        "ranges minimality": {"k": 2, "minimality": 0.7, "publish": "ranges", "range_step": {"age": 10}, **ill},
        "hierarchy minimality": {"k": 2, "minimality": 0.5, **tree, **ill},
        "centers": {"k": 2, "publish": "centers", **ill},
        "person": {"k": 2, "person": "ill"},
        "regions": {"k": 2, **places, **ill},
        "stars shards": {"k": 2, "shards": 2, **ill},
        "stars entropy l": {"entropy_l": 1.5, **ill},
        "stars beta": {"k": 2, "beta": 1.0, **ill},
        "hierarchy max level": {"k": 2, **tree, "max_level": {"town": 1}, **ill},
        "stars duckdb": {"k": 2, "engine": "duckdb", **ill},
        "ranges duckdb carried": {"k": 2, "publish": "ranges", "engine": "duckdb", "insensitive": ["ill"]},
        "hierarchy duckdb": {"k": 2, **tree, "engine": "duckdb", **ill},
        "household": {"k": 2, "household": "ill"},
        "stars strict roles": {"k": 2, "strict_roles": True, **ill},
        "stars signed": {"k": 2, "sign": True, **ill},
        "regions land": {"k": 2, **land, "region_loss": "land", **ill},
    }
    found = [
        Case(name, _drawn(seed + i, _people(), size), names, rows, of_table(**asked))
        for i, (name, asked) in enumerate(requests.items())
    ]
    gaps = _people(ages=(20, 31, None))
    for i, missing in enumerate(("category", "apart", "filled")):
        for ending in (".csv", ".parquet"):
            release = of_table(ending, k=2, missing=missing, **ill)
            found.append(Case(f"missing {missing} {ending}", _drawn(seed + i, gaps, size), names, rows, release))
    far = [(age, "Ulm", "flu") for age in (30, 91, 92, None)]
    release = of_table(k=2, missing="filled", top={"age": 90}, **ill)
    found.append(Case("filled beyond a limit", far, names, 4, release, limits={"age": (0, 90)}))
    release = of_table(k=2, shards=2, method="three_phase", **ill)  # hidden ages are empty, and so are missing ones
    found.append(Case("stars shards three_phase", [*_drawn(seed, gaps, size), gaps[0]], names, rows, release))
    for ending in (".parquet", ".xlsx", ".dta", ".csv.gz", ""):  # the last: a folder of parts
        for way in ("stars", "ranges"):
            asked = {"k": 2, "publish": way, **ill} | ({} if ending else {"engine": "duckdb"})
            found.append(
                Case(
                    f"{way} {ending or 'parts'}", _drawn(seed, _people(), size), names, rows, of_table(ending, **asked)
                )
            )
    for way in ("stars", "ranges"):
        cells = [(20, "Ulm", "flu"), (31, "Ulm", "flu"), (20, "Bonn", ILLS[seed % 2])]
        release = of_table(k=3, keep_order=True, publish=way, **ill)
        found.append(Case(f"{way} keep order", cells, names, 4, release, ordered=True))
    weighed = [(age, town, n, ill) for n, (age, town, ill) in zip((1, 3, 1, 2) * 3, _people(), strict=True)]
    for way in ("stars", "ranges"):
        asked = {"k_map": 4, "k": 2, "population_weights": "n", "publish": way, **ill}
        cells = random.Random(seed).sample(weighed, size)
        found.append(Case(f"{way} population weights", cells, ("age", "town", "n", "ill"), rows, of_table(**asked)))
    return found + _recoders(seed, rows, size) + _series(seed, rows - 1) + _answers(seed) + _more_answers(seed)


def _recoders(seed: int, rows: int, size: int) -> list[Case]:
    """Tables recoded as an earlier one was, released after one, and with places among their columns."""
    trees = {"age": "intervals:10,20", "town": TOWN_TREE}
    earlier = pl.DataFrame(_people()[:8], schema=["age", "town", "ill"], orient="row")

    def recoder(known: pl.DataFrame) -> shoal.Recoder:
        return shoal.Recoder(
            ["age", "town"], sensitive=["ill"], k=2, hierarchies=trees, max_suppressed=0.5, effort="fast", seed=1
        ).fit(known)

    fixed = recoder(earlier)
    before = shoal.anonymize(earlier, quasi_identifiers=["age", "town"], sensitive=["ill"], k=2, effort="fast", seed=1)
    after = {"after": before, "force_composition": True}
    ways: dict[str, Callable[[pl.DataFrame, Path], Path]] = {
        "recoder applied": lambda table, folder: _written(fixed.apply(table, secret=SECRET), folder),
        "recoder fitted": lambda table, folder: _written(recoder(table).apply(table, secret=SECRET), folder),
        "stars after": of_table(k=2, sensitive=["ill"], **after),
    }
    found = [Case(name, _drawn(seed, _people(), size), ("age", "town", "ill"), rows, way) for name, way in ways.items()]
    spots = [(float(x), float(y), ill) for x, y in ((0, 0), (0, 3), (5, 1)) for ill in ILLS]
    placed = {"quasi_identifiers": [], "coordinates": ["x", "y"], "publish": "hierarchy", "sensitive": ["ill"]}
    return [
        *found,
        Case("hierarchy tiles", _drawn(seed, spots, size), ("x", "y", "ill"), rows, of_table(k=2, **placed)),
    ]


def _written(made: Any, folder: Path) -> Path:
    (folder / "page.json").write_text(json.dumps(made.public_figures(), default=str))
    return Path(made.write(folder / "out.csv"))


def _series(seed: int, rows: int) -> list[Case]:
    """Months of new people, of people who stay and leave, and views of one table."""
    everyone, later = slice(0, rows), slice(rows, 2 * rows)
    ways: dict[str, tuple[int, Callable[[pl.DataFrame, Path], Path]]] = {
        "increment": (2 * rows, of_series("increment", everyone, later, k=2)),
        "increment waiting": (2 * rows, of_series("increment", slice(0, 2 * rows), k=2, wait=1)),
        "increment duckdb": (rows, of_series("increment", everyone, k=2, engine="duckdb")),
        "again": (rows + 2, of_series("again", slice(0, rows + 1), slice(1, rows + 2), k=2, l=2)),
        "views": (rows, of_series("views", everyone, k=2, publish="ranges")),
    }
    names = ("age", "town", "ill")
    found = [
        Case(f"series {name}", _drawn(seed, _people(), 3 + (name == "again")), names, many, release)
        for name, (many, release) in ways.items()
    ]
    # a column published as it came, and rows that wait: of what these hold there nothing may be told
    worked = [(*row, job) for row in ((20, "Ulm", "flu"), (31, "Bonn", "gout")) for job in JOBS]
    release = of_series("increment", slice(0, rows + 2), k=2, wait=1, insensitive=["job"])
    return [*found, Case("series increment waiting carried", worked, (*names, "job"), rows + 2, release)]


def _answers(seed: int) -> list[Case]:
    """Crosswalks and clusters."""
    counts = [(c,) for c in (1, 2, 3, 5)]

    def counted(name: str, solve: Callable[[Any], Any], **how: Any) -> Case:
        """Five values of which the records vary: they are the rows of the table, in any order."""

        def release(table: pl.DataFrame, folder: Path) -> Path:
            named = table.with_columns(pl.Series("value", range(table.height)))
            return of_answer(lambda t: solve(t["n"].to_numpy()), count="n", **how)(named, folder)

        return Case(name, counts, ("n",), 5, release)

    def regions(table: pl.DataFrame) -> Any:
        return shoal.regions.merge(GRID, table["n"].to_numpy(), 4, seed=1)

    def of_areas(table: pl.DataFrame, folder: Path) -> Path:
        named = table.with_columns(pl.Series("id", [f"a{i}" for i in range(table.height)]))
        how = {"weight": "n", "edges": GRID, "id": "id", "geographic": False}
        return of_answer(regions, **how)(named, folder)

    places = [(float(x), float(y), w) for x, y in ((0, 0), (0, 3), (5, 1)) for w in (1, 2)]
    points = [(float(x), d) for x in (0, 1, 4) for d in ("p", "q")]
    line = {"columns": ["x"], "sensitive": ["d"]}
    drawn = random.Random(seed)
    return [
        counted("labels", lambda n: shoal.labels.cover(n, 4), label="value"),
        counted("intervals", lambda n: shoal.intervals.cut(np.arange(n.size), n, 4), value="value"),
        Case("regions", counts, ("n",), 5, of_areas),
        Case(
            "tiles", drawn.sample(places, 5), ("x", "y", "w"), 5,
            of_answer(
                lambda t: shoal.tiles.split(t.select("x", "y").to_numpy(), 3, t["w"].to_numpy()),
                x="x", y="y", weight="w",
            ),
        ),
        Case(
            "tiles, records", [(0.0, 0.0, 1), (0.0, 0.0, 2), (5.0, 1.0, 2), (90.0, 90.0, 2)], ("x", "y", "w"), 4,
            of_answer(
                lambda t: shoal.tiles.split(
                    t.select("x", "y").to_numpy(), 3, t["w"].to_numpy(), center="draw", seed=1
                ),
                also="tiles", x="x", y="y", weight="w",
            ),
            fewer=1,
        ),
        Case(
            "tiles, some left out", [(x, y, w) for x, y in ((0.0, 0.0), (0.0, 3.0), (90.0, 90.0)) for w in (1, 2)],
            ("x", "y", "w"), 4,
            of_answer(
                lambda t: shoal.tiles.split(
                    t.select("x", "y").to_numpy(), 3, t["w"].to_numpy(), max_width=4.0, sparse="leave-out"
                ),
                also="tiles", x="x", y="y", weight="w",
            ),
        ),
        *(
            Case(
                f"{name} {center} {epsilon}", drawn.sample(points, 4), ("x", "d"), 5,
                of_answer(
                    lambda t, name=name, epsilon=epsilon: getattr(shoal.gathering, name)(
                        t.select("x").to_numpy(), 2, epsilon=epsilon
                    ),
                    center=center, **line,
                ),
            )
            for name in ("gather", "cellular") for center in ("record", "mean") for epsilon in (0.0, 0.2)
        ),
    ]  # fmt: skip


def _more_answers(seed: int) -> list[Case]:
    """The same by other objectives, under conditions, and as what is written with them."""
    counts = [(c,) for c in (1, 2, 3, 5)]
    places = [(float(x), float(y), w) for x, y in ((0, 0), (0, 3), (5, 1)) for w in (1, 2)]
    points = [(float(x), d) for x in (0, 1, 4) for d in ("p", "q")]
    drawn = random.Random(seed)
    found = []
    for objective in ("count", "squares", "range"):

        def intervals(table: pl.DataFrame, folder: Path, objective: str = objective) -> Path:
            named = table.with_columns(pl.Series("value", range(table.height)))
            made = shoal.intervals.cut(np.arange(table.height), table["n"].to_numpy(), 4, objective)
            return of_answer(lambda _: made, count="n", value="value")(named, folder)

        found.append(Case(f"intervals {objective}", counts, ("n",), 5, intervals))
    for objective in ("count", "sumsq", "excess"):

        def regions(table: pl.DataFrame, folder: Path, objective: str = objective) -> Path:
            named = table.with_columns(pl.Series("id", [f"a{i}" for i in range(table.height)]))
            made = shoal.regions.merge(GRID, table["n"].to_numpy(), 4, objective=objective, seed=1)
            how = {"weight": "n", "edges": GRID, "id": "id", "geographic": False}
            return of_answer(lambda _: made, **how)(named, folder)

        found.append(Case(f"regions {objective}", counts, ("n",), 5, regions))
    for objective in ("max", "perimeter", "sumsq"):

        def tiles(table: pl.DataFrame, objective: str = objective) -> Any:
            spots = table.select("x", "y").to_numpy()
            return shoal.tiles.split(spots, 3, table["w"].to_numpy(), objective=objective)

        release = of_answer(tiles, x="x", y="y", weight="w")
        found.append(Case(f"tiles {objective}", drawn.sample(places, 5), ("x", "y", "w"), 5, release))

    def diverse(table: pl.DataFrame) -> Any:
        codes = table["d"].replace_strict({"p": 0, "q": 1}).to_numpy()
        return shoal.gathering.gather(table.select("x").to_numpy(), 2, epsilon=0.2, sensitive=codes, l=2)

    how: dict[str, Any] = {"columns": ["x"], "sensitive": ["d"], "secret": SECRET}
    for also in (None, "assignments"):
        name = "gather l" if also is None else f"gather l, {also}"
        found.append(Case(name, drawn.sample(points, 4), ("x", "d"), 5, of_answer(diverse, also=also, **how)))
    return found


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, held in value.items():
            yield from _flat(held, f"{at}.{name}" if at else str(name))
    else:
        yield at, json.dumps(value, sort_keys=True)


UNTOLD = ("made_at", "seal", "signature.value")  # the moment, and what follows from it
OF_SERIES = (*UNTOLD, "id", "previous", "sha256")  # drawn for each series, and rows in an order that is drawn, too
MOMENT = re.compile(r"(20[2-9]\d-\d\d-\d\d)?[T ]\d\d:\d\d(:\d\d(\.\d+)?)?")  # at which a page was made
FREE = tuple(f"{page}certificate.ratio_at_most" for page in ("", "page.", "page.first.", "page.release."))


def _rows(path: Path) -> pl.DataFrame:
    """What a file or a folder of parts shows."""
    if path.is_dir():
        return pl.concat(pl.read_parquet(part) for part in sorted(path.glob("*.parquet")))
    if path.suffix == ".xlsx":
        return pl.read_excel(path)
    if path.suffix in (".sav", ".dta"):
        read = pyreadstat.read_sav if path.suffix == ".sav" else pyreadstat.read_dta
        return pl.DataFrame(read(str(path), output_format="polars")[0])
    mark = "\t" if path.suffix == ".tsv" else ","
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema=False, separator=mark)


def _told(content: Any, drawn: tuple[str, ...], at: str = "") -> dict[str, Any]:
    """The entries that must be the same."""
    ends = tuple(f".{name}" for name in drawn)
    return {f"{at}{name}": held for name, held in _flat(content) if not f".{name}".endswith(ends)}


def shown(certificate: Path) -> tuple[str, dict[str, Any]]:
    """A released file as the types of its columns and the multiset of its lines (as their list where their order is
    kept), and its certificate's entries without what may differ."""
    content = json.loads(certificate.read_text())
    about = content["release"] or content["also"][0]
    frame = _rows(certificate.with_name(about["file"]))
    lines = [*map(repr, frame.rows())]
    if content.get("order") != "kept":
        lines.sort()
    drawn = UNTOLD if "parts" not in content else OF_SERIES
    entries = _told(content, drawn)
    page = json.loads(certificate.with_name("page.json").read_text())
    if "html" in page:  # which words the step of the proved ratio: pages of one step are compared
        page[f"html {content['certificate'].get('ratio_at_most')}"] = MOMENT.sub("", page.pop("html"))
    entries |= _told(page, drawn, "page.")
    step = entries.get(FREE[0])
    if step == "1.0":  # a promise of the least cost says what the step of 1 says
        entries = {name: held for name, held in entries.items() if "certificate.guarantee." not in name}
    if "also" in content:
        entries["also"] = json.dumps(content["also"])
    return repr((frame.schema, lines)), entries


def tell_apart(case: Case, folder: Path, tables: Iterable[pl.DataFrame] | None = None) -> tuple[set[str], int, int]:
    """Entries that tell originals of one release apart; how many tables were released, and how many shared a file.

    "beyond a limit" is among the entries if the file tells apart what the limits make one.
    """
    known: dict[str, list[dict[str, Any]]] = {}
    files: dict[str, set[str]] = {}
    tried = 0
    for table in case.tables() if tables is None else tables:
        try:
            certificate = case.release(table, folder)
        except (shoal.InfeasibleError, shoal.PolicyError, shoal.InputError):
            continue
        tried += 1
        file, entries = shown(certificate)
        known.setdefault(file, []).append(entries)
        if case.limits:
            files.setdefault(case.coded(table), set()).add(file)
    odd = {"beyond a limit"} if any(len(found) > 1 for found in files.values()) else set()
    for group in known.values():
        for name in {n for entries in group for n in entries} - {*FREE}:
            some = "certificate.guarantee." in name or name.startswith("page.html")  # left out beside another step
            if len({e.get(name) for e in group if name in e or not some}) > 1:
                odd.add(name)
    return odd, tried, tried - len(known)
