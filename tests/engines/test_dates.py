"""Texts that are dates in a notation: ordered as dates, published as they are written, read back by all."""

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.engines import open as opening
from shoal.engines import propose
from shoal.engines.codes import encode
from shoal.engines.propose import looked_at, write_policy
from shoal.errors import PolicyError
from shoal.judge.finding import moment_of
from shoal.judge.tables.covering import ColumnNotation, _line, column
from shoal.model.foreign import domain_of
from shoal.model.notation import NOTATIONS, day_of, in_notation, is_notation, notations_of
from tests.data import rows
from tests.kept import holding, kept, verify

SECRET = b"sixteen bytes or more"
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["came", "town"], "k": 3, "publish": "ranges", "effort": "fast", "seed": 1, "secret": SECRET,
}  # fmt: skip


def table(notation: str | None, zeros: bool = True) -> pl.DataFrame:
    """The same visits, their days as texts in a notation; None: as 2024-12-31."""
    random = np.random.default_rng(3)
    days = [datetime.date(2023, 1, 1) + datetime.timedelta(d) for d in random.integers(0, 700, 60).tolist()]
    texts = [str(d) if notation is None else in_notation(d, notation, zeros) for d in days]
    return pl.DataFrame({"came": texts, "town": random.choice(["Ulm", "Bonn"], 60)})


def iso(text: str, notation: str) -> str:
    """A published text with its dates as 2024-12-31, by the standard library."""
    return re.sub(r"[^\[\], {}]+", lambda f: datetime.datetime.strptime(f[0], notation).date().isoformat(), text)


@pytest.mark.diagonal
@pytest.mark.parametrize("notation", ["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%y-%m-%d"])
@pytest.mark.parametrize("step", [None, 10, "month"])
def test_a_release_is_that_of_the_same_dates_as_2024_12_31(notation: str, step: Any, tmp_path: Path) -> None:
    more = {} if step is None else {"range_step": {"came": step}}
    plain = shoal.anonymize(table(None), **ASKED, **more)
    table(notation).write_csv(tmp_path / "t.csv")
    made = shoal.anonymize(tmp_path / "t.csv", dates={"came": notation}, **ASKED, **more)
    assert made.certificate.cost == plain.certificate.cost
    assert sorted((iso(c, notation), t) for c, t in rows(made.table, "came", "town")) == rows(
        plain.table, "came", "town"
    )
    made.write(tmp_path / "r.csv")
    paper = tmp_path / "r.certificate.json"
    for one in (paper, kept(paper)):
        holding(verify(tmp_path / "r.csv", one, tmp_path / "t.csv"))


def test_a_file_whose_lines_are_counted_gives_the_same_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LEAST", 0)
    many = pl.concat([table("%d.%m.%Y")] * 30)
    many.write_csv(tmp_path / "t.csv")
    assert isinstance(opening.open_table(tmp_path / "t.csv", coded=["came", "town"]), opening.RepeatedTable)
    asked = {**ASKED, "k": 40, "keep_order": True, "dates": {"came": "%d.%m.%Y"}}
    assert shoal.anonymize(tmp_path / "t.csv", **asked).table.equals(shoal.anonymize(many, **asked).table)


def test_an_end_on_a_grid_is_written_as_the_values_are() -> None:
    more = {"dates": {"came": "%d.%m.%Y"}, "range_step": {"came": "month"}}
    assert " 01." in "".join(
        c for c, _ in rows(shoal.anonymize(table("%d.%m.%Y"), **ASKED, **more).table, "came", "town")
    )
    bare = "".join(
        c for c, _ in rows(shoal.anonymize(table("%d.%m.%Y", zeros=False), **ASKED, **more).table, "came", "town")
    )
    assert " 1." in bare
    assert "01." not in bare


def test_the_judge_reads_a_range_in_its_notation() -> None:
    values = pl.Series("came", ["01.03.2024", "15.02.2024", "02.01.2025", None])
    told = pl.Series("came", ["[15.02.2024, 01.03.2024]", "[01.03.2024, 02.01.2025]", "[01.02.2024, 20.02.2024]"])
    found = column(values, told, ColumnNotation("ranges", "*", False, step="month", notation="%d.%m.%Y"))
    assert ["".join(str(int(x)) for x in found.covered(i)) for i in range(3)] == ["1100", "0110", "1000"]
    assert found.position is not None
    assert np.diff(found.position)[:2].tolist() == [15, 307]
    blind = column(values, told, ColumnNotation("ranges", "*", False, step="month"))
    assert not any(blind.covered(i).any() for i in range(3))


@pytest.mark.parametrize(
    ("came", "notation", "said"),
    [
        (["1.2.2024", "31.2.2024", "x", ""], "%d.%m.%Y", "3 of 4 values are no such date"),
        (["1.2.2024", "01.02.2024"], "%d.%m.%Y", "writes one day in two ways"),
        ([datetime.date(2024, 1, 2)], "%d.%m.%Y", "the column holds Date and no texts"),
        ([datetime.datetime(2024, 1, 2)], "%d.%m.%Y", "the column holds Datetime and no texts"),
        ([datetime.timedelta(days=1)], "%d.%m.%Y", "the column holds Duration and no texts"),
        ([20240102], "%d.%m.%Y", "the column holds Int64 and no texts"),
        (["1.2.2024"], "%d.%m.%y", "1 of 1 value is no such date"),
        (["1.2.24"], "%d.%y.%Y", "once each, with a mark between them"),
        (["1.2.2024"], "%d%m%Y", "once each, with a mark between them"),
        (["1.2.2024"], 5, "once each, with a mark between them"),
    ],
)
def test_what_is_no_such_date_is_refused(came: list[Any], notation: Any, said: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(said)) as refused:
        shoal.anonymize(pl.DataFrame({"came": came * 6}), quasi_identifiers=["came"], k=2, dates={"came": notation})
    assert "31.2.2024" not in str(refused.value)


def test_missing_dates_stay_missing_and_stand_last() -> None:
    frame = pl.DataFrame({"came": ["5.1.2024", "4.2.2024", None, None] * 2, "town": ["Ulm"] * 8})
    made = shoal.anonymize(frame, dates={"came": "%d.%m.%Y"}, **{**ASKED, "k": 8})
    assert {c for c, _ in rows(made.table, "came", "town")} == {"[5.1.2024, missing]"}


@given(
    st.dates(datetime.date(1969, 1, 1), datetime.date(2068, 12, 31)) | st.dates(),
    st.sampled_from(NOTATIONS),
    st.booleans(),
)
def test_whoever_reads_a_date_finds_the_same_day(day: datetime.date, notation: str, zeros: bool) -> None:
    assert is_notation(notation)
    if "%y" in notation and not 1969 <= day.year <= 2068:
        with pytest.raises(OverflowError):
            in_notation(day, notation, zeros)
        return
    text = in_notation(day, notation, zeros)
    assert day_of(text, notation) == (day - datetime.date(1970, 1, 1)).days
    judged = moment_of(text, notation)
    assert judged is not None
    assert judged.date() == day
    assert notation in notations_of([text])


def test_init_names_the_notation_that_the_values_decide(tmp_path: Path) -> None:
    pl.DataFrame(
        {
            "eu": [f"{1 + i % 28:02}/{1 + i % 12:02}/2024" for i in range(60)],
            "us": [f"{1 + i % 12}/{1 + i % 28}/2024" for i in range(60)],
            "short": [f"{1 + i % 28:02}.{1 + i % 12:02}.{90 + i % 10}" for i in range(60)],
            "born": [f"{1 + i % 28:02}.{1 + i % 12:02}.{40 + i % 60:02}" for i in range(60)],
            "first": [f"01.{1 + i % 12:02}.20{i:02}" for i in range(60)],
            "both": [f"{1 + i % 28}.{1 + i % 12}.2024" if i % 9 else f"{2024 - i}" for i in range(60)],
        }
    ).write_csv(tmp_path / "t.csv")
    look = looked_at(tmp_path / "t.csv")
    found = {c.name: c for c in look.columns}
    assert {n: c.dates for n, c in found.items()} == {
        "eu": "%d/%m/%Y", "us": "%m/%d/%Y", "short": "%d.%m.%y", "born": None, "first": None, "both": None,
    }  # fmt: skip
    assert any("some of its dates would lie ahead" in w for w in found["born"].warnings)
    assert found["eu"].measured
    assert any("name %d.%m.%Y or %m.%d.%Y" in w for w in found["first"].warnings)
    assert any("no notation reads all" in w for w in found["both"].warnings)
    (tmp_path / "p.toml").write_text(write_policy("t.csv", look, k=3, l=2))
    asked = shoal.Policy.read(tmp_path / "p.toml")
    assert asked.dates == {"eu": "%d/%m/%Y", "us": "%m/%d/%Y", "short": "%d.%m.%y"}
    assert shoal.roles(tmp_path / "t.csv").settings()["dates"] == asked.dates
    assert shoal.roles(tmp_path / "t.csv").counts("us")[-1][0] == "12/24/2024"


@pytest.mark.parametrize("notation", ["%d.%m.%Y", "%m/%d/%Y"])
def test_a_release_is_decoded_drawn_and_attacked_by_its_dates(notation: str, tmp_path: Path) -> None:
    made = shoal.anonymize(table(notation), dates={"came": notation}, **ASKED)
    made.write(tmp_path / "r.csv")
    found = shoal.decode(tmp_path / "r.csv").numeric()
    assert found["came_low"].dtype == pl.Date
    ends = [iso(text, notation) for text in pl.read_csv(tmp_path / "r.csv")["came"]]
    assert [str(d) for d in found["came_low"]] == [text.strip("[]").split(", ")[0] for text in ends]
    bins = made.public_figures()["columns"][0]["distribution"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", bins[0]["label"])
    attacked = shoal.attack(tmp_path / "r.csv", original=table(notation))
    assert not [n for n in attacked.notes if "not understood" in n]


def test_a_tool_without_a_policy_is_read_by_the_notation_that_its_values_decide() -> None:
    domain = domain_of(["12/1/2024", "2/13/2024", None])
    assert domain.values == ("2/13/2024", "12/1/2024", None)
    assert domain_of(["12/1/2024", "2/3/2024"]).ruler is None
    assert domain_of(["12/1/2024", "2/3/2024"], notation="%m/%d/%Y").ruler == "%m/%d/%Y"


@pytest.mark.parametrize("kind", ["dates", "moments", "texts", "%d.%m.%y"])
def test_generated_intervals_of_dates_are_called_by_their_dates(kind: str, tmp_path: Path) -> None:
    texts = table(kind if kind[0] == "%" else None)["came"]
    read = {"dates": texts.str.to_date, "moments": lambda: texts.str.to_datetime("%Y-%m-%d")}.get(kind, lambda: texts)
    frame = table(None).with_columns(came=read())
    frame.write_parquet(tmp_path / "t.parquet")
    more: dict[str, Any] = {"publish": "hierarchy", "hierarchies": {"came": "intervals"}}
    more |= {"dates": {"came": kind}} if kind[0] == "%" else {}
    made = shoal.anonymize(tmp_path / "t.parquet", **{**ASKED, "k": 6, **more})
    own = set(frame["came"].cast(pl.String).to_list()) | {"*"}
    shown = [text for text, _ in rows(made.table, "came", "town")]
    assert any(" .. " in text for text in shown)
    assert {end.removesuffix(".000000") for text in shown for end in text.split(" .. ")} <= {
        text.removesuffix(".000000") for text in own
    }
    made.write(tmp_path / "r.csv")
    holding(verify(tmp_path / "r.csv", tmp_path / "r.certificate.json", tmp_path / "t.parquet"))
    found = shoal.decode(tmp_path / "r.csv").numeric()
    assert found["came_low"].dtype.is_temporal()
    assert (found["came_low"] <= found["came_high"]).all()
    notes = shoal.attack(tmp_path / "r.csv", original=frame).notes
    assert not [n for n in notes if "not understood" in n]


FORMS = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f"]


def visits(form: str) -> pl.DataFrame:
    """Sixty moments as texts, two of them twice."""
    first = datetime.datetime(2025, 1, 3, 14, 30)
    moments = [first + datetime.timedelta(hours=31 * i, minutes=7 * i, microseconds=1000 * i) for i in range(60)]
    texts = [m.strftime(form) for m in [*moments, *moments[:2]]]
    ill = [*["flu", "gout", "burn", "cough"] * 15, "flu", "gout"]
    return pl.DataFrame({"came": texts, "sex": ["f", "m"] * 31, "ill": ill})


@pytest.mark.diagonal
@pytest.mark.parametrize("step", [None, "month", 7])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["frame", "csv", "duckdb"])
def test_moments_as_texts_in_one_form_are_ordered(form: str, kind: str, step: Any, tmp_path: Path) -> None:
    table = visits(form)
    table.write_csv(tmp_path / "visits.csv")
    engine = {"engine": "duckdb"} if kind == "duckdb" else {}
    steps = {} if step is None else {"range_step": {"came": step}}
    data: Any = table if kind == "frame" else tmp_path / "visits.csv"
    asked = {"quasi_identifiers": ["came", "sex"], "sensitive": ["ill"], "k": 6, "publish": "ranges", "seed": 1}
    release = shoal.anonymize(data, **asked, **steps, **engine)
    release.write(tmp_path / "out.csv")
    holding(verify(tmp_path / "out.csv", tmp_path / "out.record.json", tmp_path / "visits.csv"))
    shown = pl.read_csv(tmp_path / "out.csv", infer_schema=False)["came"]
    assert shown.str.starts_with("[2025-").all()
    ends = shown.str.strip_chars("[]").str.split(", ").explode().unique()
    read = ends.map_elements(datetime.datetime.fromisoformat, return_dtype=pl.Datetime("us"))
    if step is not None:
        assert (read.dt.time() == datetime.time()).all()
        assert set(ends.str.slice(10)) == {re.sub("[0-9]", "0", table["came"][0][10:])}
    numbers = shoal.decode(tmp_path / "out.csv").numeric()
    assert (numbers["came_low"] < numbers["came_high"]).all()
    assert numbers["came_low"].min() <= datetime.datetime(2025, 1, 3, 14, 30)


def test_moments_in_several_forms_or_with_zones_have_no_order() -> None:
    for odd in ("2025-01-03 14:30:00", "2025-01-03T14:30", "2025-01-03 14:30Z", "2025-13-03 14:30", "2025-01-03 25:30"):
        held = pl.Series("came", ["2025-01-01 10:00", "2025-01-02 10:00", odd])
        assert encode(held).positions() is None
        assert _line(held) is None


def test_a_first_look_takes_moments_in_one_form_for_dates(tmp_path: Path) -> None:
    for form, role in (("%Y-%m-%d %H:%M", "quasi-identifier"), ("%Y-%m-%d %H:%MZ", "identifier")):
        visits(form).write_csv(tmp_path / "visits.csv")
        came = propose.propose(tmp_path / "visits.csv")[0]
        assert came.role == role
        assert ("in one zone" in came.reason) == (role == "identifier")
