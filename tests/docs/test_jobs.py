"""The jobs of the guide: the script of cron by sh, the functions of the DAG, the model of dbt as dbt would call it."""

from __future__ import annotations

import json
import os
import random
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.commands import told

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "examples" / "jobs"
POLICY = "quasi_identifiers = ['age', 'zip']\nsensitive = ['illness']\nk = 5\nl = 2\neffort = 'fast'\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the job, with a ``shoal`` on the path."""
    drawn = random.Random(2)
    rows = [f"{20 + i % 7},{'ab'[i % 2]},{drawn.choice('pqr')}\n" for i in range(60)]
    (tmp_path / "visits.csv").write_text("age,zip,illness\n" + "".join(rows))
    (tmp_path / "visits.policy.toml").write_text(POLICY)
    (tmp_path / "visits.secret").write_bytes(b"sixteen bytes or more")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "shoal").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shoal "$@"\n')
    (programs / "shoal").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    return tmp_path


def test_the_guide_shows_the_files() -> None:
    page = (ROOT / "docs" / "how-to" / "schedule.md").read_text(encoding="utf-8")
    for path in sorted(p for p in JOBS.iterdir() if p.is_file()):
        assert path.read_text(encoding="utf-8").rstrip("\n") + "\n```\n" in page, path.name


@pytest.mark.skipif(os.name == "nt", reason="a script of a Unix shell")
def test_the_line_of_cron_publishes_once_and_says_why_not(folder: Path) -> None:
    def night() -> subprocess.CompletedProcess[str]:
        line = (JOBS / "publish.sh").read_text().split("&& ./")[1].split("\n")[0]
        return subprocess.run(["sh", JOBS / line], cwd=folder, capture_output=True, text=True)

    for unchanged in (False, True):
        done = night()
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert told((folder / "answer.json").read_text())["unchanged"] is unchanged
        assert told((folder / "verified.json").read_text())["holds"] is True
        assert json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["step"] == "done"
    (folder / "visits.csv").write_text("age,zip,ailment\n20,a,p\n")
    done = night()
    assert done.returncode == 2
    assert "'illness' is not a column" in json.loads(done.stderr)["message"]


def test_the_functions_of_the_dag_run_and_fail_as_airflow_wants(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: dict[str, Any] = {}

    class Dag:
        def __init__(self, name: str, **_: Any) -> None:
            self.name = name

        def __enter__(self) -> Dag:
            return self

        def __exit__(self, *_: object) -> None: ...

    class Operator:
        def __init__(self, task_id: str, python_callable: Any, **_: Any) -> None:
            tasks[task_id] = python_callable

        def __rshift__(self, other: Operator) -> Operator:
            return other

    class Again(Exception): ...

    class Fail(Exception): ...

    held = {
        "airflow.exceptions": {"AirflowException": Again, "AirflowFailException": Fail},
        "airflow.providers.standard.operators.python": {"PythonOperator": Operator},
        "airflow.sdk": {"DAG": Dag},
    }
    for name, names in held.items():
        for i in range(name.count(".") + 1):
            package = ".".join(name.split(".")[: i + 1])
            monkeypatch.setitem(sys.modules, package, sys.modules.get(package) or ModuleType(package))
        vars(sys.modules[name]).update(names)
    runpy.run_path(str(JOBS / "airflow_dag.py"))
    assert list(tasks) == ["publish", "check"]
    assert tasks["publish"](str(folder)) == "release.certificate.json"
    assert tasks["check"](str(folder)) > 5
    (folder / "release.csv").write_text((folder / "release.csv").read_text() + "20,a,p\n")
    with pytest.raises(Fail, match="does not hold"):
        tasks["check"](str(folder))
    (folder / "visits.policy.toml").write_text(POLICY.replace("k = 5", "k = 99"))
    with pytest.raises(Fail, match="99"):
        tasks["publish"](str(folder))
    (folder / "bin" / "shoal").write_text("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(Again, match="killed"):
        tasks["publish"](str(folder))


def test_the_model_of_dbt_gives_the_released_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas", reason="dbt hands over frames of pandas")
    n = 60
    visits = pandas.DataFrame(
        {"age": [20 + i % 7 for i in range(n)], "zip": ["a", "b"] * 30, "illness": ["p", "q", "r"] * 20}
    )
    asked: dict[str, Any] = {}

    class Ref:
        def df(self) -> Any:
            return visits

    class Dbt:
        def config(self, **given: Any) -> None:
            asked.update(given)

        def ref(self, name: str) -> Ref:
            assert name == "visits"
            return Ref()

    names = runpy.run_path(str(JOBS / "dbt_model.py"))
    monkeypatch.setenv("SHOAL_SECRET", "sixteen bytes or more")
    first, again = (names["model"](Dbt(), None) for _ in range(2))
    assert asked["materialized"] == "table"
    assert len(first) == n
    assert first.equals(again)
    assert first.groupby(["age", "zip"], dropna=False).size().min() >= 5
