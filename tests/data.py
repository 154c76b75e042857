"""Small named tables, areas and points, and a release of every kind that is made of them.

``drawn`` makes a table from a seed, a keyword for each column; ``cycled`` one of three columns that repeat, without
chance.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal

NAMES = pl.DataFrame(
    {"name": ["Adams", "Baker", "Clark", "Davis", "Evans", "", "Zoe"], "people": [5, 2, 2, 4, 3, 2, 0]}
)
AGES = pl.DataFrame({"age": [17, 18, 18, 19, 22, 25, 25, 31, 40, 41]})

# Eight areas in a row and one far away, in two states; neighbors by number and by name.
AREAS = pl.DataFrame(
    {"id": [*(f"0{i}" for i in range(8)), "11"], "people": [3, 3, 3, 3, 3, 4, 3, 3, 1], "state": ["w"] * 3 + ["e"] * 6}
)
PAIRS = [(i, i + 1) for i in range(7)]
NEIGHBORS = pl.DataFrame([(f"0{a}", f"0{b}") for a, b in PAIRS], schema=["u", "v"], orient="row")


def squares(rows: int, columns: int | None = None) -> np.ndarray:
    """Pairs of neighbors among squares in rows and columns, those beside each other first; one number: as many."""
    at = np.arange(rows * (columns or rows)).reshape(rows, -1)
    pairs = ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:]))
    return np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])


# Twelve points on a line, one far away, and a value of each that half of them share at most.
X = [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 20.0, 21.0, 22.0, 23.0, 60.0]
ILLS = ["flu", "gout", "flu", "cold", "flu", "gout", "cold", "flu", "gout", "cold", "cold", "odd"]
LINE = pl.DataFrame({"id": [f"person-{i}" for i in range(12)], "x": X, "d": ILLS})

TREES = {"age": "intervals:5,20", "zip": "prefixes:4,3"}

KINDS = ("labels", "intervals", "regions", "tiles", "tiles across 180 degrees", "gather", "cellular")


def around_180_degrees(coordinates: str) -> pl.DataFrame:
    """Sixty places, a half on either side of 180 degrees of longitude, with weights."""
    rng = np.random.default_rng(4)
    x = (180 + rng.normal(0, 2, 60)).round(2)
    return pl.DataFrame({"x": np.where(x > 180, x - 360, x) if coordinates == "geographic" else x,
                         "y": rng.normal(-17, 1, 60).round(2), "n": rng.integers(1, 4, 60)})  # fmt: skip


def people(lacking: float = 0.0) -> pl.DataFrame:
    """120 rows of 60 persons in 30 homes, with a weight; some lack their age or their zip code."""
    random, n = np.random.default_rng(8), 120
    age, place = random.integers(20, 50, n).tolist(), random.choice(["94110", "94117", "94704"], n).tolist()
    gone, ill = random.random((2, n)) < lacking / 2, random.choice(["flu", "cough", "ulcer"], n)
    return pl.DataFrame(
        {
            "age": [None if g else a for a, g in zip(age, gone[0], strict=True)],
            "zip": [None if g else p for p, g in zip(place, gone[1], strict=True)],
            "who": np.arange(n) // 2, "home": np.arange(n) // 4, "w": random.choice([2, 5], n), "ill": ill,
            "costs": [f"1.{a}0,5" for a in age],
            "came": [f"{1 + a % 28}.{1 + a % 12}.{1990 + a % 2}" for a in age],
        }
    )  # fmt: skip


def clusters(kind: str, center: str = "record", frame: Any = LINE, **more: Any) -> shoal.Crosswalk:
    """Clusters of at least 3 each, one left out, no value more than half."""
    codes = np.unique(ILLS, return_inverse=True)[1]
    solve: Any = getattr(shoal.gathering, kind)
    found = solve(np.array(X)[:, None], r=3, epsilon=0.1, sensitive=codes, l=2)
    return shoal.release(found, frame, columns=["x"], sensitive=["d"], center=center, **more)


@cache
def released(kind: str) -> tuple[shoal.Crosswalk, Any]:
    """A small release of one of ``KINDS``, and its sources for verify."""
    if kind == "labels":
        return shoal.release(shoal.labels.cover(NAMES["people"], 4), NAMES, label="name", count="people"), NAMES
    if kind == "intervals":
        return shoal.release(shoal.intervals.cut(AGES["age"], None, 3, "range"), AGES, value="age"), AGES
    if kind == "regions":
        found = shoal.regions.merge(PAIRS, AREAS["people"], 6, boundary=AREAS["state"], seed=1)
        return shoal.release(found, AREAS, weight="people", edges=PAIRS, boundary="state"), [AREAS, NEIGHBORS]
    if kind.startswith("tiles"):
        coordinates = "projected" if kind == "tiles" else "geographic"
        frame = around_180_degrees(coordinates)
        tiles = shoal.tiles.split(frame.select("x", "y").to_numpy(), 9, frame["n"].to_numpy(), coordinates=coordinates)
        return shoal.release(tiles, frame, x="x", y="y", weight="n"), frame
    return clusters(kind), LINE


def real(name: str) -> Path:
    """A file or folder of the real data, which lie outside the repository: a test is skipped where they do not."""
    found = [p for above in Path(__file__).parents if (p := above / "shared" / "data" / name).exists()]
    return found[0] if found else pytest.skip("the real data are not beside the project")


def handed(frame: pl.DataFrame, kind: str, folder: Path, spark: Any = None) -> tuple[Any, dict[str, Any]]:
    """The table as another kind of frame, as a file, in DuckDB or in Spark, and the engine that reads it."""
    if kind in ("pandas", "pyarrow", "lazy", "polars"):
        return {"pandas": frame.to_pandas, "pyarrow": frame.to_arrow, "lazy": frame.lazy}.get(kind, lambda: frame)(), {}
    if kind == "categories":
        return frame.to_pandas().astype({frame.columns[0]: "category"}), {}
    if kind == "duckdb":
        return pytest.importorskip("duckdb").connect().from_arrow(frame.to_arrow()), {}
    if kind == "spark":
        return spark.createDataFrame(frame.rows(), ", ".join(f"{n} string" for n in frame.columns)), {}
    path = folder / f"table.{kind.split()[0]}"
    write = {".csv": frame.write_csv, ".xlsx": frame.write_excel, ".parquet": frame.write_parquet}[path.suffix]
    write(path)
    return path, {"engine": "duckdb", "memory": "1GB"} if kind.endswith("in duckdb") else {}


def as_polars(table: Any) -> pl.DataFrame:
    """Any kind of frame as one of Polars."""
    for how in ("toArrow", "collect", "pl"):
        table = getattr(table, how)() if hasattr(table, how) and not isinstance(table, pl.DataFrame) else table
    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)


def rows(released: Any, first: str, *more: str) -> list[tuple[str, ...]]:
    """What some columns of a release publish, without its order."""
    frame = released.astype(str) if hasattr(released, "astype") else released
    return sorted(as_polars(frame).select(first, *more).cast(pl.String).rows())


Values = tuple[int, int] | Sequence[Any] | Mapping[Any, float] | Callable[[np.random.Generator, int], np.ndarray]


def drawn(rows: int, seed: int, **columns: Values) -> pl.DataFrame:
    """A table of values drawn one column after the other: whole numbers from low to below high, or one of some values.

    columns  a pair of whole numbers is a range; of a list or a text one of its items is drawn; a mapping has the chance
             of each item; a function gets the generator and the number of rows
    """
    rng = np.random.default_rng(seed)

    def column(of: Any) -> Any:
        if callable(of):
            return of(rng, rows)
        if isinstance(of, tuple):
            return rng.integers(*of, rows)
        return rng.choice(list(of), rows, p=[*of.values()] if isinstance(of, Mapping) else None)

    return pl.DataFrame({name: column(of) for name, of in columns.items()})


def cycled(n: int) -> pl.DataFrame:
    """Letters of which some are missing, numbers, and a sensitive letter: a row of each residue, without chance."""
    return pl.DataFrame(
        {
            "a": [None if i % 11 == 0 else "abcdef"[i * i % 6] for i in range(n)],
            "b": [i * 7 % 13 for i in range(n)],
            "s": ["pqrs"[i * i * i % 4] for i in range(n)],
        }
    )
