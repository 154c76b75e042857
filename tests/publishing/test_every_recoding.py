"""A recoding is a file, a line and a reading of the judge's: a toy one goes the whole way."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest

import shoal
from shoal.judge import recodings as judge_recodings
from shoal.model import recoding
from shoal.model.settings import RECODINGS, RecodingEntry
from shoal.problems.catalogue import names
from tests.commands import run
from tests.data import drawn
from tests.kept import holding
from tests.oracles.tables import least_total

TOY = '''
"""Numbers replaced by the highest of the group: "at most 40"; other columns by stars."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.members import Members
from shoal.model.recoding.column import ColumnRecoding, Slot
from shoal.model.recoding.levels import Levels


@dataclass(frozen=True, eq=False, kw_only=True)
class AtMost(ColumnRecoding):
    kind: ClassVar[str] = "highest value"
    shape: ClassVar[str | None] = SHAPE

    @classmethod
    def of_column(cls, size, line, weight):
        return Levels.stars(size, weight) if line() is None else cls(size=size, weight=weight)

    def share(self, code):
        return np.asarray(code) / max(self.size - 1, 1)

    @property
    def pure(self):
        return self.share(np.arange(self.size))

    def join(self, group, code, start):
        return np.maximum.reduceat(code, start), np.full(start.size, -1)

    def lost(self, shown, someone):
        return self.share(shown.first)

    def exact(self, shown):
        return np.zeros(shown.groups, bool)

    def numbers(self, shown):
        return shown.first.astype(np.int64)

    def inside(self, shown, held):
        return np.cumsum(held)[shown.first]

    def members(self, shown, of):
        return np.arange(self.size)[:, None] <= shown.first[of]

    def steps(self):
        return self.share(np.maximum(np.arange(self.size), 1)) if self.size > 1 else np.full(self.size, np.inf)

    def pair(self, first, second):
        return self.share(np.maximum(first, second))

    def beyond(self, present):
        return self.share(np.maximum(np.arange(self.size), np.flatnonzero(present)[0]))

    def ladder(self):
        codes = np.arange(max(self.size, 1))
        return np.stack([codes, np.zeros_like(codes)]), np.stack([self.share(codes), np.ones(codes.size)])

    def slots(self):
        codes = np.arange(self.size, dtype=np.int64)
        return [Slot("line", codes << 32, loss=np.arange(max(self.size, 1)), unit=self.weight * self.share(1))]

    def texts(self, shown, values, labels, star):
        distinct, index = np.unique(shown.first, return_inverse=True)
        texts = [star if values[c] is None else f"at most {values[c]}" for c in distinct.tolist()]
        return index.reshape(-1), texts, [-1] * len(texts)

    @classmethod
    def meanings(cls, texts):
        read = {t: t.removeprefix("at most ") for t in texts}
        return {t: Members(named=frozenset([t])) if v == t else Members(high=float(v), low=-np.inf, ruler="number")
                for t, v in read.items()}
'''
READING = """
import numpy as np

def found(raw, column):
    number = raw.removeprefix("at most ")
    if number == raw or column.values.position is None:
        return None
    high = int(np.searchsorted(column.values.position, float(number), "right")) - 1
    return 0, high, np.zeros(0, np.int64), [high / max(column.values.size - 1, 1)]
"""
TOLD = '= "line"'  # exact methods are told how losses follow
EXACT = ("optimal", "two_anonymity", "halving", "forest")
LEVELS = {
    "global_recoding": "publish='at_most'", "coarsen": "say coarsen", "pattern_cover": "published as highest values",
}  # fmt: skip
ASKED = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "k": 2, "publish": "at_most", "seed": 1}


@pytest.fixture(params=["None", '"line"'], ids=["unknown to exact methods", "known to them"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "judge").mkdir()
    (tmp_path / "at_most.py").write_text(TOY.replace("SHAPE", request.param))
    monkeypatch.setattr(recoding, "__path__", [*recoding.__path__, str(tmp_path)])
    monkeypatch.setattr(judge_recodings, "__path__", [*judge_recodings.__path__, str(tmp_path / "judge")])
    monkeypatch.setitem(RECODINGS, "at_most", RecodingEntry("at_most", "AtMost", "the highest value of a group"))
    for name in ("shoal.model.recoding.at_most", "shoal.judge.recodings.at_most"):
        monkeypatch.setitem(sys.modules, name, None)  # put back, that is taken out again, at the end
        monkeypatch.delitem(sys.modules, name)
    people = drawn(40, 5, age=(20, 32), town=["Ulm", "Bonn", "Kiel"], ill=["flu", "cough", "gout"])
    people.write_csv(tmp_path / "people.csv")
    return tmp_path


def reading(folder: Path) -> None:
    (folder / "judge" / "at_most.py").write_text(READING)


def least(ages: list[int]) -> float:
    """Loss of the best partition into groups of two or more, over every partition."""
    place = {a: i / (len(set(ages)) - 1) for i, a in enumerate(sorted(set(ages)))}
    paid = lambda group: None if len(group) < 2 else len(group) * place[max(ages[i] for i in group)]  # noqa: E731
    return least_total(len(ages), paid) / len(ages)


def test_without_a_reading_of_the_judges_nothing_comes(folder: Path) -> None:
    with pytest.raises(shoal.PolicyError, match="no reading of its own of what is published as 'at_most'"):
        shoal.anonymize(folder / "people.csv", **ASKED)


def test_text_loss_join_and_judge(folder: Path) -> None:
    reading(folder)
    release = shoal.anonymize(folder / "people.csv", **ASKED)
    people, shown = pl.read_csv(folder / "people.csv"), release.table
    ages = people["age"].unique().sort().to_list()
    texts = shown["age"].to_list()
    assert set(texts) <= {f"at most {a}" for a in ages}
    assert min(shown.group_by("age", "town").len()["len"]) >= 2
    lost = [ages.index(int(t.removeprefix("at most "))) / (len(ages) - 1) for t in texts]
    stars = (shown["town"] == "*").sum()
    assert release.facts.cost["ncp"] == pytest.approx((sum(lost) + stars) / (2 * people.height))
    assert release.certificate.lower_bound <= release.certificate.cost
    release.write(folder / "out.csv")
    seen = holding(shoal.verify(folder / "out.csv", original=folder / "people.csv"))
    assert {f.check: f.how for f in seen.findings}["rows match"] == "recomputed"
    record = folder / "out.certificate.json"
    assert json.loads(record.read_text())["policy"]["publish"] == "at_most"
    page = release.report(folder / "page.html")
    assert "the highest value of a group" in Path(page).read_text(encoding="utf-8")


def test_a_row_below_its_class_is_seen(folder: Path) -> None:
    reading(folder)
    release = shoal.anonymize(folder / "people.csv", **ASKED)
    release.write(folder / "out.csv")
    older = pl.read_csv(folder / "people.csv").with_columns(pl.lit(31).alias("age"))
    older.write_csv(folder / "older.csv")
    assert not shoal.verify(folder / "out.csv", original=folder / "older.csv").holds


@pytest.mark.parametrize("ages", [[3, 3, 7, 8, 9, 1], [5, 6, 7, 8, 9], [2, 2, 2, 9, 4, 4]])
def test_the_least_loss_is_found_and_the_bound_is_not_above_it(folder: Path, ages: list[int]) -> None:
    reading(folder)
    asked = ASKED | {"quasi_identifiers": ["age"], "sensitive": []}
    release = shoal.anonymize(pl.DataFrame({"age": ages}), **asked)
    best = least(ages)
    assert release.certificate.cost == pytest.approx(best)
    assert release.certificate.lower_bound <= best + 1e-9


@pytest.mark.diagonal
@pytest.mark.parametrize("method", names("tables"))
def test_a_method_deals_with_it_or_says_that_it_does_not(folder: Path, method: str) -> None:
    reading(folder)
    people = pl.read_csv(folder / "people.csv").head(12)
    asked = ASKED | ({"l": 2} if method == "matching" else {"sensitive": []})
    if method == "matching":
        people = people.with_columns(pl.Series("ill", ["flu", "cough"] * 6))
    people = people.select("age", "town", *asked["sensitive"])
    if method in LEVELS or (method in EXACT and TOLD not in (folder / "at_most.py").read_text()):
        with pytest.raises(shoal.PolicyError, match=LEVELS.get(method, "published as a highest value")):
            shoal.anonymize(people, **asked, method=method)
        return
    release = shoal.anonymize(people, **asked, method=method)
    assert release.audit.passes
    best = shoal.anonymize(people, **asked).certificate
    assert best.lower_bound <= release.certificate.cost + 1e-9
    assert release.certificate.lower_bound <= best.cost + 1e-9


def test_flag_file_exploration_and_decoding(folder: Path) -> None:
    reading(folder)
    words = ["people.csv", "--quasi", "age,town", "--sensitive", "ill"]
    made = run("anonymize", *words, "--k", 2, "--publish", "at_most", "-o", "out.csv", "--json", cwd=folder)
    assert made.facts["rows"] == 40
    assert run("verify", "out.csv", cwd=folder).returncode == 0
    seen = run("explore", *words, "--k", "2,3", "--publish", "stars,at_most", "--json", "--seed", 1, cwd=folder).facts
    assert {p["publish"] for p in seen["points"] if p["reason"] is None} == {"stars", "at_most"}
    (folder / "policy.toml").write_text(
        'quasi_identifiers = ["age", "town"]\nsensitive = ["ill"]\nk = 2\npublish = "at_most"\n'
    )
    assert shoal.anonymize(folder / "people.csv", shoal.Policy.read(folder / "policy.toml")).audit.passes
    high = pl.read_csv(folder / "out.csv")["age"].str.strip_prefix("at most ").cast(pl.Float64)
    assert shoal.decode(folder / "out.csv").numeric(["age"])["age_high"].to_list() == high.to_list()
    with pytest.raises(shoal.PolicyError, match="at_most"):
        shoal.Policy(quasi_identifiers=["age"], k=2, publish="at_least")
    with pytest.raises(shoal.PolicyError, match="'at_most' has none"):
        shoal.Policy(quasi_identifiers=["age"], k=2, publish="at_most", max_level={"age": 1})
