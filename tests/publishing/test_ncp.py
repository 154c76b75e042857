"""One loss everywhere: the leaves of a hierarchy are those it was given with, whether or not they occur."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError
from tests.commands import run
from tests.kept import holding
from tests.oracles import ncp as oracle

WORLD = {
    "Asia": {"East": ["China", "Japan", "Korea"], "West": ["Iran", "Iraq"]},
    "Europe": {"North": ["Norway", "Sweden"], "South": ["Italy", "Malta", "Spain", "Greece"]},
    "Australia": ["Sydney"],
    "Americas": {
        "USA": {"Pacific": ["Oregon", "Alaska"], "Inner": ["Ohio", "Utah", "Iowa"]},
        "South America": ["Peru"],
    },
}
TOWNS = [line[0] for line in oracle.from_dict(WORLD)]
ZIPS = [f"{a}{b}{c}" for a in "0134" for b in "0279" for c in "158"]


def write_zips(path: Path, zips: list[str]) -> Path:
    path.write_text("".join(f"{z};{z[:2]}*;{z[0]}**;*\n" for z in zips), encoding="utf-8")
    return path


def people(n: int, seed: int, missing: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    some = [TOWNS[i] for i in rng.choice(len(TOWNS), 6, replace=False)]  # most leaves do not occur
    frame = pl.DataFrame(
        {
            "town": rng.choice(some, n),
            "zip": rng.choice([ZIPS[i] for i in rng.choice(len(ZIPS), 8, replace=False)], n),
            "age": rng.integers(20, 60, n),
            "sex": rng.choice(["f", "m"], n),
            "ill": rng.choice(["flu", "hiv", "ok"], n),
        }
    )
    if missing:
        frame = frame.with_columns(pl.when(pl.int_range(n) % 9 == 0).then(None).otherwise("town").alias("town"))
    return frame


QUASI = ["town", "zip", "age", "sex"]


def ages(frame: pl.DataFrame) -> oracle.Leaves:
    """A builder has the values present as its leaves."""
    present = sorted(frame["age"].unique().to_list())
    return [[str(a), f"{a // 10 * 10}-{a // 10 * 10 + 9}", f"{a // 20 * 20}-{a // 20 * 20 + 19}"] for a in present]


@given(st.integers(0, 10_000), st.integers(2, 6), st.booleans(), st.booleans())
@settings(max_examples=4, deadline=None)
def test_files_and_frames_agree_with_a_scorer_of_release_and_hierarchies(tmp_path_factory, seed, k, whole, missing):
    folder = tmp_path_factory.mktemp("ncp")
    frame = people(60, seed, missing)
    path = write_zips(folder / "zip.csv", ZIPS)
    given_ = {"town": WORLD, "zip": str(path), "age": "intervals:10,20"}
    leaves = {"town": oracle.from_dict(WORLD), "zip": oracle.from_file(path), "age": ages(frame)}
    made = shoal.anonymize(
        frame, quasi_identifiers=QUASI, insensitive=["ill"], k=k, publish="hierarchy", hierarchies=given_,
        global_recoding=whole, effort="fast", numeric_stars="text", weights={"zip": 2.0},
    )  # fmt: skip
    for ending, read in (("csv", lambda p: pl.read_csv(p, infer_schema=False)), ("parquet", pl.read_parquet)):
        beside = made.write(folder / f"out.{ending}", folder / f"{ending}.json")
        table = read(folder / f"out.{ending}").select(pl.col(QUASI).cast(pl.String))
        scored = oracle.ncp(table.to_dict(as_series=False), leaves)
        assert made.facts.cost["ncp"] == pytest.approx(scored, abs=1e-9)
        assert made.loss["ncp"] == made.facts.cost["ncp"]
        holding(shoal.verify(folder / f"out.{ending}", beside, frame, hierarchies=given_))
        found = shoal.compare(frame, {"it": folder / f"out.{ending}"}, quasi_identifiers=QUASI, hierarchies=given_)
        assert found.releases["it"]["loss"]["ncp"] == pytest.approx(scored, abs=1e-9)


def test_the_command_says_what_the_scorer_finds(tmp_path):
    frame = people(80, 5)
    frame.write_csv(tmp_path / "in.csv")
    path = write_zips(tmp_path / "zip.csv", ZIPS)
    told = run(
        "anonymize", tmp_path / "in.csv", "--quasi", "zip,sex", "--insensitive", "town,age,ill", "--k", 4,
        "--publish", "hierarchy", "--hierarchy", f"zip={path}", "-o", tmp_path / "out.csv", "--json",
    ).facts["loss"]["ncp"]  # fmt: skip
    table = pl.read_csv(tmp_path / "out.csv", infer_schema=False).select("zip", "sex").to_dict(as_series=False)
    assert told == pytest.approx(oracle.ncp(table, {"zip": oracle.from_file(path)}), abs=5e-7)


def test_two_values_of_a_file_with_many_cost_little():
    """The example that showed two figures: a class of two present values is 2 of 12 leaves, or all of them."""
    rows = [[f"{a}", f"g{a // 4}", "*"] for a in range(12)]
    frame = pl.DataFrame({"a": ["0", "1"] * 3})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=6, publish="hierarchy", hierarchies={"a": rows})
    assert set(made.table["a"]) == {"g0"}
    assert made.facts.cost["ncp"] == 3 / 11
    assert made.certificate.lower_bound <= 3 / 11


@given(st.integers(0, 10_000), st.integers(0, 2), st.integers(2, 5))
@settings(max_examples=10, deadline=None)
def test_leaves_that_do_not_occur_change_no_table_s_feasibility(tmp_path_factory, seed, ceiling, k):
    folder = tmp_path_factory.mktemp("more")
    frame = people(24, seed).select("zip", "sex")
    present = frame["zip"].unique().to_list()

    def outcome(zips: list[str], name: str) -> int | str:
        path = write_zips(folder / name, zips)
        try:
            made = shoal.anonymize(
                frame, quasi_identifiers=["zip", "sex"], k=k, publish="hierarchy", hierarchies={"zip": str(path)},
                max_level={"zip": ceiling}, effort="fast",
            )  # fmt: skip
        except InfeasibleError as refusal:
            return str(refusal)
        return made.audit.rows

    small, large = outcome(present, "a.csv"), outcome(ZIPS, "b.csv")
    assert isinstance(small, int) == isinstance(large, int)


def test_generated_hierarchies_count_the_values_present():
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({"age": rng.integers(20, 60, 90), "x": rng.choice(["a", "b"], 90)})
    made = shoal.anonymize(
        frame, quasi_identifiers=["age", "x"], k=5, publish="hierarchy", hierarchies={"age": "intervals"}, effort="fast"
    )
    present = frame["age"].unique().to_list()
    total = 0.0
    for age, x in made.table.select("age", "x").iter_rows():
        low, _, high = str(age).partition(" .. ")
        held = len(present) if age == "*" else sum(int(low) <= v <= int(high or low) for v in present)
        total += (held - 1) / (len(present) - 1) + (x == "*")
    assert made.facts.cost["ncp"] == pytest.approx(total / 180, abs=1e-12)
    assert any(" .. " in str(age) for age in made.table["age"])


@pytest.mark.parametrize("publish", ["stars", "ranges"])
@pytest.mark.parametrize("step", [{}, {"age": 7}])
def test_compare_gives_the_release_s_own_figure(publish, step, tmp_path):
    frame = people(70, 8, missing=True).with_columns(
        pl.when(pl.int_range(70) % 11 == 0).then(None).otherwise("age").alias("age")
    )
    more = {"range_step": step} if publish == "ranges" and step else {}
    made = shoal.anonymize(
        frame, quasi_identifiers=QUASI, insensitive=["ill"], k=3, publish=publish, effort="fast", **more
    )
    made.write(tmp_path / "out.parquet")
    for given_ in (made, tmp_path / "out.parquet"):
        found = shoal.compare(frame, {"it": given_}, quasi_identifiers=QUASI).releases["it"]["loss"]["ncp"]
        if publish == "ranges":
            assert found == pytest.approx(made.facts.cost["ncp"], abs=1e-9)
        else:  # from a frame alone a starred number is a missing one
            assert found <= made.facts.cost["ncp"] + 1e-9


def test_a_star_over_a_single_leaf_costs_one():
    frame = pl.DataFrame({"a": ["x", None]})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=2, publish="hierarchy", hierarchies={"a": [["x", "*"]]})
    assert made.table["a"].to_list() == ["*", "*"]
    assert made.facts.cost["ncp"] == 1
