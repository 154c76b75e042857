"""Nobody learns more than the promise from twelve parts together: small series enumerated, and broken ones seen.

``tools/series_intruder.py`` runs the same by the ten thousand.
"""

from fractions import Fraction

import polars as pl
import pytest

from shoal.publishing.series import again, buckets, increment
from tests.amount import thinned
from tests.series.intruder import KINDS, Above, shares, tried_again, tried_few_signatures, tried_increment, tried_views

SEEDS = {"again": thinned(60), "signatures": thinned(60), "increment": thinned(40), "views": thinned(60)}


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_above_the_promise(kind):
    came = [KINDS[kind](seed) for seed in range(SEEDS[kind])]
    assert sum(c not in ("too few parts", "too many assignments") for c in came) > len(came) // 3


def test_the_enumeration_of_one_class():
    (one, other) = shares(2, ["a", "b", "c"], [([0, 1], {"a": 1, "b": 1})], exactly=True)
    assert one == other == {"a": Fraction(1, 2), "b": Fraction(1, 2), "c": 0}
    found = shares(3, ["a", "b"], [([0, 1], {"a": 1, "b": 1}), ([1, 2], {"a": 1, "b": 1}), ([0], {"a": 1})],
                   exactly=False)  # fmt: skip
    assert [f["a"] for f in found] == [1, 0, 1]


def fails(tried, seeds: int, **more) -> int:
    """In how many series somebody is above the promise."""
    many = 0
    for seed in range(seeds):
        try:
            tried(seed, **more)
        except Above:
            many += 1
    return many


def test_buckets_of_too_few_values_are_seen(monkeypatch):
    """Broken on purpose: buckets of two values where three are asked; every class meets the models still."""
    dealt = buckets.HashedRows.dealt

    def pairs(self, members):
        l, self.l = self.l, 2
        try:
            return dealt(self, members)
        finally:
            self.l = l

    monkeypatch.setattr(buckets.HashedRows, "dealt", pairs)
    assert fails(tried_again, 40) > 0


def test_buckets_of_few_signatures_that_are_too_short_are_seen(monkeypatch):
    """Broken on purpose: the few signatures lack a value each."""
    few = again._few_signatures

    def short(*args):
        found = few(*args)
        return found if found is None else again._Few([signature[1:] for signature in found.signatures])

    monkeypatch.setattr(again, "_few_signatures", short)
    assert fails(tried_few_signatures, 20) > 0


def test_a_signature_that_is_not_kept_is_seen_where_there_are_few(monkeypatch):
    """Broken on purpose: whoever stays gets the most frequent signature of few."""
    form = again._form_buckets

    def most_frequent(people, builder, kept, tuples, few=None):
        common = max(kept.values(), key=[*kept.values()].count, default=())
        return form(people, builder, {i: common if people.value[i] in common else s for i, s in kept.items()}, tuples)

    monkeypatch.setattr(again, "_form_buckets", most_frequent)
    assert fails(tried_few_signatures, 40) > 0


def test_a_place_of_one_value_for_somebody_of_another_is_seen(monkeypatch):
    """Broken on purpose: whoever stays is new each time, and what remains possible shrinks."""
    monkeypatch.setattr(again, "_initial_classes", lambda people, *more: list(range(len(people.persons))))
    assert fails(tried_again, 20) > 0


def test_rows_that_wait_out_of_their_class_are_seen(monkeypatch):
    """Broken on purpose: rows wait one by one, and the class they leave need not meet the models."""
    third = pl.col("id") % 3 == 0
    monkeypatch.setattr(increment, "_of", lambda rows, _, how: rows.filter(third if how == "semi" else ~third))
    assert fails(tried_increment, 30) > 0


def test_a_view_of_other_classes_is_seen():
    """Broken on purpose: the people of a view are grouped otherwise."""

    def other(part: pl.DataFrame) -> pl.DataFrame:
        return part.with_columns(part.to_series(0).shift(1).fill_null(part.to_series(0)[-1]))

    assert fails(tried_views, 40, change=other) > 0
