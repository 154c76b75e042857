"""A condition of regions is one entry: its option, its keyword of ``merge`` and its line on the certificate follow."""

from typing import Any

import numpy as np
import pytest

import shoal
from shoal.cli import program
from shoal.cli.options import conditions
from shoal.engines.geography import geography
from shoal.model.conditions import AREA_CONDITIONS, complete
from shoal.problems.regions import merge
from shoal.problems.regions.request import Conditions
from shoal.publishing.crosswalks.areas import as_merged
from tests.commands import options

FOUND_ELSEWHERE = {"coordinates", "geographic", "islands", "start", "exclude"}  # in the files, or asked of single areas
COLUMNS = {
    "people": [4, 5, 6, 5, 4, 6, 0, 5], "state": list("aaaabbbb"), "county": list("ccddeeff"),
    "pair": ["p", "p", "", "", "q", "q", "", ""], "foe": ["", "", "v", "", "", "", "", "v"],
    "ill": [1, 1, 2, 1, 1, 2, 0, 1],
    "hurt": [1, 1, 2, 1, 1, 2, 0, 1], "well": [3, 4, 4, 4, 3, 4, 0, 4], "income": [1.0, 2, 3, 4, 5, 6, 7, 8],
    "lake": ["no"] * 6 + ["yes", "no"],
}  # fmt: skip
TRIED: dict[str, tuple[str, Any]] = {  # as typed, and as a value
    "boundary": ("state", "state"),
    "soft_boundary": ("county", "county"),
    "fixed": ("pair", "pair"),
    "apart": ("foe", "foe"),
    "at_most": ("people=15", {"people": 15}),
    "sensitive": ("ill,hurt", ["ill", "hurt"]),
    "l": ("1", 1),
    "similar": ("income", ["income"]),
    "regions": ("2", 2),
    "max_diameter": ("4.5", 4.5),
    "water": ("lake", "lake"),
    "sums": ("ill,well", ["ill", "well"]),
    "means": ("income", ["income"]),
}


def test_every_condition_is_tried_and_none_of_merge_is_forgotten() -> None:
    assert set(TRIED) == set(AREA_CONDITIONS)
    keywords = {entry.keyword for entry in AREA_CONDITIONS.values()} - {""}
    assert keywords | FOUND_ELSEWHERE == set(Conditions.__annotations__)


@pytest.mark.parametrize("name", TRIED)
def test_option_keyword_and_certificate_say_the_same(name: str) -> None:
    entry, (typed, value) = AREA_CONDITIONS[name], TRIED[name]
    assert options(conditions(AREA_CONDITIONS), [entry.setting.option, typed]) == {name: value}
    assert entry.setting.option in {option for p in program().commands["regions"].params for option in p.opts}
    assert len(entry.setting.help.split()) > 2
    given = geography(range(8), [(i, i + 1) for i in range(7)], COLUMNS)
    more = {"l": 2} if name == "sensitive" else {}  # it has no effect without l
    asked = complete(AREA_CONDITIONS, {name: value} | more)
    as_asked = as_merged(asked, given) if name not in ("sums", "means") else as_merged({"l": 1}, given)
    where = {"coordinates": np.column_stack([np.arange(8.0), np.zeros(8)]), "geographic": False}
    answer = merge(given.edges, COLUMNS["people"], 5, seed=1, effort="fast", **where, **as_asked)
    made = shoal.release(answer, given, weight="people", geographic=False, **{name: value}, **more)
    stated = made.parameters
    assert stated[entry.key] == value
    default = shoal.release(
        merge(given.edges, COLUMNS["people"], 5, seed=1, effort="fast"), given, weight="people"
    ).parameters
    assert (entry.key in default) is (entry.setting.stated == "always")
    for keyword, held in as_merged(stated, given).items():
        assert repr(held) == repr(as_asked[keyword])


def test_levels_have_numbers_of_their_own() -> None:
    asked = conditions(AREA_CONDITIONS)
    most = options(asked, ["--at-most", "people=15,40", "--at-most", "areas=3"])
    assert most == {"at_most": {"people": (15, 40), "areas": 3}}
    assert options(asked, ["--regions", "4,2"]) == {"regions": (4, 2)}


def test_certificates_keep_their_keys() -> None:
    assert [entry.key for entry in AREA_CONDITIONS.values()] == [
        "boundary", "soft_boundary", "fixed", "apart", "at_most", "sensitive", "l", "similar", "regions",
        "max_diameter", "water", "sum", "mean",
    ]  # fmt: skip
