"""Parts counted by the workers of an engine: the judge refuses there what it refuses here, and workers that err."""

import hashlib
import io
import json
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines import duck, order, store
from shoal.engines.source import Scope
from shoal.errors import PolicyError, VerificationError
from shoal.judge.file import same_counts
from shoal.judge.tables import large
from shoal.pipeline import prepare
from shoal.publishing.tables import writing
from tests.commands import run
from tests.engines.conftest import spark
from tests.engines.test_parts import ASKED, SECRET, in_parts, people, rows_in

duckdb = pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")
__all__ = ["spark"]

HERE = ["a", "s"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of few rows, so that a small table has several."""
    for module, name in ((store, "PART_ROWS"), (writing, "PART_ROWS"), (order, "_MOST_ROWS")):
        monkeypatch.setattr(module, name, 60)
    monkeypatch.setattr(order, "_FINE", 8)


def held_by(engine: str, folder: Path, request: pytest.FixtureRequest) -> Any:
    """The rows of a folder as a frame of an engine."""
    if engine == "spark":
        return request.getfixturevalue("spark").read.parquet(str(folder))
    if engine == "duckdb":
        return duck.connect(Scope()).sql(f"from read_parquet('{folder}/*')")
    ibis = pytest.importorskip("ibis", reason="tables of Ibis need ibis-framework")
    return ibis.duckdb.connect().read_parquet(f"{folder}/*")


@pytest.mark.diagonal
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["duckdb", "ibis", "spark"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("carried", [True, False])
def test_every_engine_judges_what_it_wrote(
    tmp_path: Path, engine: str, ending: str, carried: bool, request: pytest.FixtureRequest
) -> None:
    frame = held_by(engine, in_parts(people(240, carried), tmp_path / "in", "parquet"), request)
    asked = ASKED | {"insensitive": ["note"] if carried else [], "secret": SECRET}
    record = prepare(frame, **asked, judge="engine").write(tmp_path / "out", parts=ending)
    prepare(frame, **asked).write(tmp_path / "here", parts=ending)
    assert shoal.verify(tmp_path / "out", record).holds
    assert rows_in(tmp_path / "out") == rows_in(tmp_path / "here")
    parts = json.loads((tmp_path / "out" / "manifest.json").read_text())["parts"]
    assert sum(part["rows"] for part in parts) == 240
    for part in parts:
        assert part["sha256"] == hashlib.sha256((tmp_path / "out" / part["file"]).read_bytes()).hexdigest()


def test_rows_are_the_same_whoever_judges_them(tmp_path: Path) -> None:
    """One secret places every row in the same group, also where a cell is split between groups."""
    drawn = np.random.default_rng(0)
    frame = pl.DataFrame({"a": drawn.integers(0, 4, 400), "b": drawn.integers(0, 5, 400), "row": range(400)})
    frame = frame.with_columns(s=pl.Series(drawn.choice(["p", "q", "r"], 400, p=[0.4, 0.35, 0.25])))
    asked = ASKED | {"k": 5, "l": 2, "publish": "ranges", "insensitive": ["row"], "secret": SECRET}
    for judge in ("here", "engine"):
        release = prepare(duckdb.connect().from_arrow(frame.to_arrow()), **asked, judge=judge)
        assert (np.bincount(release._placement.expected.partition.cell) > 1).any()
        release.write(tmp_path / judge)
    assert rows_in(tmp_path / "here") == rows_in(tmp_path / "engine")


def _changed(folder: Path, parts: list[Path]) -> None:
    frame = pl.read_parquet(parts[0])
    other = frame["s"].unique().sort()
    new = other[0] if frame["s"][0] != other[0] else other[1]
    frame.with_columns(pl.Series("s", [new, *frame["s"][1:].to_list()])).write_parquet(parts[0])


def _dropped(folder: Path, parts: list[Path]) -> None:
    pl.read_parquet(parts[-1])[1:].write_parquet(parts[-1])


def _swapped(folder: Path, parts: list[Path]) -> None:
    shutil.copyfile(parts[1], parts[0])


def _cut_short(folder: Path, parts: list[Path]) -> None:
    parts[0].write_bytes(parts[0].read_bytes()[:-9])


def _another(folder: Path, parts: list[Path]) -> None:
    pl.read_parquet(parts[0]).rename({"note": "other"}).write_parquet(parts[0])


def _gone(folder: Path, parts: list[Path]) -> None:
    parts[1].unlink()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("judge", ["here", "engine"])
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_forged_part_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: str, engine: str, request: pytest.FixtureRequest
) -> None:
    frame = held_by(engine, in_parts(people(240), tmp_path / "in", "parquet"), request)
    release = prepare(frame, **ASKED, insensitive=["note"], judge=judge)
    whole = writing.read_back
    for harm in (_changed, _dropped, _swapped, _cut_short, _another, _gone):

        def harmed(release: Any, folder: Path, *rest: Any, harm: Callable[..., None] = harm) -> Any:
            harm(folder, sorted(folder.glob("*.parquet"), key=lambda p: -p.stat().st_size))
            return whole(release, folder, *rest)

        monkeypatch.setattr(writing, "read_back", harmed)
        with pytest.raises(VerificationError) as refused:
            release.write(tmp_path / "out", parts="parquet")
        assert not any(f"'{value}'" in str(refused.value) for value in "abcdefpqrs"), "no value of a row"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


@pytest.fixture(params=["parquet", "csv"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return in_parts(people(200), tmp_path / "in", request.param, 4)


Changes = Callable[[pl.DataFrame], pl.DataFrame]


def at_once(each: Any, tasks: Sequence[bytes], together: Any) -> Iterator[tuple[int, bytes]]:
    """What workers would answer, its functions sent as they are sent to workers."""
    each, together = pickle.loads(pickle.dumps((each, together)))
    answers: dict[int, list[bytes]] = {}
    for number, held in (answer for task in tasks for answer in each(task)):
        answers.setdefault(number, []).append(held)
    yield from ((number, together(held)) for number, held in answers.items())


def _spreads(facts: Changes | None = None, counted: Changes | None = None, tasks: Any = list) -> Any:
    """Workers that change what they tell of parts, what they counted, or which parts they look at."""

    def spread(each: Any, given: Sequence[bytes], together: Any) -> Iterator[tuple[int, bytes]]:
        for number, held in at_once(each, tasks(given), together):
            frame, change = pl.read_ipc(io.BytesIO(held)), facts if number < 0 else counted
            out = io.BytesIO()
            (frame if change is None else change(frame)).write_ipc(out)
            yield number, out.getvalue()

    return spread


def test_what_workers_count_is_what_is_counted_here(folder: Path) -> None:
    here = large.count_release(folder, HERE)
    for spread, ask in ((at_once, None), (None, lambda sql: duck.answered(duckdb.connect(), sql))):
        there = large.count_elsewhere(folder, HERE, ",", spread, ask)
        large.refuse_other((here.cells, here.counts), (there.cells, there.counts), "csv")
        assert there.columns == here.columns
        assert there.digests == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


LIES: dict[str, dict[str, Any]] = {
    "a digest": {"facts": lambda f: f.with_columns(sha256=f["sha256"].gather([1, 0, *range(2, len(f))]))},
    "rows": {"facts": lambda f: f.with_columns(rows=f["rows"] + 1)},
    "two parts for one another": {"facts": lambda f: f.with_columns(file=f["file"].gather([1, 0, 2, 3]))},
    "a part twice": {"tasks": lambda given: [*given, given[0]]},
    "a part less": {"tasks": lambda given: given[1:]},
    "one part for another": {"tasks": lambda given: [given[1], *given[1:]]},
    "a row more": {"counted": lambda f: f.with_columns(n=f["n"] + 1)},
    "a tuple less": {"counted": lambda f: f[1:]},
    "another value": {"counted": lambda f: f.with_columns(c1=f["c1"].str.replace("p", "q"))},
    "rows moved": {"counted": lambda f: f.with_columns(n=f["n"].reverse())},
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("again", [4, 0])
def test_workers_that_err_are_seen(folder: Path, lie: str, again: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted and how often each part is told is checked whether a part is read here again or not."""
    monkeypatch.setattr(large, "_AGAIN", again)
    if not again and lie in ("a digest", "two parts for one another"):
        return  # which a look at the part alone tells
    with pytest.raises(VerificationError, match=r"workers|cannot be read back"):
        large.count_elsewhere(folder, HERE, ",", _spreads(**LIES[lie]), None)


def test_a_part_that_no_worker_reads_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "_AGAIN", 0)

    def spread(*given: Any) -> Any:
        sorted(folder.iterdir())[2].write_bytes(b"PAR1 nothing")
        return at_once(*given)

    with pytest.raises(VerificationError, match=r"'p2.* cannot be read back"):
        large.count_elsewhere(folder, HERE, ",", spread, None)


def test_a_missing_value_is_no_empty_text(tmp_path: Path) -> None:
    place = in_parts(people(200), tmp_path / "in", "parquet", 4)
    spread = _spreads(counted=lambda f: f.with_columns(c0=f["c0"].fill_null("")))
    with pytest.raises(VerificationError, match="workers"):
        large.count_elsewhere(place, HERE, ",", spread, None)


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ("count(*)", "count(*) + 1"),
        ("count(*)", "count(c0)"),
        ("count(*)", "count(distinct s)"),
        ("group by all", "group by all limit 2"),
        ("group by all", "where s <> 'p' group by all"),
        ('"a" as', '"b" as'),
        ('"s" as', 'upper("s") as'),
        ('"s" as', "coalesce(nullif(\"s\", 'p'), 'q') as"),
        ("in/p1.", "in/p0."),
    ],
)
def test_a_query_that_errs_is_seen(folder: Path, asked: str, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "_AGAIN", 4)

    def ask(sql: str) -> Any:
        return duck.answered(duckdb.connect(), sql.replace(asked, changed))

    with pytest.raises(VerificationError, match=r"not what the workers reported|columns"):
        large.count_elsewhere(folder, HERE, ",", None, ask)


def test_names_and_texts_that_mean_something_in_a_query(tmp_path: Path) -> None:
    for ending in ("parquet", "csv"):
        place = tmp_path / f"it's [one] of * {ending}"
        place.mkdir()
        frame = pl.DataFrame({'say "a"': ["it's", 'a "b"', None, "x,y", "*"], "c'd": [1, 2, 3, 4, 5]})
        (frame.write_parquet if ending == "parquet" else frame.write_csv)(place / f"p'[0].{ending}")
        names = frame.columns
        here = large.count_release(place, names)
        there = large.count_elsewhere(place, names, ",", None, lambda sql: duck.answered(duckdb.connect(), sql))
        assert same_counts((here.cells, here.counts), (there.cells, there.counts), form=ending)


def test_it_is_refused_where_no_engine_judges(tmp_path: Path) -> None:
    frame, asked = people(60), ASKED | {"insensitive": ["note"]}
    with pytest.raises(PolicyError, match=r"judge='engine'.* leave it out"):
        prepare(frame, **asked, judge="engine")
    made = prepare(duckdb.connect().from_arrow(frame.to_arrow()), **asked, judge="engine")
    with pytest.raises(PolicyError, match=r"judge='engine'.* name a folder"):
        made.write(tmp_path / "out.csv")
    with pytest.raises(PolicyError, match=r"judge='engine'.* leave it out"):
        made.with_table(frame).write(tmp_path / "out.csv")
    with pytest.raises(PolicyError, match="nobody"):
        shoal.Policy(quasi_identifiers=["a"], k=2, judge="nobody")
    assert not list(tmp_path.iterdir())


def test_the_command_asks_for_it(tmp_path: Path) -> None:
    in_parts(people(120), tmp_path / "in", "parquet")
    asked = ["in", "--quasi", "a,b", "--sensitive", "s", "--insensitive", "note", "--k", 3]
    run("anonymize", *asked, "--judge", "engine", "-o", "out", cwd=tmp_path).ok()
    assert '"judge": "engine"' in (tmp_path / "out.record.json").read_text()
    assert '"judge"' not in (tmp_path / "out.certificate.json").read_text()
    assert run("verify", "out", cwd=tmp_path).returncode == 0
