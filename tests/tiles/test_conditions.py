"""A condition of tiles is one entry: its option, its keyword of ``split`` and its line on the certificate follow."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import shoal
from shoal.cli.commands import program
from shoal.model.settings import TILE_CONDITIONS
from shoal.problems.tiles.result import Conditions
from shoal.publishing.crosswalks.grouped import as_split

FRAME = pl.DataFrame(
    {
        "x": [float(i % 6) for i in range(36)], "y": [float(i // 6) for i in range(36)], "state": ["a", "b"] * 18,
        "ill": ["flu", "gout", "cough"] * 12, "who": list(range(36)), "home": list(range(36)),
    }
)  # fmt: skip
TRIED: dict[str, tuple[Any, dict[str, Any]]] = {  # a value, and what has to go with it
    "boundary": ("state", {}),
    "sensitive": ("ill", {"distinct_l": 2}),
    "person": ("who", {}),
    "household": ("home", {}),
    "l": (1.5, {"sensitive": "ill"}),
    "distinct_l": (2, {"sensitive": "ill"}),
    "max_width": (5.0, {}),
    "grid": (2.0, {}),
    "extent": ("data", {}),
    "center": ("draw", {}),
    "sparse": ("leave-out", {}),
    "seed": (7, {"center": "draw"}),
}


def test_every_condition_is_tried_and_none_of_split_is_forgotten() -> None:
    assert set(TRIED) == set(TILE_CONDITIONS) == set(Conditions.__annotations__)
    assert {entry.keyword for entry in TILE_CONDITIONS.values()} == set(TILE_CONDITIONS)


@pytest.mark.parametrize("name", TRIED)
def test_option_keyword_and_certificate_say_the_same(name: str) -> None:
    entry, (value, more) = TILE_CONDITIONS[name], TRIED[name]
    options = {option for p in program().commands["tiles"].params for option in p.opts}
    assert entry.setting.option in options
    asked = {name: value, **more}
    answer = shoal.tiles.split(FRAME.select("x", "y").to_numpy(), 4, **as_split(asked, FRAME))
    columns = {n: column for n, column in asked.items() if TILE_CONDITIONS[n].read == "texts"}
    stated = shoal.release(answer, FRAME, x="x", y="y", **columns).parameters
    if entry.setting.stated == "never":
        assert name not in stated
        return
    assert stated[entry.key] == value
    again = shoal.tiles.split(FRAME.select("x", "y").to_numpy(), 4, **{**as_split(stated, FRAME), "seed": 7})
    assert [*again.labels] == [*answer.labels]


def test_certificates_keep_their_keys() -> None:
    assert {entry.key for entry in TILE_CONDITIONS.values()} == set(TILE_CONDITIONS)
