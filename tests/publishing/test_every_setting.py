"""Every setting that changes what is published: alike on every kind of table, on record, said, and judged."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

import shoal
from tests.commands import run
from tests.data import TREES, as_polars, handed, people
from tests.kept import forge, holding, kept, put, verify
from tests.model.test_settings import typed

ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["ill"]}
Change = Callable[[dict[str, Any]], object]


class Setting(NamedTuple):
    """What is asked; words of the command and its page; changes of the record or the certificate, and what fails.

    A change is looked at with the original, where the check is called "with the original", else without it.
    """

    asked: dict[str, Any]
    says: tuple[str, ...] = ()
    record: tuple[tuple[Change, str], ...] = ()
    certificate: tuple[tuple[Change, str], ...] = ()


def apart(**to: Any) -> Change:
    return put("incomplete", to=lambda f: f["incomplete"] | {n: v(f) if callable(v) else v for n, v in to.items()})


WITH = "with the original"
SETTINGS = {
    "apart": Setting(
        {"missing": "apart"}, ("grouped apart",),
        ((apart(rows=lambda f: f["incomplete"]["rows"] + 1), WITH), (apart(smallest=3), WITH),
         (put("incomplete", to=None), WITH), (apart(smallest=lambda f: f["incomplete"]["rows"] + 1), ""),
         (apart(smallest_of_others=lambda f: f["release"]["rows"]), ""), (apart(rows=0), ""),
         (apart(smallest=lambda f: f["incomplete"]["smallest"] + 9,
                smallest_of_others=lambda f: f["incomplete"]["smallest_of_others"] + 9), ""),
         (apart(rows=0, smallest=0), ""), (apart(rows=lambda f: f["release"]["rows"], smallest_of_others=0), "")),
    ),
    "filled": Setting(
        {"missing": "filled"}, ("filled with the most frequent", "counts as lost"),
        ((put("filled", "age", to=lambda f: f["filled"]["age"] - 1), WITH), (put("filled", to=None), WITH),
         (put("filled", to=lambda f: {"age": f["filled"]["age"]}), WITH),
         (put("loss", "ncp_with_filled", to=lambda f: f["loss"]["ncp"]), WITH)),
    ),
    "persons": Setting(
        {"person": "who", "household": "home"}, ("who", "home"), ((put("persons", "home", to=2), "persons"),)
    ),
    "population": Setting(
        {"population": "town.csv", "k_map": 20}, ("360 people of the population",),
        ((put("population", "k_map", to=19), "population"),),
    ),
    "weights": Setting({"population_weights": "w", "k_map": 20}),
    "mean risk": Setting(
        {"max_average_risk": 0.09}, (), (), ((put("policy", "max_average_risk", to=0.001), "mean risk"),)
    ),
    "range step": Setting(
        {"publish": "ranges", "range_step": {"age": 5}}, (), (),
        ((put("policy", "range_step", to={"age": 7}), "range steps"),),
    ),
    "dates": Setting(
        {"publish": "ranges", "quasi_identifiers": ["came", "zip"], "dates": {"came": "%d.%m.%Y"}},
        ("dates are written as",), (),
        ((put("policy", "dates", to={"came": "%m.%d.%Y"}), ""),),
    ),
    "decimal": Setting(
        {"publish": "ranges", "quasi_identifiers": ["costs", "zip"], "decimal": {"costs": ","}},
        ("decimal marks",), (),
        ((put("policy", "decimal", to={"costs": "."}), ""),),
    ),
    "limits": Setting(
        {"publish": "ranges", "top": {"age": 45}, "bottom": {"age": 25}},
        ("coded before anything was counted", "in age; the loss counts such a value"),
        ((put("limited", "age", "top", to=3), WITH), (put("limited", "age", "above", to=0.01), WITH),
         (put("limited", "age", "rows_top", to=0), "loss beyond limits"), (put("limited", to={}), "loss beyond limits"),
         (put("loss", "ncp_with_limits", to=lambda f: f["loss"]["ncp"]), "loss beyond limits"),
         (put("policy", "top", to={"age": 40}), "")),
        ((put("policy", "top", to={"age": 42}), ""), (put("policy", "top", to={"age": 48}), ""),
         (put("policy", "bottom", to={}), "")),
    ),
    "limits and steps": Setting({"publish": "ranges", "range_step": {"age": 5}, "top": {"age": 45}}),
    "limits and stars": Setting({"top": {"age": 45}, "missing": "filled"}, ("beyond a limit counts as lost",)),
    "coarsen": Setting({"publish": "hierarchy", "hierarchies": TREES, "coarsen": "auto"}, ("<- this release",)),
    "rows starred whole": Setting(
        {"publish": "hierarchy", "hierarchies": TREES, "global_recoding": True, "max_suppressed": 0.3, "k": 9}, (), (),
        ((put("policy", "max_suppressed", to=0.001), "suppressed rows"),),
    ),
    "minimality": Setting(
        {"minimality": 0.5, "l": 2}, ("can infer no value with more than 0.5",), (),
        ((put("policy", "minimality", to=0.3), "minimality"),),
    ),
    "shards": Setting({"publish": "ranges", "shards": 3}),
    "t by a hierarchy": Setting({"t_hierarchical": 0.3, "hierarchies": {"ill": "ill.csv"}}),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three times as many people as the table has, and a hierarchy of their illnesses."""
    monkeypatch.chdir(tmp_path)
    pl.concat([people().select("age", "zip")] * 3).write_csv("town.csv")
    Path("ill.csv").write_text("flu;lungs;*\ncough;lungs;*\nulcer;stomach;*\n")
    return tmp_path


def asked_of(name: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A table for a setting, and the request."""
    asked = {**ROLES, "k": 4, "effort": "fast", "seed": 1, **SETTINGS[name].asked}
    used = {"person": "who", "household": "home", "population_weights": "w", "dates": "came", "decimal": "costs"}
    table = people(0.2 if "missing" in asked else 0.0)
    return table.select("age", "zip", "ill", *(column for setting, column in used.items() if setting in asked)), asked


def shown(table: Any) -> list[tuple[str, ...]]:
    """Rows as texts, whatever kind of frame holds them."""
    return sorted(tuple("" if v is None else str(v).removesuffix(".0") for v in row)
                  for row in as_polars(table).fill_nan(None).rows())  # fmt: skip


MORE: dict[str, Any] = {"secret": b"sixteen bytes or more", "numeric_stars": "text"}


@cache
def in_memory(name: str) -> tuple[list[tuple[str, ...]], float, Any]:
    """Rows, cost and missing values of the release of the same table as a frame."""
    table, asked = asked_of(name)
    made = shoal.anonymize(table, **asked, **MORE)
    return shown(made.table), made.certificate.cost, made.facts.missing


@pytest.mark.diagonal
@pytest.mark.parametrize("kind", ["pandas", "duckdb", "csv", "csv in duckdb"])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_kind_of_table_gives_one_release(name: str, kind: str, folder: Path) -> None:
    table, asked = asked_of(name)
    asked |= MORE
    data, engine = handed(table, kind, folder)
    made = shoal.anonymize(data, **asked, **engine)
    rows, cost, missing = in_memory(name)
    assert shown(made.table) == rows
    assert made.certificate.cost == pytest.approx(cost)
    assert made.facts.missing == missing
    assert made.audit.passes


@pytest.mark.parametrize("name", SETTINGS)
def test_the_command_says_it_and_the_judge_sees_what_is_bent(name: str, folder: Path) -> None:
    table, asked = asked_of(name)
    table.write_csv("t.csv")
    done = run("anonymize", "t.csv", *typed(asked), "-o", "out.csv", "--report", "page.html").ok()
    page = Path("page.html").read_text().replace("&#39;", "'")
    assert not [words for words in SETTINGS[name].says if words not in done.said + page]
    paper = Path("out.certificate.json")
    for original in (None, "t.csv"):
        holding(verify("out.csv", kept(paper), original))
    again = shoal.Policy.read(paper).describe()
    assert [
        n for n in SETTINGS[name].asked if n in again and again[n] != json.loads(paper.read_text())["policy"][n]
    ] == []
    for bent_paper, changes in ((kept(paper), SETTINGS[name].record), (paper, SETTINGS[name].certificate)):
        genuine = bent_paper.read_text()
        for change, check in changes:
            forge(bent_paper, change)
            try:
                found = verify("out.csv", bent_paper, "t.csv" if check == WITH else None).findings
                wrong = [f.check for f in found if not f.holds]
            except shoal.InputError:
                wrong = ["refused"]
            assert wrong if check in ("", WITH) else wrong == [check], (check, wrong)
            bent_paper.write_text(genuine)
