"""No command repeats a password that somebody typed in an address."""

from pathlib import Path

import pytest

from shoal.cli import program
from shoal.paths import hidden_in, is_server
from tests.commands import run

PASSWORDS = ["s3cretword", "s3cret%40word", "s3cret?word", "s3cret/word", "s3cret#word", "s3cret@word", "s3'cret\"word"]
SCHEMES = ["postgresql", "mysql+pymysql", "s3a", "hdfs", "https"]


@pytest.mark.diagonal
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("password", PASSWORDS)
def test_no_command_repeats_a_password(scheme: str, password: str, tmp_path: Path) -> None:
    address = f"{scheme}://bob:{password}@localhost:5544/hosp"
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for name in program().commands:
        for words in ([name, address], [name, "t.csv", address], [name, "t.csv", "--original", address],
                      [name, "t.csv", f"--policy={address}"], [name, "t.csv", "-o", address],
                      [name, address, "--quasi", "a", "--k", "2", "--json"]):  # fmt: skip
            done = run(*words, cwd=tmp_path)
            if name in ("demo", "workbench") or not done.returncode:
                continue
            for part in {password, "s3cret", "cretword"}:
                assert part not in done.said, (words, done.said)


@pytest.mark.parametrize("name", ["init", "explore", "verify", "audit", "anonymize", "compare", "report"])
def test_a_server_is_said_to_be_one(name: str, tmp_path: Path) -> None:
    more = ["--quasi", "a"] if name == "audit" else []
    done = run(name, "postgresql://bob:secret@localhost:5544/hosp", *more, cwd=tmp_path)
    assert done.returncode == 2
    assert "'postgresql://localhost:5544/hosp' is a server of databases" in done.stderr
    assert ("verify, report, and anonymize read its tables" in done.stderr) == (name in ("explore", "compare"))


@pytest.mark.parametrize(("name", "option"), [("init", "-o"), ("audit", "--original"), ("audit", "--with")])
def test_a_server_is_no_file(name: str, option: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    done = run(name, "t.csv", option, "postgresql://bob:secret@localhost:5544/hosp", cwd=tmp_path)
    assert done.returncode == 2
    assert "verify, report, and anonymize read its tables" in done.stderr
    assert "secret" not in done.said


def test_an_address_without_secrets_stays_as_it_is() -> None:
    said = "there is no file 's3a://bucket/people' to read"
    assert hidden_in(said, "s3a://bucket/people") == said
    assert not is_server("s3a://bucket/people")
    assert not is_server(r"C:\people.csv")
    assert is_server("PostgreSQL://host/db")
