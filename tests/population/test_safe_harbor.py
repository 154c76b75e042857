"""HIPAA's Safe Harbor as far as a table goes."""

import datetime
import json

import polars as pl
import pytest

import shoal
from shoal.errors import InputError, PolicyError
from shoal.judge.tables.shown import breach
from shoal.model.rule_books import SafeHarbor
from tests.kept import failing, holding, resealed

NOW = datetime.datetime.now(datetime.UTC).year


def patients() -> pl.DataFrame:
    """Twelve people, among them one of 93 and one from a zip that few live in."""
    ages = [34, 34, 35, 35, 60, 61, 89, 90, 93, 34, 34, 60]
    return pl.DataFrame(
        {
            "zip": [
                *["94704", "94705", "94704", "03601", "10201", "94110", "94110-1234", "94704", "60601", "606", "60602"],
                None,
            ],
            "age": ages,
            "birth_date": [datetime.date(NOW - a, 5, 17) for a in ages],
            "admitted": [f"20{10 + i}-03-0{1 + i % 9}" for i in range(12)],
            "state": ["CA"] * 12,
            "name": [f"n{i}" for i in range(12)],
            "disease": ["x", "y"] * 6,
        }
    )


ASKED = {
    "quasi_identifiers": ["zip", "age", "birth_date"],
    "sensitive": ["disease"],
    "identifiers": ["name"],
    "insensitive": ["admitted"],
    "preset": "hipaa-safe-harbor",
}


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow", "csv", "parquet"])
def test_what_stands_is_what_the_rule_lets_stand(kind: str, tmp_path) -> None:
    table = patients()
    table.write_csv(tmp_path / "in.csv")
    table.write_parquet(tmp_path / "in.parquet")
    given = {"polars": table, "pandas": table.to_pandas(), "arrow": table.to_arrow(), "csv": tmp_path / "in.csv",
             "parquet": tmp_path / "in.parquet"}[kind]  # fmt: skip
    release = shoal.anonymize(given, **ASKED)
    release.write(tmp_path / "out.csv")
    shown = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    if kind == "csv":
        page = release.report(tmp_path / "out.html").read_text(encoding="utf-8")
        for words in ("The rule book made zip, age, birth_date, admitted coarser first", "no size of a group is asked"):
            assert words in page
        found = shoal.verify(tmp_path / "out.csv")
        assert "no size of a group was asked, reached 1" in str(found)
    assert sorted(shown["zip"].fill_null("").to_list()) == sorted(
        ["947", "947", "947", "000", "000", "941", "941", "947", "606", "606", "606", ""]
    )
    assert sorted(shown["age"].to_list()) == sorted(["34"] * 4 + ["35"] * 2 + ["60"] * 2 + ["61", "89", "90+", "90+"])
    early = f"{NOW - 90} or earlier"
    assert shown["birth_date"].to_list().count(early) == 2
    assert set(shown["birth_date"]) - {early} == {str(NOW - a) for a in (34, 35, 60, 61, 89)}
    assert set(shown["admitted"]) == {str(2010 + i) for i in range(12)}
    for original in (None, given):
        verdict = holding(shoal.verify(tmp_path / "out.csv", tmp_path / "out.certificate.json", original))
        assert "safe harbor" in [f.check for f in verdict.findings]
    record = json.loads((tmp_path / "out.certificate.json").read_text())
    assert record["rule_book"]["name"] == "hipaa-safe-harbor"
    assert "alone in what is left" in record["rule_book"]["does_not_cover"]
    said = record["safe_harbor"]
    for bent, check in (
        ({"columns": said["columns"] | {"state": "date", "admitted": "age"}}, "safe harbor"),  # years as ages
        ({"columns": {}}, "recoded columns"),
        ({"columns": {n: rule for n, rule in said["columns"].items() if n != "zip"}}, "recoded columns"),
        ({"born": said["born"] - 40}, "recoded columns"),
    ):
        resealed(tmp_path / "out.certificate.json", safe_harbor=said | bent)
        verdict = shoal.verify(tmp_path / "out.csv", tmp_path / "out.certificate.json")
        assert failing(verdict) == [check]


@pytest.mark.parametrize("publish", ["stars", "ranges", "hierarchy"])
def test_beside_k(publish: str, tmp_path) -> None:
    more = {"hierarchies": {"zip": "prefixes:2,1"}} if publish == "hierarchy" else {}
    release = shoal.anonymize(patients(), **ASKED, k=3, publish=publish, seed=1, **more)
    assert release.audit.k >= 3
    release.write(tmp_path / "out.parquet")
    holding(shoal.verify(tmp_path / "out.parquet", tmp_path / "out.certificate.json", patients()))


def test_numbers_have_lost_their_zeros() -> None:
    table = pl.DataFrame({"zip": [3601, 94704, 94705], "yob": [1901, 1980, 1990]})
    release = shoal.anonymize(table, quasi_identifiers=["zip", "yob"], preset="hipaa-safe-harbor")
    assert sorted(release.table["zip"].to_list()) == ["000", "947", "947"]
    assert set(release.table["yob"]) == {"1980", "1990", f"{NOW - 90} or earlier"}


def test_what_may_not_stand_is_refused() -> None:
    table = patients().with_columns(
        ssn=pl.Series([f"1{i:02}-22-3{i:03}" for i in range(12)]), county=pl.Series([f"c{i % 3}" for i in range(12)])
    )
    with pytest.raises(InputError, match=r"'ssn': .*'county': its name says a place below a state"):
        shoal.anonymize(table, **ASKED | {"insensitive": ["admitted", "ssn"]})
    shoal.anonymize(table, **ASKED | {"identifiers": ["name", "ssn", "county"]})
    odd = patients().with_columns(zip=pl.Series(["94704"] * 10 + ["x", "y"]))
    with pytest.raises(InputError, match="taken for zip codes, and 2 of its values are none"):
        shoal.anonymize(odd, **ASKED)
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(PolicyError, match="in memory"):
        shoal.anonymize(duckdb.from_arrow(patients().to_arrow()), **ASKED)


@pytest.mark.parametrize(
    ("rule", "value", "wrong"),
    [
        ("zip", "9470", True), ("zip", "036", True), ("zip", "947", False), ("zip", "[036, 947]", True),
        ("age", "90", True), ("age", "90+", False), ("age", "89", False), ("age", "[20, 89]", False),
        ("date", "2019-03", True), ("date", "3/4/19", True), ("date", "2019", False),
        ("birth", "1900", True), ("birth", "1930 or earlier", False), ("birth", "*", False),
    ],
)  # fmt: skip
def test_the_judge_sees_what_stands_too_precisely(rule: str, value: str, wrong: bool) -> None:
    found = breach(pl.DataFrame({"c": [value, None]}), SafeHarbor({"c": rule}, 1930))
    assert (found is not None) is wrong
    assert found is None or value not in found
