"""``--if-changed``: the same request on the same inputs does nothing; whatever is other runs again."""

import json
import shlex
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.cli import unchanged
from tests.commands import Done, run
from tests.docs.test_commands import folder as examples

__all__ = ["examples"]
TABLE = "anonymize people.csv --policy p.toml --secret key -o out.csv --report out.html"


@pytest.fixture
def folder(examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the examples, a policy with a hierarchy, and a secret; the folder to work in."""
    shutil.copytree(examples, tmp_path, dirs_exist_ok=True)
    (tmp_path / "p.toml").write_text(
        "quasi_identifiers = ['age', 'zip']\nidentifiers = ['name']\nsensitive = ['disease']\nk = 5\n"
        "publish = 'hierarchy'\nhierarchies = {age = 'age.csv'}\neffort = 'fast'\nseed = 1\n"
    )
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def again(line: str, *more: str) -> Done:
    done = run(*shlex.split(line), "--if-changed", "--json", *more).ok()
    return done


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir() if p.is_file()}


def append(name: str, text: str) -> Callable[[], object]:
    def change() -> None:
        path = Path(name)
        path.write_text(path.read_text() + text)

    return change


def test_nothing_is_done_twice_and_the_same_is_said(folder: Path) -> None:
    first = again(TABLE)
    assert first.facts["unchanged"] is False
    before = state(folder)
    second = again(TABLE)
    assert second.facts == {**first.facts, "unchanged": True}
    assert state(folder) == before
    assert "nothing is done" in run(*shlex.split(TABLE), "--if-changed").stdout
    assert stat.S_IMODE(Path("out.record.json").stat().st_mode) == 0o600
    run("verify", "out.csv", "--original", "people.csv", "--record", "out.record.json").ok()
    public = Path("out.certificate.json").read_text()
    assert "salt" in Path("out.record.json").read_text()
    assert not any(word in public for word in ("salt", "inputs", '"run"'))
    assert "0123456789abcdef" not in Path("out.record.json").read_text()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (append("people.csv", "P60,31,01234,flu\n"), "people.csv has changed"),
        (append("p.toml", "# as before\n"), "p.toml has changed"),
        (lambda: Path("age.csv").write_text(Path("age.csv").read_text().replace("to", "-")), "age.csv has changed"),
        (lambda: Path("key").write_bytes(b"another 16 bytes"), "key has changed"),
        (append("out.csv", "31,01234,flu\n"), "out.csv is not as it was written"),
        (append("out.html", "<p>"), "out.html is not as it was written"),
        (append("out.certificate.json", " "), "out.certificate.json is not as it was written"),
        (lambda: Path("out.json").unlink(), "out.json is gone"),
        (lambda: Path("out.csv").unlink(), "out.csv is gone"),
    ],
    ids=["table", "policy", "hierarchy", "secret", "release", "page", "certificate", "figures", "no release"],
)
def test_whatever_is_other_runs_again(folder: Path, change: Callable[[], object], says: str) -> None:
    again(TABLE)
    change()
    done = again(TABLE)
    assert f"runs again: {says}" in done.stderr
    assert done.facts["unchanged"] is False
    assert again(TABLE).facts["unchanged"] is True


def test_another_request_or_version_runs_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again(TABLE)
    assert "the request is different" in again(TABLE, "--k", "6").stderr
    assert again(TABLE, "--k", "6", "--force").facts["unchanged"] is True  # how it is written is no request
    monkeypatch.setattr(unchanged, "__version__", "99")
    assert "the version of shoal" in again(TABLE, "--k", "6").stderr


def test_what_no_such_run_wrote_is_not_replaced(folder: Path) -> None:
    assert run(*shlex.split(TABLE)).returncode == 0
    assert run(*shlex.split(TABLE), "--if-changed").returncode == 4
    assert again(TABLE, "--force").facts["unchanged"] is False
    record = Path("out.record.json")
    held = json.loads(record.read_text())
    held["run"]["answer"]["rows"] = 7
    record.write_text(json.dumps(held))
    assert run(*shlex.split(TABLE), "--if-changed").returncode == 4  # a record that somebody changed tells nothing


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("labels employers.csv --label employer --count people --k 50 -o g.csv --hierarchy t.csv --plot g.svg",
         append("employers.csv", "Forge,20\n")),
        ("intervals people.csv --value age --k 5 -o ages.csv --report ages.html", append("ages.html", " ")),
        ("regions areas.csv pairs.csv --weight people --k 5000 -o r.csv", append("pairs.csv", "a,d\n")),
        ("tiles points.csv --x longitude --y latitude --k 5 -o t.csv --table tt.csv --secret key",
         append("tt.csv", "\n")),
        ("gather people.csv --columns age --r 5 -o c.csv --assignments a.csv --hierarchy age=age.csv --secret key",
         lambda: Path("age.csv").write_text(Path("age.csv").read_text().replace("to", "-"))),
        ("cellular people.csv --columns age --r 5 --setup-cost 1 -o cc.csv", lambda: Path("cc.csv").unlink()),
        ("apply recoder.toml people.csv -o july.csv", append("recoder.toml", "\n")),
        ("apply 'recoder[1].toml' people.csv -o july.csv", append("recoder[1].age.csv", "\n")),
        ("anonymize 'part*.csv' --glob --engine duckdb --policy p.toml -o folder --parts parquet",
         lambda: shutil.copy("people.csv", "part3.csv")),
        ("anonymize people.csv --policy p.toml -o people.parquet",
         lambda: Path("people.parquet").write_bytes(Path("people.parquet").read_bytes() + b"x")),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)  # fmt: skip
def test_every_problem_is_done_once(folder: Path, line: str, change: Callable[[], object]) -> None:
    if line.startswith("apply"):
        learned = "--quasi age,zip --identifiers name --insensitive disease --hierarchy age=age.csv"
        assert run("fit", "people.csv", *learned.split(), "--k", "5", "-o", shlex.split(line)[1]).returncode == 0
    if "--glob" in line:
        pytest.importorskip("duckdb")
        for i in (1, 2):
            shutil.copy("people.csv", f"part{i}.csv")
    assert again(line).facts["unchanged"] is False
    before = state(folder)
    assert again(line).facts["unchanged"] is True
    assert state(folder) == before
    words = shlex.split(line)
    out = words[words.index("-o") + 1]
    record = Path(out).with_suffix(".record.json").name
    run("verify", out, "--record", record).ok()  # which has the run too
    change()
    assert again(line).facts["unchanged"] is False
    assert again(line).facts["unchanged"] is True


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("-o out.csv --no-record", "--no-record writes none"),
        ("-o out.csv --query 'SELECT * FROM data' --engine duckdb", "--query may read others"),
    ],
)
def test_what_cannot_be_compared_is_refused(folder: Path, more: str, says: str) -> None:
    run(*shlex.split(f"anonymize people.csv --policy p.toml {more} --if-changed")).refused(2, says)
    assert not Path("out.csv").exists()


def test_without_an_output_there_is_nothing_to_find(folder: Path) -> None:
    run("labels", "employers.csv", "--label", "employer", "--k", "1", "--if-changed").refused(2, "say -o FILE")
