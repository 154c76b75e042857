"""What other programs read: one object of one schema with ``--json``, lines of JSON with ``--log-json``."""

import io
import json
import re
import runpy
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from shoal.cli.app import PAGES
from shoal.cli.common import in_flags
from shoal.errors import Sentence
from shoal.watching import Lines
from tests.commands import SCHEMA, run, told
from tests.docs.test_commands import ROOT, folder

__all__ = ["folder"]
ELSEWHERE = {"demo", "reproduce"}  # held to the schema where they run
STATUS = {
    "VerificationError": 1, "CertificateError": 1, "Defect": 1, "InputError": 2, "PolicyError": 2, "UsageError": 2,
    "MissingDependencyError": 2, "OSError": 2, "MemoryError": 2, "InfeasibleError": 3, "ExistsError": 4,
    "KeyboardInterrupt": 130, "Terminated": 143,
}  # fmt: skip
KEYS = ("time", "level", "command", "step", "share", "seconds", "message")


def logged(text: str) -> list[dict[str, Any]]:
    """The lines on standard error."""
    lines = [json.loads(line) for line in text.splitlines()]
    assert all(tuple(line) == KEYS for line in lines)
    return lines


def test_the_schema_is_one_and_the_page_is_made_of_it() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    made = runpy.run_path(str(ROOT / "tools" / "commands.py"))["json_page"](SCHEMA)
    assert (ROOT / "docs" / "json.md").read_text(encoding="utf-8") == made, "run python tools/commands.py"
    named = {branch["if"]["properties"]["command"]["const"] for branch in SCHEMA["else"]["allOf"]}
    assert {name.split()[0] for name in named} == set(PAGES) - {"workbench"}


SERIES = (
    "shoal series start cases --policy series.toml --mode views", "shoal series add cases people.csv --person name",
    "shoal series view cases --columns age,disease", "shoal series status cases", "shoal verify cases",
)  # fmt: skip


def test_every_command_prints_one_object_and_logs_lines(folder: Path) -> None:
    asked = "quasi_identifiers = ['age', 'zip']\nsensitive = ['disease']\nk = 5\neffort = 'fast'\n"
    (folder / "series.toml").write_text(asked)
    pages = {name: page for name, page in PAGES.items() if name not in ELSEWHERE | {"workbench", "series"}}
    several = {"tiles"}  # assign reads what the last of these wrote
    lines = [line for name, page in pages.items() for line in page.examples[: None if name in several else 1]]
    seen = set()
    for line in [*lines, *SERIES]:
        words = ["release.csv" if word == "ranges.csv" else word for word in shlex.split(line)[1:]]
        done = run(*words, "--json", "--log-json", cwd=folder)
        held, log = told(done.stdout), logged(done.stderr)
        assert held["status"] == done.returncode == 0, (line, done)
        assert log[-1]["step"] == "done", line
        assert len(log) > 1 or held["command"] in ("keygen", "series start", "series status"), line
        assert {entry["command"] for entry in log} == {held["command"]}
        assert not any("P17" in entry["message"] for entry in log)  # a name in the table
        seen.add(held["command"].split()[0])
    assert seen == set(PAGES) - ELSEWHERE - {"workbench"}


def test_the_demo_prints_the_same_object(tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="carries the survey that the demo publishes")
    assert run("demo", "-o", tmp_path / "demo", "--json").facts["command"] == "demo"


def test_each_status_comes_with_an_object(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    table = ("people.csv", "--quasi", "age,zip", "--identifiers", "name", "--effort", "fast")
    cases: list[tuple[int, str | None, tuple[str, ...], dict[str, Any]]] = [
        (0, None, ("anonymize", *table, "--insensitive", "disease", "--k", "2", "-o", "x.csv"), {}),
        (1, None, ("audit", "people.csv", "--quasi", "age,zip", "--k", "50"), {}),
        (2, "InputError", ("audit", "peple.csv", "--quasi", "age"), {}),
        (2, "PolicyError", ("audit", "people.csv", "--quasi", "age,zpi"), {"column": "zpi"}),
        (2, "UsageError", ("labels", "people.csv", "--label", "name", "--k", "many"), {"setting": "--k"}),
        (2, "UsageError", ("tiles", "points.csv", "--lat", "latitude"), {"setting": "--lat"}),
        (2, "PolicyError", ("init", "people.csv", "--k", "0"), {"setting": "--k"}),
        (2, "PolicyError", ("anonymize", *table, "--k", "2", "--publish", "ranges", "--max-level", "age=1", "-o",
                            "y.csv"),
         {"setting": "--max-level", "marked": "⟨max_level⟩ counts levels of a hierarchy, and ranges have none; "
                                              "⟨range_step⟩ widens ranges"}),
        (2, "PolicyError", ("anonymize", "people.csv", "--k", "2", "-o", "y.csv"), {}),  # a request without its columns
        (3, "InfeasibleError", ("anonymize", *table, "--sensitive", "disease", "--k", "99", "-o", "y.csv"), {}),
        (3, None, ("explore", "people.csv", "--quasi", "age", "--insensitive", "disease", "--identifiers", "name",
                   "--k", "99"), {}),
        (4, "ExistsError", ("anonymize", *table, "--insensitive", "disease", "--k", "2", "-o", "x.csv"), {}),
    ]  # fmt: skip
    for status, kind, words, more in cases:
        done = run(*words, "--json", "--log-json")
        held = told(done.stdout)
        assert (done.returncode, held["status"], held["command"]) == (status, status, words[0]), done
        assert held.get("error", {}).get("kind") == kind, held
        if kind is not None:
            assert held["error"]["exit_status"] == status
            assert logged(done.stderr)[-1]["message"] == f"shoal: {held['error']['message']}"
            assert more.items() <= held["error"].items(), held
            assert in_flags(Sentence(held["error"]["marked"])) == held["error"]["message"]
    assert not (folder / "y.csv").exists()
    page = (ROOT / "docs" / "exit-status.md").read_text(encoding="utf-8")
    own = re.findall(r"^\| (\d+) \|.*\|([^|]*)\|$", page, re.M)
    kinds = {name: int(status) for status, names in own for name in re.findall(r"`(\w+)`", names)}
    assert kinds == STATUS
    assert set(kinds) == set(SCHEMA["$defs"]["error"]["properties"]["kind"]["enum"])
    assert {status for status, *_ in cases} | {130, 143} == set(map(int, dict(own)))


def test_an_interruption_and_a_defect_have_their_object(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal import cli

    def raises(error: BaseException) -> Callable[..., Any]:
        def run_it(*_: Any, **__: Any) -> Any:
            raise error

        return run_it

    def left(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(cli.os, "_exit", left)
    for status, kind, error in (
        (130, "KeyboardInterrupt", KeyboardInterrupt()), (143, "Terminated", cli.Terminated()),
        (1, "Defect", RuntimeError("P17")), (2, "MemoryError", MemoryError()), (2, "OSError", OSError(28, "full")),
    ):  # fmt: skip
        monkeypatch.setattr("shoal.publishing.tables.audited.audit", raises(error))
        done = run("audit", folder / "people.csv", "--quasi", "age", "--json")
        held = told(done.stdout)
        assert (done.returncode, held["status"], held["error"]["kind"]) == (status, status, kind)
        assert "P17" not in done.said


def test_output_that_nobody_reads_on_is_no_failed_check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: Any, **__: Any) -> Any:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("shoal.publishing.tables.audited.audit", closed)
    done = run("audit", folder / "people.csv", "--quasi", "age")
    assert (done.returncode, done.said) == (2, "")


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    from shoal.cli.common import begin, print_json

    begin(["audit"], PAGES)
    print_json({"figures": {"a": float("inf"), "b": [float("nan"), 1.5], "c": np.int64(3)}}, 0)
    print_json({"figures": {}}, 1)  # a second object would be one too many
    assert json.loads(capsys.readouterr().out)["figures"] == {"a": None, "b": [None, 1.5], "c": 3}


def test_a_step_is_told_at_once_and_its_shares_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    said, now = io.StringIO(), [0.0]
    monkeypatch.setattr("shoal.watching.time.monotonic", lambda: now[0])
    lines = Lines(said, "anonymize")
    for tick in range(100):
        now[0] = tick / 20
        lines("searching", tick / 100)
    lines("writing", None)
    log = logged(said.getvalue())
    assert [entry["step"] for entry in log] == ["searching"] * 5 + ["writing"]
    assert [entry["share"] for entry in log] == [0.0, 0.2, 0.4, 0.6, 0.8, None]
    assert log[2]["message"] == "searching, 40% done, about 3 s left in this step"
