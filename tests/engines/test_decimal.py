"""Texts that are numbers with a decimal mark: ordered as numbers, published as they are written, read back by all."""

import json
import re
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.engines.propose import looked_at, write_policy
from shoal.errors import PolicyError
from shoal.judge.finding import as_number, is_number
from shoal.judge.tables.covering import ColumnNotation, column
from shoal.model.foreign import domain_of, spread
from shoal.model.members import meanings
from shoal.model.notation import MARKS, RangeOf, numeral, parse, writer_of
from tests.commands import run
from tests.data import handed, rows
from tests.kept import holding, kept, verify

SECRET = b"sixteen bytes or more"
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["costs", "town"], "k": 3, "publish": "ranges", "effort": "fast", "seed": 1, "secret": SECRET,
}  # fmt: skip
APART = {",": [".", " ", "'", "\u00a0", "\u202f"], ".": [",", " ", "\u2019"]}


def local(cents: int, mark: str, apart: str) -> str:
    """An amount as people write it."""
    return f"{cents / 100:,.2f}".replace(",", "|").replace(".", mark).replace("|", apart)


def table(mark: str | None, apart: str = "") -> pl.DataFrame:
    """The same amounts, as texts with a decimal mark; None: as 1234.50."""
    random = np.random.default_rng(3)
    cents = random.integers(-5_000, 5_000_000, 60).tolist()
    texts = [local(c, mark or ".", apart) for c in cents]
    return pl.DataFrame({"costs": texts, "town": random.choice(["Ulm", "Bonn"], 60)})


def plain(text: str, mark: str, apart: str) -> Any:
    """A published text as exact numbers, by replacing characters."""

    def exact(part: str | None) -> Fraction:
        return Fraction(str(part).replace(apart or "\0", "").replace(mark, "."))

    found = parse(text)
    return (exact(found.low), exact(found.high)) if isinstance(found, RangeOf) else exact(str(found))


@pytest.mark.parametrize(("mark", "apart"), [(",", ""), (",", "."), (",", "\u202f"), (".", ","), (".", "\u2019")])
@pytest.mark.parametrize("step", [None, 500, 0.25])
def test_a_release_is_that_of_the_same_numbers_as_1234_50(mark: str, apart: str, step: Any, tmp_path: Path) -> None:
    more = {} if step is None else {"range_step": {"costs": step}}
    asked = shoal.anonymize(table(None), **ASKED, **more)
    table(mark, apart).write_csv(tmp_path / "t.csv", separator=";")
    made = shoal.anonymize(tmp_path / "t.csv", decimal={"costs": mark}, **ASKED, **more)
    assert made.certificate.cost == asked.certificate.cost
    wanted = sorted((plain(c, ".", ""), t) for c, t in rows(asked.table, "costs", "town"))
    assert sorted((plain(c, mark, apart), t) for c, t in rows(made.table, "costs", "town")) == wanted
    for text, _ in rows(made.table, "costs", "town"):
        low, high = plain(text, mark, apart)
        assert local(int(low * 100), mark, apart) in text
        assert local(int(high * 100), mark, apart) in text
    made.write(tmp_path / "r.csv")
    paper = tmp_path / "r.certificate.json"
    for one in (paper, kept(paper)):
        holding(verify(tmp_path / "r.csv", one, tmp_path / "t.csv"))


def noted(kind: str, folder: Path, spark: Any = None) -> list[tuple[str, ...]]:
    """What a table of any kind publishes of its amounts and of its dates, both in a notation."""
    days = [date(2023, 1, 1) + timedelta(d) for d in np.random.default_rng(4).integers(0, 700, 60).tolist()]
    data, _ = handed(table(",", ".").with_columns(came=pl.Series(days).dt.strftime("%d.%m.%Y")), kind, folder, spark)
    asked = {**ASKED, "quasi_identifiers": ["costs", "came", "town"], "dates": {"came": "%d.%m.%Y"}}
    return rows(shoal.anonymize(data, decimal={"costs": ","}, **asked).table, "costs", "came", "town")


@pytest.mark.parametrize("kind", ["categories", "csv", "xlsx", "parquet", "duckdb"])
def test_every_kind_of_table_gives_one_release(kind: str, tmp_path: Path) -> None:
    assert noted(kind, tmp_path) == noted("polars", tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_release(spark: Any, tmp_path: Path) -> None:
    assert noted("spark", tmp_path, spark) == noted("polars", tmp_path)


def test_the_judge_reads_a_range_by_its_mark() -> None:
    values = pl.Series("costs", ["3,5", "1.000", "-2,25", None])
    told = pl.Series("costs", ['["-2,25", "3,5"]', '["3,5", 1.000]', "[-4, 4]"])
    found = column(values, told, ColumnNotation("ranges", "*", False, step=4, notation=","))
    assert ["".join(str(int(x)) for x in found.covered(i)) for i in range(3)] == ["1100", "0110", "1100"]
    assert found.position is not None
    assert found.position[:3].tolist() == [-2.25, 3.5, 1000]
    blind = column(values, told, ColumnNotation("ranges", "*", False, step=4))
    assert not any(blind.covered(i).any() for i in range(3))


@pytest.mark.parametrize(
    ("costs", "mark", "said"),
    [
        (["1,5", "2,25", "x", "1,2,3"], ",", "2 of 4 values are no such number"),
        (["1,5", "007"], ",", "1 of 2 values is no such number"),
        (["1.5", "2,5"], ",", "1 of 2 values is no such number"),
        (["1,5", "1,50"], ",", "writes one number in two ways, such as 7,5 and 7,50"),
        ([1.5], ",", "the column holds Float64 and no texts"),
        (["1,5"], ";", "a decimal mark is ',' or '.'"),
        (["1,5"], 5, "a decimal mark is ',' or '.'"),
    ],
)
def test_what_is_no_such_number_is_refused(costs: list[Any], mark: Any, said: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(said)) as refused:
        shoal.anonymize(pl.DataFrame({"costs": costs * 6}), quasi_identifiers=["costs"], k=2, decimal={"costs": mark})
    assert "2,25" not in str(refused.value)


def test_a_column_holds_dates_or_numbers() -> None:
    with pytest.raises(PolicyError, match="is in both dates and decimal"):
        shoal.Policy(quasi_identifiers=["a"], k=2, dates={"a": "%d.%m.%Y"}, decimal={"a": ","})


def test_missing_numbers_stay_missing_and_stand_last() -> None:
    frame = pl.DataFrame({"costs": ["10,5", "9,5", None, None] * 2, "town": ["Ulm"] * 8})
    made = shoal.anonymize(frame, decimal={"costs": ","}, **{**ASKED, "k": 8})
    assert {c for c, _ in rows(made.table, "costs", "town")} == {'["9,5", missing]'}


@given(st.integers(-(10**11), 10**11), st.sampled_from(MARKS), st.data())
def test_whoever_reads_a_number_finds_the_same(cents: int, mark: str, data: st.DataObject) -> None:
    apart = data.draw(st.sampled_from(["", *APART[mark]]))
    text = local(cents, mark, apart)
    read = numeral(text, mark)
    assert read is not None
    assert Fraction(read) == Fraction(f"{cents / 100:.2f}")
    assert is_number(text, mark)
    assert as_number(text, mark) == float(read)
    assert writer_of([text], mark)(read) == text or abs(cents) < 100_000


@given(st.text(alphabet="0123456789-+.,' e_", max_size=9), st.sampled_from(MARKS))
@example("0.0e-0", ".")
@example("1.234,5e3", ",")
def test_solver_and_judge_refuse_the_same_texts(text: str, mark: str) -> None:
    read = numeral(text, mark)
    assert (read is not None) == is_number(text, mark)
    assert read is None or float(read) == as_number(text, mark)


def test_init_names_the_mark_that_the_values_decide(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "age": [f"{20 + i % 50},{i % 10}" for i in range(60)],
            "weight": [f"{1 + i % 9},{100 + i}" for i in range(60)],
            "height": [f"1.{100 + i % 20},5" if i % 9 else f"{i},5" for i in range(60)],
            "hours": [f"1.{100 + i}" if i % 3 else f"{900 + i}" for i in range(60)],
            "zip": [f"0{1067 + i % 9}" for i in range(60)],
            "children": ["1,0", "1,00", "2,0"] * 20,
        }
    )
    frame.write_csv(tmp_path / "t.csv", separator=";")
    look = looked_at(tmp_path / "t.csv")
    found = {c.name: c for c in look.columns}
    assert {c.role for c in found.values()} == {"quasi-identifier"}
    assert {n: c.decimal for n, c in found.items() if c.decimal} == {"age": ",", "height": ","}
    assert found["age"].measured
    said = {name: " ".join(c.warnings) for name, c in found.items()}
    assert "no value tells whether a comma separates decimals or thousands" in said["weight"]
    assert "three digits follow each point" in said["hours"]
    assert "no decimal mark reads all its values as different numbers" in said["children"]
    assert "decimal" not in said["zip"] + said["age"] + said["height"]
    (tmp_path / "p.toml").write_text(write_policy("t.csv", look, k=3, l=2))
    asked = shoal.Policy.read(tmp_path / "p.toml")
    assert asked.decimal == {"age": ",", "height": ","}
    assert shoal.roles(tmp_path / "t.csv").settings()["decimal"] == asked.decimal
    assert shoal.roles(tmp_path / "t.csv").counts("age")[0][0] == "20,0"


def test_a_release_is_decoded_drawn_and_attacked_by_its_numbers(tmp_path: Path) -> None:
    made = shoal.anonymize(table(",", "."), decimal={"costs": ","}, **ASKED)
    made.write(tmp_path / "r.csv")
    found = shoal.decode(tmp_path / "r.csv").numeric()
    ends = [plain(text, ",", ".") for text in pl.read_csv(tmp_path / "r.csv")["costs"]]
    assert found["costs_low"].to_list() == [float(low) for low, _ in ends]
    assert found["costs_high"].to_list() == [float(high) for _, high in ends]
    bins = made.public_figures()["columns"][0]["distribution"]
    assert re.fullmatch(r"-?\d+ up to \d+", bins[0]["label"])
    attacked = shoal.attack(tmp_path / "r.csv", original=table(",", "."))
    assert not [n for n in attacked.notes if "not understood" in n]
    assert domain_of(["1.500", "900", "7,5"]).ruler == ","
    assert domain_of(["1,500", "7,555"]).ruler is None
    one, both = meanings(["3,5", "[2.5, 5)"], "hierarchy", "intervals:2.5,5", notation=",")
    assert ("3,5" in one, "3,6" in one, "4,99" in both, "5" in both) == (True, False, True, False)
    domain = domain_of(["1.500", "900", "7,5"], notation=",")
    assert domain.values == ("7,5", "900", "1.500")
    assert spread(['["7,5", 1.000]'], domain).size.tolist() == [2]
    assert spread(["[900, 1.500]"], domain).size.tolist() == [2]


@pytest.mark.parametrize(
    "more",
    [
        {"publish": "hierarchy", "hierarchies": {"came": "dates:month,quarter,year", "bmi": "intervals:2.5,5,10"}},
        {"publish": "hierarchy", "hierarchies": {"came": "dates:day,month", "bmi": "intervals"}, "coarsen": "auto"},
        {"publish": "centers"},
    ],
)
def test_hierarchies_and_centers_read_a_notation(more: dict[str, Any], tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    days = [date(2023, 1, 1) + timedelta(int(d)) for d in random.integers(0, 700, 80)]
    bmi = (random.integers(150, 400, 80) / 10).tolist()
    ill = random.choice(["flu", "gout", "cold"], 80)
    plain = pl.DataFrame({"came": [str(d) for d in days], "bmi": [str(b) for b in bmi], "ill": ill})
    noted = plain.with_columns(
        pl.Series("came", [d.strftime("%d.%m.%y") for d in days]), pl.col("bmi").str.replace(".", ",", literal=True)
    )
    noted.write_csv(tmp_path / "t.csv", separator=";")
    asked = {
        "quasi_identifiers": ["came", "bmi"], "sensitive": ["ill"], "k": 3, "effort": "fast", "seed": 1,
        "secret": SECRET, **more,
    }  # fmt: skip
    wanted = shoal.anonymize(plain, **asked)
    notations: dict[str, Any] = {"dates": {"came": "%d.%m.%y"}, "decimal": {"bmi": ","}}
    made = shoal.anonymize(tmp_path / "t.csv", **asked, **notations)
    assert made.certificate.cost == wanted.certificate.cost
    assert made.loss == wanted.loss
    made.write(tmp_path / "r.csv")
    for one in (tmp_path / "r.certificate.json", kept(tmp_path / "r.certificate.json")):
        holding(verify(tmp_path / "r.csv", one, tmp_path / "t.csv"))
    if more["publish"] == "centers":
        return
    again = shoal.Policy.read(tmp_path / "r.certificate.json")
    assert shoal.anonymize(tmp_path / "t.csv", again, seed=1, secret=SECRET).table.equals(made.table)
    if more["hierarchies"]["bmi"] != "intervals":
        assert sorted(made.table.drop("ill").rows(), key=str) == sorted(wanted.table.drop("ill").rows(), key=str)
        at = made.table["bmi"].to_list()
        inside = [float(v.replace(",", ".")) for v in noted["bmi"] if v in made.members("bmi")[at.index("[20, 25)")]]
        assert inside == [b for b in bmi if 20 <= b < 25] or "[20, 25)" not in at
        attacked = shoal.attack(tmp_path / "r.csv", original=noted)
        assert not [n for n in attacked.notes if "not understood" in n]


@pytest.mark.parametrize("center", ["record", "mean"])
def test_clusters_read_and_write_a_notation(center: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(4)
    days = [date(2023, 1, 1) + timedelta(int(d)) for d in random.integers(0, 700, 60)]
    bmi = (random.integers(15, 40, 60) / 2).tolist()
    plain_frame = pl.DataFrame({"came": [str(d) for d in days], "bmi": [str(b) for b in bmi]})
    local_days, local_bmi = [d.strftime("%d.%m.%y") for d in days], [str(b).replace(".", ",") for b in bmi]
    noted = pl.DataFrame({"came": local_days, "bmi": local_bmi})
    plain_frame.write_csv("plain.csv", separator=";")
    noted.write_csv("noted.csv", separator=";")
    asked = ["--r", "4", "--columns", "came,bmi", "--center", center, "--method", "local"]
    assert run("gather", "plain.csv", *asked, "-o", "plain.out.csv").returncode == 0
    run("gather", "noted.csv", *asked, "--date", "came=%d.%m.%y", "--decimal", "bmi=,", "-o", "noted.out.csv").ok()
    wanted = pl.read_csv("plain.out.csv", infer_schema=False)
    found = pl.read_csv("noted.out.csv", infer_schema=False)
    assert found["radius"].to_list() == wanted["radius"].to_list()
    assert found["came"].str.to_date("%d.%m.%y").to_list() == wanted["came"].str.to_date().to_list()
    assert found["bmi"].str.replace(",", ".").cast(float).to_list() == wanted["bmi"].cast(float).to_list()
    assert run("verify", "noted.out.csv", "--original", "noted.csv").returncode == 0
    assert run("verify", "noted.out.csv", "--original", "noted.csv", "--prove", "fast").returncode == 0
    record = json.loads(Path("noted.out.certificate.json").read_text())
    kinds = {f["name"]: (f["kind"], f["notation"]) for f in record["parameters"]["features"]}
    assert kinds == {"came": ("date", "%d.%m.%y"), "bmi": ("number", ",")}
    refused = run("gather", "noted.csv", *asked, "--date", "came=%d.%m.%Y", "-o", "no.csv", "--force")
    assert refused.returncode == 2
    assert "no such date" in refused.said
    words = run("gather", "noted.csv", *asked, "-o", "words.csv").stderr
    assert "--date came=%d.%m.%y" in words
    assert "--decimal bmi=," in words


PLACED: dict[str, Any] = {
    "quasi_identifiers": ["town"], "coordinates": ("x", "y"), "k": 4, "publish": "hierarchy", "effort": "fast",
    "seed": 1,
}  # fmt: skip


def placed(mark: str) -> pl.DataFrame:
    """Places as texts with a decimal mark, one of them missing."""
    random = np.random.default_rng(6)
    at = [[f"{v:.3f}".replace(".", mark) for v in random.uniform(5, 9, 60)] for _ in "xy"]
    return pl.DataFrame({"town": random.choice(["Ulm", "Bonn"], 60), "x": [None, *at[0][1:]], "y": at[1]})


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow", "lazy", ".csv", ".parquet", ".xlsx"])
def test_coordinates_have_decimal_commas(kind: str, tmp_path: Path) -> None:
    marks = {"x": ",", "y": ","}
    asked = shoal.anonymize(placed("."), **PLACED)
    data, _ = handed(placed(","), kind, tmp_path)
    made = shoal.anonymize(data, decimal=marks, **PLACED)
    assert made.certificate.cost == asked.certificate.cost
    assert rows(made.table, "town", "place") == rows(asked.table, "town", "place")
    made.write(tmp_path / "r.csv")
    original = data if isinstance(data, Path) else tmp_path / "t.csv"
    if original is not data:
        placed(",").write_csv(original, separator=";")
    for paper in (tmp_path / "r.certificate.json", kept(tmp_path / "r.certificate.json")):
        holding(verify(tmp_path / "r.csv", paper, original))
    again = shoal.anonymize(data, shoal.Policy.read(tmp_path / "r.certificate.json"))
    assert again.certificate.cost == made.certificate.cost


def test_coordinates_that_are_not_in_memory_have_a_way_out(tmp_path: Path) -> None:
    relation, _ = handed(placed("."), "duckdb", tmp_path)
    placed(".").write_csv(tmp_path / "t.csv")
    for data, more in ((relation, {}), (tmp_path / "t.csv", {"engine": "duckdb"})):
        with pytest.raises(PolicyError, match=r"read a file with engine='polars', or pass .* relation\.pl\(\)"):
            shoal.anonymize(data, **PLACED, **more)
    assert shoal.anonymize(relation.pl(), **PLACED).facts.rows == 60


def test_a_population_of_places_has_the_same_decimal_commas() -> None:
    def cost(mark: str, **more: Any) -> float:
        whole = pl.concat([placed(mark)] * 2)
        asked = {**PLACED, "k": None, "k_map": 6, "population": whole, **more}
        return shoal.anonymize(placed(mark), **asked).certificate.cost

    assert cost(",", decimal={"x": ",", "y": ","}) == cost(".")


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ({}, "column 'x' has no finite number in 59 rows"),
        ({"x": ","}, r"'y' holds no numbers in any row; .*name its decimal mark \(decimal\['y'\] = ','\)"),
        ({"x": ",", "z": ","}, "'z' is not a quasi-identifier or sensitive column"),
    ],
)
def test_coordinates_that_are_no_numbers_are_named_with_the_way_out(marks: dict[str, str], said: str) -> None:
    with pytest.raises(shoal.ShoalError, match=said):
        shoal.anonymize(placed(","), decimal=marks, **PLACED)


def test_a_hospital_file_goes_all_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Semicolons, decimal commas, dates of two digits and Windows-1252: init, a release, its check, and its attack."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    lines = ["Alter;Größe;Aufnahme;Befund"]
    for _ in range(120):
        tall, day = f"1,{random.integers(50, 95)}", date(2022, 1, 1) + timedelta(int(random.integers(0, 700)))
        lines.append(f"{random.integers(20, 60)};{tall};{day:%d.%m.%y};{random.choice(['Grippe', 'Gicht', 'Ödem'])}")
    Path("fälle.csv").write_text("\n".join(lines), encoding="cp1252")
    read = ["--encoding", "windows-1252"]
    assert "--encoding windows-1252" in run("init", "fälle.csv").stderr
    assert run("init", "fälle.csv", *read, "--k", "3", "-o", "p.toml").returncode == 0
    asked = shoal.Policy.read("p.toml")
    assert (asked.decimal, asked.dates, asked.publish) == ({"Größe": ","}, {"Aufnahme": "%d.%m.%y"}, "ranges")
    run("anonymize", "fälle.csv", *read, "--policy", "p.toml", "--effort", "fast", "-o", "out.csv").ok()
    shown = pl.read_csv("out.csv", separator=";", infer_schema=False)
    assert shown["Größe"].str.contains(r'^\["1,\d\d", "1,\d\d"\]$|^1,\d\d$').all()
    assert shown["Aufnahme"].str.contains(r"^\[\d\d\.\d\d\.\d\d, \d\d\.\d\d\.\d\d\]$|^\d\d\.\d\d\.\d\d$").all()
    assert run("verify", "out.csv", "--original", "fälle.csv", *read).returncode == 0
    run("attack", "out.csv", "--original", "fälle.csv").refused(2, "--encoding windows-1252")
    attacked = run("attack", "out.csv", "--original", "fälle.csv", *read).ok()
    assert "not understood" not in attacked.said
    compared = run(
        "compare", "fälle.csv", "out.csv", "--quasi", "Alter,Größe,Aufnahme", "--sensitive", "Befund", *read
    ).ok()
    assert "not understood" not in compared.said
