"""What was clicked gives the same bytes again without the page: by policy, script, notebook and command line."""

import json
import os
import runpy
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from tests.commands import run
from tests.workbench.simulated import go, see
from tests.workbench.simulated import run as walked

PEOPLE = pl.DataFrame(
    {
        "name": [f"Person{i}" for i in range(90)],
        "age": [20 + i * 7 % 40 for i in range(90)],
        "zip": [f"0123{i % 7}" for i in range(90)],
        "disease": [("flu", "gout", "asthma")[i % 3] for i in range(90)],
    }
)
ASKED = {
    "quasi_identifiers": ["age", "zip"], "sensitive": ["disease"], "identifiers": ["name"], "insensitive": [],
    "k": 4, "l": 2, "effort": "fast", "seed": 7,
}  # fmt: skip


def _comma(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    PEOPLE.write_csv(folder / "it's people.csv")
    return folder / "it's people.csv", {}, {"publish": "stars"}


def _hierarchies(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    PEOPLE.write_csv(folder / "people.csv", separator=";")
    (folder / "tree.csv").write_text("".join(f"0123{i};{'west' if i < 3 else 'east'};*\n" for i in range(7)))
    held = {"zip": str(folder / "tree.csv"), "age": "intervals:10,20"}
    return folder / "people.csv", {"separator": ";"}, {"publish": "hierarchy", "hierarchies": held}


def _close(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    PEOPLE.write_csv(folder / "people.csv")
    (folder / "close.csv").write_text("flu;lungs;*\nasthma;lungs;*\ngout;joints;*\n")
    asked = {"publish": "stars", "l": 1, "t_hierarchical": 0.4, "hierarchies": {"disease": str(folder / "close.csv")}}
    return folder / "people.csv", {}, asked


def _database(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    people = PEOPLE.to_arrow()  # noqa: F841  # DuckDB reads it by its name
    with duckdb.connect(folder / "people.duckdb") as held:
        held.execute("CREATE TABLE visits AS SELECT * FROM people")
    query = "SELECT * FROM visits WHERE zip <> '01236' AND age > 20"
    return folder / "people.duckdb", {"query": query}, {"publish": "ranges", "range_step": {"age": 5.0}}


def _table(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    return _database(folder)[0], {"table": "visits"}, {"publish": "stars"}


OTHERS = [pytest.param(case, marks=pytest.mark.slow) for case in (_hierarchies, _close)]  # differ in settings alone


@pytest.mark.parametrize("case", [_comma, _database, _table, *OTHERS], ids=lambda c: c.__name__.strip("_"))
def test_every_way_out_of_the_page_gives_the_same_bytes(tmp_path: Path, monkeypatch, case: Callable[[Path], Any]):
    table, reading, more = case(tmp_path)
    first = tmp_path / "first"

    async def walk(user: Any, bench: Any) -> None:
        from nicegui import ui

        from shoal.workbench.jobs import look

        await user.open("/")
        (task,) = bench.tasks.values()
        source = {"path": str(table), **reading}
        task.opened(source, look(lambda *_: None, source=source))
        task.settings = {**ASKED, **more}
        await user.open(f"/w/{task.name}")
        go(user, "6 Release")
        fields = user.find(kind=ui.input).elements
        (folder,) = (e for e in fields if str(e.props["label"]).startswith("Folder to keep it in"))
        folder.set_value(str(first))
        user.find(kind=ui.button, content="Make the release").click()
        await see(user, "Verified: it was read back")

    private = tmp_path / "private"
    private.mkdir()
    walked(walk, private)
    (made,) = first.glob("*.release.csv")
    stem, wanted = made.stem, made.read_bytes()
    assert wanted.count(b"\n") > 60

    def fresh(name: str) -> Path:
        """A folder with what the page gave out, without the release itself."""
        place = tmp_path / name
        shutil.copytree(
            first,
            place,
            ignore=shutil.ignore_patterns(f"{stem}.csv", "*.certificate.json", "*.record.json", "*.report.*"),
        )
        monkeypatch.chdir(place)
        return place

    place = fresh("script")
    runpy.run_path(str(place / f"{stem}.py"))
    assert (place / made.name).read_bytes() == wanted

    place = fresh("notebook")
    cells = json.loads((place / f"{stem}.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert (place / made.name).read_bytes() == wanted

    place = fresh("command")
    words = shlex.split((place / f"{stem}.sh").read_text())
    assert words[0] == "shoal"
    run(*words[1:]).ok()
    assert (place / made.name).read_bytes() == wanted

    place = fresh("policy")
    key = (place / "secret.key").read_bytes()
    again = shoal.anonymize(table, shoal.Policy.read(f"{stem}.policy.toml"), secret=key, **reading)
    again.write(made.name)
    assert (place / made.name).read_bytes() == wanted
    other = shoal.anonymize(table, shoal.Policy.read(f"{stem}.policy.toml"), secret=os.urandom(32), **reading)
    other.write("other.csv")
    assert (place / "other.csv").read_bytes() != wanted  # so equal bytes are no accident
