"""The least loss on real tables: k-anonymity and l-diversity of Adult, census workers and credit card clients."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from shoal.model.histogram import Histogram
from shoal.model.recoding import ColumnRecoding, Recoding

DATA = Path(__file__).parents[1].parent / "shared" / "data"


def read(path: Path) -> dict[str, list[str]]:
    """A CSV file, gzip or not, as columns of text."""
    with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as stream:
        rows = list(csv.reader(io.TextIOWrapper(stream, encoding="utf-8", newline="")))
    return dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))


def codes(values: list[str]) -> tuple[np.ndarray, list[str]]:
    """Codes in the order of the values: numbers by size, words by alphabet."""
    distinct = sorted(set(values), key=lambda v: (0, float(v), "") if v.lstrip("-").isdigit() else (1, 0.0, v))
    place = {v: i for i, v in enumerate(distinct)}
    return np.array([place[v] for v in values]), distinct


def hierarchy(path: Path, distinct: list[str], everything: bool = True) -> ColumnRecoding:
    """An ARX hierarchy; its loss counts all leaves of the file."""
    with path.open(encoding="utf-8") as stream:
        lines = {line[0]: line for line in csv.reader(stream, delimiter=";")}
    extra = [v for v in lines if v not in set(distinct)] if everything else []
    values = [*distinct, *extra]
    depth = len(lines[values[0]])
    node = np.stack([codes([lines[v][level] for v in values])[0] for level in range(depth)])
    node[0] = np.arange(len(values))
    return ColumnRecoding.tree(node)


def histogram(table: dict[str, list[str]], quasi: list[str], sensitive: list[str]) -> tuple[Histogram, list[list[str]]]:
    """The histogram of some columns, and the values behind the codes of the quasi-identifiers."""
    coded = {name: codes(table[name]) for name in [*quasi, *sensitive]}
    both = [np.stack([coded[n][0] for n in names], axis=1) if names else None for names in (quasi, sensitive)]
    found = Histogram.from_rows(both[0], both[1], quasi_names=quasi, sensitive_names=sensitive)
    return found, [coded[name][1] for name in quasi]


ADULT = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]
WORKER = ["Age", "Gender", "Race", "MaritalStatus", "BirthPlace", "Education", "WorkClass"]


def adult(sensitive: list[str]) -> tuple[Histogram, Recoding]:
    """Adult with ARX's hierarchies, all columns but the sensitive ones quasi-identifiers."""
    quasi = [c for c in ADULT if c not in sensitive]
    found, values = histogram(read(DATA / "adult" / "adult.csv"), quasi, sensitive)
    columns = []
    for name, distinct in zip(quasi, values, strict=True):
        column = hierarchy(DATA / "adult" / "hierarchies" / f"adult_hierarchy_{name}.csv", distinct)
        columns.append(column)
    wide = Histogram(
        found.quasi, found.sensitive, found.count, found.quasi_names, found.sensitive_names,
        tuple(c.size for c in columns), found.sensitive_sizes,
    )  # fmt: skip
    return wide, Recoding(tuple(columns))


def adult_sets(sensitive: list[str]) -> tuple[Histogram, Recoding]:
    """Adult, eight quasi-identifiers: age as a range, the others as sets."""
    quasi = ADULT[:8]
    table = read(DATA / "adult" / "adult.csv")
    found, values = histogram(table, quasi, sensitive)
    columns = [
        ColumnRecoding.range(np.array([float(v) for v in distinct]))
        if name == "age"
        else ColumnRecoding.set(len(distinct))
        for name, distinct in zip(quasi, values, strict=True)
    ]
    return found, Recoding(tuple(columns))


def workers(d: int) -> tuple[Histogram, Recoding]:
    """Census workers, the first d quasi-identifiers, Occupation sensitive, stars."""
    table = read(DATA / "census_income" / "census_income.csv.gz")
    kept = [
        i for i, (a, o) in enumerate(zip(table["Age"], table["Occupation"], strict=True)) if int(a) >= 16 and o != "0"
    ]
    some = {name: [table[name][i] for i in kept] for name in [*WORKER, "Occupation"]}
    found, _ = histogram(some, WORKER[:d], ["Occupation"])
    return found, Recoding.stars(found)
