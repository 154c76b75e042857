"""Every model of the registry by keyword, flag and policy file: in releases, certificates, audits and explorations."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import shoal
from shoal.cli.anonymize import anonymize
from shoal.cli.audit import audit
from shoal.cli.common import begin
from shoal.cli.options import with_options
from shoal.judge import models
from shoal.model import privacy
from shoal.model.settings import SHORTHANDS, Shorthand
from shoal.publishing.tables.audited import AuditSettings
from tests.commands import run

ASKED = {
    "k": 2, "l": 2, "distinct_l": 2, "entropy_l": 1.5, "recursive_cl": (3.0, 2), "alpha_k": (0.7, 2), "t": 0.4,
    "t_ordered": 0.4, "t_hierarchical": 0.3, "beta": 1.0, "beta_basic": 1.0, "delta": 1.5, "simultaneous_l": 2,
    "k_map": 3, "presence": (0.0, 0.8),
}  # fmt: skip
TREE = "flu;lungs\ncough;lungs\ngastritis;stomach\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = pl.DataFrame(
        {
            "street": ["elm", "elm", "oak", "oak", None, "elm"] * 3,
            "age": [31, 32, 31, 32, 31, 31] * 3,
            "ill": ["flu", "cough", "gastritis"] * 6,
        }
    )
    rows.write_csv(tmp_path / "rows.csv")
    pl.concat([rows.drop("ill")] * 3).write_csv(tmp_path / "town.csv")
    (tmp_path / "ill.csv").write_text(TREE)
    return tmp_path


def test_every_shorthand_is_tried() -> None:
    assert set(ASKED) == set(SHORTHANDS)


@pytest.mark.parametrize("name", ASKED)
def test_a_model_is_known_everywhere(name: str, folder: Path) -> None:
    number = ASKED[name]
    text = ",".join(map(str, number)) if isinstance(number, tuple) else str(number)
    flags: list[object] = [f"--{name.replace('_', '-')}", text]
    columns: list[object] = ["--quasi", "street,age", "--sensitive", "ill"]
    lines = ['quasi_identifiers = ["street", "age"]\nsensitive = ["ill"]\nseed = 1\neffort = "fast"\n']
    lines.append(f"{name} = {json.dumps(number)}\n")
    town = name in ("k_map", "presence")
    if town:
        columns += ["--population", "town.csv"]
        lines.append('population = "town.csv"\n')
    if name == "t_hierarchical":
        columns += ["--hierarchy", "ill=ill.csv"]
        lines.append('[hierarchies]\nill = "ill.csv"\n')
    run("anonymize", "rows.csv", *columns, *flags, "--seed", 1, "--json", cwd=folder).ok()
    told = json.loads((folder / "rows.release.certificate.json").read_text())
    assert SHORTHANDS[name].model in json.dumps(told.get("policy", told))
    people = ["--population", "town.csv"] if town else []
    run("verify", "rows.release.csv", "rows.release.certificate.json", *people, cwd=folder).ok()
    trees = ["--hierarchy", "ill=ill.csv"] if name == "t_hierarchical" else []
    judged = run("audit", "rows.csv", "--quasi", "street", "--sensitive", "ill", *flags, *people, *trees, cwd=folder)
    assert judged.returncode in (0, 1), judged.stderr
    (folder / "policy.toml").write_text("".join(lines))
    policy = shoal.Policy.read(folder / "policy.toml")
    release = shoal.anonymize(folder / "rows.csv", policy)
    assert release.audit.passes
    grid: list[object] = ["--l" if name == "l" else "--k", "2", "--json", "--seed", 1]
    seen = run("explore", "rows.csv", *columns, *(flags if name not in ("k", "l") else []), *grid, cwd=folder).ok()
    point = json.loads(seen.stdout)["points"][0]
    again = shoal.explore(folder / "rows.csv", policy, k=point["k"], l=point["l"]).found[0]
    assert point["reason"] is None
    assert point["risk"] == pytest.approx(again.risk)


@pytest.mark.parametrize("name", SHORTHANDS)
def test_the_guide_works_every_model_on_a_table(name: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    assert re.search(rf"^\| [^|]+ \| [^|]+ \| [^|]*`{name}=`[^|]* \| [^|]+ \|$", text, re.MULTILINE)
    assert re.search(rf"\b{name}=", code)


def test_compare_has_the_levels_of_an_audit(folder: Path) -> None:
    columns = {"quasi_identifiers": ["street", "age"], "sensitive": ["ill"]}
    rows = pl.read_csv(folder / "rows.csv")
    release = shoal.anonymize(rows, **columns, k=2, beta=1.0, seed=1)
    found = shoal.compare(rows, {"ours": release}, **columns).as_dict()["releases"]["ours"]["privacy"]["strict"]
    assert found["sensitive"] == release.audit.as_dict()["sensitive"]
    assert set(found["sensitive"]["ill"]) == {
        "l", "distinct_l", "entropy_l", "recursive_c", "alpha", "beta", "delta", "t_equal", "t_ordered",
        "t_hierarchical",
    }  # fmt: skip


def test_explore_groups_rows_with_a_blank_apart(folder: Path) -> None:
    words = ("explore", "rows.csv", "--quasi", "street,age", "--sensitive", "ill", "--k", 3, "--json", "--seed", 1)
    one, other = (
        json.loads(run(*words, *more, cwd=folder).stdout)["points"][0] for more in ((), ("--missing", "apart"))
    )
    apart = shoal.anonymize(
        folder / "rows.csv", quasi_identifiers=["street", "age"], sensitive=["ill"], k=3, missing="apart", seed=1
    )
    assert other["groups"] == apart.audit.classes
    assert one["loss"] <= other["loss"]


def test_explore_counts_weights_and_persons(folder: Path) -> None:
    rows = pl.read_csv(folder / "rows.csv").with_columns(w=pl.lit(2.5), who=pl.int_range(18) // 2)
    rows.write_csv(folder / "more.csv")
    words = ("explore", "more.csv", "--quasi", "street,age", "--k", 2, "--json", "--seed", 1)
    weighed = run(*words, "--k-map", 4, "--population-weights", "w", "--identifiers", "ill,who", cwd=folder)
    persons = run(*words, "--person", "who", "--identifiers", "ill,w", cwd=folder)
    for done, policy in (
        (weighed, {"k": 2, "k_map": 4, "population_weights": "w", "identifiers": ["ill", "who"]}),
        (persons, {"k": 2, "person": "who", "identifiers": ["ill", "w"]}),
    ):
        assert done.returncode == 0, done.stderr
        made = shoal.anonymize(
            folder / "more.csv", quasi_identifiers=["street", "age"], seed=1, effort="fast", **policy
        )
        assert json.loads(done.stdout)["points"][0]["groups"] == made.audit.classes


def test_numbers_taken_for_equally_far_apart_are_named(folder: Path) -> None:
    rows = pl.read_csv(folder / "rows.csv").with_columns(pay=pl.int_range(18))
    columns = {"quasi_identifiers": ["street"], "sensitive": ["pay"], "identifiers": ["age", "ill"]}
    assert any("'pay'" in note and "t_ordered" in note for note in shoal.anonymize(rows, **columns, t=0.9).facts.notes)
    assert shoal.anonymize(rows, **columns, t_ordered=0.9).facts.notes == ()
    other = columns | {"sensitive": ["ill"], "identifiers": ["age", "pay"]}
    assert shoal.anonymize(rows, **other, t=0.9).facts.notes == ()


TOY = """
from dataclasses import dataclass
from shoal.model.privacy.base import Implied, Model

@dataclass(frozen=True)
class Toy(Model):
    n: int
    column: str | None = None
    name = "toy diversity"
    short = "toy"
    monotone = "monotone: a union has the rows and the values of its parts"
    source = "a test"
    simple = True

    def words(self):
        return f"every group has {self.n} values and twice as many rows"

    def level(self, counts, table):
        return min(int((counts > 0).sum()), int(counts.sum()) // 2)

    def holds(self, counts, table):
        return self.level(counts, table) >= self.n

    def implied(self, table):
        return Implied(size=2 * self.n, distinct=self.n)
"""
READING = """
import numpy as np

def found(model, column):
    least = int(np.minimum(np.bincount(column.group), column.sizes // 2).min())
    return least, least >= model.n
"""


def test_a_model_is_a_file_a_line_and_a_reading_of_the_judges(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(command: Any, *words: object) -> dict[str, Any]:
        app = typer.Typer()
        app.command()(with_options(command.__wrapped__))
        begin([command.__name__], [command.__name__])  # each command of a process prints its one object
        done = CliRunner().invoke(app, [*map(str, words), "--quasi", "street,age", "--sensitive", "ill", "--json"])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    (folder / "judge").mkdir()
    (folder / "toy.py").write_text(TOY)
    monkeypatch.setattr(privacy, "__path__", [*privacy.__path__, str(folder)])
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(folder / "judge")])
    monkeypatch.setitem(SHORTHANDS, "toy", Shorthand("toy", "Toy", "So many values, twice as many rows.", (), (int,)))
    monkeypatch.setitem(AuditSettings.__annotations__, "toy", int)  # the same line, as this type has it
    monkeypatch.setitem(sys.modules, "shoal.model.privacy.toy", None)  # put back, that is taken out again, at the end
    monkeypatch.delitem(sys.modules, "shoal.model.privacy.toy")
    (folder / "policy.toml").write_text('quasi_identifiers = ["street", "age"]\nsensitive = ["ill"]\ntoy = 3\n')
    policy = shoal.Policy.read(folder / "policy.toml")
    assert policy == shoal.Policy(quasi_identifiers=["street", "age"], sensitive=["ill"], toy=3)
    with pytest.raises(shoal.PolicyError, match="no reading of its own of toy diversity"):
        shoal.anonymize(folder / "rows.csv", policy)
    (folder / "judge" / "toy.py").write_text(READING)
    out = folder / "out.csv"
    made = said(anonymize, folder / "rows.csv", "--toy", 3, "-o", out, "--seed", 1)
    assert made["privacy"] == {"toy": 3, "k": 6}
    assert shoal.verify(out, folder / "out.certificate.json").holds
    found = said(audit, out, "--toy", 7)["checks"]
    assert [(c["short"], c["asked"], c["passes"]) for c in found] == [("toy", {"n": 7}, False)]


def test_what_is_said_beside_a_release_names_the_flag(tmp_path: Path) -> None:
    rows = pl.DataFrame({"age": [31, 32] * 30, "pay": [x % 20 for x in range(60)]})
    rows.write_csv(tmp_path / "pay.csv")
    asked = ["--quasi", "age", "--sensitive", "pay", "--k", "5", "--t", "0.5", "-o", str(tmp_path / "out.csv")]
    said = run("anonymize", tmp_path / "pay.csv", *asked).said
    assert "--t-ordered goes by their order" in said
    assert "t_ordered=" not in said
