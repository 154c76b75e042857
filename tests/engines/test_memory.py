"""What a search takes is said before it begins, in one number that docs and refusals share."""

import logging
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines import source
from shoal.engines.source import CELL, DRIVER, DUCKDB, SearchSize, free_memory, refuse_too_many, too_little

ROOT = Path(__file__).parents[2]


class OutOfMemoryException(Exception):
    """As DuckDB's is called."""


def test_a_search_that_cannot_fit_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"age": list(range(40)), "ill": ["a", "b"] * 20})
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "k": 5, "effort": "fast"}
    monkeypatch.setattr(source, "free_memory", lambda: 40 * CELL)
    assert shoal.anonymize(frame, **asked).audit.k >= 5
    said: list[str] = []
    monkeypatch.setattr(source, "free_memory", lambda: 40 * CELL - 1)
    with pytest.raises(
        shoal.InputError, match=r"the search over 40 cells takes about 0\.0 GB of memory \(1 KB a cell\)"
    ):
        shoal.anonymize(frame, **asked, progress=lambda what, _share: said.append(what))
    assert said == ["reading", "counting", "solving"], "before any search"


def test_a_large_search_says_what_it_takes_and_a_small_one_nothing(caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    with caplog.at_level(logging.INFO, logger="shoal"):
        refuse_too_many(SearchSize(1_870_000), lambda what, _share: said.append(what), free=1 << 40)
        refuse_too_many(SearchSize(10_000), lambda what, _share: said.append(what), free=1 << 40)
    assert said == [SearchSize(1_870_000).words().removeprefix("the ")]
    assert "1,870,000 cells takes about 1.9 GB of memory (1 KB a cell)" in said[0]
    assert [record.getMessage() for record in caplog.records] == [SearchSize(1_870_000).words()]


def test_shards_take_less_and_least_where_workers_search_them() -> None:
    """Each cell is held here, and those of one shard are searched here, or none."""
    whole, here, away = SearchSize(1_400_000), SearchSize(1_400_000, 8), SearchSize(1_400_000, 8, away=True)
    assert whole.bytes > here.bytes > away.bytes >= 1_400_000 * 100
    assert SearchSize(1_400_000, 1).bytes == whole.bytes, "one shard is the whole"
    with pytest.raises(shoal.InputError, match=r"Give memory='2\.0GB'"):
        refuse_too_many(whole, lambda *_: None, free=1 << 40, memory="1.5GB")
    with pytest.raises(shoal.InputError, match=r"in 8 shards \(.* KB a cell; 1 KB a cell of the shard searched\)"):
        refuse_too_many(here, lambda *_: None, free=here.bytes - 1)
    refuse_too_many(here, lambda *_: None, free=here.bytes, memory="1.5GB")
    with pytest.raises(shoal.InputError, match="the workers search them"):
        refuse_too_many(away, lambda *_: None, free=away.bytes - 1)
    refuse_too_many(away, lambda *_: None, free=away.bytes)


def test_the_guide_says_the_same_number() -> None:
    for page in ("how-to/larger-than-memory.md", "size.md"):
        text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
        assert f"0.4 GB, plus {CELL // 1000} KB for each cell, plus what" in text
        assert "2.5 KB" not in text


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, None),
        ({"proc/meminfo": "nonsense"}, None),
        ({"proc/meminfo": "MemAvailable: 10 kB\nSwapFree: 5 kB\n"}, 15 * 1024),
        ({"proc/meminfo": "MemAvailable: 10 kB\n"}, 10 * 1024),
        (
            {
                "proc/meminfo": "MemAvailable: 10 kB\n",
                "sys/fs/cgroup/memory.max": "9000\n",
                "sys/fs/cgroup/memory.current": "4000\n",
                "sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 1000\n",
            },
            6000,
        ),
        (
            {
                "proc/meminfo": "MemAvailable: 10 kB\n",
                "sys/fs/cgroup/memory.max": "max\n",
                "sys/fs/cgroup/memory.current": "4000\n",
                "sys/fs/cgroup/memory.stat": "anon 1\n",
            },
            10 * 1024,
        ),
    ],
)
def test_what_is_free_is_what_the_system_and_the_container_leave(
    tmp_path: Path, files: dict[str, str], free: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert free_memory(tmp_path) == free


def test_an_engine_without_memory_says_where_to_give_it_more() -> None:
    java = RuntimeError("An error occurred while calling o1.collect.\n: java.lang.OutOfMemoryError: Java heap space")
    assert too_little(java) == DRIVER
    assert "--driver-memory" in DRIVER
    assert too_little(OutOfMemoryException("Out of Memory Error: failed to allocate")) == DUCKDB
    assert too_little(ValueError("a row with Anna")) == ""
    guide = (ROOT / "docs" / "how-to" / "larger-than-memory.md").read_text(encoding="utf-8")
    assert "PYSPARK_SUBMIT_ARGS" in guide
    assert "PYSPARK_SUBMIT_ARGS" in DRIVER


def test_counting_says_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb", reason="an engine that runs out of memory")
    pl.DataFrame({"age": [30, 31] * 20}).write_parquet(tmp_path / "p.parquet")

    def full(*_: Any, **__: Any) -> Any:
        raise RuntimeError("java.lang.OutOfMemoryError: Java heap space")

    from shoal.engines.lazy import LazyTable
    from shoal.engines.open import open_table

    table = open_table(tmp_path / "p.parquet", "duckdb")
    assert isinstance(table, LazyTable)
    query = type("Query", (), {"collect": full})()
    with pytest.raises(shoal.InputError, match="driver has too little memory"):
        table._collected(query, ["age"])


def test_a_search_that_memory_does_not_leave_is_refused_with_the_least_that_would_do(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")
    said = r"takes about 1\.4 GB .*memory='1GB' does not leave that\. Give memory='2\.0GB' or more"
    with pytest.raises(shoal.InputError, match=said):
        refuse_too_many(SearchSize(1_400_000), lambda *_: None, free=1 << 40, memory="1GB")
    refuse_too_many(SearchSize(1_400_000), lambda *_: None, free=1 << 40, memory="2GB")
    pl.DataFrame({"age": [i % 40 for i in range(200_000)], "n": range(200_000)}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(shoal.InputError, match=r"Give memory='0\.3GB' or more"):
        shoal.anonymize(
            tmp_path / "t.parquet", quasi_identifiers=["age", "n"], k=2, engine="duckdb", memory="200MB", effort="fast"
        )
