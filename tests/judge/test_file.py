"""A release's file is the one that is named, whatever stands in the name."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from shoal.judge.file import read_release


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_brackets_and_stars_in_a_name_are_no_patterns(tmp_path: Path, ending: str) -> None:
    for number, name in enumerate(("p[1]", "p1", "p*")):
        frame, path = pl.DataFrame({"a": [str(number)]}), tmp_path / f"{name}.{ending}"
        frame.write_parquet(path) if ending == "parquet" else frame.write_csv(path)
    assert read_release(tmp_path / f"p[1].{ending}")["a"].to_list() == ["0"]
    assert read_release(tmp_path / f"p*.{ending}")["a"].to_list() == ["2"]


def test_a_folder_named_like_a_column_says_nothing_of_a_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "a=7").mkdir()
    pl.DataFrame({"b": ["x"]}).write_parquet(tmp_path / "a=7" / "p.parquet")
    assert read_release(tmp_path / "a=7" / "p.parquet").columns == ["b"]
