"""The mean risk of a release: classes over rows, counted by hand."""

from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, PolicyError


def least_stars(values, k, limit):
    """Fewest stars of one column over all numbers of rows starred of every value, by the definition."""
    held = [values.count(v) for v in set(values)]
    best = None
    for out in product(*(range(n + 1) for n in held)):
        kept = [n - s for n, s in zip(held, out, strict=True) if n > s]
        classes = [*kept, sum(out)] if sum(out) else kept
        if min(classes) >= k and len(classes) <= limit * len(values) + 1e-9:
            best = sum(out) if best is None else min(best, sum(out))
    return best


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.integers(0, 4), min_size=1, max_size=14),
    k=st.integers(1, 3),
    limit=st.sampled_from([0.05, 0.09, 0.2, 0.34, 0.5, 1.0]),
)
def test_the_mean_is_kept_and_the_bound_holds(values, k, limit):
    table = pl.DataFrame({"a": values})
    asked = {"quasi_identifiers": ["a"], "k": k, "max_average_risk": limit, "seed": 1, "numeric_stars": "text"}
    if len(values) < k or 1 / len(values) > limit + 1e-9:
        with pytest.raises(InfeasibleError):
            shoal.anonymize(table, **asked)
        return
    release = shoal.anonymize(table, **asked)
    shown = release.table["a"].cast(pl.String).to_list()
    assert len(set(shown)) / len(values) <= limit + 1e-9
    assert min(map(shown.count, shown)) >= k
    least = least_stars(values, k, limit)
    assert release.certificate.lower_bound <= least <= shown.count("*") == release.certificate.cost


def test_a_risk_is_a_share():
    for wrong in (0, 1.5, True):
        with pytest.raises(PolicyError, match="above 0 and at most 1"):
            shoal.anonymize(pl.DataFrame({"a": [1]}), quasi_identifiers=["a"], k=1, max_average_risk=wrong)


TREE = {"a": [["0", "low"], ["1", "low"], ["2", "high"]]}


def shows(table):
    return [tuple("*" if v is None else v for v in row) for row in table.select("a", "b").iter_rows()]


@pytest.mark.parametrize("levels", [{}, {"global_recoding": True}, {"global_recoding": True, "max_suppressed": 0.3}])
@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(st.sampled_from("012"), st.sampled_from(["x", "y", None])), min_size=2, max_size=30),
    limit=st.sampled_from([0.05, 0.09, 0.2, 0.34, 0.5]),
)
def test_it_goes_with_rows_grouped_apart(levels, rows, limit):
    table = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")
    asked = {"quasi_identifiers": ["a", "b"], "k": 1, "max_average_risk": limit, "missing": "apart", "seed": 1}
    asked |= {"publish": "hierarchy", "hierarchies": TREE, "effort": "fast", **levels}
    groups = 1 if levels else len({b is None for _, b in rows})  # classes of one look, where all is starred, are one
    if groups / len(rows) > limit + 1e-9:
        with pytest.raises(InfeasibleError, match=r"mean risk"):
            shoal.anonymize(table, **asked)
        return
    try:
        release = shoal.anonymize(table, **asked)
    except InfeasibleError:
        assert "max_suppressed" in levels  # at their highest, levels star more rows than that
        return
    assert len(set(shows(release.table))) / len(rows) <= limit + 1e-9


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(st.sampled_from("012"), st.sampled_from("xy")), min_size=2, max_size=20),
    limit=st.sampled_from([0.1, 0.2, 0.34, 0.5]),
)
def test_one_level_per_column_within_the_limit_is_the_cheapest(rows, limit):
    table = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    asked = {"quasi_identifiers": ["a", "b"], "k": 1, "max_average_risk": limit, "seed": 1, "global_recoding": True}
    if 1 / len(rows) > limit + 1e-9:
        return
    release = shoal.anonymize(table, **asked, publish="hierarchy", hierarchies=TREE)
    of = {row[0]: (row[0], row[1], "*") for row in TREE["a"]}
    lost = {"0": (0, 0.5, 1), "1": (0, 0.5, 1), "2": (0, 0, 1)}
    lose = [{v: (of[v][h], lost[v][h]) for v in of} for h in (0, 1, 2)]
    best = min(
        sum(lose[h][a][1] + star for a, _ in rows)
        for h, star in product((0, 1, 2), (0, 1))
        if len({(lose[h][a][0], "*" if star else b) for a, b in rows}) / len(rows) <= limit + 1e-9
    )
    facts = release.certificate.details
    assert facts["uniform_cost"] == pytest.approx(best / (2 * len(rows)))
    assert facts["uniform_bound"] == pytest.approx(best / (2 * len(rows)))


def test_bounds_of_coarsened_columns_are_those_without_the_limit():
    table = pl.DataFrame({"a": list("xxxyzw")})
    asked = {"quasi_identifiers": ["a"], "k": 1, "max_average_risk": 0.5, "seed": 1, "publish": "hierarchy"}
    release = shoal.anonymize(table, **asked, hierarchies={"a": "stars"}, coarsen="auto")
    facts = release.certificate.details
    least = 2 / 6  # three x, one of the others, and two stars; two rows in every group would cost three stars
    assert facts["uniform_cost"] >= least
    assert facts["levels_bound"] <= least
    assert facts["uniform_bound"] <= least
