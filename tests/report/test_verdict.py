"""What stands first in a report: warnings, the worst first, and a verdict in one line."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.model.notation import range_text
from shoal.model.policy import Policy
from shoal.publishing.tables.figures import unique_ends
from shoal.report.sections import asked, attacks, stated, unchanged_columns, verdict, warnings
from shoal.report.words import as_sentence, promise, proved
from tests.commands import run
from tests.report.links import dead_links


def figures(
    *, alpha: float | None = 0.4, t: float = 0.3, together: int = 0, risk: float = 0.1, rows: int = 1000
) -> dict[str, Any]:
    sensitive = {} if alpha is None else {"hiv": {"alpha": alpha, "t_equal": t}}
    return {
        "release": {"rows": rows, "carried": {"together": together, "columns": ["note", "ward"] if together else []}},
        "audit": {"sensitive": sensitive, "checks": [], "risk": {"prosecutor_max": risk}},
    }


def test_carried_columns_that_single_people_out_stand_before_a_common_value() -> None:
    found = warnings(figures(alpha=0.999, together=897))
    assert found[0].startswith("2 columns kept unchanged single out 897 of 1,000 rows (89.7 %)")
    assert found[1].startswith("In some group 99.9 % of the rows share a value of hiv")
    assert warnings(figures(alpha=1.0))[0].startswith("In some group all rows share a value of hiv")
    assert not warnings(figures())


def test_a_group_far_from_the_whole_table_is_a_disclosure() -> None:
    (far,) = warnings(figures(t=0.996))
    assert "hiv (t = 0.996)" in far
    assert "one of few values" in far
    shared = warnings(figures(alpha=0.91, t=0.996))
    assert "91 % of the rows share a value of hiv" in shared[0], "a value that is known goes before few that may be"
    assert shared[1] == far


def test_many_columns_are_one_sentence_and_the_worst_of_them_is_named() -> None:
    many = figures()
    many["audit"]["sensitive"] = {f"c{i}": {"alpha": 0.9 + i / 100, "t_equal": 0.1} for i in range(9)}
    (said,) = warnings(many)
    assert said.startswith("In some group 98 % of the rows share a value of c8, 97 % of the rows share a value of c7")
    assert "or of 5 more columns" in said


@pytest.mark.parametrize(
    ("names", "said"), [("a", "a"), ("ab", "a or b"), ("abc", "a, b or c"), ("abcd", "a, b, c or d")]
)
def test_few_columns_are_all_named(names: str, said: str) -> None:
    found = figures()
    found["audit"]["sensitive"] = {name: {"alpha": 1.0, "t_equal": 0.1} for name in names}
    assert warnings(found)[0].startswith(f"In some group all rows share a value of {said}. Anyone")


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({}, "strong"),
        ({"alpha": 0.7}, "fair"),
        ({"risk": 0.2}, "strong"),
        ({"risk": 0.34}, "fair"),
        ({"risk": 0.5}, "fair"),
        ({"together": 1}, "fair"),
        ({"alpha": 0.95}, "weak"),
        ({"together": 51}, "weak"),
        ({"risk": 0.6}, "weak"),
        ({"t": 0.996}, "fair"),
        ({"alpha": None}, "strong"),
    ],
)
def test_the_verdict_follows_from_figures(more: dict[str, Any], word: str) -> None:
    assert verdict(figures(**more)).startswith(f"Verdict: {word}. The highest risk")


@pytest.mark.parametrize(("k", "word"), [(10, "strong"), (3, "fair"), (1, "weak")])
def test_the_verdict_of_places_is_on_the_scale_of_tables(tmp_path: Path, k: int, word: str) -> None:
    points = pl.DataFrame({"x": [float(i % 8) for i in range(64)], "y": [float(i // 8) for i in range(64)]})
    points.write_csv(tmp_path / "p.csv")
    asked = ("tiles", "p.csv", "--x", "x", "--y", "y", "--coordinates", "projected", "--k", k)
    run(*asked, "-o", "t.csv", "--report", "t.html", cwd=tmp_path).ok()
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert f"Verdict: {word}. The highest risk to be found by the tile is" in text
    assert "Verdict: holds" not in text


def test_a_model_that_does_not_hold_is_the_verdict() -> None:
    found = figures()
    found["audit"]["checks"] = [{"model": "l-diversity", "passes": False}]
    assert verdict(found) == "Verdict: not to be published. l-diversity does not hold."


@pytest.fixture(scope="module")
def release() -> shoal.Release:
    frame = pl.DataFrame(
        {"age": [20, 20, 31, 31] * 5, "ill": ["flu", "flu", "flu", "gout"] * 5, "note": [f"n{i}" for i in range(20)]}
    )
    asked = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "insensitive": ["note"], "k": 5}
    return shoal.anonymize(frame, **asked, effort="fast", seed=1)


def test_the_page_says_the_worst_first_and_who_decided(release: shoal.Release, tmp_path: Path) -> None:
    given = {"recipient": "The registry", "purpose": "A study", "decided_by": "Dr. Ada"}
    text = release.report(tmp_path / "r.html", **given).read_text(encoding="utf-8").split("<script")[0]
    alarm = text.index("singles out 20 of 20 rows")
    assert alarm < text.index("Verdict: weak") < text.index("Every row of this release")
    assert text.index('class="alarm"') < alarm
    for said in given.values():
        assert said in text
    assert text.index("date and signature") < text.index(">Appendix<") < text.index("<h2>Rows as they are published")
    assert not dead_links(text)


def test_an_internal_page_says_so_in_its_name_and_figures(release: shoal.Release, tmp_path: Path) -> None:
    page = release.report(tmp_path / "r.html", internal=True)
    assert page.name == "r.internal.html"
    assert page.read_text(encoding="utf-8").index("Do not publish it") < 20_000
    assert json.loads((tmp_path / "r.internal.json").read_text())["internal"] is True
    assert page.stat().st_mode & 0o077 == 0
    again = release.report(tmp_path / "x.internal.html", internal=True)
    assert again.name == "x.internal.html"
    public = release.report(tmp_path / "r.html")
    assert json.loads(public.with_suffix(".json").read_text())["internal"] is False
    assert "Internal" not in public.read_text(encoding="utf-8").split("<script")[0]


@pytest.mark.parametrize("internal", [False, True])
def test_sets_that_list_each_person_are_said_first_and_are_not_strong(tmp_path: Path, internal: bool) -> None:
    born = [f"{1 + i % 28:02}.{1 + i % 12:02}.{1940 + i}" for i in range(40)]
    frame = pl.DataFrame({"born": born, "town": ["Ulm", "Bonn"] * 20, "ill": ["a", "b", "c", "d"] * 10})
    release = shoal.anonymize(
        frame, quasi_identifiers=["born", "town"], sensitive=["ill"], k=5, publish="ranges", effort="fast"
    )
    text = Path(release.report(tmp_path / "r.html", internal=internal)).read_text(encoding="utf-8")
    assert "most groups list each person&#39;s born" in text
    assert "Verdict: strong" not in text
    assert "In 100.0 % of the groups, the set of born names as many values" in text


def test_sets_that_name_fewer_values_than_rows_are_no_list(tmp_path: Path) -> None:
    frame = pl.DataFrame({"town": ["Ulm", "Bonn", "Jena"] * 20, "ill": ["a", "b", "c", "d"] * 15})
    release = shoal.anonymize(
        frame, quasi_identifiers=["town"], sensitive=["ill"], k=30, publish="ranges", effort="fast"
    )
    release.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "names as many values" not in text
    assert "Verdict: strong" in text


def located(rows: int) -> pl.DataFrame:
    at = np.random.default_rng(4).uniform(0, 1, (rows, 2)).round(6)
    return pl.DataFrame({"lng": at[:, 0], "lat": at[:, 1], "ill": ["a", "b", "c", "d"] * (rows // 4)})


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("rounded", [False, True])
def test_ranges_that_end_at_one_place_are_said_and_are_not_strong(
    tmp_path: Path, internal: bool, rounded: bool
) -> None:
    steps: dict[str, float | str] = {"lng": 0.1, "lat": 0.1} if rounded else {}
    release = shoal.anonymize(
        located(200), quasi_identifiers=["lng", "lat"], sensitive=["ill"], k=5, l=2, publish="ranges", range_step=steps,
        effort="fast",
    )  # fmt: skip
    release.write(tmp_path / "r.csv")
    pages = [release.report(tmp_path / "r.html", internal=internal)]
    pages += [shoal.written(tmp_path / "r.csv").report(tmp_path / "later.html")]
    for page in pages:
        text = page.read_text(encoding="utf-8").split("<script")[0]
        assert ("Verdict: strong" in text) == rounded
        assert ("ends at a value that no other group shows" in text) == (not rounded)
        assert ("that is very likely one person&#39;s" in text) == (not rounded)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8), st.data())
def test_sole_ends_are_those_of_a_count_by_hand(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    ranges = [(min(pair), max(pair)) for pair in pairs]
    texts = [str(low) if low == high else range_text(str(low), str(high)) for low, high in ranges]
    sizes = [data.draw(st.integers(1, 3)) for _ in ranges]
    group = [g for g, size in enumerate(sizes) for _ in range(size)]
    frame = pl.DataFrame({"*": [texts[g] for g in group], "group": [str(g) for g in group]})
    policy = SimpleNamespace(publish="ranges", grouped=("*", "group"))
    alone = [
        low < high and any(sum(end in other for other in ranges) == 1 for end in (low, high)) for low, high in ranges
    ]
    expected = {"*": sum(alone) / len(ranges)} if any(alone) else {}
    assert unique_ends(frame, policy, ()) == expected
    assert unique_ends(frame, policy, ["*"]) == {}


def test_columns_kept_unchanged_stand_with_whether_they_were_named() -> None:
    kept = {"columns": ["note", "ward"], "insensitive": ["note"], "alone": {"note": 2, "ward": 0}, "together": 2}
    text = str(unchanged_columns(kept, 10))
    assert "Named insensitive: note. No role named: ward." in text
    assert "single out 2 of 10 rows" in text
    assert "single out no one" in str(unchanged_columns({**kept, "together": 0}, 10))


def test_a_certificate_in_words_ends_with_what_the_method_promised() -> None:
    told = {"cost": 10, "unit": "stars", "optimal": False, "lower_bound": 5, "ratio": 2.0}
    said = proved({**told, "guarantee": {"factor": 3, "additive": 1}}, "every release")
    assert said == (
        "It costs 10 values hidden; every release costs at least 5 values hidden, so this one costs at most 2 times "
        "the least possible, proved. Before seeing the table, the method promised at most 3 times the least plus 1."
    )
    plain = proved({**told, "guarantee": {"factor": 3, "additive": 0}}, "every release", comparable=False)
    assert plain.endswith("5 values hidden. Before seeing the table, the method promised at most 3 times the least.")
    assert "promised" not in proved({**told, "guarantee": {"factor": None, "additive": None}}, "every release")


def test_three_columns_are_named_in_the_promise_and_the_others_counted() -> None:
    shares = {"a": 0.5, "b": 0.25, "c": 0.2, "d": 0.1, "e": 0.95, "f": None}
    certificate = {"ratio_at_most": 1, "cost": None, "unit": "stars", "guarantee": {"factor": None}}
    release = {"rows": 10, "loss": {"suppressed_tuples": 2}, "stars": {"x": 3, "y": 1}, "certificate": certificate}
    audit = {"smallest_class": 5, "sensitive": {name: {"alpha": share} for name, share in shares.items()}}
    assert promise({"release": release, "audit": audit, "policy": {}}) == (
        "Every row of this release looks exactly like at least 4 others in the columns that others may know; in no "
        "group do more than 50 % of the rows share a value of a, 25 % one of b, 20 % one of c, less of 1 more column. "
        "2 of 10 rows were changed, and 4 values were hidden. "
        "No release of this kind that keeps these promises loses less: that is proved."
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Homogeneity: no sensitive column was named"),
        (
            {"sensitive": ["ill", "hiv"], "l": 1},
            "Homogeneity: no model was asked for that keeps the values of ill, hiv",
        ),
        ({"sensitive": ["ill"], "l": 2}, "Composition: "),
    ],
)
def test_what_no_model_guards_stands_first_among_the_attacks(asked: dict[str, Any], said: str) -> None:
    policy = Policy.of({"quasi_identifiers": ["age"], "k": 5, "publish": "ranges", **asked}).describe()
    found = attacks(policy, exposed=0.25)
    assert found[0].startswith(said)
    assert sum(line.startswith("Ends of ranges: ") for line in found) == 1
    public = next(line for line in attacks(policy) if line.startswith("Ends of ranges: "))
    assert "the value of at least one row of the group. range_step" in public
    stars = Policy.of({"quasi_identifiers": ["age"], "k": 5}).describe()
    assert not any(line.startswith("Ends of ranges: ") for line in attacks(stars))


def test_a_sentence_begins_with_a_capital_and_ends_with_a_stop() -> None:
    assert as_sentence("a missing value counts") == as_sentence("a missing value counts.") == "A missing value counts."


def test_columns_with_one_model_in_the_same_words_are_named_together() -> None:
    frame = pl.DataFrame(
        {
            "age": [30, 31, 32, 33] * 6, "who": range(24), "ill": ["a", "b", "c"] * 8, "job": ["x", "y", "z"] * 8,
            "pay": ["m", "n"] * 12,
        }
    )  # fmt: skip
    models = [shoal.LDiversity(2, "ill"), shoal.LDiversity(2, "job"), shoal.AlphaKAnonymity(0.9, 2, "pay")]
    roles = {"quasi_identifiers": ["age"], "sensitive": ["ill", "job", "pay"], "publish": "ranges", "effort": "fast"}
    for person in ({"person": "who"}, {"identifiers": ["who"]}):
        figures = shoal.anonymize(frame, **roles, **person, privacy=[shoal.KAnonymity(4), *models]).public_figures()
        said = [name for name, _ in stated(figures)]
        assert said == (["l-diversity of ill, job", "(alpha,k)-anonymity of pay"] if "person" in person else [])
        page = str(asked(figures))
        assert "l-diversity of ill, job: at most 1/2 of every group" in page
        assert page.count("l-diversity of") == 1
