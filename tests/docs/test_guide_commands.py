"""Every command of the guide and the README that stands in a block runs, on tables that hold what it names.

A command whose line ends in ``# exit 1`` must leave with that status, every other with 0. A block of TOML that begins
with the name of a file, as ``# policy.toml``, is that file.  Where neither says otherwise, searches are fast.
"""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.cli import program
from tests.commands import run
from tests.data import drawn
from tests.docs.test_examples import DOCS, PAGES, blocks
from tests.engines.test_arx import TABLE, project

ELSEWHERE = {"commands.md", "start.md"}  # run by tests of their own
SETTINGS = 'quasi_identifiers = ["age", "zip"]\nsensitive = ["disease"]\nidentifiers = ["name", "sex"]\nk = 5\n'
NEEDS = {"tables.md": "cryptography", "larger-than-memory.md": "duckdb", "places.md": "shapely",
         "regions.md": "shapely", "gathering.md": "matplotlib"}  # fmt: skip


def commands(page: Path) -> list[str]:
    """The commands of a page's blocks without a language, or of a console, without remarks."""
    found = re.findall(r"(?ms)^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"))
    text = "\n".join(text for kind, text in found if kind in ("", "console", "bash"))
    return re.findall(r"(?m)^(?:\$ )?shoal (.*)$", text.replace("\\\n", " "))


def people(rows: int = 300) -> pl.DataFrame:
    """Rows with names, ages, zips, sexes and diseases."""
    zips, ills = ["01230", "01231", "01232"], ["flu", "gout", "asthma", "burn"]
    names = pl.DataFrame({"name": [f"P{i}" for i in range(rows)]})
    return names.hstack(drawn(rows, 3, age=(20, 50), zip=zips, sex="fm", disease=ills))


def _people(folder: Path) -> None:
    people().write_csv(folder / "people.csv")
    for name in ("policy.toml", "p.toml"):
        (folder / name).write_text(SETTINGS)


def _records(folder: Path) -> None:
    rng, rows = np.random.default_rng(4), 120
    places = {"lat": 48 + rng.random(rows), "lng": 9 + rng.random(rows)}
    seen = pl.Series("seen", [f"2024-03-{1 + i % 28:02}" for i in range(rows)])
    people(rows).drop("name", "zip").with_columns(
        seen, **{name: pl.Series(held) for name, held in places.items()}
    ).write_csv(folder / "people.csv")


def _ages(folder: Path) -> None:
    people(6000).select("age").write_csv(folder / "people.csv")


def _names(folder: Path) -> None:
    counts = [int(40_000 / (i + 1)) for i in range(60)]
    pl.DataFrame({"name": [f"Name {i}" for i in range(60)], "count": counts}).write_csv(folder / "names.csv")


def _project(folder: Path) -> None:
    project(folder / "study.deid")
    TABLE.write_csv(folder / "people.csv")
    exec(next(code for _, code in blocks(DOCS / "moving.md") if "patients.csv" in code), {})


def _areas(folder: Path) -> None:
    ids = [f"01{230 + i}" for i in range(25)]
    pl.DataFrame({"id": ids, "population": [18_000 + 500 * i for i in range(25)]}).write_csv(folder / "nodes.csv")
    pl.DataFrame({"u": ids[:-1], "v": ids[1:]}).write_csv(folder / "edges.csv")
    features = [
        {"type": "Feature", "properties": {"id": name}, "geometry": {"type": "Polygon", "coordinates": [
            [[9 + x / 10, 48], [9.1 + x / 10, 48], [9.1 + x / 10, 48.1], [9 + x / 10, 48.1], [9 + x / 10, 48]]]}}
        for x, name in enumerate(ids)
    ]  # fmt: skip
    (folder / "boundaries.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    people().select("zip", "age").write_csv(folder / "people.csv")


def _pickups(folder: Path) -> None:
    rng = np.random.default_rng(5)
    at = {"lng": 9 + rng.random(80), "lat": 48 + rng.random(80), "count": rng.integers(1, 30, 80)}
    pl.DataFrame(at).write_csv(folder / "pickups.csv")


def _visits(folder: Path) -> None:
    (folder / "visits").mkdir()
    people().select("age", "zip", pl.col("disease").alias("illness")).write_parquet(
        folder / "visits" / "part-0.parquet"
    )
    people().write_csv(folder / "june.csv")
    people(280).write_csv(folder / "july.csv")


def _front(folder: Path) -> None:
    _people(folder)
    rng = np.random.default_rng(5)
    pl.DataFrame({"lng": 9 + rng.random(80), "lat": 48 + rng.random(80)}).write_csv(folder / "points.csv")


MADE: dict[str, Callable[[Path], None]] = {
    "README.md": _front, "choosing.md": _people, "tables.md": _people, "gathering.md": _records, "intervals.md": _ages,
    "labels.md": _names, "moving.md": _project, "regions.md": _areas, "tiles.md": _pickups,
    "larger-than-memory.md": _visits,
}  # fmt: skip


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p) and p.name not in ELSEWHERE], ids=lambda p: p.name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    if page.name in MADE:
        MADE[page.name](tmp_path)
    else:  # the page makes its files itself
        exec(compile(blocks(page)[0][1], str(page), "exec"), {})
        for name, text in re.findall(r"(?ms)^```toml\n# (\S+\.toml)\n(.*?)^```", page.read_text(encoding="utf-8")):
            Path(name).write_text(text if "effort" in text else f'effort = "fast"\n{text}', encoding="utf-8")
    for line in commands(page):
        words = shlex.split(line.replace("/scratch", "."), comments=True)
        quick = any("--effort" in p.opts for p in program().commands[words[0]].params)
        done = run(*words, *(("--effort", "fast") if quick else ()))
        status = re.search(r"# exit (\d)$", line)
        assert done.returncode == (int(status[1]) if status else 0), (line, done.said)
