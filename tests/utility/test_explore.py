"""``explore``: every point is a release that could be made, and the frontier is what nobody beats."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.utility.explore import Point, with_bounds, with_frontier


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(8)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 40, 200),
            "sex": rng.choice(["f", "m"], 200),
            "town": rng.choice(list("abcd"), 200),
            "d": rng.choice(["flu", "gout", "asthma"], 200, p=[0.4, 0.35, 0.25]),
            "name": [f"n{i}" for i in range(200)],
        }
    )


@pytest.fixture(scope="module")
def found(people):
    return shoal.explore(
        people, quasi_identifiers=["age", "sex", "town"], sensitive=["d"], k=[2, 5], l=[1, 2],
        publish=["stars", "ranges"], seed=1,
    )  # fmt: skip


def test_a_point_is_what_anonymize_gives(people, found):
    assert [(p.publish, p.l, p.k) for p in found.found] == [
        (way, l, k) for way in ("stars", "ranges") for l in (1, 2) for k in (2, 5)
    ]
    for p in found.found:
        release = shoal.anonymize(
            people.drop("name"), quasi_identifiers=["age", "sex", "town"], sensitive=["d"], k=p.k,
            publish=p.publish, effort="fast", seed=1, **({"l": p.l} if p.l > 1 else {}),
        )  # fmt: skip
        sizes = release.table.group_by("age", "sex", "town").len()["len"]
        assert (p.groups, p.risk) == (sizes.len(), pytest.approx(1 / sizes.min()))
        assert p.loss == pytest.approx(release.cost["ncp"])
        assert p.bound <= p.loss + 1e-12
        assert p.mean_risk == pytest.approx(sizes.len() / 200)


def test_the_frontier_by_hand():
    def point(k, l, risk, loss):
        return Point(k=k, l=l, publish="stars", method="m", risk=risk, loss=loss)

    points = [
        point(2, 1, 0.5, 0.1), point(5, 1, 0.2, 0.3), point(5, 1, 0.2, 0.4), point(5, 2, 0.2, 0.4),
        point(9, 1, 0.25, 0.35), Point(k=99, l=1, publish="stars", method="m", reason="too few rows"),
    ]  # fmt: skip
    assert [p.frontier for p in with_frontier(points)] == [True, True, False, True, False, False]


def test_a_bound_holds_for_whoever_asks_more():
    def point(k, l, bound, publish="stars"):
        return Point(k=k, l=l, publish=publish, method="cascade", loss=0.5, bound=bound)

    points = [point(3, 2, 0.3), point(5, 2, 0.2), point(5, 1, 0.1), point(5, 2, None), point(9, 9, 0.1, "ranges")]
    assert [p.bound for p in with_bounds(points, ["auto"] * 5)] == [0.3, 0.3, 0.1, None, 0.1]
    assert [p.bound for p in with_bounds(points, ["auto", "other", "auto", "auto", "auto"])] == [
        0.3,
        0.2,
        0.1,
        None,
        0.1,
    ]


def test_a_request_that_cannot_be_met_is_a_point_with_its_reason(people):
    found = shoal.explore(people, quasi_identifiers=["sex"], sensitive=["d"], k=2, l=[2, 4])
    good, bad = found.found
    assert good.loss is not None
    assert bad.loss is None
    assert bad.reason
    assert not bad.frontier
    assert found.points["loss"].to_list() == [good.loss, None]


def test_the_page_stands_alone_and_shows_no_row(people, found, tmp_path):
    text = found.report(tmp_path / "e.html").read_text(encoding="utf-8")
    assert text.count("<circle") >= 8
    assert "http" not in text.replace("http-equiv", "")
    assert not any(f">{name}<" in text for name in people["name"])
    assert "interrupted" not in text


def test_plot_returns_axes(found):
    axes = found.plot()
    assert len(axes.get_lines()) >= 4
    assert "risk" in axes.get_xlabel()


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": []}, {"publish": "pie"}, {"l": [1, "2"]}])
def test_refusals(people, wrong):
    with pytest.raises(shoal.PolicyError):
        shoal.explore(people, quasi_identifiers=["sex"], sensitive=["d"], **wrong)


def test_the_command(people, tmp_path, monkeypatch, capsys):
    from shoal.cli import main

    people.write_csv(tmp_path / "people.csv")
    page = tmp_path / "explore.html"
    monkeypatch.setattr(
        "sys.argv",
        ["shoal", "explore", str(tmp_path / "people.csv"), "--quasi", "sex,town", "--sensitive", "d",
         "--k", "2,4", "--publish", "stars,ranges", "--json", "-o", str(page)],
    )  # fmt: skip
    with pytest.raises(SystemExit) as status:
        main()
    assert status.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["points"]) == 4
    assert facts["complete"]
    assert facts["frontier"]
    assert all(p in facts["points"] for p in facts["frontier"])
    assert page.exists()


def test_columns_that_would_be_carried_or_left_out_are_not_in_the_way():
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "note": ["a", "b", "c", "d"], "name": ["e", "f", "g", "h"]})
    found = shoal.explore(frame, quasi_identifiers=["age"], insensitive=["note"], identifiers=["name"], k=2)
    assert found.points["loss"].to_list() == [0.0]
    with pytest.raises(shoal.PolicyError, match="note"):
        shoal.explore(frame.drop("note"), quasi_identifiers=["age"], insensitive=["note"], k=2)
