"""An engine is a file and a line: a toy one, whose frames are lists of rows, goes the whole way."""

import collections
import csv
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.engines.open import ENGINES, Engine
from tests.commands import run

TOY = """
import csv

import polars as pl

from shoal.engines.frames import FrameTable
from shoal.engines.table import Origin, Placed


class Bag:
    def __init__(self, columns, rows):
        self.columns, self.rows = list(columns), list(rows)


def bag(frame):
    return Bag(frame.columns, frame.rows())


class BagTable:
    in_memory = False

    def __init__(self, held, origin):
        self.held, self.origin = held, origin

    @property
    def columns(self):
        return self.held.columns

    @property
    def rows(self):
        return len(self.held.rows)

    def here(self):
        return FrameTable(pl.DataFrame(self.held.rows, schema=self.held.columns, orient="row"))

    def count(self, quasi, sensitive, notations=None):
        return self.here().count(quasi, sensitive, notations)

    def counts(self, names):
        return self.here().counts(names)

    def with_missing(self, names, flag):
        return BagTable(bag(self.here().with_missing(names, flag).polars([*self.columns, flag])), self.origin)

    def filled(self, values):
        return BagTable(bag(self.here().filled(values).polars(self.columns)), self.origin)

    def singled(self, columns):
        return self.here().singled(columns)

    def place(self, *asked):
        found = self.here().place(*asked)
        return Placed(bag(found.tuples.frame() if found.frame is None else found.frame))

    def without(self, names):
        return bag(self.polars([c for c in self.columns if c not in names]))

    def from_polars(self, frame):
        return bag(frame)

    def polars(self, names):
        return self.here().polars(names)

    def slices(self, scratch, tell):
        for start in range(0, max(self.rows, 1), 7):
            yield self.here().polars(self.columns)[start : start + 7]
            tell(min(start + 7, self.rows))

    def parts(self, folder):
        return {}

    def picklable(self):
        return self.held


def table_of(native, origin):
    return BagTable(native, origin)


def read(checked, scope):
    rows = []
    for source in checked.parts.sources:
        with open(source.path, encoding="utf-8", newline="") as file:
            rows += [tuple(x or None for x in line) for line in list(csv.reader(file))[1:]]
    return Bag(checked.names, rows)
"""
ASKED: dict[str, Any] = {"quasi_identifiers": ["town", "age"], "sensitive": ["ill"], "k": 3, "seed": 1}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bags.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(ENGINES, "bags", Engine("Bags", ("bags",), "bags"))
    monkeypatch.setitem(sys.modules, "bags", None)  # put back, that is taken out again, at the end
    monkeypatch.delitem(sys.modules, "bags")
    rng = random.Random(4)
    rows = [(rng.choice(["Ulm", "Bonn"]), rng.randint(30, 33), rng.choice(["flu", "gout"])) for _ in range(30)]
    with (tmp_path / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("town", "age", "ill"), *rows])
    return tmp_path


def classes(path: Path) -> collections.Counter[tuple[str, str]]:
    """Rows of each published tuple, counted from the text of the file."""
    with path.open(newline="") as file:
        return collections.Counter((row["town"], row["age"]) for row in csv.DictReader(file))


@pytest.mark.parametrize("more", [{}, {"publish": "ranges"}, {"missing": "apart"}, {"keep_order": True}])
def test_a_file_goes_through_it(folder: Path, more: dict[str, Any]) -> None:
    source, out = folder / "people.csv", folder / "out.csv"
    release = shoal.anonymize(source, **ASKED, **more, engine="bags")
    assert type(release.table).__name__ == "Bag"
    release.write(out)
    assert min(classes(out).values()) >= 3
    assert sum(classes(out).values()) == 30
    assert shoal.verify(out, original=source).holds
    assert release.certificate.cost == shoal.anonymize(source, **ASKED, **more).certificate.cost


def test_a_frame_of_its_own_is_known(folder: Path) -> None:
    import bags  # type: ignore[import-not-found]

    frame = bags.Bag(["town", "age", "ill"], [("Ulm", 30, "flu")] * 4 + [("Bonn", 31, "gout")] * 4)
    release = shoal.anonymize(frame, **ASKED)
    assert sorted(release.table.rows) == sorted(frame.rows)
    assert shoal.audit(frame, quasi_identifiers=["town", "age"], k=5).passes is False


def test_the_command_line_knows_it(folder: Path) -> None:
    asked = ["people.csv", "--quasi", "town,age", "--sensitive", "ill", "--k", 3, "--json"]
    done = run("anonymize", *asked, "--engine", "bags", "-o", "out.csv", cwd=folder)
    assert done.facts["rows"] == 30
    assert json.loads((folder / "out.certificate.json").read_text())["release"]["rows"] == 30
    assert run("verify", "out.csv", cwd=folder).returncode == 0
    wrong = run("anonymize", *asked, "--engine", "bag", "-o", "other.csv", cwd=folder)
    assert wrong.returncode
    assert "bags" in wrong.stderr
