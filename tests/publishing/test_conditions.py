"""A condition of tiles, labels, intervals or clusters is one entry: option, keyword, line on the certificate, and what
``prove`` asks again follow.

Those of regions are in ``tests/regions/test_conditions.py``.
"""

from inspect import signature
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.cli import program
from shoal.engines.features import codes_of
from shoal.model.conditions import (
    CELLULAR_CONDITIONS,
    CONDITIONS,
    GATHER_CONDITIONS,
    INTERVAL_CONDITIONS,
    LABEL_CONDITIONS,
    TILE_CONDITIONS,
    Condition,
)
from shoal.problems.tiles.result import Conditions
from shoal.publishing.crosswalks.grouped import as_split
from shoal.report.crosswalk import question
from tests.data import AGES, LINE, NAMES

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
    seed = {"seed": 7} if stated["center"] == "draw" else {}
    again = shoal.tiles.split(FRAME.select("x", "y").to_numpy(), 4, **as_split(stated, FRAME), **seed)
    assert [*again.labels] == [*answer.labels]


def test_certificates_keep_their_keys() -> None:
    assert {entry.key for entry in TILE_CONDITIONS.values()} == set(TILE_CONDITIONS)


TABLES: dict[str, tuple[dict[str, Condition], Any, str, pl.DataFrame, dict[str, Any]]] = {
    "labels": (LABEL_CONDITIONS, shoal.labels.cover, "shoal.problems.labels.cover", NAMES, {"label": "name"}),
    "intervals": (INTERVAL_CONDITIONS, shoal.intervals.cut, "shoal.problems.intervals.cut", AGES, {"value": "age"}),
    "gather": (
        GATHER_CONDITIONS, shoal.gathering.gather, "shoal.problems.gathering.gather", LINE, {"columns": ["x"]}
    ),
    "cellular": (
        CELLULAR_CONDITIONS, shoal.gathering.cellular, "shoal.problems.gathering.cellular", LINE, {"columns": ["x"]}
    ),
}  # fmt: skip
ASKED: dict[str, dict[str, Any]] = {  # a value of each condition
    "labels": {"count": "people", "k": 4, "objective": "squares"},
    "intervals": {"count": None, "k": 3, "objective": "count"},
    "gather": {"r": 3, "epsilon": 0.1, "sensitive": ["d"], "l": 2, "distinct_l": 2, "max_clusters": 4},
    "cellular": {"r": 3, "epsilon": 0.1, "sensitive": ["d"], "l": 2, "distinct_l": 2, "setup_cost": 1.5,
                 "max_diameter": 30.0},
}  # fmt: skip
ASKED["gather of few"] = {n: v for n, v in ASKED["gather"].items() if n not in ("sensitive", "l", "distinct_l")}
del ASKED["gather"]["max_clusters"]  # it is not offered together with a condition on sensitive values


def solved(kind: str, asked: dict[str, Any]) -> Any:
    """The answer to what is asked, by the entries of the table."""
    table, solve, _, frame, _ = TABLES[kind]
    said = {table[name].keyword: value for name, value in asked.items() if table[name].read == "plain"}
    if kind == "labels":
        return solve(frame[asked["count"]], **said)
    if kind == "intervals":
        return solve(frame["age"], None, **said)
    held = {"sensitive": codes_of(frame, asked["sensitive"])} if asked.get("sensitive") else {}
    return solve(frame.select("x").to_numpy(), **said, **held)


@pytest.mark.parametrize("kind", TABLES)
def test_every_condition_is_tried_and_is_an_option_and_a_keyword(kind: str) -> None:
    table, solve, *_ = TABLES[kind]
    assert set().union(*(asked for name, asked in ASKED.items() if name.startswith(kind))) == set(table)
    options = {option: p for p in program().commands[kind].params for option in p.opts}
    for name, entry in table.items():
        assert options[entry.setting.option].help == entry.setting.help
        assert options[entry.setting.option].required == (name in ("k", "r"))
        if entry.read == "plain" and name not in ("l", "distinct_l"):  # those are among the conditions of groups
            assert entry.keyword in signature(solve).parameters


@pytest.mark.parametrize("asked_for", ASKED)
def test_the_certificate_states_what_is_asked_and_proving_asks_it_again(
    asked_for: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, asked = asked_for.split()[0], ASKED[asked_for]
    table, solve, place, frame, columns = TABLES[kind]
    more = {name: asked[name] for name in ("count", "sensitive") if name in asked}
    made = shoal.release(solved(kind, asked), frame, **columns, **more)
    stated = {name: [v] if name in ("l", "distinct_l") else v for name, v in asked.items()}
    assert {name: made.parameters[table[name].key] for name in asked} == stated
    again: list[dict[str, Any]] = []
    monkeypatch.setattr(place, lambda *given, **said: again.append(said) or solve(*given, **said))
    beside = made.write(tmp_path / "x.csv")
    assert shoal.prove(tmp_path / "x.csv", beside, frame, effort="fast").findings
    plain = {table[name].keyword: stated[name] for name in asked if table[name].read == "plain"}
    assert plain.items() <= again[0].items()
    assert again[0].get("l") == stated.get("l")


SENTENCES = {
    "regions": {
        "boundary": ("state", "No region mixes values of state."),
        "soft_boundary": ("state", "A region mixes values of state only where it must."),
        "fixed": ("town", "What has the same value of town stays together."),
        "apart": ("lab", "What has the same value of lab shares no region."),
        "at_most": ({"people": 90_000}, "No region has more than 90,000 people."),
        "sensitive": (["flu", "gout"], "The sensitive values are those of flu, gout."),
        "l": (3, "At most one in 3 of a region's records share a sensitive value."),
        "max_diameter": (1, "No region is wider than 1."),
    },
    "tiles": {
        "boundary": ("state", "No tile mixes values of state."),
        "sensitive": ("ill", "The sensitive values are those of ill."),
        "l": (2.5, "At most one in 2.5 of a tile's records share a sensitive value."),
        "max_width": (0.5, "No side of a tile is longer than 0.5."),
    },
    "gather": {
        "sensitive": (["ill"], "The sensitive values are those of ill."),
        "l": ([2, 3], "At most one in 3 of a cluster's records share a sensitive value."),
    },
    "cellular": {"max_diameter": (4.0, "No cluster is wider than 4.")},
    "labels": {},
    "intervals": {},
}


@pytest.mark.parametrize("kind", CONDITIONS)
def test_the_report_says_each_condition_in_the_sentence_of_its_entry(kind: str) -> None:
    said = SENTENCES[kind]
    assert {name for name, entry in CONDITIONS[kind].items() if entry.sentence} >= set(said)
    rest = {"objective": "max", "weight": ["people"], "k": [5], "columns": ["x"], "place": None}
    begun = question({"kind": kind, "k": 5, "parameters": rest | {"l": 1, "at_most": {}}})
    for name, (value, sentence) in said.items():
        asked = {CONDITIONS[kind][name].key: value}
        assert question({"kind": kind, "k": 5, "parameters": rest | asked}) == f"{begun} {sentence}"
    every = {CONDITIONS[kind][name].key: value for name, (value, _) in said.items()}
    together = " ".join([begun, *(sentence for _, sentence in said.values())])
    assert question({"kind": kind, "k": 5, "parameters": rest | every}) == together
