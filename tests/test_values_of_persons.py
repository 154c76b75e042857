"""Models of a sensitive column beside ``person``: a person counts once for each value it has in a class."""

import json
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError
from shoal.model.arguments import Effort
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import OfPersons, requirement
from shoal.model.recoding import Recoding
from shoal.model.task import Task
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.separate import merged
from tests.commands import run
from tests.kept import failing, forge, holding, kept, verify
from tests.oracles.models import meets
from tests.oracles.tables import partitions

ASKED = {
    "l": (2, "LDiversity", {"l": 2}),
    "alpha_k": ((0.6, 2), "AlphaKAnonymity", {"alpha": 0.6, "k": 2}),
    "entropy_l": (1.75, "EntropyLDiversity", {"l": 1.75}),
    "recursive_cl": ((1.5, 2), "RecursiveLDiversity", {"c": 1.5, "l": 2}),
    "t": (0.3, "TCloseness", {"t": 0.3, "distance": "equal"}),
    "t_ordered": (0.25, "TCloseness", {"t": 0.25, "distance": "ordered"}),
    "beta": (0.5, "BetaLikeness", {"beta": 0.5, "enhanced": True}),
    "delta": (1.1, "DeltaDisclosure", {"delta": 1.1}),
    "simultaneous_l": (2, "SimultaneousLDiversity", {"l": 2}),
}
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from("uvw"), st.integers(0, 4)), min_size=2, max_size=6
)


def holds(name, rows, table):
    """Whether a class meets the model of a keyword, by its definition: rows (a, b, value, person)."""
    _, model, parameters = ASKED[name]
    codes = {v: i for i, v in enumerate(sorted({r[2] for r in table}))}
    own, whole = ([(codes[v], who) for v, who in sorted({(r[2], r[3]) for r in part})] for part in (rows, table))
    if name == "simultaneous_l":  # pairwise different, in who they are as well
        return meets(model, parameters, own, whole)
    persons, most = len({r[3] for r in rows}), max(Counter(v for v, _ in own).values())
    if name == "l":
        return parameters["l"] * most <= persons
    if name == "alpha_k":
        return persons >= parameters["k"] and 10 * most <= round(10 * parameters["alpha"]) * persons
    return meets(model, parameters, [(v,) for v, _ in own], [(v,) for v, _ in whole])


def fewest_stars(name, rows, k):
    """The least stars of all releases whose classes hold; None where there is none.  Exponential."""
    best = None
    for places in partitions(len(rows)):
        groups = [[rows[i] for i in place] for place in places]
        classes = defaultdict(list)
        for g in groups:
            classes[tuple("*" if len({r[j] for r in g}) > 1 else g[0][j] for j in (0, 1))] += g
        if all(len({r[3] for r in g}) >= k and holds(name, g, rows) for g in classes.values()):
            stars = sum(shown.count("*") * len(g) for shown, g in classes.items())
            best = stars if best is None else min(best, stars)
    return best


@pytest.mark.parametrize("name", ASKED)
@settings(deadline=None, max_examples=15)
@given(rows=ROWS, k=st.integers(1, 2), effort=st.sampled_from(["fast", "balanced"]))
def test_every_class_holds_and_no_bound_is_above_the_optimum(name, rows, k, effort):
    table = pl.DataFrame([(*r, i) for i, r in enumerate(rows)], schema=["a", "b", "s", "who", "tag"], orient="row")
    asked = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "insensitive": ["tag"], "person": "who", "seed": 1}
    best, whole = fewest_stars(name, rows, k), len({r[3] for r in rows}) >= k and holds(name, rows, rows)
    try:
        release = shoal.anonymize(table, **asked, k=k, effort=effort, **{name: ASKED[name][0]})
    except InfeasibleError:
        assert not whole  # a release of one class is always found
        return
    assert best is not None
    classes = defaultdict(list)
    for a, b, tag in release.table.select("a", "b", "tag").iter_rows():
        classes[a, b].append(rows[tag])
    assert all(len({r[3] for r in g}) >= k and holds(name, g, rows) for g in classes.values())
    stars = release.table.select("a", "b").null_count().sum_horizontal().item()
    assert release.certificate.lower_bound <= best <= stars == release.certificate.cost


@pytest.mark.parametrize("name", [n for n in ASKED if n != "simultaneous_l"])
@settings(deadline=None, max_examples=40)
@given(rows=ROWS)
def test_audit_counts_a_value_of_a_person_once(name, rows):
    assume(len({r[2] for r in rows}) > 1)
    table = pl.DataFrame(rows, schema=["a", "b", "s", "who"], orient="row")
    classes = defaultdict(list)
    for r in rows:
        classes[r[:2]].append(r)
    expected = all(holds(name, g, rows) for g in classes.values())
    found = shoal.audit(table, quasi_identifiers=["a", "b"], sensitive=["s"], person="who", **{name: ASKED[name][0]})
    assert [c.passes for c in found.checks if c.asked.get("counted") == "who"] == [expected]


def test_a_union_of_two_good_groups_may_be_a_bad_one():
    """A has flu, C a cold: l = 2; B has flu, C a cold: l = 2; of A, B and C two have flu."""
    flu, cold, a, b, c = 0, 1, 0, 1, 2
    histogram = Histogram.from_rows([0, 0, 1, 1], np.array([[flu, a], [cold, c], [flu, b], [cold, c]]),
                                    sensitive_names=["ill", "who"])  # fmt: skip
    model = OfPersons(shoal.LDiversity(2), "who", column="ill")
    need = requirement([model], histogram.sensitive_names, histogram)
    cells, once = np.arange(4), np.ones(4, np.int64)
    assert groups_that_meet(histogram, need, cells, np.array([0, 0, 1, 1]), once, 2).all()
    assert not groups_that_meet(histogram, need, cells, np.zeros(4, np.int64), once, 1).any()
    assert not need.closed
    rows = pl.DataFrame({"ward": [0, 0, 1, 1], "ill": ["flu", "cold"] * 2, "who": list("acbc")})
    asked = {"quasi_identifiers": ["ward"], "sensitive": ["ill"], "person": "who", "l": 2}
    release = shoal.anonymize(rows, **asked, k=1, seed=1)
    assert (release.loss["stars"], release.audit.classes) == (0, 2)
    with pytest.raises(InfeasibleError, match=r"all rows as one group reach 1\.5 of ill, so l=1 can be met"):
        shoal.anonymize(rows, **asked, k=3, seed=1)  # the two wards have to be one


def stays():
    """Sixty patients in three wards; every fourth comes again, and again with the same complaint."""
    ills = ["asthma", "cough", "flu", "gout"]
    rows = [(i % 3, 30 + i % 4, ills[(i * 7) % 4], f"p{i}", f"h{i // 2}") for i in range(60)]
    rows += [(w, a, s, p, h) for w, a, s, p, h in rows[::4] for _ in range(3)]
    return pl.DataFrame(rows, schema=["ward", "age", "ill", "patient", "home"], orient="row")


FLAGS = {
    "l": "2", "alpha_k": "0.6,2", "entropy_l": "1.75", "recursive_cl": "1.5,2", "t": "0.35", "t_ordered": "0.3",
    "t_hierarchical": "0.3", "beta": "1.0", "delta": "1.5", "simultaneous_l": "2",
}  # fmt: skip
LEVEL = {"alpha_k": "alpha", "recursive_cl": "recursive_c", "t_ordered": "t", "t_hierarchical": "t"}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_policy_certificate_and_verify(name, tmp_path):
    path, out = tmp_path / "stays.csv", tmp_path / "out.csv"
    stays().write_csv(path)
    (tmp_path / "ill.csv").write_text("asthma;lungs\ncough;lungs\nflu;lungs\ngout;joints\n")
    columns = ["--quasi", "ward,age", "--sensitive", "ill", "--person", "patient", "--household", "home"]
    flags = ["--k", "3", f"--{name.replace('_', '-')}", FLAGS[name], "--effort", "fast", "--seed", "1", "--json"]
    tree = ["--hierarchy", f"ill={tmp_path / 'ill.csv'}"] if name == "t_hierarchical" else []
    told = run("anonymize", path, *columns, *flags, *tree, "-o", out).facts
    assert LEVEL.get(name, name) in told["privacy"]
    assert pl.read_csv(out).columns == ["ward", "age", "ill"]
    for original in (None, path):
        holding(verify(out, None, original))
    asked = {"hierarchies": {"ill": tmp_path / "ill.csv"}} if tree else {}
    again = shoal.anonymize(path, shoal.Policy.read(tmp_path / "out.certificate.json", **asked), engine="duckdb")
    assert again.certificate.cost == told["certificate"]["cost"]
    assert {c.asked["counted"] for c in again.audit.checks if "counted" in c.asked} == {"patient", "home"}


@pytest.mark.parametrize(("name", "worse"), [("l", 1.5), ("t", 0.9)])
def test_verify_looks_at_what_is_stated_of_persons(name, worse, tmp_path):
    asked = {"quasi_identifiers": ["ward", "age"], "sensitive": ["ill"], "person": "patient"}
    number = {"l": 2, "t": 0.35}[name]
    beside = kept(shoal.anonymize(stays(), **asked, k=3, seed=1, **{name: number}).write(tmp_path / "out.csv"))
    record = json.loads(beside.read_text())
    assert record["persons"] == {"patient": record["persons"]["patient"]}
    forge(beside, lambda facts: facts["privacy"].update({name: worse}))
    assert failing(verify(tmp_path / "out.csv", beside)) == ["persons"]


WAYS = {
    "levels": {"global_recoding": True, "publish": "hierarchy", "hierarchies": {"ward": "labels", "age": "intervals"}},
    "shards": {"shards": 2},
    "ranges": {"publish": "ranges"},
    "coarsen": {"coarsen": "auto", "publish": "hierarchy", "hierarchies": {"ward": "labels", "age": "intervals"}},
    "apart": {"missing": "apart"},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_publish(way):
    table = stays()
    if way == "apart":
        table = table.with_columns(age=pl.when(pl.col("ward") > 0).then("age"))
    asked = {"quasi_identifiers": ["ward", "age"], "sensitive": ["ill"], "person": "patient", "k": 3, "l": 3, "seed": 1}
    release = shoal.anonymize(table, **asked, **WAYS[way])
    assert [c.level >= 3 for c in release.audit.checks if c.short == "l"] == [True]


@pytest.mark.parametrize("method", ["global_recoding", "top_down"])
def test_what_all_rows_as_one_group_reach_is_said_by_methods_of_levels(method):
    table = pl.DataFrame({"a": ["0", "1", "2", "0"], "s": ["u", "u", "v", "u"], "w": [1, 2, 3, 4]})
    tree = {"a": [["0", "low"], ["1", "low"], ["2", "high"]]}
    asked = {"quasi_identifiers": ["a"], "sensitive": ["s"], "person": "w", "publish": "hierarchy", "seed": 1}
    with pytest.raises(
        InfeasibleError,
        match=r"^s 'u' is held by 3 persons, .* number 1, too few for this l by 'w'; .* largest l possible is 1",
    ):
        shoal.anonymize(table, **asked, hierarchies=tree, k=2, l=2, method=method)


@settings(deadline=None, max_examples=40)
@given(rows=ROWS, publish=st.sampled_from(["stars", "hierarchy"]))
def test_rows_changed_are_counted_where_they_are_the_cost(rows, publish):
    table = pl.DataFrame([(str(a), str(b), s, w, i) for i, (a, b, s, w) in enumerate(rows)],
                         schema=["a", "b", "s", "who", "tag"], orient="row")  # fmt: skip
    tree = {"a": [["0", "low"], ["1", "low"], ["2", "high"]]} if publish == "hierarchy" else {}
    asked = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "insensitive": ["tag"], "person": "who", "seed": 1}
    try:
        release = shoal.anonymize(table, **asked, k=1, l=2, publish=publish, hierarchies=tree, method="three_phase")
    except InfeasibleError:
        return
    changed = sum((a, b) != (str(rows[tag][0]), str(rows[tag][1]))
                  for a, b, tag in release.table.select("a", "b", "tag").iter_rows())  # fmt: skip
    assert release.certificate.unit == "suppressed tuples"
    assert release.certificate.cost == changed


def crowded():
    """Cells of (ward, ill, who) and a group for each: ward 0 fails as one class, and holds without its first group."""
    one, two, three = [(0, 0, 1), (0, 1, 2)], [(0, 1, 1), (0, 0, 3)], [(0, who % 2, who) for who in range(6, 16)]
    groups = [one, two, three, [(1, 0, 4), (1, 1, 5)]]
    label = np.repeat(np.arange(4), [len(rows) for rows in groups])
    return np.array([cell for rows in groups for cell in rows]), label


def test_a_class_that_fails_gives_up_a_group_and_not_all_its_rows() -> None:
    cells, label = crowded()
    histogram = Histogram.from_rows(cells[:, :1], cells[:, 1:], sensitive_names=["ill", "who"])
    need = requirement([OfPersons(shoal.LDiversity(2), "who", column="ill")], histogram.sensitive_names, histogram)
    key = {tuple(cell): number for number, cell in enumerate(np.column_stack([histogram.quasi, histogram.sensitive]))}
    place = np.array([key[tuple(cell)] for cell in cells])
    task = Task(histogram, need, Recoding.stars(histogram), Effort.of("fast"))
    once = np.ones(place.size, np.int64)
    assert groups_that_meet(histogram, need, place, label, once, 4).all()
    assert not groups_that_meet(histogram, need, place, cells[:, 0], once, 2)[0]
    made = merged(task, Partition.of(place, label, once))
    assert groups_that_meet(histogram, need, made.cell, made.group, made.count, made.groups).all()
    assert sorted(made.sizes.tolist()) == [4, 12]
    assert task.recoding.cost(histogram, made) == 4  # 16 where all of ward 0 joined ward 1
