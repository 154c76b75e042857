"""Whatever is handed over, what comes back is an answer or one of shoal's own refusals, in words."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import shoal
from shoal.engines.source import ScopeSettings
from shoal.errors import ShoalError
from shoal.model.settings import Measured
from shoal.problems.gathering.diverse import Conditions
from tests.amount import ALL

POINTS = np.random.default_rng(0).random((12, 2))
TABLE = pl.DataFrame({"a": ["x", "y"] * 10, "b": [*range(5)] * 4, "s": ["u", "v", "w", "z"] * 5})
ROLES: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "insensitive": ["s"], "effort": "fast"}
ODD: list[Any] = [
    0, 1, -1, 2.5, float("nan"), float("inf"), None, "3", "", True, 10**400, np.int64(3), np.float32(2), [], [1], ["a"],
    {}, {"a": 1}, (1, 2), b"x", 1 + 2j, object(),
]  # fmt: skip
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "labels": (shoal.labels.cover, {"sizes": [3, 4, 5, 2, 1], "k": 5}),
    "intervals": (shoal.intervals.cut, {"values": [3, 4, 5, 2, 1], "weights": None, "k": 2}),
    "tiles": (shoal.tiles.split, {"points": POINTS, "k": 3}),
    "gather": (shoal.gathering.gather, {"points": POINTS, "r": 3}),
    "cellular": (shoal.gathering.cellular, {"points": POINTS, "r": 3}),
    "regions": (shoal.regions.merge, {"edges": [(i, i + 1) for i in range(11)], "weights": [1] * 12, "k": 3}),
    "audit": (shoal.audit, {"data": TABLE, "quasi_identifiers": ["a", "b"], "sensitive": ["s"]}),
    "compare": (
        shoal.compare,
        {"original": TABLE, "releases": {"same": TABLE}, "quasi_identifiers": ["a", "b"]},
    ),
    "explore": (shoal.explore, {"data": TABLE, "policy": ROLES, "k": [2]}),
    "anonymize": (shoal.anonymize, {"data": TABLE, **ROLES, "k": 2}),
}
FURTHER = {
    "regions": shoal.regions.Conditions.__annotations__,
    "tiles": shoal.tiles.Conditions.__annotations__,
    "gather": Conditions.__annotations__,
    "cellular": Conditions.__annotations__,
    "anonymize": ScopeSettings.__annotations__,
    "audit": {**Measured.__annotations__, **ScopeSettings.__annotations__},
}  # typed mappings
SAID_BY_PYTHON = {"progress", "each"}  # functions that are called, not values that are read
NO_LIMIT = {"effort"}  # a large number is a long time


def asked_of(name: str) -> list[str]:
    call = CALLS[name][0]
    names = [*inspect.signature(call).parameters]
    if name == "anonymize":
        names += [f.name for f in fields(shoal.Policy)] + ["t", "l", "distinct_l", "entropy_l", "k_map"]
    if name in FURTHER:
        names += [*FURTHER[name], "unheard_of"]
    own = {"settings", "models", "conditions", "values"}
    return [n for n in dict.fromkeys(names) if n not in own | SAID_BY_PYTHON | NO_LIMIT]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_answered_or_refused_in_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.utility.compare.QUERIES", 10)  # their number is no argument
    call, given = CALLS[name]
    said: list[str] = []
    for turn, parameter in enumerate(asked_of(name)):
        for value in ODD if ALL else ODD[turn % 3 :: 3]:  # each parameter a third of them
            try:
                call(**{**given, parameter: value})
            except ShoalError as error:
                said.append(str(error))
            except Exception as error:
                raise AssertionError(f"{name}({parameter}={value!r:.60}) ends in {error!r:.200}") from error
    assert len(said) > (len(ODD) // 2 if ALL else 3)
    assert all(len(words) > 15 for words in said)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "soon", [], None, True])
def test_a_limit_is_a_positive_number_of_seconds(seconds: Any) -> None:
    for name in ("regions", "tiles", "gather", "cellular", "anonymize"):
        if name == "anonymize" and seconds is None:
            continue  # the default
        call, given = CALLS[name]
        with pytest.raises(shoal.PolicyError, match=r"effort|seconds"):
            call(**{**given, "effort": seconds})


def test_a_whole_number_may_be_written_as_any_kind_of_number() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (3, 3.0, np.int8(3), np.float32(3), np.array(3)):
            assert shoal.tiles.split(POINTS, k).certificate.cost == shoal.tiles.split(POINTS, 3).certificate.cost
            assert shoal.gathering.gather(POINTS, k).radius == shoal.gathering.gather(POINTS, 3).radius
            assert shoal.labels.cover([3, 4, 5], k).cost == shoal.labels.cover([3, 4, 5], 3).cost
    with pytest.raises(shoal.PolicyError):
        shoal.gathering.gather(POINTS, 3.5)


@pytest.mark.parametrize(
    "asked",
    [
        {"weights": {"a": 10**400}},
        {"effort": 10**400},
        {"quasi_identifiers": np.array("a")},
        {"data": TABLE.rename({"a": "^x.*$"}), "quasi_identifiers": ["^x.*$"]},
    ],
)
def test_numbers_beyond_floats_arrays_of_nothing_and_patterns_are_refused_in_words(asked: dict[str, Any]) -> None:
    with pytest.raises(ShoalError):
        shoal.anonymize(**({"data": TABLE, **ROLES, "k": 2} | asked))


def test_a_call_that_python_refuses_names_its_function():
    with pytest.raises(TypeError, match=r"cover\(\) missing a required argument: 'k'"):
        shoal.labels.cover([3, 4])


PUBLIC: dict[str, Callable[..., Any]] = {
    **{call.__name__: call for call, _ in CALLS.values()},
    **{name: getattr(shoal, name) for name in ("Recoder", "attack", "verify", "prove", "decode", "assign", "roles")},
    "Series.start": shoal.Series.start, "Series.add": shoal.Series.add, "Series.waiting": shoal.Series.waiting,
    "Release.write": shoal.Release.write, "Release.report": shoal.Release.report, "Recoder.apply": shoal.Recoder.apply,
    "written": shoal.written, "levels": shoal.tiles.levels, "grid": shoal.tiles.grid, "group": shoal.tables.group,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_an_unknown_keyword_is_refused_in_words(name):
    with pytest.raises(shoal.PolicyError, match=f"^'unheard_of' is not an argument of {name}; there is '"):
        PUBLIC[name](unheard_of=1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: shoal.labels.cover([3, 4], 3, seeds=1), "'seeds' is not an argument of cover; did you mean 'seed'"),
        (lambda: shoal.tiles.split(POINTS, 3, bondary=1), "not an argument of split; did you mean 'boundary'"),
        (lambda: shoal.anonymize(TABLE, seperator=";"), "not an argument of anonymize; did you mean 'separator'"),
        (
            lambda: shoal.compare(TABLE, {}, qid=["a"]),
            "not an argument of compare; in shoal this is 'quasi_identifiers'",
        ),
        (lambda: shoal.Recoder(["a"], suppression_limit=0.1), "not an argument of Recoder; in shoal this is 'max_supp"),
        (lambda: shoal.Recoder(["a"]).set_params(kk=3), "'kk' is not an argument of Recoder; did you mean 'k'"),
        (
            lambda: shoal.regions.nested([(0, 1)], [1, 2], [1], islnds="join"),
            "argument of merge; did you mean 'islands'",
        ),
    ],
)
def test_a_misspelled_keyword_is_refused_with_the_one_that_is_meant(call, says):
    with pytest.raises(shoal.PolicyError, match=says):
        call()


def test_a_column_twice_an_empty_table_and_one_row_are_refused_in_words():
    points = pd.DataFrame([[0.0, 0.0, 1.0], [1.0, 1.0, 2.0]], columns=["x", "x", "y"])
    for call in (shoal.tiles.split, shoal.gathering.gather, shoal.gathering.cellular):
        with pytest.raises(shoal.InputError, match=r"^two columns of points have the name 'x'; rename one of them, or"):
            call(points, 1)
        with pytest.raises(shoal.InfeasibleError, match=r"1 record in all|among 1 point;"):
            call(points.iloc[:1, 1:], 2)
    none = TABLE.clear()
    with pytest.raises(shoal.InputError, match=r"^there are no areas$"):
        shoal.regions.merge([], none["b"], 2, similar=none[["b"]])
    with pytest.raises(shoal.InputError, match=r"^the original has no rows; there is nothing to compare with$"):
        shoal.compare(none, {"same": none}, quasi_identifiers=["a", "b"])
    with pytest.raises(shoal.InputError, match="release 1 of the composition has no rows; leave it out"):
        shoal.audit(TABLE, quasi_identifiers=["a", "b"], sensitive=["s"], earlier=none)
    found = shoal.attack(TABLE, earlier=[none], quasi_identifiers=["a", "b"], sensitive=["s"])
    assert "composition with release 1: release 1 of the composition has no rows; leave it out" in found.notes
