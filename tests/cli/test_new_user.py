"""What a first-time user ran into."""

import datetime
import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

import shoal
from tests.commands import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    names = [f"Anna Secret{i}" for i in range(6)]
    frame = pl.DataFrame({"name": names, "age": [31, 32, 33, 34, 35, 36], "n": ["HIV-positive"] * 6})
    frame.write_csv("lc.csv")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "tiles lc.csv --x age --y name --k 2 -o o.csv",
        "gather lc.csv --r 2 --latitude name --longitude age -o o.csv",
        "labels lc.csv --label age --count n --k 2 -o o.csv",
    ],
)
def test_a_wrong_column_shows_nobody(folder, monkeypatch, capsys, words):
    done = run(*words.split())
    assert done.returncode == 2
    assert "row" in done.said
    assert "Secret" not in done.said
    assert "HIV" not in done.said


def test_the_ends_of_a_star_are_not_known():
    frame = pl.DataFrame({"age": [20, 30, 40, 50, 50, 50], "town": list("aaabbb")})
    release = shoal.anonymize(frame, quasi_identifiers=["age", "town"], k=3, effort="fast")
    ends = release.numeric(["age"])
    starred = release.table["age"].is_null()
    assert starred.sum() == 3
    assert ends.filter(starred).null_count().row(0) == (3, 3, 3)
    assert ends.filter(~starred)["age_low"].to_list() == [50.0] * 3


def test_a_folder_of_parts_is_looked_at_and_explored(tmp_path, monkeypatch, capsys):
    frame = pl.DataFrame({"age": [30, 31] * 20, "town": ["Ulm", "Bonn"] * 20})
    (tmp_path / "parts").mkdir()
    for i in range(2):
        frame.write_parquet(tmp_path / "parts" / f"p{i}.parquet")
    monkeypatch.chdir(tmp_path)
    done = run("init", "parts").ok()
    assert "shoal anonymize parts --policy parts.policy.toml" in done.said
    done = run("explore", "parts", "--policy", "parts.policy.toml", "--k", "5", "--json").ok()
    assert json.loads(done.said[done.said.index("{") :])["rows"] == 80


def test_what_was_not_asked_is_not_said_to_hold(tmp_path):
    frame = pl.DataFrame({"age": [30, 30, 31, 31], "ill": ["a", "b", "a", "b"]})
    frame.write_csv(tmp_path / "p.csv")
    done = run("audit", "p.csv", "--quasi", "age", "--sensitive", "ill", "--distinct-l", 2, cwd=tmp_path).ok()
    assert "distinct l-diversity of ill, l = 2: holds" in done.said
    assert "k-anonymity" not in done.said
    assert "k-anonymity, k = 1: holds" in run("audit", "p.csv", "--quasi", "age", "--k", 1, cwd=tmp_path).said


def test_levels_and_bounds_are_told_in_words(tmp_path):
    frame = pl.DataFrame({"age": [30, 30, 31, 31], "ill": ["a", "b", "a", "a"]})
    frame.write_csv(tmp_path / "p.csv")
    words = ("audit", "p.csv", "--quasi", "age", "--sensitive", "ill", "--recursive-cl", "2,2")
    said = run(*words, cwd=tmp_path).said
    assert "the table reaches no level holds" in said  # the ages of 31 have one value
    assert "largest share of a value 1" in said
    assert not any(raw in said for raw in ("t_equal", "distinct_l", "entropy_l", "None"))
    said = run("labels", "p.csv", "--label", "ill", "--k", 1, cwd=tmp_path).said
    assert "because the largest label, 3, lies in some group" in said


def test_the_line_to_run_next_reads_the_file_as_init_did(tmp_path):
    (tmp_path / "città 1.csv").write_bytes("età;comune\n34;Forlì\n35;Lugo\n".encode("cp1252") * 3)
    said = run("init", "città 1.csv", "--encoding", "windows-1252", "--separator", ";", cwd=tmp_path).said
    line = "shoal anonymize 'città 1.csv' --policy 'città 1.policy.toml' --separator ';' --encoding windows-1252"
    assert line in said


def test_longitude_and_latitude_are_proposed_as_tiles_and_a_name_is_no_secret(tmp_path):
    n = 40
    frame = pl.DataFrame({"age": [30, 31] * 20, "lon": [9 + i / 90 for i in range(n)]}).with_columns(
        lat=pl.col("lon") + 40, surname=pl.Series([f"S{i % 9}" for i in range(n)])
    )
    frame.write_csv(tmp_path / "p.csv")
    said = run("init", "p.csv", cwd=tmp_path).said
    assert 'list them in coordinates = ["lon", "lat"] instead of here, with publish = "hierarchy"' in said
    assert "coarsen it" not in said
    release = shoal.anonymize(
        frame, quasi_identifiers=["age"], sensitive=["surname"], identifiers=["lon", "lat"], k=5, effort="fast"
    )
    assert ["its name suggests a person's name" in note for note in release.facts.notes] == [True]


@pytest.mark.parametrize(
    ("column", "values", "ordered"),
    [
        ("age", [str(18 + i % 40) for i in range(200)], True),
        ("birth_date", [f"19{60 + i % 30}-0{1 + i % 9}-11" for i in range(200)], True),
        ("town", [f"T{i % 12}" for i in range(200)], False),
        ("race", [str(i % 5) for i in range(200)], True),  # as few numbers as a list of codes has
        ("school_type_id", [str(i % 30) for i in range(200)], True),  # numbers by which something else is meant
        ("zip", [f"0{i % 20:04}" for i in range(200)], False),  # a text: its zeros would go
        ("zip", [f"47{i % 20:03}" for i in range(200)], True),
    ],
)
def test_what_is_proposed_loses_no_more_than_stars_and_runs(tmp_path, column, values, ordered):
    frame = pl.DataFrame({column: values, "sex": ["f", "m"] * 100})
    frame.write_csv(tmp_path / "p.csv")
    done = run("init", "p.csv", "--json", cwd=tmp_path)
    told = json.loads(done.said)
    assert told["publish"]["way"] == "ranges"  # of values on a line, sets of others
    assert (column in told["publish"]["reason"]) == ordered
    warned = [w for c in told["columns"] for w in c["warnings"] if "if they are codes" in w]
    assert len(warned) == (column in ("race", "school_type_id"))
    done = run("anonymize", "p.csv", "--policy", "p.policy.toml", "--effort", "fast", "--json", cwd=tmp_path).ok()
    loss = json.loads(done.said)["loss"]["ncp"]
    stars = shoal.anonymize(frame, quasi_identifiers=[column, "sex"], k=5, publish="stars", effort="fast").loss["ncp"]
    assert loss < stars or stars == loss == 0


def test_calls_that_mistake_one_thing_for_another():
    frame = pl.DataFrame({"age": [1, 1]})
    with pytest.raises(shoal.PolicyError, match=r"read first: shoal\.Policy\.read"):
        shoal.anonymize(frame, "policy.toml")
    with pytest.raises(shoal.InputError, match=r"shoal\.anonymize takes files and frames"):
        shoal.tables.group(frame, shoal.KAnonymity(2))


def test_a_share_is_proposed_with_room_and_one_warning_stands_for_all_its_columns(tmp_path):
    # 134 of 200 rows have one value: with a share of 0.7, every group would need almost that share of it
    frame = pl.DataFrame(
        {
            "age": [20 + i * 7 % 23 for i in range(200)],
            "children": [i * 5 % 4 for i in range(200)],
            "educ": [i * 3 % 7 for i in range(200)],
            "disease": ["none" if i % 3 < 2 else f"d{i % 5}" for i in range(200)],
        }
    )
    frame.write_csv(tmp_path / "p.csv")
    said = run("init", "p.csv", cwd=tmp_path).said
    assert said.count("if they are codes") == 1
    assert "warning: children, educ: few different numbers, which ranges treat as amounts" in said
    assert 'publish ranges: ranges of "age", "children", "educ" such as [30, 34] keep' in said
    written = (tmp_path / "p.policy.toml").read_text()
    assert 'model = "AlphaKAnonymity", alpha = 0.8, k = 1' in written
    (share,) = (m for m in shoal.Policy.read(tmp_path / "p.policy.toml").privacy if m.short == "alpha")
    assert share.words() == "at most the share 0.8 of every group has the same value"
    for asked, reached in ((), 5), (("--k", "3"), 3), (("--k", "9"), 9):  # --k replaces the policy's, as the guide says
        words = ("anonymize", "p.csv", "--policy", "p.policy.toml", "--effort", "fast", "--force", "--json", *asked)
        told = json.loads(run(*words, cwd=tmp_path).ok().said)
        assert told["smallest_group"] == reached
    assert "at most 80 % of a group share a value; nearer to 67.0 %, the least possible," in written
    roles = {"quasi_identifiers": ["age", "children", "educ"], "sensitive": ["disease"], "publish": "ranges"}

    def loss(*models) -> float:
        return shoal.anonymize(frame, **roles, privacy=models, effort="fast").loss["ncp"]

    alone = loss(shoal.KAnonymity(5))
    tight, roomy = (loss(shoal.AlphaKAnonymity(share, 5, "disease")) for share in (0.7, 0.8))
    assert roomy < 1.05 * alone < tight


def test_dates_are_no_codes_and_persons_and_homes_are_told_by_name(tmp_path):
    frame = pl.DataFrame(
        {
            "individual": [100 + i // 4 for i in range(80)],
            "address": [f"{i // 3} Elm St" for i in range(80)],
            "death_date": [f"1992-05-0{1 + i % 6}" for i in range(80)],
            "birth_date": [f"0{1 + i % 6}.05.1960" for i in range(80)],
            "age": [30 + i % 6 for i in range(79)] + [None],
        }
    )
    frame.write_csv(tmp_path / "p.csv")
    said = run("init", "p.csv", cwd=tmp_path).said
    assert "age: 1 missing value, counted as one more value" in said
    codes = [line for line in said.splitlines() if "if they are codes" in line]
    assert codes == [
        "warning: age: few different numbers, which ranges treat as amounts; if they are codes, "
        "replace them with labels"
    ]
    assert 'if it identifies persons, person = "individual" makes k count persons' in said
    assert 'if it identifies homes, household = "address" makes k count homes' in said
    assert "\nperson  individual: k counts persons, not rows" in said
    assert '\nperson = "individual"' in (tmp_path / "p.policy.toml").read_text()


def test_columns_with_one_warning_share_a_line_though_their_counts_differ(tmp_path):
    frame = pl.DataFrame(
        {"zip": ["?"] * 3 + ["01234"] * 17, "age": ["-"] + ["34"] * 10 + ["35"] * 9, "sex": ["f", "m"] * 10}
    )
    frame.write_csv(tmp_path / "p.csv")
    said = run("init", "p.csv", cwd=tmp_path).said.splitlines()
    assert [line.split(" that often")[0] for line in said if "often means" in line] == [
        "warning: zip (3 rows), age (1 row): these rows contain a text"
    ]
    frame.drop("age").write_csv(tmp_path / "q.csv")
    said = run("init", "q.csv", cwd=tmp_path).said
    assert "warning: zip: 3 rows contain a text that often means a missing value" in said


def test_the_example_of_a_range_is_one_of_dates_where_the_columns_are_dates(tmp_path: Path) -> None:
    days = [datetime.date(1930 + i % 60, 1 + i % 12, 1 + i % 28) for i in range(200)]
    for born in (days, [f"{day:%d.%m.%Y}" for day in days]):
        pl.DataFrame({"born": born, "ill": ["flu", "gout"] * 100}).write_csv(tmp_path / "p.csv")
        said = run("init", "p.csv", "--force", cwd=tmp_path).ok().said
        assert 'publish ranges: ranges of "born" such as [2024-03-01, 2024-06-01] keep' in said


def test_a_first_look_at_an_excel_file_says_which_of_its_sheets_it_read(tmp_path: Path) -> None:
    import xlsxwriter

    for names in (["Notes", "Data", "More"], ["Data"]):
        with xlsxwriter.Workbook(str(tmp_path / "visits.xlsx")) as book:
            for name in names:
                book.add_worksheet(name).write_column(0, 0, ["age", *range(30)])
        release = ("anonymize", "visits.xlsx", "--quasi", "age", "--k", "3", "--force")
        for command in (("init", "visits.xlsx", "--force"), release, ("audit", "visits.xlsx", "--quasi", "age")):
            said = run(*command, cwd=tmp_path).ok().said
            assert ("the first, 'Notes'; to read 'Data', 'More', name it with --table" in said) == (len(names) > 1)
            assert "sheets" not in run(*command, "--table", "Data", cwd=tmp_path).ok().said
        run(*release, "--table", "Data", "-o", "data.csv", cwd=tmp_path).ok()
        with xlsxwriter.Workbook(str(tmp_path / "other.xlsx")) as book:
            for first, name in enumerate(names):
                book.add_worksheet(name).write_column(0, 0, ["age" if first else "note", *range(30)])
        if len(names) > 1:
            done = run("verify", "data.csv", "--original", "other.xlsx", cwd=tmp_path).refused(1)
            assert "note: of the original, the file has 3 sheets, and this is the first, 'Notes'; to read" in done.said
        page = run(*release, "--report", "page.html", "-o", "out.csv", cwd=tmp_path).ok()
        public = [(tmp_path / name).read_text() for name in ("page.html", "page.json", "out.certificate.json")]
        assert "Notes" in page.said or len(names) == 1
        assert not [text for text in public if "Notes" in text or "sheets" in text]


def test_a_policy_that_lost_its_k_says_how_small_groups_may_be(tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": [30, 31, 32, 33] * 5, "ill": ["a", "b"] * 10})
    frame.write_csv(tmp_path / "t.csv")
    policy = "quasi_identifiers = ['age']\nsensitive = ['ill']\nl = 2\neffort = 'fast'\n"
    (tmp_path / "p.toml").write_text(policy)
    said = "'p.toml' asks for no k, and its other models allow groups of 2"
    asked = ("anonymize", tmp_path / "t.csv", "--policy", tmp_path / "p.toml", "-o", tmp_path / "r.csv", "--force")
    assert said in run(*asked).ok().said
    assert said not in run(*asked, "--k", "4").ok().said
    (tmp_path / "p.toml").write_text(f"{policy}k = 2\n")
    assert said not in run(*asked).ok().said
    (tmp_path / "p.toml").write_text(policy)
    assert said in shoal.anonymize(frame.to_pandas(), shoal.Policy.read(tmp_path / "p.toml")).facts.notes
    assert shoal.anonymize(frame, quasi_identifiers=["age"], sensitive="ill", l=2).facts.notes == ()


def test_what_is_proposed_for_names_with_blanks_can_be_typed(tmp_path: Path) -> None:
    """An option, or a command, as a shell reads it."""
    table, value = tmp_path / "t.csv", "BMI (kg/m²)"
    table.write_text(f"{value};zip\n" + "".join(f"{20 + i % 9},{i % 7};{i % 3}\n" for i in range(60)), encoding="utf-8")
    words = ["intervals", table, "--value", value, "--k", 5]
    proposed = shlex.split(re.findall(r"; (--decimal .*) orders them", run(*words).ok().said)[0])
    assert proposed == ["--decimal", f"{value}=,"]
    assert "orders them" not in run(*words, *proposed).ok().said
    words = ["gather", table, "--columns", value, "--r", 5]
    assert shlex.split(re.findall(r"say (--decimal .*) to measure", run(*words).ok().said)[0]) == proposed
    recoder = tmp_path / "my recoder.toml"
    asked = ["--quasi", "zip", "--identifiers", value, "--k", 2]
    last = run("fit", table, *asked, "-o", recoder).ok().stdout.splitlines()[-1]
    assert shlex.split(last)[1:4] == ["shoal", "apply", str(recoder)]
    assert shlex.quote(str(tmp_path / "a b")) in run("series", "verify", tmp_path / "a b").refused(2).said


def test_a_table_in_the_place_of_a_command_can_have_blanks_in_its_name() -> None:
    assert "for example: shoal init 'my people.csv'" in run("my people.csv").stderr


def test_explore_takes_the_notations_of_dates_and_numbers(tmp_path: Path) -> None:
    """As anonymize and audit do; otherwise, its ranges were sets of texts, and the page said that ranges lose much."""
    table, page = tmp_path / "t.csv", tmp_path / "e.html"
    rows = [f"{1 + i % 28:02}.{1 + i % 12:02}.{1950 + i % 40};{i},5;{'fga'[i % 3]}" for i in range(60)]
    table.write_text("\n".join(["born;weight;ill", *rows]), encoding="utf-8")
    asked = ["--quasi", "born,weight", "--sensitive", "ill", "--k", 3, "--publish", "ranges", "--seed", 1]
    noted = ["--date", "born=%d.%m.%Y", "--decimal", "weight=,"]
    loss = run("explore", table, *asked, *noted, "--json", "-o", page).facts["points"][0]["loss"]
    dates, decimal = {"born": "%d.%m.%Y"}, {"weight": ","}
    own = shoal.explore(
        table, quasi_identifiers=["born", "weight"], sensitive=["ill"], k=[3], publish=["ranges"], seed=1, dates=dates,
        decimal=decimal,
    )  # fmt: skip
    assert loss == pytest.approx(own.points["loss"][0], abs=1e-9)
    assert loss != run("explore", table, *asked, "--json").facts["points"][0]["loss"]


@pytest.mark.parametrize(
    ("flags", "keywords"),
    [
        (("--weight", "age=9"), {"weights": {"age": 9}}),
        (("--max-level", "zip=1"), {"max_level": {"zip": 1}}),
        (("--global-recoding",), {"global_recoding": True}),
        (("--coarsen", "auto"), {"coarsen": "auto"}),
    ],
)
def test_explore_takes_what_shapes_the_loss(tmp_path: Path, flags: tuple[str, ...], keywords: dict) -> None:
    table = tmp_path / "t.csv"
    rows = [f"{20 + i % 37},{10000 + 7 * (i % 29)},{'fga'[i % 3]}" for i in range(90)]
    table.write_text("\n".join(["age,zip,ill", *rows]), encoding="utf-8")
    asked = ["--quasi", "age,zip", "--sensitive", "ill", "--k", 3, "--publish", "hierarchy", "--seed", 1]
    trees = {"age": "intervals:5,20", "zip": "intervals:50,100"}
    given = [word for name, tree in trees.items() for word in ("--hierarchy", f"{name}={tree}")]
    plain, point = (run("explore", table, *asked, *given, *more, "--json").facts["points"][0] for more in ((), flags))
    own = shoal.explore(
        table, quasi_identifiers=["age", "zip"], sensitive=["ill"], k=[3], publish=["hierarchy"], seed=1,
        hierarchies=trees, **keywords,
    )  # fmt: skip
    assert point["loss"] == pytest.approx(own.points["loss"][0], abs=1e-9)
    assert point["loss"] != plain["loss"]


def test_a_name_with_a_line_break_stays_in_its_line(tmp_path: Path) -> None:
    """Headers of Excel sheets have line breaks, and a file from elsewhere can have any header."""
    forged = "d\nok    signature          by the ministry\x1b[2K\u202e"
    table, release = tmp_path / "t.csv", tmp_path / "t.release.csv"
    ages = pl.DataFrame(
        {"age\n(years)": [20 + i % 40 for i in range(80)], forged: list("abcd") * 20, "zip": ["1"] * 80}
    )
    ages.write_csv(table)
    looked = run("init", table).ok().said
    assert re.search(r"^age\\n\(years\) {13}quasi-identifier", looked, re.MULTILINE)
    asked = {"quasi_identifiers": ["age\n(years)", "zip"], "sensitive": [forged], "k": 2, "l": 2}
    made = shoal.anonymize(table, **asked, effort="fast", seed=1)
    made.write(release)
    checked = run("verify", release, tmp_path / "t.release.certificate.json").ok().said
    for text in (looked, checked, str(made), str(shoal.verify(release, tmp_path / "t.release.certificate.json"))):
        assert not re.search(r"^ok    signature +by the ministry", text, re.MULTILINE)
        assert not re.search("[\x1b\u202e]", text)
    assert r"d\nok    signature          by the ministry\x1b[2K\u202e" in checked
    refused = run("audit", table, "--quasi", "nowhere", "--k", 2).refused(2).said
    assert "\x1b" not in refused
    assert r"\x1b[2K" in refused


def test_each_row_of_the_demo_is_a_line(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="carries the survey that the demo publishes")
    lines = run("demo", "-o", tmp_path / "demo").ok().said.splitlines()
    rows = [line for line in lines if line.startswith("│")]
    assert len(rows) == 14  # two tables of six rows and a head
    assert not any(r"\n" in line for line in lines)
