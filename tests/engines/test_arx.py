"""Projects of ARX: roles, hierarchies, ceilings and models become a policy that runs; bent ones are refused."""

import tomllib
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines.arx import read_project
from tests.commands import run

TABLE = pl.DataFrame(
    {"name": [f"P{i}" for i in range(24)], "age": [20 + i % 12 for i in range(24)],
     "zip & co": ["101", "102", "203"] * 8, "ill": ["flu", "gout"] * 12, "note": ["a", "b", "c"] * 8}
)  # fmt: skip
ROLES = {
    "name": "IDENTIFYING",
    "age": "QUASI_IDENTIFYING",
    "zip & co": "QUASI_IDENTIFYING",
    "ill": "SENSITIVE",
    "note": "INSENSITIVE",
}
AGES = "".join(f"{a};{a // 4 * 4}-{a // 4 * 4 + 3};*\n" for a in range(20, 32))
ZIPS = "101;10*;*\n102;10*;*\n203;20*;*\n"


def project(path: Path, **bent: Any) -> Path:
    """A project as ARX 3 writes it, made here."""
    columns = ""
    for name, role in ROLES.items():
        shown = name.replace("&", "&amp;")
        more = (
            f"<ref>hierarchies/{shown}.csv</ref><min>All</min><max>{2 if name == 'age' else 'All'}</max>"
            if role.startswith("QUASI")
            else ""
        )
        columns += (
            f"<assigment><name>{shown}</name><type>{role}_ATTRIBUTE</type><datatype>String</datatype>{more}</assigment>"
        )
    config = (
        "<config><relativeMaxOutliers>0.05</relativeMaxOutliers><attributeWeights><attributeWeight><attribute>age</attribute>"
        "<weight>0.75</weight></attributeWeight></attributeWeights><criteria><criterion>3-anonymity</criterion>"
        "<criterion>distinct-2-diversity for attribute 'ill'</criterion><criterion>0.2-closeness</criterion></criteria>"
        "</config>"
    )
    held = {
        "metadata.xml": "<metadata><version>3.9.1</version><vocabulary>2.0</vocabulary></metadata>",
        "data/input.csv": TABLE.write_csv(separator=";"),
        "input/definition.xml": f"<definition>{columns}</definition>",
        "input/config.xml": config,
        "input/hierarchies/age.csv": AGES,
        "input/hierarchies/zip & co.csv": ZIPS,
    } | bent
    with zipfile.ZipFile(path, "w") as made:
        for name, text in held.items():
            if text is not None:
                made.writestr(name, text)
    return path


def test_what_is_read(tmp_path: Path) -> None:
    found = read_project(project(tmp_path / "p.deid"))
    assert list(found.roles) == list(ROLES)
    assert (found.k, found.distinct, found.ceilings, found.weights) == (3, {"ill": 2}, {"age": 2}, {"age": 0.75})
    assert found.hierarchies == {"age": AGES.encode(), "zip & co": ZIPS.encode()}
    assert any("0.2-closeness" in text for text in found.unread)
    assert any("5 %" in text for text in found.unread)


def test_the_policy_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project(Path("p.deid"))
    TABLE.write_csv("t.csv")
    assert run("init", "p.deid", "--json").facts["output"] == "p.policy.toml"
    assert "P1" not in Path("p.policy.toml").read_text()  # no row of the table that the project holds
    values = tomllib.loads(Path("p.policy.toml").read_text())
    assert values["privacy"] == [
        {"model": "KAnonymity", "k": 3},
        {"model": "DistinctLDiversity", "l": 2, "column": "ill"},
    ]
    assert run("anonymize", "t.csv", "--policy", "p.policy.toml", "-o", "r.csv").returncode == 0
    out = pl.read_csv("r.csv", infer_schema=False)
    assert "name" not in out.columns
    assert shoal.audit(out, quasi_identifiers=["age", "zip & co"], sensitive=["ill"]).k >= 3
    assert set(out["zip & co"]) <= {"101", "102", "203", "10*", "20*", "*"}
    assert run("init", "p.deid").returncode == 4  # nothing is replaced unasked
    last = run("init", "p.deid", "-o", "my policy.toml").ok().stdout.splitlines()[-1]
    assert last.endswith("shoal anonymize TABLE --policy 'my policy.toml'")


@pytest.mark.parametrize(("flag", "said"), [("--k", "the project asks for k = 3"), ("--l", "says itself")])
def test_models_beside_those_of_a_project_are_refused(flag: str, said: str, tmp_path: Path) -> None:
    run("init", project(tmp_path / "p.deid"), flag, "7").refused(2, said)
    assert [p.name for p in tmp_path.iterdir()] == ["p.deid"]


@pytest.mark.parametrize(
    ("bent", "said"),
    [
        ({"input/definition.xml": None}, "no input/definition.xml"),
        ({"input/definition.xml": "<definition>"}, "not XML"),
        ({"input/definition.xml": '<!DOCTYPE a [<!ENTITY b "c">]><definition/>'}, "defines entities"),
        (
            {"input/definition.xml": '<!DOCTYPE a [<!ENTITY b "c">]><definition/>'.encode("utf-16")},
            "defines entities",
        ),
        ({"input/definition.xml": "<definition/>"}, "without columns"),
        (
            {"input/definition.xml": "<definition><assigment><name>a</name><type>X</type></assigment></definition>"},
            "no role",
        ),
        ({"input/hierarchies/age.csv": "1;2\n1;3\n"}, "rows 1 and 2"),
    ],
)
def test_bent_ones_are_refused(bent: dict[str, Any], said: str, tmp_path: Path) -> None:
    run("init", project(tmp_path / "p.deid", **bent)).refused(2, said)


def test_a_hierarchy_of_another_encoding_keeps_its_values(tmp_path: Path) -> None:
    """A mark in place of a letter would be a value that no table has."""
    there = "Orléans;Süd;*\n203;Süd;*\n"
    held = project(tmp_path / "p.deid", **{"input/hierarchies/zip & co.csv": there.encode("latin-1")})
    assert run("init", held).returncode == 0
    assert next((tmp_path / "p-hierarchies").glob("02-*")).read_text(encoding="utf-8") == there
    assert run("init", held, "--force", "--encoding", "latin-1").returncode == 2  # it would do nothing


def test_nothing_is_written_where_a_hierarchy_is_bent(tmp_path: Path) -> None:
    bent = project(tmp_path / "p.deid", **{"input/hierarchies/zip & co.csv": "1;2\n1;3\n"})
    assert run("init", bent).returncode == 2
    assert [p.name for p in tmp_path.iterdir()] == ["p.deid"]


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.deid").write_text("no zip")
    with pytest.raises(shoal.InputError, match="no ARX project"):
        read_project(tmp_path / "p.deid")
