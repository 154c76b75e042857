"""Mode views: every view is a row by row function of the first part, and the judge sees one that is not."""

import json
import shutil
from collections import Counter, defaultdict

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.judge.series import _leaves, _one_request, _within, judge_views
from shoal.model.certificate import read_json
from shoal.model.members import Members
from tests.commands import run
from tests.kept import holding
from tests.series.common import frame, people, policy, seen

AGES = "30;30-39;*\n34;30-39;*\n41;40-49;*\n47;40-49;*\n52;50-59;*\n"


def rows(place, number: int) -> pl.DataFrame:
    return pl.read_csv(place / f"{number:04d}" / "release.csv", infer_schema=False)


@pytest.fixture
def place(tmp_path):
    """A table in ranges, and the hierarchy of its ages."""
    (tmp_path / "age.csv").write_text(AGES)
    series = shoal.Series.start(
        tmp_path / "s", policy(publish="ranges", hierarchies={"age": str(tmp_path / "age.csv")}), mode="views"
    )
    ages = ["30", "34", "30", "34", "41", "47", "41", "52"]
    series.add(frame([(f"p{i}", a, "1", "ab"[i % 2]) for i, a in enumerate(ages)]), person="id")
    return tmp_path / "s"


def test_views_keep_the_groups_and_show_less(place):
    series = shoal.Series(place)
    assert sorted(set(rows(place, 1)["age"])) == ["[30, 34]", "[41, 47]", "[41, 52]"]
    classes = series.view(["age", "ill"], publish="hierarchy")
    stars = series.view(["zip", "age"], publish="stars")
    assert (classes.rows, stars.rows, classes.smallest) == (8, 8, 2)
    assert rows(place, 2).columns == ["age", "ill"]
    assert Counter(rows(place, 2)["age"].to_list()) == {"30-39": 4, "40-49": 2, "*": 2}
    assert Counter(rows(place, 3).rows()) == {("*", "1"): 8}
    holding(series.verify())
    said = json.loads((place / "0003" / "release.certificate.json").read_text())["series"]
    assert [(o["number"], o["columns"]) for o in said["others"]] == [(1, ["age", "zip", "ill"]), (2, ["age", "ill"])]


@pytest.mark.parametrize("publish", ["ranges", "stars", "hierarchy"])
def test_a_view_may_leave_out_a_column_with_limits(publish, tmp_path):
    ages = ["20", "19", "30", "30", "90", "95", "97", "90"]
    trees = {"hierarchies": {"age": "intervals:10,20"}} if publish == "hierarchy" else {}
    asked = policy(l=None, publish=publish, top={"age": 90}, bottom={"age": 20}, **trees)
    series = shoal.Series.start(tmp_path / "s", asked, mode="views")
    series.add(frame([(f"p{i}", a, "12"[i // 4], "ab"[i % 2]) for i, a in enumerate(ages)]), person="id")
    series.view(["zip", "ill"], publish="stars")
    series.view(["age"])
    assert set(rows(series.place, 2)["zip"]) == {"1", "2"}
    assert set(rows(series.place, 3)["age"]) == {"<=20", "30", ">=90"}
    said = [read_json(series.place / f"000{i}" / "release.certificate.json")["policy"] for i in (2, 3)]
    assert [(held.get("top"), held.get("bottom")) for held in said] == [(None, None), ({"age": 90}, {"age": 20})]
    holding(series.verify())


@pytest.mark.parametrize("model", ["t", "beta", "beta_basic", "delta"])
def test_a_view_promises_what_compares_a_group_with_the_whole_table(model, tmp_path):
    """Ages 30 and 41 have shares 3/4 and 1/4 and the other way round, beside 1/2 of the table; their stars have 1/2."""
    rows = [
        (f"p{i}", age, "12"[i // 4], values[i % 4])
        for age, values in (("30", "aaab"), ("41", "abbb"))
        for i in range(8)
    ]
    table = frame([(f"{age}-{p}", age, area, v) for p, age, area, v in rows])
    series = shoal.Series.start(tmp_path / "s", policy(l=None, **{model: 0.7}), mode="views")
    series.add(table, person="id")
    assert rows_of_ages(series.place, 1) == {"30": 8, "41": 8}
    for number, columns in enumerate((["age", "ill"], ["zip", "ill"], ["zip"]), start=2):
        series.view(columns)
        asked = read_json(series.place / f"000{number}" / "release.certificate.json")["policy"]["privacy"]
        assert len(asked) == 1 + ("ill" in columns)  # k; and the model where the view still shows what it speaks of
    assert series.verify().holds
    about = read_json(series.place / "series.json", "series")
    papers = [read_json(series.place / f"000{i}" / "release.certificate.json") for i in (1, 2, 3, 4)]
    assert _one_request(about, papers).holds
    papers[1]["policy"]["privacy"] = papers[1]["policy"]["privacy"][:1]  # k alone, beside a sensitive column
    assert not _one_request(about, papers).holds


def rows_of_ages(place, number: int) -> dict[str, int]:
    return Counter(rows(place, number)["age"].to_list())


def test_a_receiver_checks_the_views_without_the_ledger(place, tmp_path):
    shoal.Series(place).view(["zip", "ill"])
    shutil.copytree(place, tmp_path / "received", ignore=shutil.ignore_patterns("private"))
    found = holding(shoal.Series.verify_folder(tmp_path / "received"))
    assert "views" in {f.check for f in found.findings}


def test_the_judge_sees_a_view_of_another_partition(place, tmp_path):
    """A view made of the same people grouped otherwise: every file is sound by itself, together they tell more."""
    shoal.Series(place).view(["age", "ill"])
    path = place / "0002" / "release.csv"
    table = pl.read_csv(path, infer_schema=False)
    other = table.sort("age", "ill").with_columns(age=pl.Series(["[30, 41]", "[30, 41]", "[34, 52]", "[34, 52]"] * 2))
    other.write_csv(path)
    about = read_json(place / "series.json", "series")
    papers = [read_json(place / f"000{i}" / "release.certificate.json") for i in (1, 2)]
    (found,) = judge_views(place, about, papers, {})
    assert not found.holds
    table.with_columns(pl.col("ill").replace({"a": "b", "b": "a"})).write_csv(path)
    assert judge_views(place, about, papers, {})[0].holds  # as many of each in every group
    table.sort("age").with_columns(pl.Series("ill", sorted(table["ill"]))).write_csv(path)
    assert not judge_views(place, about, papers, {})[0].holds


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ({"columns": ["ill"]}, "quasi-identifier"),
        ({"columns": ["agee"]}, "agee"),
        ({"publish": "centers"}, "coarser"),
        ({"publish": "stars", "levels": {"age": 1}}, "level"),
        ({"publish": "hierarchy", "levels": {"age": -1}}, "level"),
        ({"columns": ["zip"], "publish": "hierarchy"}, "hierarchy"),
    ],
)
def test_what_no_view_shows_is_refused_and_nothing_is_written(place, what, why):
    before = seen(place)
    with pytest.raises(shoal.PolicyError, match=why):
        shoal.Series(place).view(**what)
    assert seen(place) == before


def test_a_second_table_and_a_view_of_another_mode_are_refused(place, tmp_path):
    with pytest.raises(shoal.InputError, match="one table"):
        shoal.Series(place).add(people(2), person="id")
    other = shoal.Series.start(tmp_path / "o", policy())
    with pytest.raises(shoal.PolicyError, match="no views"):
        other.view()
    with pytest.raises(shoal.InputError, match="nothing to see"):
        shoal.Series.start(tmp_path / "v", policy(), mode="views").view()


def test_levels_of_a_hierarchy(tmp_path):
    (tmp_path / "age.csv").write_text(AGES)
    asked = policy(publish="hierarchy", hierarchies={"age": str(tmp_path / "age.csv")})
    series = shoal.Series.start(tmp_path / "s", asked, mode="views")
    series.add(frame([(f"p{i}", "30", "1", "ab"[i % 2]) for i in range(4)]), person="id")
    series.view(levels={"age": 1})
    series.view(levels={"age": 2})
    series.view(publish="stars")
    assert [set(rows(tmp_path / "s", i)["age"]) for i in (1, 2, 3, 4)] == [{"30"}, {"30-39"}, {"*"}, {"30"}]
    assert series.verify().holds, series.verify()


def test_the_command_makes_the_same_view(tmp_path):
    (tmp_path / "p.toml").write_text(
        'quasi_identifiers = ["age", "zip"]\nsensitive = ["ill"]\nk = 2\nl = 2\neffort = "fast"\n'
    )
    people(1).write_csv(tmp_path / "1.csv")
    assert run("series", "start", "s", "--policy", "p.toml", "--mode", "views", cwd=tmp_path).returncode == 0
    assert run("series", "add", "s", "1.csv", "--person", "id", cwd=tmp_path).returncode == 0
    done = run("series", "view", "s", "--columns", "age,ill", "--publish", "stars", "--json", cwd=tmp_path)
    assert (done.facts["rows"], done.facts["parts"]) == (8, 2), done.said
    assert run("verify", "s", "--json", cwd=tmp_path).facts["holds"]
    assert run("series", "status", "s", "--columns", "age", cwd=tmp_path).returncode == 2


row = st.tuples(st.sampled_from(["30", "34", "41", "47", "52"]), st.sampled_from("12"), st.sampled_from("ab"))
shown = st.tuples(st.sets(st.sampled_from(["age", "zip", "ill"]), min_size=1), st.sampled_from(["ranges", "stars"]))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(who=st.lists(row, min_size=4, max_size=10), asked=st.lists(shown, min_size=1, max_size=3))
def test_whoever_holds_all_views_is_left_with_the_groups_of_the_first_part(tmp_path_factory, who, asked):
    """Of a published tuple of all views together, the people behind it meet the models: the join is part 1 or less."""
    series = shoal.Series.start(tmp_path_factory.mktemp("s") / "s", policy(publish="ranges"), mode="views")
    try:
        series.add(frame([(f"p{i}", *r) for i, r in enumerate(who)]), person="id")
    except shoal.InfeasibleError:
        return
    for columns, way in asked:
        if columns & {"age", "zip"}:
            series.view(sorted(columns), publish=way)
    assert series.verify().holds, series.verify()
    groups = defaultdict(Counter)
    for *quasi, value in rows(series.place, 1).select("age", "zip", "ill").rows():
        groups[tuple(quasi)][value] += 1
    for number in range(2, series.parts + 1):
        table = rows(series.place, number)
        quasi = [c for c in ("age", "zip") if c in table.columns]
        image: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
        for fine in groups:  # nothing of a group is told apart: there is one row it can be
            for coarse in table.select(quasi).unique().rows():
                pairs = zip((dict(zip(("age", "zip"), fine, strict=True))[q] for q in quasi), coarse, strict=True)
                if all(b in (a, "*") for a, b in pairs):
                    image[fine].add(coarse)
        assert all(image[fine] for fine in groups)
        sizes = Counter(table.select(quasi).rows())
        narrow = {f: min(image[f], key=lambda c: c.count("*")) for f in groups}
        assert sizes == Counter({c: sum(groups[f].total() for f in groups if narrow[f] == c) for c in sizes})


@pytest.mark.parametrize(
    ("small", "large", "inside"),
    [
        (Members(low=1, high=3), Members(everything=True), True),
        (Members(everything=True), Members(low=1, high=3), False),
        (Members(low=1, high=3), Members(low=1, high=3), True),
        (Members(low=1, high=3), Members(low=2, high=3), False),
        (Members(low=1, high=2), Members(low=1, high=3, open=True), True),
        (Members(low=1, high=3), Members(low=1, high=3, open=True), False),
        (Members(low=1, high=3, open=True), Members(low=1, high=3, open=True), True),
        (Members(low=1, high=4, open=True), Members(low=1, high=3), False),
        (Members(low=1, high=4), Members(low=1, high=3), False),
    ],
)
def test_the_judge_knows_which_range_lies_inside_another(small, large, inside):
    assert _within(small, large) is inside


def test_the_judge_knows_the_values_of_a_hierarchy_file():
    assert _leaves(None) == []
    (held,) = _leaves([["30", "3*", "*"], ["41", "4*", "*"]])
    assert held.named == {"30", "41"}


def test_the_judge_sees_a_view_that_does_not_name_the_others(place):
    shoal.Series(place).view(["age", "ill"])
    about = read_json(place / "series.json", "series")
    papers = [read_json(place / f"000{i}" / "release.certificate.json") for i in (1, 2)]
    (sound,) = judge_views(place, about, papers, {})
    assert sound.holds
    papers[1]["series"]["others"] = []
    (found,) = judge_views(place, about, papers, {})
    assert (found.holds, found.found) == (False, "part 2 does not name the views before it")


def test_a_view_keeps_the_hierarchy_that_its_model_needs(tmp_path):
    asked = policy(l=None, t_hierarchical=0.6, hierarchies={"ill": {"lungs": ["a"], "stomach": ["b"]}})
    series = shoal.Series.start(tmp_path / "s", asked, mode="views")
    series.add(people(1, 16), person="id")
    assert series.view(["zip", "ill"]).rows == 16
    assert series.verify().holds


def test_a_level_is_one_of_the_hierarchy_and_its_column_one_of_the_view(place):
    series = shoal.Series(place)
    before = seen(place)
    with pytest.raises(shoal.PolicyError, match="levels 0 to 2, where 2 is the star"):
        series.view(publish="hierarchy", levels={"age": 3})
    with pytest.raises(shoal.PolicyError, match="did you mean 'age'"):
        series.view(publish="hierarchy", levels={"agee": 1})
    assert seen(place) == before
    series.view(publish="hierarchy", levels={"age": 2})
    assert set(rows(place, 2)["age"]) == {"*"}
