"""Random journeys, and what they ran into, each as a small table."""

import datetime as dt
import json
import random
import re
import shlex
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import shoal
from shoal.cli.common import listed, refusal
from shoal.engines.features import codes_of
from shoal.engines.store import store
from shoal.workbench import jobs
from tests.amount import thinned
from tests.commands import run
from tests.fuzz import journeys, places
from tests.kept import holding


@settings(max_examples=thinned(25), deadline=None, database=None, phases=[Phase.generate])
@given(st.integers(0, 2**32 - 1))
def test_a_journey_ends_well(seed: int) -> None:
    """Other seeds at every run; ``tools/fuzz_releases.py`` goes on where this stops."""
    with tempfile.TemporaryDirectory() as folder:
        journeys.tried(seed, Path(folder))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", places.PLACES)
def test_a_journey_from_a_place_ends_well(place: str, tmp_path: Path) -> None:
    """A release of each place is that of the same frame; as above, other seeds at every run, but few."""
    if (why := places.absent(place)) is not None:
        pytest.skip(why)
    for seed in (random.randrange(2**32), random.randrange(2**32)):
        print(seed)
        (tmp_path / str(seed)).mkdir()
        places.tried(seed, tmp_path / str(seed), place)


PEOPLE = {"age": [30, 31, 30, 52] * 3, "id": [f"p{i}" for i in range(12)]}
ILL = ["flu", "gout", "flu ", "gout"] * 3


@pytest.mark.parametrize("name", ["count", "len", "rows", "value", "n", "group", "literal", "a,b", 'say "hi"', "a\nb"])
def test_a_column_may_have_the_name_of_a_count_or_one_that_a_csv_quotes(name: str, tmp_path: Path) -> None:
    pl.DataFrame({name: ILL, **PEOPLE}).write_csv(tmp_path / "t.csv")
    run("init", "t.csv", "-o", "p.toml", cwd=tmp_path).ok()
    quoted = '"' + name.replace('"', '""') + '"'
    words = ["--columns", f"age,{quoted}", "--r", 2, "--internal", "--report", "c.internal.html", "-o", "c.csv"]
    run("gather", "t.csv", *words, cwd=tmp_path).ok()
    run("gather", "t.csv", "--columns", "age", "--r", 2, "--sensitive", quoted, "-o", "s.csv", cwd=tmp_path).ok()
    source = {"path": str(tmp_path / "t.csv")}
    assert jobs.distributions(lambda *_: None, source, source["path"], name)["before"][0][1] == 6
    policy = shoal.Policy.of(quasi_identifiers=["age"], sensitive=[name], k=2, publish="ranges", effort="fast")
    series = shoal.Series.start(tmp_path / "s", policy, mode="views")
    series.add(tmp_path / "t.csv", person="id")
    series.view(publish="stars")
    holding(series.verify())
    months = shoal.Series.start(tmp_path / "m", policy)
    for month in "ab":
        months.add(pl.DataFrame({name: ILL, **PEOPLE, "id": [f"{month}{i}" for i in range(12)]}), person="id")
    holding(months.verify())


def test_a_column_named_by_a_star_is_one_column(tmp_path: Path) -> None:
    """To an expression of Polars, it is all columns."""
    held = {"*": ["a", "b", ""] * 4, "age": [30, 31] * 6, "ill": ["flu", "gout"] * 6}
    table, asked = pl.DataFrame(held), {"quasi_identifiers": ["*", "age"], "sensitive": ["ill"]}
    release = shoal.anonymize(table, **asked, k=2, effort="fast", seed=1)
    release.write(tmp_path / "r.csv")
    plain = {n.replace("*", "star"): values for n, values in held.items()}
    renamed = {"quasi_identifiers": ["star", "age"], "sensitive": ["ill"]}
    found = shoal.compare(table, {"own": release.table}, **asked, seed=1).releases["own"]
    same = shoal.compare(pl.DataFrame(plain), {"own": release.table.rename({"*": "star"})}, **renamed, seed=1)
    assert found["loss"]["ncp"] == same.releases["own"]["loss"]["ncp"]
    assert list(found["loss"]["columns"].values()) == list(same.releases["own"]["loss"]["columns"].values())
    table.write_csv(tmp_path / "t.csv")
    source, seen = {"path": str(tmp_path / "t.csv")}, 0
    for number in range(12):
        one = jobs.groups(lambda *_: None, source, str(tmp_path / "r.csv"), asked, number)
        seen += one["size"] if one["number"] == number else 0
    assert seen == 12
    pairs = jobs.heat(lambda *_: None, source, None, ["*", "ill"])
    assert (sorted(pairs["a"]), sum(n for *_, n in pairs["cells"])) == (["a", "b", "missing"], 12)
    long = table.with_columns(pl.duration(minutes="age").alias("*"))
    store(long, tmp_path / "long.csv")
    assert pl.read_csv(tmp_path / "long.csv")["*"].to_list() == ["PT30M", "PT31M"] * 6
    with pytest.raises(shoal.InputError, match="pattern of other names"):
        codes_of(table, ["*"])
    tiles = shoal.tiles.split([[i % 4, i] for i in range(12)], 3, sensitive=held["*"], distinct_l=2)
    places = table.with_columns(x=pl.Series([i % 4 for i in range(12)]), y=pl.Series(range(12)))
    with pytest.raises(shoal.InputError, match="pattern of other names"):
        shoal.release(tiles, places, x="x", y="y", sensitive="*", identifiers=["age", "ill"])


def test_a_name_with_a_line_break_breaks_no_sentence(tmp_path: Path) -> None:
    pl.DataFrame({"age": [30, 31] * 6, "a\nb": ["x"] * 12, "b\r": ["x"] * 12}).write_parquet(tmp_path / "t.parquet")
    for name, shown in (("a\nb", r"a\nb 'x' is"), ("b\r", r"b\r 'x' is")):
        with pytest.raises(shoal.InfeasibleError) as refused:
            shoal.anonymize(tmp_path / "t.parquet", quasi_identifiers=["age"], sensitive=[name], k=2, l=2)
        assert str(refused.value).startswith(shown)
    words = ["--quasi", "age", "--sensitive", '"a\nb"', "--k", 2, "--l", 2]
    said = run("anonymize", "t.parquet", *words, "-o", "r.csv", cwd=tmp_path).refused(3, r"a\nb 'x' is").stderr
    assert len(said.strip().splitlines()) == 1


def test_a_line_break_separates_names_as_a_comma_does() -> None:
    assert listed('age\nzip,"a\nb"\n') == ["age", "zip", "a\nb"]


def test_a_column_that_polars_reads_as_every_column() -> None:
    table = pl.DataFrame({"*": ILL, "age": PEOPLE["age"]})
    recoder = shoal.Recoder(["age"], insensitive=["*"], k=2, hierarchies={"age": "intervals:10,100"}, effort="fast")
    assert recoder.fit_transform(table)["*"].sort().to_list() == sorted(ILL)


def test_an_attack_with_another_release_of_a_column_that_polars_reads_as_every_column(tmp_path: Path) -> None:
    table = pl.DataFrame({"*": ILL, "age": PEOPLE["age"], "n": [1] * 12})
    table.write_parquet(tmp_path / "t.parquet")
    words = ["--quasi", "age,*", "--sensitive", "n", "--k", 2, "-o"]
    for name in ("a.parquet", "b.parquet"):
        run("anonymize", "t.parquet", *words, name, cwd=tmp_path).ok()
    run("attack", "a.parquet", "--register", "t.parquet", "--with", "b.parquet", cwd=tmp_path).ok()


def test_a_series_refuses_a_column_that_polars_reads_as_every_column(tmp_path: Path) -> None:
    policy = shoal.Policy.of(quasi_identifiers=["age"], sensitive=["*"], k=2)
    series = shoal.Series.start(tmp_path / "s", policy)
    with pytest.raises(shoal.InputError, match=r"the column name '\*' is a pattern of other names"):
        series.add(pl.DataFrame({"*": ILL, **PEOPLE}), person="id")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx", ".sav", ".dta"])
def test_new_records_with_a_negative_zero_no_number_and_a_column_of_any_name(ending: str, tmp_path: Path) -> None:
    held = {"v": ["a", "b"] * 4, "*": list("ppppqqqq")} if ending in (".csv", ".parquet") else {"v": ["a", "b"] * 4}
    table = pl.DataFrame({**held, "f": [-0.0, 1.5, 3.0, None] * 2, "g": [float("nan"), 1.0, 2.0, -0.0] * 2})
    run("labels", _saved(table, tmp_path), "--label", "v", "--k", 2, "-o", "g.csv", cwd=tmp_path).ok()
    run("assign", "g.csv", "t.parquet", "-o", f"o{ending}", cwd=tmp_path).ok()


def _saved(table: pl.DataFrame, folder: Path) -> Path:
    table.write_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def test_a_tsv_has_tabs_whatever_its_names_hold(tmp_path: Path) -> None:
    held = {"income, net, EUR": [1, 2] * 4, "zip, code": ["a", "b"] * 4}
    pl.DataFrame(held).write_csv(tmp_path / "t.tsv", separator="\t", quote_style="never")
    assert run("audit", "t.tsv", "--quasi", '"zip, code"', "--json", cwd=tmp_path).facts["k"] == 4
    pl.DataFrame(held).write_csv(tmp_path / "t.csv", separator=";", quote_style="never")
    run("audit", "t.csv", "--quasi", "a", cwd=tmp_path).refused(2)


@pytest.mark.parametrize("name", ["value", "area", "group", "label", "point"])
def test_a_coordinate_may_have_the_name_of_a_column_of_crosswalks(name: str, tmp_path: Path) -> None:
    pl.DataFrame({name: [0.5, 1.5, 2.5, 3.5], "y": [1, 2, 3, 4]}).write_csv(tmp_path / "t.csv")
    run("tiles", "t.csv", "--x", name, "--y", "y", "--k", 2, "-o", "g.csv", cwd=tmp_path).ok()
    run("gather", "t.csv", "--columns", f"{name},y", "--r", 2, "-o", "c.csv", cwd=tmp_path).ok()
    for made in ("g.csv", "c.csv"):
        run("verify", made, "--original", "t.csv", cwd=tmp_path).ok()
        run("assign", made, "t.csv", "-o", f"new-{made}", cwd=tmp_path).ok()


@pytest.mark.parametrize("name", ["it's", 'say "hi"', "a b", "a,b", "a\\b", "[a]", "a.b", "x=y"])
def test_a_refusal_names_a_column_so_that_the_words_can_be_typed(name: str, tmp_path: Path) -> None:
    pl.DataFrame({name: ["1,5", "2", "1,5", "2"], "s": ["x", "y"] * 2}).write_csv(tmp_path / "t.csv")
    (tmp_path / "p.toml").write_text(
        f'quasi_identifiers = [{json.dumps(name)}]\nsensitive = ["s"]\nk = 2\npublish = "hierarchy"\n'
        f'[hierarchies]\n{json.dumps(name)} = "intervals:5"\n'
    )
    words = ["anonymize", "t.csv", "--policy", "p.toml", "-o", "r.csv"]
    done = run(*words, cwd=tmp_path).refused(2)
    typed = re.search(r"\((--decimal .*)\), or give", done.stderr)
    assert typed
    run(*words, *shlex.split(typed[1]), cwd=tmp_path).ok()


@pytest.mark.parametrize("names", [["age", "it's"], ["a,b", 'say "hi"'], ['"a"', "a\nb"]])
def test_names_in_a_refusal_are_read_as_they_are_written(names: list[str]) -> None:
    said = shlex.split(refusal(shoal.PolicyError(f"⟨identifiers={names}⟩")))
    assert (said[0], listed(said[1])) == ("--identifiers", names)


def test_a_sheet_with_a_column_of_numbers_that_polars_reads_as_every_column(tmp_path: Path) -> None:
    pl.DataFrame({"*": [1.0, 2.0], "a": ["x", "y"]}).write_excel(tmp_path / "t.xlsx")
    run("init", "t.xlsx", cwd=tmp_path).refused(2, "the column name '*' is a pattern")


def test_a_proposal_without_quasi_identifiers_lists_no_columns_that_identify_together(tmp_path: Path) -> None:
    pl.DataFrame({"person": [f"p{i}" for i in range(20)], "note": ["same"] * 20}).write_csv(tmp_path / "t.csv")
    run("init", "t.csv", "-o", "p.toml", cwd=tmp_path).ok()
    policy = (tmp_path / "p.toml").read_text()
    assert '"note",  # 1 value; ' in policy
    assert "together" not in policy


def test_a_refusal_shows_the_beginning_of_a_long_text() -> None:
    table = pl.DataFrame({"q": list("aabb"), "s": ["why " * 1000] * 4})
    with pytest.raises(shoal.InfeasibleError, match=r"^s '(why )+w?h?y?\.\.\.' is 100\.0 % of the rows") as told:
        shoal.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], k=2, l=2)
    assert len(str(told.value)) < 250


@pytest.mark.parametrize("built", ["labels", "intervals"])
def test_a_column_without_a_value_needs_no_hierarchy(built: str, tmp_path: Path) -> None:
    table = pl.DataFrame({"q": pl.Series([None] * 4, dtype=pl.Int64), "r": ["a", "b"] * 2, "s": ["x", "y"] * 2})
    asked = {"quasi_identifiers": ["q", "r"], "sensitive": ["s"], "k": 2, "publish": "hierarchy"}
    shoal.anonymize(table, asked, hierarchies={"q": built, "r": "labels"}).write(tmp_path / "r.csv")
    for original in (None, table):
        holding(shoal.verify(tmp_path / "r.csv", original=original))


def test_what_was_explored_is_refused_for_a_public_report_before_the_work(tmp_path: Path) -> None:
    pl.DataFrame({"q": list("aabb"), "s": ["x", "y"] * 2}).write_csv(tmp_path / "t.csv")
    roles = ["t.csv", "--quasi", "q", "--sensitive", "s", "--k", 2]
    run("explore", *roles, "-o", "e.html", cwd=tmp_path).ok()
    (found,) = tmp_path.glob("e*.json")
    words = ["anonymize", *roles, "-o", "r.csv", "--report", "r.html", "--explored", found]
    run(*words, cwd=tmp_path).refused(2, "add --internal")
    assert not (tmp_path / "r.csv").exists()
    run(*words, "--internal", cwd=tmp_path).ok()


def test_a_series_names_the_column_whose_hierarchy_is_made_from_counts(tmp_path: Path) -> None:
    policy = {"quasi_identifiers": ["age"], "sensitive": ["s"], "k": 2, "publish": "hierarchy"}
    asked = shoal.Policy.of(**policy, hierarchies={"age": "labels"})
    with pytest.raises(shoal.PolicyError, match=r"^hierarchies\['age'\] = 'labels' is made from .* name a file, or a"):
        shoal.Series.start(tmp_path / "s", asked)


@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_spans_of_time_and_times_of_day_are_reported_and_kept_in_a_series(publish: str, tmp_path: Path) -> None:
    spans, times = [dt.timedelta(seconds=1), dt.timedelta(hours=30)], [dt.time(1, 2, 3, 4), dt.time(1, 2, 3, 5)]
    table = pl.DataFrame({"q": spans * 4, "t": times * 4, "s": list("xxyy") * 2, "id": [f"p{i}" for i in range(8)]})
    policy = shoal.Policy.of(quasi_identifiers=["q", "t"], sensitive=["s"], k=2, publish=publish)
    release = shoal.anonymize(table, policy, identifiers=["id"])
    release.write(tmp_path / "r.parquet")
    shoal.written(tmp_path / "r.parquet").report(tmp_path / "r.html")
    series = shoal.Series.start(tmp_path / "s", policy)
    series.add(table, person="id")
    holding(series.verify())
    shown = pl.read_csv(tmp_path / "s" / "0001" / "release.csv", infer_schema=False)
    assert set(shown["t"]) == {"01:02:03.000004", "01:02:03.000005"}
    assert set(shown["q"]) == {"PT1S", "P1DT6H"}


def test_a_series_refuses_a_column_without_text_and_leaves_an_identifier_out(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    months = pd.Series(pd.PeriodIndex(["2020-01", "2020-02"] * 4, freq="M"))
    table = pd.DataFrame({"q": ["a", "b"] * 4, "s": list("xxyy") * 2, "m": months, "l": [[1]] * 8, "id": range(8)})
    series = shoal.Series.start(tmp_path / "s", shoal.Policy.of(quasi_identifiers=["q"], sensitive=["s"], k=2))
    with pytest.raises(shoal.InputError, match=r"column 'm' holds .*pandas\.period.* name it in identifiers"):
        series.add(table, person="id", identifiers=["l"])
    series.add(table, person="id", identifiers=["l", "m"])
    holding(series.verify())


def test_parts_of_a_microsecond_are_not_filled() -> None:
    moments = pl.Series([1_580_000_000_123_456_789, 1_580_000_000_000_000_000, None, None], dtype=pl.Datetime("ns"))
    table = pl.DataFrame({"q": moments, "s": ["x", "y"] * 2})
    asked = {"quasi_identifiers": ["q"], "sensitive": ["s"], "k": 2, "missing": "filled"}
    with pytest.raises(shoal.InputError, match="column 'q' has parts of a microsecond"):
        shoal.anonymize(table, asked)
    assert shoal.anonymize(table.with_columns(pl.col("q").dt.truncate("1s")), asked).audit.k >= 2


def test_a_proposal_for_a_database_names_a_column_of_intervals(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as base:
        base.execute("create table t as select i % 4 as age, interval (i) day as stay from range(12) held(i)")
        with pytest.raises(shoal.InputError, match="column 'stay' is of type INTERVAL"):
            shoal.roles(base.table("t"))
    words = ["init", "t.duckdb", "-o", "p.toml"]
    run(*words, "--table", "t", cwd=tmp_path).refused(2, "column 'stay' is of type INTERVAL", "CAST(... AS TEXT)")
    run(*words, "--query", "select age, cast(stay as text) as stay from t", cwd=tmp_path).ok()


def test_ranges_of_an_enumeration_of_duckdb_verify_beside_their_original(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")
    with duckdb.connect() as base:
        value = "case i % 3 when 0 then 'low' when 1 then 'high' end"
        table = base.sql(f"select ({value})::enum('low', 'high') q, 'ab'[i % 2 + 1] s from range(12) held(i)")
        release = shoal.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], k=7, publish="ranges", seed=1)
        release.write(tmp_path / "r.csv")
        assert set(pl.read_csv(tmp_path / "r.csv", infer_schema=False)["q"]) == {"[low, missing]"}
        holding(shoal.verify(tmp_path / "r.csv", original=table))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx"])
@pytest.mark.parametrize("publish", ["stars", "ranges", "hierarchy"])
def test_times_of_day_with_parts_of_a_second_verify_beside_their_original(
    publish: str, ending: str, tmp_path: Path
) -> None:
    times = [dt.time(1, 2, 3), dt.time(23, 59, 59, 500_000), dt.time(5, 0, 0, 1)]
    table = pl.DataFrame({"q": times * 4, "s": ["x", "y"] * 6})
    trees = {"hierarchies": {"q": "labels"}} if publish == "hierarchy" else {}
    asked = {"quasi_identifiers": ["q"], "sensitive": ["s"], "k": 5, "publish": publish, "seed": 1, **trees}
    shoal.anonymize(table, asked).write(tmp_path / f"r{ending}")
    holding(shoal.verify(tmp_path / f"r{ending}", original=table))


def test_a_release_with_bytes_and_decimals_is_attacked(tmp_path: Path) -> None:
    table = pl.DataFrame({"q": ["a", "b"] * 6, "s": list("xyz") * 4, "b": [b"\xff", b"a"] * 6, "d": [1.5, 2.25] * 6})
    table = table.with_columns(pl.col("d").cast(pl.Decimal(10, 2)))
    asked = {"quasi_identifiers": ["q"], "sensitive": ["s"], "insensitive": ["b", "d"], "k": 2}
    release = tmp_path / "r.parquet"
    shoal.anonymize(table, asked).write(release)

    found = {f.name: f.figure for f in shoal.attack(release).findings if f.attack == "files"}
    assert found["levels and metadata"] == 0


@pytest.mark.parametrize("text", ["[2021-01-01, 2021-02-01]", "[1990-01-01, 1991-02-01]", "[2020-03-01, 2020-04-01]"])
def test_a_range_that_holds_no_value_of_the_original_counts_as_a_star(text: str) -> None:
    table = pl.DataFrame({"q": ["2020-01-01", "2020-06-01"] * 4, "s": ["x", "y"] * 4})
    releases = {"a range": table.with_columns(q=pl.lit(text)), "stars": table.with_columns(q=pl.lit("*"))}
    found = shoal.compare(table, releases, quasi_identifiers=["q"], sensitive=["s"]).as_dict()["releases"]
    assert found["a range"]["loss"]["ncp"] == found["stars"]["loss"]["ncp"] == 1


def test_a_release_of_stars_alone_is_attacked_with_its_report(tmp_path: Path) -> None:
    table = pl.DataFrame({"q": list("abcd"), "s": ["x", "y"] * 2})
    table.write_csv(tmp_path / "t.csv")
    words = ["--quasi", "q", "--sensitive", "s", "--k", 3, "--report", "r.html", "-o", "r.csv"]
    run("anonymize", "t.csv", *words, cwd=tmp_path).ok()
    run("attack", "r.csv", cwd=tmp_path).ok()


def test_a_view_in_stars_shows_no_prefix(tmp_path: Path) -> None:
    zips = ["01234", "01235", "09870", "09870"] * 3
    policy = shoal.Policy.of(
        quasi_identifiers=["zip", "age"], sensitive=["ill"], k=4, publish="hierarchy",
        hierarchies={"zip": "prefixes:4,2"}, effort="fast",
    )  # fmt: skip
    series = shoal.Series.start(tmp_path / "s", policy, mode="views")
    series.add(pl.DataFrame({"zip": zips, "ill": ILL, **PEOPLE, "age": ["3"] * 12}), person="id")
    first = pl.read_csv(tmp_path / "s" / "0001" / "release.csv", infer_schema=False)["zip"]
    assert first.str.contains(r"\d\*").any()
    series.view(publish="stars")
    seen = pl.read_csv(tmp_path / "s" / "0002" / "release.csv", infer_schema=False)["zip"]
    assert set(seen) == {"*", "09870"}
    holding(series.verify())
