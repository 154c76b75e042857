"""A problem is a folder and an entry: a toy one goes from its answer to a file that is verified, and to a report."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal import judge, problems, publishing
from shoal.problems.catalogue import CATALOGUE, Problem, algorithm
from tests.kept import kept, verify

PROBLEM = '''
"""Rows in piles of at least k, in the order in which they come; cost: the largest pile."""

from dataclasses import dataclass
from typing import Any

from shoal.model.certificate import Certificate
from shoal.problems.catalogue import algorithm


@dataclass(frozen=True)
class Piles:
    pile: list
    sizes: list
    k: int
    method: str
    certificate: Certificate


def pile(rows, k, method="greedy"):
    pile = algorithm("piles", method)(rows, k)
    sizes = [pile.count(p) for p in sorted(set(pile))]
    proof = Certificate(cost=max(sizes), lower_bound=k, unit="records in the largest pile", bound="k")
    return Piles(pile, sizes, k, method, proof)
'''
GREEDY = """
def greedy(rows, k):
    return [min(i // k, rows // k - 1) for i in range(rows)]
"""
MAKER = """
import polars as pl

from shoal.publishing.crosswalks.crosswalk import Crosswalk
from shoal.publishing.sources import Sources


def piles(answer, frame, read, *, name):
    facts = {"rows": frame.height, "records": frame.height, "groups": len(answer.sizes),
             "smallest_group": min(answer.sizes), "largest_group": max(answer.sizes)}
    return Crosswalk(
        kind="piles", content=pl.DataFrame({"value": frame[name], "pile": answer.pile}),
        certificate=answer.certificate, method=answer.method, facts=facts, read=read, title=f"{name} in piles",
        parameters={"column": name, "k": answer.k, "objective": "max"}, sources=Sources(frame.select(name)),
        groups=answer.sizes,
    )
"""
JUDGE = """
from collections import Counter

from shoal.judge.crosswalk import group_sizes, one_row_each
from shoal.judge.finding import Finding


def judge_piles(held):
    values, piles = held.content["value"].to_list(), held.content["pile"].to_list()
    sizes, stated = Counter(piles), held.stated
    found = [one_row_each(values, stated.facts, "value"), *group_sizes(sizes, stated.facts, stated.parameters["k"])]
    found.append(stated.paid(max(sizes.values())))
    if held.sources.table is not None:
        own = held.sources.table[stated.parameters["column"]].to_list()
        found.append(Finding("values", sorted(map(str, own)) == sorted(map(str, values)), "those of the source"))
    return found
"""


@pytest.fixture
def piles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for room, name, text in (
        (problems, "piles", PROBLEM), (problems, "pile_methods", GREEDY), (publishing, "piled", MAKER),
        (judge, "piles", JUDGE),
    ):  # fmt: skip
        folder = tmp_path / room.__name__
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(room, "__path__", [*room.__path__, str(folder)])
        monkeypatch.setitem(sys.modules, f"{room.__name__}.{name}", None)  # taken out again at the end
        monkeypatch.delitem(sys.modules, f"{room.__name__}.{name}")
    entry = Problem(
        methods={"greedy": "shoal.problems.pile_methods:greedy"},
        answers=("shoal.problems.piles:Piles",),
        release="shoal.publishing.piled:piles",
        judge="shoal.judge.piles:judge_piles",
        one="record",
        group="pile",
        proofs=("docs/house.md", "Adding something"),
    )
    monkeypatch.setitem(CATALOGUE, "piles", entry)
    return import_module("shoal.problems.piles")


def test_from_the_answer_to_the_file_and_back(piles: Any, tmp_path: Path) -> None:
    people = pl.DataFrame({"who": [f"p{i}" for i in range(11)]})
    people.write_csv(tmp_path / "people.csv")
    release = shoal.release(piles.pile(11, 3), tmp_path / "people.csv", name="who")
    assert release.table["pile"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2]
    out = tmp_path / "piles.csv"
    record = release.write(out)
    assert json.loads(record.read_text())["kind"] == "piles"
    assert shoal.verify(out, original=tmp_path / "people.csv").holds
    assert verify(out, kept(record), tmp_path / "people.csv").holds  # with the record too
    page = release.report(tmp_path / "page.html")
    assert "piles of at least 3 records each" in Path(page).read_text(encoding="utf-8")
    out.write_text(out.read_text().replace("p10,2", "p10,1"))
    assert not shoal.verify(out).holds


def test_what_its_judge_does_not_pass_is_not_written(piles: Any, tmp_path: Path) -> None:
    from dataclasses import replace

    people = pl.DataFrame({"who": [f"p{i}" for i in range(7)]})
    found = piles.pile(7, 3)
    wrong = replace(found, pile=[0, 0, 1, 1, 1, 1, 1])
    with pytest.raises(shoal.VerificationError, match="k = 3"):
        shoal.release(wrong, people, name="who").write(tmp_path / "piles.csv")
    assert not (tmp_path / "piles.csv").exists()
    with pytest.raises(shoal.PolicyError, match="'nmae'"):
        shoal.release(found, people, nmae="who")


def test_its_methods_are_those_of_the_catalogue(piles: Any) -> None:
    assert algorithm("piles", "greedy")(7, 3) == [0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(shoal.PolicyError, match="greedy"):
        piles.pile(7, 3, method="greed")
