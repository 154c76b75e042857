"""Several rows per person: k counts persons, and the column that names them leaves the table."""

import tomllib
from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError
from tests.commands import run

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from("uvw"), st.integers(0, 5)), min_size=1, max_size=14
)


def frame(rows):
    """quasi-identifiers a and b, a diagnosis, the person, and a carried tag that says which row it is."""
    return pl.DataFrame([(*r, i) for i, r in enumerate(rows)], schema=["a", "b", "s", "person", "tag"], orient="row")


def persons_by_class(table, release):
    """Set of persons of every published class, rows found again by their tag."""
    who = dict(table.select("tag", "person").iter_rows())
    found = defaultdict(set)
    for a, b, tag in release.select("a", "b", "tag").iter_rows():
        found[a, b].add(who[tag])
    return found


ASKED = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "insensitive": ["tag"], "person": "person", "seed": 1}


@settings(deadline=None, max_examples=40)
@given(rows=ROWS, k=st.integers(1, 4), u=st.integers(1, 2), effort=st.sampled_from(["fast", "balanced"]))
def test_every_class_has_k_persons(rows, k, u, effort):
    table = frame(rows)
    people, values = len({r[3] for r in rows}), len({r[2] for r in rows})
    if people < k or values < u:
        with pytest.raises(InfeasibleError):
            shoal.anonymize(table, **ASKED, k=k, distinct_l=u, effort=effort)
        return
    release = shoal.anonymize(table, **ASKED, k=k, distinct_l=u, effort=effort)
    assert "person" not in release.table.columns
    classes = persons_by_class(table, release.table)
    assert min(map(len, classes.values())) == release.facts.persons.fewest["person"] >= k
    assert release.audit.k >= k
    assert release.table["s"].sort().to_list() == table["s"].sort().to_list()
    assert release.loss["stars"] == (release.table.select("a", "b").null_count().sum_horizontal().item())


@settings(deadline=None, max_examples=40)
@given(rows=ROWS, k=st.integers(1, 3))
def test_audit_counts_persons(rows, k):
    table = frame(rows)
    found = defaultdict(set)
    for a, b, _, person in rows:
        found[a, b].add(person)
    fewest = min(map(len, found.values()))
    audit = shoal.audit(table, quasi_identifiers=["a", "b"], person="person", k=k)
    assert audit.persons == {"person": fewest}
    assert [c.passes for c in audit.checks if c.column == "person"] == [fewest >= k]
    plain = shoal.audit(table, quasi_identifiers=["a", "b"], person="person")
    assert plain.persons == {"person": fewest}
    assert not plain.checks


def patients():
    """Thirty patients of one ward and year, three of whom come again and again."""
    rows = [(i % 3, 40 + i % 5, f"p{i}") for i in range(30)] + [(i % 3, 44 + i, f"p{i}") for i in range(3)] * 6
    return pl.DataFrame(rows, schema=["ward", "age", "patient_id"], orient="row")


def test_what_cannot_be_counted_is_refused():
    table = patients()
    asked = {"quasi_identifiers": ["ward"], "person": "patient_id"}
    with pytest.raises(InputError, match="does not name a person in every row"):
        shoal.anonymize(
            table.with_columns(pl.when(pl.col("age") > 43).then("patient_id").alias("patient_id")), **asked, k=2
        )
    unnamed = table.with_columns(pl.when(pl.col("age") > 43).then("patient_id").alias("patient_id"))
    told = shoal.audit(unnamed, **asked, k=2).notes
    rows = unnamed["patient_id"].null_count()
    assert any(f"'patient_id' has no value in {rows} rows" in note for note in told)
    assert not shoal.audit(table, **asked, k=2).notes
    with pytest.raises(PolicyError, match="one role"):
        shoal.anonymize(table, quasi_identifiers=["patient_id"], person="patient_id", k=2)
    with pytest.raises(InfeasibleError, match="patient_id has 30 different values"):
        shoal.anonymize(table, **asked, k=31)


def test_init_writes_the_person_into_a_policy_that_runs(tmp_path):
    table = patients()
    asked = table.with_columns(diagnosis=pl.Series(["flu", "gout", "acne", "flu"] * 12))
    asked.write_csv(tmp_path / "patients.csv")
    assert run("init", tmp_path / "patients.csv", "--k", 3, cwd=tmp_path).returncode == 0
    policy = tmp_path / "patients.policy.toml"
    assert 'if it identifies persons, person = "patient_id" makes k count persons' in policy.read_text()
    written = tomllib.loads(policy.read_text())
    assert (written["person"], written["sensitive"]) == ("patient_id", ["diagnosis"])
    assert not {"l", "distinct_l"} & set(written)  # 17 of the 30 persons have the flu, so that l = 2 cannot be met
    assert written["privacy"] == [{"model": "AlphaKAnonymity", "alpha": 0.75, "k": 1, "column": "diagnosis"}]
    done = run("anonymize", tmp_path / "patients.csv", "--policy", policy, "--json")
    assert done.facts["persons"]["patient_id"] >= 3


@pytest.mark.parametrize(
    "names",
    [[f"p{i}" for i in range(38)] + ["p0", "p1"], [f"p{i % 20}" for i in range(39)] + [None]],
    ids=["two namesakes", "a row of nobody"],
)
def test_init_leaves_out_a_person_that_a_row_lacks_or_that_are_namesakes(tmp_path, names):
    table = pl.DataFrame({"age": [20 + i % 4 for i in range(40)], "patient_id": names})
    table.write_csv(tmp_path / "t.csv")
    assert run("init", tmp_path / "t.csv", "--k", 3, cwd=tmp_path).returncode == 0
    policy = tomllib.loads((tmp_path / "t.policy.toml").read_text())
    assert "person" not in policy
    assert policy["identifiers"] == ["patient_id"]


def test_verify_states_that_k_counts_persons_and_which_models_do_too(tmp_path):
    stays = pl.DataFrame(
        {"ward": ["a"] * 4 + ["b"] * 6, "patient": [1, 1, 2, 3, 4, 5, 6, 7, 7, 8], "ill": ["x", "y"] * 5}
    )
    asked = {"quasi_identifiers": ["ward"], "person": "patient", "k": 2, "seed": 1, "effort": "fast"}
    for number, (more, also) in enumerate(
        [
            ({"insensitive": ["ill"]}, ""),
            ({"sensitive": ["ill"], "alpha_k": (0.9, 2)}, "; by persons also: "),
        ]
    ):
        path = tmp_path / f"{number}.csv"
        found = shoal.verify(path, shoal.anonymize(stays, **asked, **more).write(path))
        (said,) = (f for f in found.findings if f.check == "persons")
        assert said.how == "stated"
        assert said.found.startswith(
            "k counts 'patient', removed from the release; the private record states how many" + also
        )
        assert bool(also) == ("by persons also" in said.found)


def test_what_is_asked_by_persons_names_its_columns_once(tmp_path):
    frame = pl.DataFrame(
        {"who": [i // 2 for i in range(48)], "age": [30 + i // 24 for i in range(48)],
         "a": ["x", "y", "z"] * 16, "b": ["u", "v", "w"] * 16}
    )  # fmt: skip
    made = shoal.anonymize(
        frame, quasi_identifiers=["age"], sensitive=["a", "b"], person="who", effort="fast",
        privacy=[shoal.KAnonymity(3), shoal.LDiversity(2, "a"), shoal.LDiversity(2, "b")],
    )  # fmt: skip
    paper = made.write(tmp_path / "r.csv")
    (said,) = (f.found for f in shoal.verify(tmp_path / "r.csv", paper).findings if f.check == "persons")
    assert said.endswith("by persons also: at most 1/2 of every group share a value of 'a', 'b'")
