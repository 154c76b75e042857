"""``explore``: every point is a release that could be made, and the frontier is what nobody beats."""

import itertools
import json
import signal
import sys
from dataclasses import replace

import polars as pl
import pytest

import shoal
from shoal.pipeline import anonymize
from shoal.utility.explore import Exploration, GridPoint, with_bounds, with_frontier
from tests.commands import run
from tests.data import drawn


@pytest.fixture(scope="module")
def people():
    found = drawn(200, 8, age=(20, 40), sex="fm", town="abcd", d={"flu": 0.4, "gout": 0.35, "asthma": 0.25})
    return found.with_columns(name=pl.format("n{}", pl.int_range(200)))


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
        assert p.taken_from is None
        assert (p.groups, p.risk) == (sizes.len(), pytest.approx(1 / sizes.min()))
        assert p.loss == pytest.approx(release.facts.cost["ncp"])
        assert p.bound <= p.loss + 1e-12
        assert p.mean_risk == pytest.approx(sizes.len() / 200)


def test_no_looser_request_costs_more_than_a_stricter_one():
    """A release that keeps more promises is handed on to whoever asks for fewer."""
    frame = drawn(60, 3, a=(0, 6), b="pqr", c="xy", d="uvwz")
    seen = []
    names = {"quasi_identifiers": ["a", "b", "c"], "sensitive": ["d"]}
    asked = {**names, "publish": "ranges", "method": "cascade", "seed": 1}  # without a search, stricter can be cheaper
    found = shoal.explore(frame, **asked, k=[2, 3, 4], l=[1, 2], each=seen.append)
    points = {(p.k, p.l): p for p in found.found}
    for (k, l), p in points.items():
        assert all(p.loss <= q.loss for (k2, l2), q in points.items() if k2 >= k and l2 >= l)
    taken = [p for p in found.found if p.taken_from]
    assert taken
    for p in taken:
        models = {"k": p.k, **({"l": p.l} if p.l > 1 else {})}
        own = shoal.anonymize(frame, **asked, **models, effort="fast")
        assert p.loss < own.facts.cost["ncp"]
        k, l = (int(word.split(" = ")[1]) for word in p.taken_from.split(", "))
        assert k >= p.k
        assert l >= p.l
        stricter = points[k, l]
        assert (p.loss, p.groups, p.risk, p.mean_risk) == (
            stricter.loss, stricter.groups, stricter.risk, stricter.mean_risk,
        )  # fmt: skip
        assert p.bound <= p.loss + 1e-12
    assert {(p.k, p.l, p.loss, p.taken_from) for p in seen} == {(p.k, p.l, p.loss, p.taken_from) for p in found.found}
    assert f"the release of {taken[0].taken_from}" in found._repr_html_()


def test_weights_count_in_the_loss_as_in_its_bound(people):
    asked = {"quasi_identifiers": ["age", "sex", "town"], "weights": {"age": 0.1, "sex": 3.0}, "seed": 1}
    for way, method in itertools.product(("stars", "ranges"), ("auto", "three_phase")):
        (p,) = shoal.explore(people, **asked, k=3, publish=way, method=method).found
        own = shoal.anonymize(people.drop("name", "d"), **asked, k=3, publish=way, method=method, effort="fast")
        assert p.loss == pytest.approx(own.loss["weighted_ncp"])
        assert p.bound is None or p.bound <= p.loss + 1e-12


def test_the_frontier_by_hand():
    def point(k, l, risk, loss):
        return GridPoint(k=k, l=l, publish="stars", method="m", risk=risk, loss=loss)

    points = [
        point(2, 1, 0.5, 0.1), point(5, 1, 0.2, 0.3), point(5, 1, 0.2, 0.4), point(5, 2, 0.2, 0.4),
        point(9, 1, 0.25, 0.35), GridPoint(k=99, l=1, publish="stars", method="m", reason="too few rows"),
    ]  # fmt: skip
    assert [p.frontier for p in with_frontier(points)] == [True, True, False, True, False, False]


def test_a_bound_holds_for_whoever_asks_more():
    def point(k, l, bound, publish="stars"):
        return GridPoint(k=k, l=l, publish=publish, method="cascade", loss=0.5, bound=bound)

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


def test_a_report_has_it_too(people, found, tmp_path):
    release = shoal.anonymize(
        people.drop("name"), quasi_identifiers=["age", "sex", "town"], sensitive=["d"], k=5, effort="fast", seed=1
    )
    release.write(tmp_path / "r.csv")
    later = shoal.written(tmp_path / "r.csv", tmp_path / "r.certificate.json")
    found.report(tmp_path / "e.html")
    again = Exploration.read(tmp_path / "e.json")
    assert again.as_dict() == found.as_dict()
    asked = ("report", "r.csv", "r.certificate.json", "-o", "x.html", "--explored", "e.json")
    assert run(*asked, cwd=tmp_path).returncode == 0
    figures = json.loads((tmp_path / "x.internal.json").read_text())
    assert figures["explored"] == found.as_dict()
    assert all((tmp_path / f"x.internal.{end}").stat().st_mode & 0o077 == 0 for end in ("html", "json"))
    with pytest.raises(shoal.PolicyError, match=r"a table of 7 rows, and the release has \d+; explore its table"):
        release.report(tmp_path / "r.html", explored=replace(found, rows=7), internal=True)
    with pytest.raises(shoal.PolicyError, match="say internal=True"):
        release.report(tmp_path / "r.html", explored=found)
    for made, tried, more in ((release, found, {"internal": True}), (later, again, {})):
        text = made.report(tmp_path / "r.html", explored=tried, **more).read_text(encoding="utf-8")
        assert "What other choices would cost" in text
        assert text.count("<circle") >= 8
        assert '"explored"' in text
        with pytest.raises(shoal.PolicyError, match="explored is one dict"):
            made.report(tmp_path / "r.html", explored={}, **more)
        assert "What other choices" not in made.report(tmp_path / "r.html").read_text(encoding="utf-8")


def test_plot_returns_axes(found):
    assert len(str(found).splitlines()) == 2
    axes = found.plot()
    assert len(axes.get_lines()) >= 4
    assert "risk" in axes.get_xlabel()
    assert axes.figure._repr_png_().startswith(b"\x89PNG"), "what a notebook looks for at the end of a cell"


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": []}, {"publish": "pie"}, {"l": [1, "2"]}])
def test_refusals(people, wrong):
    with pytest.raises(shoal.PolicyError):
        shoal.explore(people, quasi_identifiers=["sex"], sensitive=["d"], **wrong)


def test_the_command(people, tmp_path):
    people.write_csv(tmp_path / "people.csv")
    page = tmp_path / "explore.html"
    facts = run(
        "explore", tmp_path / "people.csv", "--quasi", "sex,town", "--sensitive", "d", "--k", "2,4",
        "--publish", "stars,ranges", "--json", "-o", page,
    ).facts  # fmt: skip
    assert len(facts["points"]) == 4
    assert facts["complete"]
    assert facts["frontier"]
    assert all(p in facts["points"] for p in facts["frontier"])
    assert page.exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_keeps_what_it_found(people, tmp_path, monkeypatch, number, status):
    people.write_csv(tmp_path / "people.csv")
    whole, begun = anonymize, []

    def stopped(frame, request):
        begun.append(request)
        if len(begun) == 3:
            signal.raise_signal(number)
        return whole(frame, request)

    monkeypatch.setattr("shoal.utility.explore.anonymize", stopped)
    monkeypatch.setattr("shoal.cli._halted", sys.exit)  # the process goes on here
    asked = ("explore", "people.csv", "--quasi", "sex,town", "--k", "2,4,6", "-o", "e.html")
    done = run(*asked, cwd=tmp_path)
    assert done.returncode == status
    assert "interrupted after 2 of 3 points" in done.stdout
    kept = Exploration.read(tmp_path / "e.json")
    assert (kept.rows, kept.asked, sorted(kept.points["k"])) == (people.height, 3, [4, 6])
    assert "interrupted after 2 of 3 points" in (tmp_path / "e.html").read_text(encoding="utf-8")


def test_a_command_killed_at_once_leaves_the_points_it_found(people, tmp_path, monkeypatch):
    people.write_csv(tmp_path / "p.csv")
    real, calls = Exploration.report, []

    def report(self, path, **more):
        made = real(self, path, **more)
        calls.append(len(self.found))
        if len(calls) == 2:  # as by kill -9: nothing that could clean up runs
            raise SystemError("killed")
        return made

    monkeypatch.setattr(Exploration, "report", report)
    assert run("explore", "p.csv", "--quasi", "sex,town", "--k", "2,3,4", "-o", "e.html", cwd=tmp_path).returncode
    kept = Exploration.read(tmp_path / "e.json")
    assert (len(kept.found), kept.asked, kept.as_dict()["complete"]) == (2, 3, False)


def test_page_and_json_say_what_was_asked(people, tmp_path):
    people.write_csv(tmp_path / "people.csv")
    found = shoal.explore(
        tmp_path / "people.csv", quasi_identifiers=["sex", "town"], sensitive=["d"], distinct_l=2, k=[2, 4], l=[1],
        publish=["stars"], weights={"town": 2.0},
    )  # fmt: skip
    text = found.report(tmp_path / "e.html").read_text(encoding="utf-8")
    held = json.loads((tmp_path / "e.json").read_text())
    assert held["internal"] is True
    assert held["request"]["file"] == "people.csv"
    assert held["request"]["grid"] == {"k": [2, 4], "l": [1], "publish": ["stars"], "method": ["auto"]}
    assert held["request"]["policy"]["privacy"] == [{"model": "DistinctLDiversity", "l": 2}]
    for said in (
        "people.csv",
        "(composition)",
        "audit NEW --with OLD",
        "sex, town",
        "k = 2, 4",
        "distinct l-diversity",
        "town 2",
        "Do not publish",
    ):
        assert said in text, said
    assert ((tmp_path / "e.html").stat().st_mode & 0o077, (tmp_path / "e.json").stat().st_mode & 0o077) == (0, 0)


def test_an_interruption_carries_what_was_found(people):
    def stop(point):
        if point.k == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as held:
        shoal.explore(people, quasi_identifiers=["sex", "town"], k=[2, 4, 6], each=stop)
    assert held.value.found.points["k"].to_list() == [4, 6]


def test_columns_that_would_be_carried_or_left_out_are_not_in_the_way():
    frame = pl.DataFrame({"age": [1, 1, 2, 2], "note": ["a", "b", "c", "d"], "name": ["e", "f", "g", "h"]})
    found = shoal.explore(frame, quasi_identifiers=["age"], insensitive=["note"], identifiers=["name"], k=2)
    assert found.points["loss"].to_list() == [0.0]
    with pytest.raises(shoal.PolicyError, match="note"):
        shoal.explore(frame.drop("note"), quasi_identifiers=["age"], insensitive=["note"], k=2)


def test_k_of_a_rule_book_gives_way_to_the_k_that_is_tried() -> None:
    frame = pl.DataFrame({"a": [i // 3 for i in range(30)]})
    policy = shoal.Policy(quasi_identifiers=["a"], preset="k5")
    points = shoal.explore(frame, policy, k=3, l=1).points
    assert set(points["k"]) == {3}
    assert set(points["loss"]) == {0}


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, '{"points": [{"k": 5}], "rows": 3, "asked": 1}', '{"rows": 1, "rows": 2}']
)
def test_figures_that_explore_did_not_write_are_refused_in_words(tmp_path, text):
    path = tmp_path / "e.json"
    path.write_text(text)
    with pytest.raises(shoal.InputError, match="is not a file of figures that shoal explore wrote"):
        Exploration.read(path)


def test_the_l_of_a_policy_counts_unless_another_is_named(tmp_path):
    """A grid without l would promise the loss of releases that protect less than the policy asks."""
    table = pl.DataFrame({"age": [i % 9 for i in range(72)], "d": ["flu", "gout", "burn"] * 24, "e": list("xyz") * 24})
    table.write_csv(tmp_path / "t.csv")
    (tmp_path / "p.toml").write_text(
        'quasi_identifiers = ["age"]\nsensitive = ["d"]\nidentifiers = ["e"]\nk = 3\nl = 2\n'
    )
    words = ("explore", tmp_path / "t.csv", "--policy", tmp_path / "p.toml", "--k", "3", "--effort", "fast", "--json")
    assert [p["l"] for p in run(*words).facts["points"]] == [2]
    assert [p["l"] for p in run(*words, "--l", "1,3").facts["points"]] == [1, 3]
    asked = {"quasi_identifiers": ["age"], "sensitive": ["d", "e"]}
    one = shoal.LDiversity(2, column="d")
    found = shoal.explore(table, shoal.Policy(**asked, privacy=[shoal.KAnonymity(2), one], effort="fast"), k=3)
    assert found.as_dict()["request"]["models"] == [f"{one.name}: {one.words()}"]
    assert shoal.explore(table, asked, k=3).points["l"].to_list() == [1]
