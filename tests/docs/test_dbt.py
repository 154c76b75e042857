"""The dbt model of the guide, run as dbt would run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "schedule.md"


def test_the_model_of_the_guide_gives_the_released_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas", reason="dbt hands over frames of pandas")
    n = 60
    visits = pandas.DataFrame(
        {"age": [20 + i % 7 for i in range(n)], "zip": ["a", "b"] * 30, "illness": ["p", "q", "r"] * 20}
    )
    told: dict[str, Any] = {}

    class Ref:
        def df(self) -> Any:
            return visits

    class Dbt:
        def config(self, **given: Any) -> None:
            told.update(given)

        def ref(self, name: str) -> Ref:
            assert name == "visits"
            return Ref()

    found = re.search(r"(?ms)^## dbt$.*?^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"))
    assert found is not None
    names: dict[str, Any] = {}
    exec(compile(found[1], str(PAGE), "exec"), names)
    monkeypatch.setenv("SHOAL_SECRET", "sixteen bytes or more")
    first, again = (names["model"](Dbt(), None) for _ in range(2))
    assert told["materialized"] == "table"
    assert len(first) == n
    assert first.equals(again)
    assert first.groupby(["age", "zip"], dropna=False).size().min() >= 5
