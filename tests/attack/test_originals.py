"""Originals that agree: counted against every table there is, with planted figures and with what shoal writes."""

import itertools
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.attacks.public_files import agreeing
from shoal.attacks.reading import read
from tests.attack.test_attack import by_name

NAME = "files, originals that agree"
VALUES = pl.DataFrame({"a": ["1", "2", "3"], "b": ["x", "y", "x"]})
RELEASE = pl.DataFrame({"a": ["1", "1", "*", "*", "{2, 3}"], "b": ["x", "x", "*", "*", "y"], "s": list("pqpqp")})
ORIGINAL = pl.DataFrame({"a": list("11322"), "b": list("xxxyy"), "s": list("pqpqp")})


def every_original() -> list[Counter[tuple[str, str, str]]]:
    """Every multiset of rows: the two plain ones, one of six tuples with p, one with q, 2 or 3 with y."""
    six = list(itertools.product("123", "xy"))
    return [
        Counter([("1", "x", "p"), ("1", "x", "q"), (*p, "p"), (*q, "q"), (a, "y", "p")])
        for p in six for q in six for a in "23"
    ]  # fmt: skip


def agreed(told: dict[str, Any]) -> tuple[int, int]:
    found = agreeing(read(RELEASE, ["a", "b"], ["s"], [VALUES]), [told])
    assert found is not None
    return found


def quasi(world: Counter[tuple[str, str, str]]) -> Counter[tuple[str, str]]:
    return Counter((a, b) for a, b, _ in world.elements())


def test_nothing_told_leaves_all() -> None:
    assert agreed({}) == (72, 72)
    assert agreed({"certificate": {"ratio_at_most": 1.05}}) == (72, 72)


@pytest.mark.parametrize("name", ["classes", "uniques", "smallest_class", "distinct", "separation", "counts"])
def test_told_figures_leave_those_that_have_them(name: str) -> None:
    truth = Counter(ORIGINAL.rows())

    def of(world: Counter[tuple[str, str, str]]) -> Any:
        own, ages = quasi(world), Counter(a for a, _, _ in world.elements())
        alike = sum(n * (n - 1) for n in ages.values()) / 20
        return {"classes": len(own), "uniques": sum(n == 1 for n in own.values()), "smallest_class": min(own.values()),
                "distinct": len(ages), "separation": 1 - alike, "counts": ages["2"]}[name]  # fmt: skip

    told: dict[str, Any] = {"before": {name: of(truth)}}
    if name == "distinct":
        told = {"before": {"distinct_values": {"a": of(truth)}}}
    if name == "separation":
        told = {"before": {"dangerous": [{"columns": ["a"], "separation": of(truth)}]}}
    if name == "counts":
        told = {"columns": [{"name": "a", "distribution": [{"label": "2", "before": of(truth)}]}]}
    before, after = agreed(told)
    assert before == 72
    assert after == sum(abs(of(w) - of(truth)) < 1e-9 for w in every_original())
    assert after < before


def test_what_shoal_writes_leaves_all_and_an_internal_page_does_not(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": [20, 20, 25, 30, 40, 40], "b": list("xxyyzz"), "s": list("pqpqpq")})
    release = shoal.anonymize(table, quasi_identifiers=["a", "b"], sensitive=["s"], k=2, effort="fast", seed=1)
    release.write(tmp_path / "r.csv")
    release.report(tmp_path / "r.html")
    register = table.select("a", "b")
    found = by_name(shoal.attack(tmp_path / "r.csv", register=register))[NAME]
    assert found.details["by_the_release_alone"] == found.details["by_everything_beside_it"] > 1
    assert found.risk == 0.0
    assert not found.gain
    page = release.report(tmp_path / "page.html", internal=True)
    shutil.copy(page, tmp_path / "r.page.html")
    leaking = by_name(shoal.attack(tmp_path / "r.csv", register=register))[NAME]
    assert leaking.details["by_everything_beside_it"] < leaking.details["by_the_release_alone"]
    assert leaking.gain
    assert leaking.risk == pytest.approx(leaking.figure)


def test_rounded_figures_leave_what_they_may_be(tmp_path: Path) -> None:
    told = {"before": {"dangerous": [{"columns": ["a"], "separation": 0.8}]}}
    exact = {"before": {"dangerous": [{"columns": ["a"], "separation": 0.8000000000000003}]}}
    worlds = [1 - sum(n * (n - 1) for n in Counter(a for a, _, _ in w.elements()).values()) / 20
              for w in every_original()]  # fmt: skip
    assert agreed(told)[1] == sum(abs(w - 0.8) <= 0.05 for w in worlds)
    assert agreed(exact)[1] == sum(abs(w - 0.8) <= 1e-9 for w in worlds)
    (tmp_path / "x.json").write_text(json.dumps(told))


def test_large_tables_are_left_out() -> None:
    frame = pl.DataFrame({"a": ["*"] * 60, "s": ["p", "q"] * 30})
    assert agreeing(read(frame, ["a"], ["s"], [pl.DataFrame({"a": [str(i) for i in range(9)]})]), [{}]) is None


def test_rows_alike_are_counted_as_a_multiset() -> None:
    """Two starred rows of one class and one value: six multisets of three values, of which three repeat one."""
    frame = pl.DataFrame({"a": ["*", "*"], "s": ["p", "p"]})
    reading = read(frame, ["a"], ["s"], [VALUES.select("a")])
    assert agreeing(reading, []) == (6, 6)
    assert agreeing(reading, [{"before": {"classes": 1}}]) == (6, 3)
