"""Decoding: from the release alone, every cell's members hold the value that stood there."""

import datetime
import pickle
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.model.members import Members, meanings, span
from tests.data import as_polars

QUASI = ["age", "wage", "town", "zip", "born"]
TREE = {"n": ["a, b", "c"], "s": ["*x", "{d}", '"e"']}
HIERARCHIES = {
    "age": "intervals:5,10,20",
    "wage": "intervals:0.5,5",
    "town": TREE,
    "zip": "prefixes:4,3,1",
    "born": "dates:month,quarter,year,decade",
}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    n = 240
    return pl.DataFrame(
        {
            "age": rng.choice([17, 21, 22, 34, 36, 59], n),
            "wage": rng.choice([-0.5, 1.25, 3.5, 7.0, 9.75], n),
            "town": rng.choice(["a, b", "c", "*x", "{d}", '"e"'], n),
            "zip": rng.choice(["01234", "01239", "01999", "52000"], n),
            "born": [
                datetime.date(1960, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.choice([0, 9, 40, 4000], n)
            ],
            "ill": rng.choice(["flu", "gout"], n),
        }
    ).with_columns(pl.when(pl.int_range(n) % 7 == 0).then(None).otherwise(pl.col("town")).alias("town"))


def released(people, publish, **more):
    return shoal.anonymize(
        people, quasi_identifiers=QUASI, sensitive=["ill"], k=3, publish=publish, keep_order=True, effort="fast",
        seed=1, **({"hierarchies": HIERARCHIES} if publish == "hierarchy" else {}), **more,
    )  # fmt: skip


@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges"])
def test_members_hold_the_value_that_stood_there(people, publish, tmp_path):
    release = released(people, publish, method="mondrian" if publish == "ranges" else "auto")
    release.write(tmp_path / "r.csv")
    filed = shoal.decode(tmp_path / "r.csv", hierarchies=HIERARCHIES if publish == "hierarchy" else None)
    narrower = 0
    for name in QUASI:
        for decoded in (release, filed):
            cells = decoded.members(name)
            assert all(v in m for v, m in zip(people[name].to_list(), cells, strict=True)), name
            narrower += sum(not m.everything for m in cells)
    assert narrower > 100
    ends = release.numeric()
    assert set(ends.columns) >= {"age_low", "age_high", "age_mid", "wage_mid", "born_low"}
    for name in ("age", "wage", "born"):
        cell = pl.Series([not m.everything for m in release.members(name)])
        truth, low, high = (s.filter(cell) for s in (people[name], ends[f"{name}_low"], ends[f"{name}_high"]))
        assert ((low <= truth) & (truth <= high)).all(), name
        assert ends[f"{name}_mid"].null_count() == (~cell).sum()


@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges"])
def test_fractions_sum_to_one_and_draws_are_members(people, publish):
    release = released(people, publish)
    shares = release.one_hot(QUASI)
    for name in QUASI:
        mine = shares.select([c for c in shares.columns if c.startswith(f"{name}=")]).to_numpy()
        assert np.allclose(mine.sum(axis=1), 1)
        assert mine.min() >= 0
    assert not any(c.startswith("age=") for c in release.one_hot().columns)
    drawn = release.sample(3)
    assert drawn.equals(release.sample(3))
    assert drawn.columns == release.table.columns
    for name in QUASI:
        assert all(v in m for v, m in zip(drawn[name].to_list(), release.members(name), strict=True)), name
    assert drawn["ill"].equals(release.table["ill"])
    assert not drawn.equals(release.sample(4)) or publish == "ranges"


def test_a_cell_of_three_gives_a_third_to_each():
    cells = meanings(["{a, b, c}", "a", "*", None], "ranges")
    assert cells[0].named == {"a", "b", "c"}
    assert [m.everything for m in cells] == [False, False, True, False]
    assert None in cells[3]
    frame = pl.DataFrame({"t": ["a", "b", "c", "d"] * 2, "u": ["x"] * 6 + ["y"] * 2})
    release = shoal.anonymize(
        frame, quasi_identifiers=["t", "u"], k=6, publish="ranges", keep_order=True, seed=1, max_level={}
    )
    assert release.one_hot().select(pl.sum_horizontal("^t=.*$")).to_series().to_list() == pytest.approx([1.0] * 8)


@given(st.integers(-50, 50), st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_spans_of_hierarchies_hold_their_whole_numbers(x, width):
    resolved = shoal.Hierarchy.intervals([width]).resolve([str(x)], "c")
    found = span(resolved.labels[1][0])
    low = x // width * width
    assert found is not None
    assert [v for v in range(x - 45, x + 45) if v in found] == list(range(low, low + width))


def test_a_period_ends_where_its_month_does_and_one_of_no_calendar_is_itself():
    leap, long, quarter = meanings(["2024-02", "9999-12", "2023-Q1"], "hierarchy", "dates:month,year")
    assert "2024-02-29" in leap
    assert "2024-03-01" not in leap
    assert "9999-12-31" in long
    assert ["2023-03-31" in quarter, "2023-04-01" in quarter, "2023-02" in quarter] == [True, False, True]
    for text in ("2020-13", "2020-00", "2020-02-30"):
        (found,) = meanings([text], "hierarchy", "dates:month,year")
        assert (found.named, found.low) == ({text}, None)


def test_what_is_not_understood_may_be_anything():
    for made in ("labels", "tiles"):  # such a name may look like numbers, which it does not stand for
        assert all(m.everything for m in meanings(["A .. B and 3 more", "x", "10 .. 20"], "hierarchy", made))
    assert meanings(["{broken}"], "ranges")[0].everything
    assert "2020-05-09" in meanings(["2020-Q2"], "hierarchy", "dates:month,quarter")[0]
    assert "2020-07-01" not in meanings(["2020-Q2"], "hierarchy", "dates:month,quarter")[0]
    assert "2020-05" in meanings(["2020-Q2"], "hierarchy", "dates:month,quarter")[0]
    assert "01239" in meanings(["0123*"], "hierarchy", "prefixes:4")[0]
    assert "012399" not in meanings(["0123*"], "hierarchy", "prefixes:4")[0]
    assert 21 in Members(low=20, high=25, ruler="number")


def test_the_largest_number_has_a_middle(tmp_path: Path):
    """Maps use its negative for an area without a value."""
    low = -sys.float_info.max
    frame = pl.DataFrame({"height": [low, low, low, 20.0, 30.0, 40.0]})
    release = shoal.anonymize(frame, quasi_identifiers=["height"], k=3, publish="ranges", keep_order=True, seed=1)
    assert release.numeric().rows() == [(low, low, low)] * 3 + [(20.0, 40.0, 30.0)] * 3
    release.report(tmp_path / "r.html")


def test_an_open_end_is_no_number_and_neither_is_its_middle():
    """The rows of ``[60, missing]`` can hold more than any number that the release names."""
    frame = pl.DataFrame({"age": [20, 21, 22, 23, 60, 75, None, None]})
    release = shoal.anonymize(frame, quasi_identifiers=["age"], k=4, publish="ranges", keep_order=True, seed=1)
    assert release.table["age"].to_list() == ["[20, 23]"] * 4 + ["[60, missing]"] * 4
    assert release.numeric().rows() == [(20.0, 23.0, 21.5)] * 4 + [(60.0, None, None)] * 4
    ages = pl.DataFrame({"age": [3, 9, 17, 18, 40, 64, 65, 80, 99]})
    asked = {"quasi_identifiers": ["age"], "k": 3, "publish": "hierarchy", "keep_order": True, "seed": 1}
    made = shoal.anonymize(ages, **asked, hierarchies={"age": shoal.Hierarchy.intervals([[18, 65]])})
    assert made.table["age"].unique(maintain_order=True).to_list() == ["<18", "18-64", ">=65"]
    assert (
        made.numeric(["age"]).rows() == [(None, 17.0, None)] * 3 + [(18.0, 64.0, 41.0)] * 3 + [(65.0, None, None)] * 3
    )


def test_starred_numbers_and_booleans_in_frames():
    frame = pl.DataFrame({"age": [1, 1, 2, 3, None, None], "old": [True, True, False, True, False, True]})
    release = shoal.anonymize(frame, quasi_identifiers=["age", "old"], k=2, keep_order=True, seed=1)
    for name in frame.columns:
        assert all(v in m for v, m in zip(frame[name], release.members(name), strict=True))
    assert release.sample(1)["old"].dtype == pl.Boolean


def test_centers_and_other_columns_are_refused(people):
    with pytest.raises(shoal.PolicyError, match="centers"):
        shoal.anonymize(
            people.select("age", "ill"), quasi_identifiers=["age"], insensitive=["ill"], k=3, publish="centers"
        ).numeric()
    release = released(people, "stars")
    with pytest.raises(shoal.PolicyError, match="ill"):
        release.members("ill")
    with pytest.raises(shoal.PolicyError, match="town"):
        release.numeric(["town"])


def test_a_release_in_a_notebook(people):
    release = released(people, "ranges")
    assert len(str(release).splitlines()) == 5
    for one in (release, release.audit, release.certificate, release.decoded):
        assert len(repr(one).splitlines()) == 1
        assert len(repr(one)) < 250
    assert len(repr(release.decoded)) < 200
    for shown in (release, release.certificate, release.audit):
        assert shown._repr_html_().startswith("<table>")
        assert "proof" not in shown._repr_html_()
    again = pickle.loads(pickle.dumps(release))
    assert again.table.equals(release.table)
    assert again.loss == release.loss
    again.check()


@pytest.mark.parametrize("ending", [".parquet", ".xlsx", ".csv.gz"])
def test_a_release_is_decoded_from_every_format(people, ending, tmp_path):
    people.write_csv(tmp_path / "people.csv", separator=";")
    release = shoal.anonymize(tmp_path / "people.csv", quasi_identifiers=["age", "town"], k=3, publish="ranges")
    release.write(tmp_path / f"release{ending}")
    assert shoal.decode(tmp_path / f"release{ending}").numeric().height == people.height


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "duckdb"])
def test_other_frames_are_decoded_too(people, kind):
    import duckdb

    data = {
        "pandas": people.to_pandas,
        "pyarrow": people.to_arrow,
        "duckdb": lambda: duckdb.from_arrow(people.to_arrow()),
    }
    if kind == "duckdb":
        release = shoal.anonymize(
            data[kind](), quasi_identifiers=QUASI, sensitive=["ill"], k=3, publish="ranges", effort="fast", seed=1
        )
    else:
        release = released(data[kind](), "ranges")
        assert all(v in m for v, m in zip(people["age"].to_list(), release.members("age"), strict=True))
    for frame in (release.numeric(), release.one_hot(["zip"]), release.sample(1)):
        assert type(frame) is type(release.table)  # the kind that came in
        assert len(as_polars(frame)) == 240
    assert np.allclose(as_polars(release.one_hot(["zip"])).to_numpy().sum(axis=1), 1)


def test_rows_of_pandas_keep_their_index(people):
    frame = people.to_pandas().set_index(np.arange(1000, 1240))
    release = released(frame, "ranges")
    for found in (release.numeric(), release.one_hot(), release.sample(1)):
        assert list(found.index) == list(release.table.index)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_a_column_with_a_hierarchy_of_labels_is_categorical_unless_said(kind):
    frame = pl.DataFrame({"faith": [1, 2, 3, 4] * 6, "age": [20, 21, 35, 36] * 6})
    release = shoal.anonymize(
        frame if kind == "polars" else frame.to_pandas(), quasi_identifiers=["faith", "age"], k=7, publish="hierarchy",
        hierarchies={"faith": {"west": ["1", "2"], "east": ["3", "4"]}, "age": "intervals:10,20"}, keep_order=True,
    )  # fmt: skip
    shares = list(release.one_hot().columns)
    assert shares
    assert all(c.startswith("faith=") for c in shares)
    assert [c for c in release.numeric().columns if c.startswith("faith")] == []
    assert list(release.numeric(["faith"]).columns) == ["faith_low", "faith_high", "faith_mid"]


def test_no_column_of_the_kind_is_an_error_and_no_empty_frame(people):
    release = shoal.anonymize(people.select("age", "wage"), quasi_identifiers=["age", "wage"], k=3, publish="ranges")
    with pytest.raises(shoal.PolicyError, match=r"no quasi-identifier .* categories; numeric\(\) decodes age, wage"):
        release.one_hot()
    release = shoal.anonymize(people.select("town"), quasi_identifiers=["town"], k=3, publish="ranges")
    with pytest.raises(shoal.PolicyError, match=r"numbers or dates; one_hot\(\) decodes town"):
        release.numeric()


def test_one_column_is_named_by_its_name(people):
    made = released(people, "ranges")
    assert made.numeric("age").equals(made.numeric(["age"]))


def test_a_whole_float_is_a_member_as_it_is_published():
    assert 34.0 in Members(frozenset({"34"}))
    assert 34.5 not in Members(frozenset({"34"}))


@pytest.mark.parametrize(
    ("values", "cut"), [(list(range(20, 40)), "20-24"), ([20.5, *map(float, range(21, 40))], "[20, 25)")]
)
def test_the_name_of_an_interval_tells_whether_whole_numbers_are_drawn(values: list[float], cut: str):
    table = pl.DataFrame({"age": [v for v in values for _ in range(2)]})
    made = shoal.anonymize(
        table, quasi_identifiers=["age"], k=4, publish="hierarchy", hierarchies={"age": "intervals:5"}, seed=1
    )
    assert cut in set(made.table["age"])
    drawn = made.sample(seed=1)["age"]
    assert (drawn.dtype == pl.Int64) == (cut == "20-24")
    assert drawn.is_between(20, 40).all()
    assert made.numeric()["age_high"].max() == (39 if cut == "20-24" else 40)


MOMENTS = pl.Series([datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=3 * (i // 4)) for i in range(16)])
OTHERS = {
    "zoned": MOMENTS.dt.replace_time_zone("Europe/Berlin"),
    "duration": MOMENTS - MOMENTS[0],
    "time": MOMENTS.dt.time(),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_draw_of_moments_with_a_zone_durations_and_times_has_their_type(kind: str) -> None:
    """With stars, a value is published or starred, so a draw is one of the values that are shown."""
    values = pl.concat([OTHERS[kind][:12], OTHERS[kind][12:13]])
    table = pl.DataFrame({"at": values, "ill": ["flu", "gout", "flu"] * 4 + ["gout"]})
    release = shoal.anonymize(table, quasi_identifiers=["at"], sensitive=["ill"], k=4, publish="stars", seed=1)
    drawn, shown = release.sample(seed=2), release.table["at"]
    assert 0 < shown.null_count() < 13
    assert drawn["at"].dtype == table["at"].dtype
    assert drawn["at"].null_count() == 0
    assert set(drawn["at"].to_list()) <= set(shown.drop_nulls().to_list())
    assert drawn["at"].filter(shown.is_not_null()).equals(shown.drop_nulls())


@pytest.mark.parametrize("kind", [*OTHERS, "ordered"])
def test_a_draw_from_ranges_without_a_scale_is_refused(kind: str, tmp_path: Path) -> None:
    """A category between two ends that no row shows is no level of the release, so its order isn't enough."""
    grades = [f"grade {i}" for i in range(16)]
    given = {
        "duration": pl.Series([datetime.timedelta(hours=i) for i in range(16)]),
        "ordered": pl.Series(grades, dtype=pl.Enum(grades)),
    }
    values = given.get(kind, OTHERS.get(kind))
    table = pl.DataFrame({"at": values, "ill": ["flu", "gout"] * 8})
    release = shoal.anonymize(table, quasi_identifiers=["at"], sensitive=["ill"], k=5, publish="ranges", seed=1)
    assert release.table["at"].cast(pl.String).str.starts_with("[").any()
    release.write(tmp_path / "release.csv")
    for made in (release, shoal.decode(tmp_path / "release.csv")):
        with pytest.raises(shoal.PolicyError, match=r"column 'at' has ranges of .* turn ordered categories, durations"):
            made.sample(seed=1)
