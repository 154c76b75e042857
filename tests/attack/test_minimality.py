"""Minimality and downcoding: by hand, planted releases, and chance."""

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.attacks.minimality import claimed, claims
from shoal.attacks.reading import People, read, unwritten
from shoal.problems.tables.methods import minimality_merge
from tests.attack.test_attack import by_name, leaning, people, published


def test_a_hidden_pair_had_one_value_by_hand() -> None:
    """Two people of a=1 are hidden at k = l = 2 though two could stand plainly: both had x."""
    plain = {"a": [str(4 + i // 2) for i in range(80)], "s": ["x", "y"] * 40}  # none of forty pairs is hidden
    release = pl.DataFrame({"a": ["*", "*", "*", "*", *plain["a"]], "s": ["x", "x", "y", "z", *plain["s"]]})
    table = pl.DataFrame({"a": ["1", "1", "2", "3", *plain["a"]], "s": ["x", "x", "y", "z", *plain["s"]]})
    found = shoal.attack(release, table, quasi_identifiers=["a"], sensitive=["s"], k=2, l=2)
    claims = by_name(found)["minimality, s, claims of 0.8 and more"]
    assert claims.figure == 1.0
    assert claims.people == 2
    above = by_name(found)["minimality, s, above 1/l"]
    assert above.figure == 1.0
    assert above.details["share_of_the_people"] == pytest.approx(2 / 84)
    assert above.details["people_for_whom_minimality_is_informative"] == 2
    assert above.details["posterior_of_the_truth"] > 0.9
    assert above.details["rate_of_hiding_a_tuple_without_need"] < 0.05


def test_minimal_release_at_two_is_found() -> None:
    table = leaning()
    release = published(table, quasi_identifiers=["age", "town"], k=2)
    found = by_name(shoal.attack(release, table))
    above = found["minimality, disease, above 1/l"]
    assert above.gain
    assert above.figure > 0.5
    assert above.details["posterior_of_the_truth"] > above.details["posterior_of_the_truth_by_compatible_rows"]


def test_posteriors_are_as_often_right_as_they_say() -> None:
    """Claims above 1/2 are right in more than half, and the mean posterior of the truth is that of a calibrated one."""
    table = people(6000, 7, chance=True)
    release = published(table, k=2)
    found = by_name(shoal.attack(release, table))
    above = found.get("minimality, disease, above 1/l")
    assert above is not None
    assert above.figure > 0.4


def test_downcoding_sees_what_goes_with_a_hidden_cell() -> None:
    rng = np.random.default_rng(3)
    n = 4000
    town = rng.integers(0, 8, n)
    street = town * 10 + rng.integers(0, 3, n)  # a street lies in one town
    table = pl.DataFrame({"street": [f"s{s}" for s in street], "town": [f"t{t}" for t in town]})
    hidden = rng.random(n) < 0.3
    release = table.with_columns(pl.when(pl.Series(hidden)).then(pl.lit("*")).otherwise("town").alias("town"))
    release = release.sample(fraction=1.0, shuffle=True, seed=1)
    found = by_name(shoal.attack(release, table, quasi_identifiers=["street", "town"]))
    bayes = found["downcoding, coarsened cells by naive Bayes"]
    assert bayes.figure == pytest.approx(1.0)
    assert bayes.gain
    assert bayes.baselines["the commonest value of the cell"] < 0.3


def test_values_that_stand_plainly_are_not_what_is_hidden() -> None:
    """Of the towns with sex f, Ulm and Bonn stand plainly: a hidden one would have joined them."""
    plain = [("Ulm", "f")] * 40 + [("Bonn", "f")] * 30 + [("Ulm", "m")] * 40 + [("Kiel", "m")] * 40
    hidden = [("Kiel", "f")] * 12
    table = pl.DataFrame(plain + hidden, schema=["town", "sex"], orient="row")
    release = pl.DataFrame(plain + [("*", "f")] * 12, schema=["town", "sex"], orient="row")
    release = release.sample(fraction=1.0, shuffle=True, seed=1)
    found = by_name(shoal.attack(release, table, quasi_identifiers=["town", "sex"]))
    assert found["downcoding, coarsened cells by naive Bayes and minimality"].figure == pytest.approx(1.0)
    assert found["downcoding, coarsened cells by naive Bayes"].figure == pytest.approx(0.0)


RECODINGS = [
    {},
    {"publish": "ranges", "range_step": {"age": 4}},
    {"publish": "hierarchy", "hierarchies": {"age": "intervals:5,10"}},
]
NAMES = ["age", "town", "sex"]


def alike(n: int = 900) -> pl.DataFrame:
    """People of one town have like diseases."""
    rng = np.random.default_rng(n)
    age, town, sex = rng.integers(20, 50, n), rng.integers(0, 6, n), rng.integers(0, 2, n)
    own = np.where(rng.random(n) < 0.45, town, rng.integers(0, 9, n))
    return pl.DataFrame({"age": age, "town": [f"t{t}" for t in town], "sex": [f"s{s}" for s in sex],
                         "disease": [f"d{d}" for d in own]})  # fmt: skip


@pytest.mark.parametrize("more", RECODINGS)
def test_a_release_is_read_before_it_is_written_as_it_is_after(more: dict[str, object]) -> None:
    table = alike()
    release = shoal.anonymize(table, quasi_identifiers=NAMES, sensitive=["disease"], k=2, l=2, effort="fast", seed=1,
                              **more)  # fmt: skip
    made = release._placement.losses.view()
    early = unwritten(made.histogram, made.recoding, made.partition, 2, 2.0)
    trees = {"age": release.policy.hierarchies["age"]} if "hierarchies" in more else {}
    late = read(release.table, NAMES, ["disease"], [table], trees, release.facts.stars, 2, 2.0)
    people = np.repeat(made.histogram.quasi, made.histogram.count, axis=0)
    told = [
        claims(early, People(people, {}), "disease"),
        claims(late, late.people(table), "disease"),
    ]
    after = [np.sort(t.after[t.informative].max(axis=1)) for t in told]
    assert after[0].size > 5
    assert after[0] == pytest.approx(after[1])
    found = by_name(shoal.attack(release, table))["minimality, disease, above 1/l"]
    pairs = claimed(made.histogram, made.recoding, made.partition, 0.5 + 1e-9, [(2, 2.0)])
    over = told[0].informative & (told[0].after.max(axis=1) > 0.5 + 1e-9)
    assert (np.unique(pairs[:, 0]).size, told[0].people[over].sum()) == (over.sum(), found.people)


@pytest.mark.parametrize("more", RECODINGS)
def test_with_minimality_the_attack_claims_nothing(more: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    table = alike()
    asked = {"quasi_identifiers": NAMES, "sensitive": ["disease"], "k": 2, "l": 2, "minimality": 0.5, "effort": "fast",
             "seed": 1, "secret": b"sixteen bytes or more", **more}  # fmt: skip
    release = shoal.anonymize(table, **asked)
    kept = release.certificate.details["minimality"]
    assert kept["claims_left"] == 0
    assert release.certificate.cost >= kept["cost_before_the_attack"]
    assert by_name(shoal.attack(release, table))["minimality, disease, above 1/l"].people == 0
    monkeypatch.setattr(minimality_merge, "unclaimed", lambda histogram, recoding, partition, *rest: (partition, None))
    before = shoal.anonymize(table, **asked)
    found = by_name(shoal.attack(before, table))["minimality, disease, above 1/l"]
    assert (found.people > 0) == (more.get("publish") != "ranges")  # these leave few claims in any case


@pytest.mark.parametrize("kind", ["release", "path", "by hand"])
def test_the_promise_of_a_column_is_its_own(kind: str, tmp_path) -> None:
    """A column without a promised l is no claim above 1/l, though another column promises one."""
    table = people(200, 3).with_columns(b=pl.Series(["x", "y", "x", "x"] * 50))
    models = [shoal.KAnonymity(3), shoal.LDiversity(2, "disease"), shoal.AlphaKAnonymity(0.95, 1, "b")]
    quasi = [n for n in table.columns if n not in ("disease", "b")]
    release = shoal.anonymize(
        table, quasi_identifiers=quasi, sensitive=["disease", "b"], privacy=models, publish="stars", effort="fast"
    )
    release.write(tmp_path / "r.csv")
    if kind == "by hand":
        found = shoal.attack(release.table, table, quasi_identifiers=quasi, sensitive=["disease", "b"], k=3, l=2)
    else:
        found = shoal.attack(release if kind == "release" else tmp_path / "r.csv", table)
    claimed_of = {f.name.split(",")[0]: f.promise for f in found.findings if f.attack == "minimality"}
    assert claimed_of == ({"disease": 0.5, "b": 0.5} if kind == "by hand" else {"disease": 0.5})
    assert found.l == 2
