"""Every privacy model as the solvers enforce it, against exhaustive search; ``tools/oracle_models.py`` runs longer."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.histogram import Histogram
from shoal.model.privacy import MODELS, Model, requirement
from shoal.problems.tables import group
from shoal.problems.tables.groups import groups_that_meet
from tests import data
from tests.amount import ALL
from tests.oracles.models import meets
from tools.oracle_models import check, drawn, made


@pytest.mark.parametrize("name", MODELS)
def test_feasible_exact_and_never_above_the_optimum(name: str) -> None:
    wrong = {seed: says for seed in range(15 if ALL else 5) if (says := check(10**6 + seed, name))}
    assert not wrong


ONE_COLUMN = [name for name, model in MODELS.items() if model.applies_to in ("rows", "column")]


def test_a_class_of_too_few_values_for_recursive_diversity_costs_its_rows() -> None:
    own = [(q, s) for q in range(3) for s in [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]]
    rows = np.array([*own, *((3, s) for s in [4, 4, 5, 5, 6, 6, 7, 7, 8, 8])])
    models = [shoal.KAnonymity(5), shoal.RecursiveLDiversity(0.5, 3)]
    found = group(Histogram.from_rows(rows[:, :1], rows[:, 1:]), models, effort="fast", seed=1)
    assert (found.certificate.lower_bound, found.certificate.cost) == (30, 40)


COUNTS = st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=4)


@pytest.mark.parametrize("name", ONE_COLUMN)
@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 10**6), counts=COUNTS)
def test_the_model_and_the_compiled_question_say_what_the_definition_says(name: str, seed: int, counts: list) -> None:
    groups = [[(v,) for v, n in enumerate(c) for _ in range(n)] for c in counts]
    groups = [g for g in groups if g] or [[(0,)]]
    table = [r for g in groups for r in g]
    values = drawn(name, np.random.default_rng(seed))
    histogram = Histogram.from_rows(np.repeat(np.arange(len(groups)), [len(g) for g in groups]), np.array(table))
    model = made(name, values, histogram.sensitive_sizes[0])
    whole = np.bincount([r[0] for r in table])
    expected = [meets(name, values, g, table) for g in groups]
    held = [np.bincount([r[0] for r in g], minlength=whole.size) for g in groups]
    assert [model.holds(h, whole) for h in held] == expected
    need = requirement([model], histogram.sensitive_names, histogram)
    found = groups_that_meet(
        histogram,
        need,
        np.arange(histogram.cells),
        histogram.quasi[:, 0].astype(np.int64),
        histogram.count,
        len(groups),
    )
    assert found.tolist() == expected
    # what follows from a model holds wherever the model does
    implied = model.implied(whole)
    for h, good in zip(held, expected, strict=True):
        if good:
            assert h.sum() >= implied.size
            assert h.max() * implied.share <= h.sum()
            assert (h > 0).sum() >= implied.distinct


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(ONE_COLUMN), st.integers(0, 10**6), COUNTS)
def test_a_union_of_eligible_groups_is_eligible(name: str, seed: int, counts: list) -> None:
    held = [np.array(c) for c in counts if sum(c)] or [np.array([1, 0, 0, 0])]
    whole = np.sum(held, axis=0)
    model = made(name, drawn(name, np.random.default_rng(seed)), whole.size)
    good = [h for h in held if model.holds(h, whole)]
    if good:
        assert model.holds(np.sum(good, axis=0), whole)


def test_ignoring_absent_values_is_not_monotone() -> None:
    whole, model = np.array([4, 4]), shoal.DeltaDisclosure(0.65, "ignored")
    one, other = np.array([2, 2]), np.array([0, 3])
    assert not model.holds(other, whole)  # log 2 = 0.69
    model = shoal.DeltaDisclosure(0.7, "ignored")
    assert model.holds(one, whole)
    assert model.holds(other, whole)
    whole, other = np.array([5, 5]), np.array([0, 5])
    mixed = np.array([1, 2])
    assert model.holds(mixed, whole)
    assert model.holds(other, whole)
    assert not model.holds(mixed + other, whole)


def _steward() -> tuple[np.ndarray, np.ndarray]:
    """q = a, b, c with s = w, x, y three times each and z once; q = d with m, n, o, p, r twice each."""
    quasi = np.repeat([0, 1, 2, 3], 10)
    sensitive = np.concatenate([np.tile([0, 0, 0, 1, 1, 1, 2, 2, 2, 3], 3), np.repeat([4, 5, 6, 7, 8], 2)])
    return quasi, sensitive


@pytest.mark.parametrize(
    ("model", "most"),
    [(shoal.RecursiveLDiversity(1.0, 3), 0), (shoal.AlphaKAnonymity(0.3, 5), 0), (shoal.EntropyLDiversity(3.5), 0)],
)
def test_no_stand_in_is_stricter_than_the_model(model: Model, most: int) -> None:
    quasi, sensitive = _steward()
    found = group(Histogram.from_rows(quasi, sensitive), [shoal.KAnonymity(5), model], seed=1)
    assert found.certificate.cost <= most


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (shoal.RecursiveLDiversity(0.5, 2), r"0.6667,.*any c above 0.667 passes"),
        (shoal.EntropyLDiversity(3.0), r"entropy_l=2.87 at the most"),
        (shoal.AlphaKAnonymity(0.39, 2), r"40.0 %.*alpha = 0.4 at the least"),
        (shoal.SimultaneousLDiversity(2), r"differ pairwise in s and u.*largest l possible is 1"),
    ],
)
def test_a_refusal_names_the_model_asked_for_and_what_would_pass(model: Model, says: str) -> None:
    rows = {"q": ["a"] * 5, "s": ["v", "v", "w", "w", "x"], "u": ["1", "1", "1", "2", "1"]}
    sensitive = ["s", "u"] if isinstance(model, shoal.SimultaneousLDiversity) else ["s"]
    with pytest.raises(InfeasibleError, match=says) as error:
        shoal.anonymize(
            pl.DataFrame(rows).select("q", *sensitive), quasi_identifiers=["q"], sensitive=sensitive, privacy=[model]
        )
    assert "'v'" not in str(error.value)


ASKED_TOO_MUCH = {
    "alpha_k": ((0.001, 1), "least alpha {}", lambda v: (float(v), 1)),
    "alpha_k odd": ((0.0013, 1), "ask for alpha = {} at", lambda v: (float(v), 1)),
    "entropy_l": (9.0, "ask for entropy_l={} at", float),
    "recursive_cl": ((1e-6, 2), "any c above {} passes", lambda v: (float(v) + 1e-8, 2)),
    "recursive_cl long": ((3.0, 9), "{} different values", lambda v: (1e9, int(v))),
    "l": (9, "the largest l possible is {},", int),
    "distinct_l": (9, "the largest possible is {}", int),
    "simultaneous_l": (9, "the largest possible is {}", int),
    "k_map": (999, "the largest k_map possible is {}", int),
    "presence": ((0, 1e-6), "ask for {} at the least", lambda v: (0, float(v))),
    "max_average_risk": (1e-6, "the least possible is {}", float),
}


@pytest.mark.parametrize("name", ASKED_TOO_MUCH)
def test_what_a_refusal_says_would_pass_passes(name: str) -> None:
    random = np.random.default_rng(7)
    too_much, words, back = ASKED_TOO_MUCH[name]
    keyword = name.split(" ")[0]
    for n in (7, 11, 13, 23, 35, 59):
        rows = {"q": random.integers(0, 2, n), "s": np.append([0, 1, 2], random.integers(0, 3, n - 3) // 2)}
        asked = {"quasi_identifiers": ["q"], "sensitive": ["s"], "seed": 1, "effort": "fast", "method": "three_phase"}
        if keyword in ("k_map", "presence"):
            asked["population"] = pl.DataFrame({"q": np.append(rows["q"], random.integers(0, 2, n // 2))})
        if keyword == "max_average_risk":
            asked["k"] = 1
        with pytest.raises(InfeasibleError) as error:
            shoal.anonymize(pl.DataFrame(rows), **asked, **{keyword: too_much})
        said = re.search(words.format(r"([\d.e+-]*\d)"), str(error.value))
        assert said is not None, str(error.value)
        assert shoal.anonymize(pl.DataFrame(rows), **asked, **{keyword: back(said[1])}).audit.passes


def test_what_cannot_serve_a_model_says_so() -> None:
    quasi, sensitive = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1])
    histogram = Histogram.from_rows(quasi, sensitive)
    for method in ("matching", "two_anonymity", "forest", "pattern_cover"):
        with pytest.raises(PolicyError):
            group(histogram, [shoal.KAnonymity(2), shoal.TCloseness(0.1)], method)
    with pytest.raises(PolicyError, match="not monotone"):
        group(histogram, [shoal.DeltaDisclosure(1.0, "ignored")])


@pytest.mark.diagonal
@pytest.mark.parametrize("publish", ["stars", "ranges", "centers"])
@pytest.mark.parametrize("models", [{"t": 0.2}, {"k": 4, "entropy_l": 2.5}, {"beta": 1.0, "k": 3}, {"delta": 1.5}])
def test_a_release_meets_the_model_it_was_asked_for(publish: str, models: dict) -> None:
    table = data.drawn(90, 3, x=(0, 30), y=(0, 5), s="aaabbcd")
    release = shoal.anonymize(
        table, quasi_identifiers=["x", "y"], sensitive=["s"], publish=publish, seed=4, effort="fast", **models
    )
    assert release.audit.passes
    assert release.audit.classes > 1 or publish == "centers"
