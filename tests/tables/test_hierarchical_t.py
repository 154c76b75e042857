"""t-closeness by the hierarchical distance, from the request to the bytes written and read again."""

import json
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError, PolicyError
from shoal.judge.tables.privacy import judge
from shoal.model.hierarchy import Hierarchy
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement, Rule, TreeCloseness, requirement
from shoal.problems.tables.groups import groups_that_meet
from shoal.publishing.verifying.verify import verify
from tests.data import drawn
from tests.oracles.models import carried

ILLS = {
    "lung": {"cold": ["flu", "cough"], "deep": ["asthma"]},
    "belly": {"stomach": ["ulcer", "gastritis"], "gut": ["colitis"]},
}
VALUES = ["flu", "cough", "asthma", "ulcer", "gastritis", "colitis"]
NODE = [list(range(6)), [0, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 1], [0] * 6]
QUASI = ["age", "zip"]


def people(n: int = 160) -> pl.DataFrame:
    ills = dict(zip(VALUES, [0.35, 0.2, 0.15, 0.1, 0.1, 0.1], strict=True))
    return drawn(n, 5, age=(20, 60), zip=["94110", "94117", "94704"], ill=ills)


def farthest(table: pl.DataFrame) -> float:
    """The largest distance of a class: half the sums over the classes of every level, in fractions."""
    code = {v: i for i, v in enumerate(VALUES)}
    rows = [(tuple(r[:-1]), code[r[-1]]) for r in table.select(*QUASI, "ill").rows()]
    whole = Counter(v for _, v in rows)
    held: dict = {}
    for shown, v in rows:
        held.setdefault(shown, Counter())[v] += 1

    def apart(own: Counter) -> Fraction:
        total = Fraction(0)
        for level in NODE[:-1]:
            for c in set(level):
                p = Fraction(sum(x for v, x in own.items() if level[v] == c), own.total())
                total += abs(p - Fraction(sum(x for v, x in whole.items() if level[v] == c), whole.total()))
        return total / 6

    return float(max(apart(own) for own in held.values()))


COUNTS = st.lists(st.integers(0, 3), min_size=6, max_size=6)


@settings(deadline=None, max_examples=150)
@given(COUNTS, COUNTS)
def test_model_and_judge_say_what_an_assignment_costs(one: list[int], other: list[int]) -> None:
    table = pl.DataFrame(
        [(g, VALUES[v]) for g, held in enumerate((one, other)) for v, n in enumerate(held) for _ in range(n)],
        schema={"q": pl.Int64, "ill": pl.String},
        orient="row",
    )
    if not table.height:
        return
    whole = np.add(one, other)
    model = TreeCloseness(0.5, tuple(map(tuple, NODE)))
    exact = []
    for held in (np.array(one), np.array(other)):
        if held.sum():
            counts = [Counter({v: int(n) for v, n in enumerate(x) if n}) for x in (held, whole)]
            exact.append(float(carried(*counts, NODE)))
            assert model.level(held, whole) == pytest.approx(exact[-1], abs=1e-12)
    found = judge(table, ["q"], ["ill"], trees={"ill": Hierarchy.of(ILLS)}).sensitive["ill"]
    assert found.t_hierarchical == pytest.approx(max(exact), abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.sampled_from([0.05, 0.1, 0.2, 0.35, 0.6]))
def test_what_follows_for_size_share_and_values_holds_of_every_eligible_group(whole: list[int], t: float) -> None:
    table = np.array(whole)
    if not table.sum():
        return
    model = TreeCloseness(t, tuple(map(tuple, NODE)))
    implied = model.implied(table)
    every = [np.array(held) for held in product(*(range(4 if n else 1) for n in whole)) if sum(held)]
    good = [model.holds(held, table) for held in every]
    for held in (h for h, met in zip(every, good, strict=True) if met):
        assert held.sum() >= implied.size
        assert held.max() * implied.share <= held.sum()
        assert (held > 0).sum() >= implied.distinct
    # the compiled question about each of these groups, a cell for every value
    size = int(np.flatnonzero(table)[-1]) + 1
    cells = Histogram.from_rows(np.zeros(size, int), np.arange(size))
    bound = TreeCloseness(t, tuple(tuple(level[:size]) for level in NODE))
    need = Requirement(1, (1,), (1,), (Rule(bound, (0,), tuple(whole[:size])),))
    count = np.concatenate([held[:size] for held in every])
    at = np.arange(count.size)
    assert groups_that_meet(cells, need, at % size, at // size, count, len(every)).tolist() == good


@pytest.mark.parametrize(
    "more", [{}, {"publish": "ranges"}, {"publish": "hierarchy", "global_recoding": True}, {"publish": "centers"}]
)
def test_every_class_of_a_release_is_within_t(more: dict) -> None:
    trees = {"ill": ILLS, "zip": "prefixes:4,3"} if more.get("publish") == "hierarchy" else {"ill": ILLS}
    release = shoal.anonymize(
        people(), quasi_identifiers=QUASI, sensitive=["ill"], k=3, t_hierarchical=0.15, hierarchies=trees, seed=2,
        effort="fast", **more,
    )  # fmt: skip
    assert farthest(release.table) <= 0.15 + 1e-9
    assert release.audit.sensitive["ill"].t_hierarchical == pytest.approx(farthest(release.table))
    assert release.audit.classes > 1
    assert release.privacy()["t"] == pytest.approx(farthest(release.table))


def test_values_that_are_near_may_stand_in_for_each_other() -> None:
    table = pl.DataFrame({"q": [0, 0, 1, 1], "ill": ["flu", "ulcer", "cough", "gastritis"]})
    asked = {"quasi_identifiers": ["q"], "sensitive": ["ill"], "seed": 1}
    assert shoal.anonymize(table, t=0.2, **asked).audit.classes == 1
    near = shoal.anonymize(table, t_hierarchical=0.2, hierarchies={"ill": ILLS}, **asked)
    assert near.audit.classes == 2
    assert near.audit.sensitive["ill"].t_hierarchical == pytest.approx(1 / 6)  # half the rows one step of three


def test_a_missing_value_is_far_from_all_others_and_numbers_are_found_as_written() -> None:
    tree = Hierarchy.from_rows([["1", "low"], ["2", "low"], ["3", "high"]])
    table = pl.DataFrame({"q": [0, 0, 1, 1], "s": [1, 3, 2, None]})
    found = shoal.audit(table, quasi_identifiers=["q"], sensitive=["s"], hierarchies={"s": tree}).sensitive["s"]
    assert found.t_hierarchical == pytest.approx(0.5 - 0.25 / 2)  # 3 to missing whole way, 1 to 2 half the way
    floats = table.with_columns(pl.col("s").cast(pl.Float64))
    assert shoal.audit(
        floats, quasi_identifiers=["q"], sensitive=["s"], hierarchies={"s": tree}
    ).sensitive["s"].t_hierarchical == found.t_hierarchical  # fmt: skip


def test_another_hierarchy_is_not_the_one_certified(tmp_path: Path) -> None:
    out, beside, tree = tmp_path / "out.csv", tmp_path / "out.certificate.json", tmp_path / "ill.csv"
    rows = [(v, low, high) for high, below in ILLS.items() for low, values in below.items() for v in values]
    tree.write_text("".join(f"{';'.join(row)};*\n" for row in rows))
    asked = {"quasi_identifiers": QUASI, "sensitive": ["ill"], "t_hierarchical": 0.2, "hierarchies": {"ill": str(tree)}}
    shoal.anonymize(people(), **asked, k=3, seed=1, effort="fast").write(out)
    assert len(json.loads(beside.read_text())["hierarchies"]["ill"]["sha256"]) == 64
    verdict = verify(out, beside, hierarchies={"ill": {"all": {"x": VALUES[:3]}, "else": {"y": VALUES[3:]}}})
    assert {f.check for f in verdict.findings if not f.holds} >= {"hierarchy of ill", "levels"}
    tree.unlink()
    with pytest.raises(InputError, match=r"hierarchy of 'ill'.*neither next to"):
        verify(out, beside)


REFUSED = [
    ({}, {}, "needs the hierarchy of 'ill'"),
    ({}, {"ill": "labels"}, "'labels' is made from counts"),
    ({}, {"ill": {"lung": ["flu", "cough"]}}, "does not cover [0-9]+ of the column's values"),
    ({}, {"ill": [["flu", "lung"], ["cough"]]}, "2 fields in row 1 and 1 in row 2; fill the gaps"),
    ({"t_hierarchical": 1.5}, {"ill": ILLS}, "from 0 to 1"),
    ({"publish": "hierarchy"}, {"ill": ILLS}, "at least one quasi-identifier"),
    ({"sensitive": []}, {}, "needs a sensitive column, and none is given"),
]


@pytest.mark.parametrize(("more", "trees", "says"), REFUSED)
def test_bad_requests_get_one_sentence(more: dict, trees: dict, says: str) -> None:
    asked = {"quasi_identifiers": QUASI, "sensitive": ["ill"], "t_hierarchical": 0.2, "hierarchies": trees} | more
    with pytest.raises(PolicyError, match=says) as error:
        shoal.anonymize(people(20).drop(*(["ill"] if more.get("sensitive") == [] else [])), **asked)
    assert "asthma" not in str(error.value)


def test_arrays_are_asked_by_the_bound_model() -> None:
    histogram = Histogram.from_rows(np.array([[0], [0], [1], [1]]), np.array([0, 3, 1, 4]))
    node = tuple(tuple(level[:5]) for level in NODE)
    found = shoal.tables.group(histogram, [TreeCloseness(0.2, node)], seed=1)
    assert found.certificate.cost == 0
    with pytest.raises(PolicyError, match="of 6 values"):
        shoal.tables.group(histogram, [TreeCloseness(0.2, tuple(map(tuple, NODE)))], seed=1)
    with pytest.raises(PolicyError, match="needs the hierarchy"):
        requirement([shoal.TCloseness(0.2, "hierarchical")], histogram.sensitive_names, histogram)
