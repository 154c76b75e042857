"""A bound above the cost is an error wherever a certificate is made, not a proof of optimality."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import shoal
from shoal.errors import CertificateError
from shoal.model.certificate import tight
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Ranges, Recoding
from shoal.problems.tables import group

TABLE = Histogram.from_rows(np.array([0, 0, 1, 2, 2, 3]), np.array([0, 1, 0, 1, 0, 1]))
NEED = Requirement(2, (2,), (1,))


def test_whole_numbers_do_not_round_and_floats_by_a_billionth():
    assert tight(3, 3, "stars") == 3
    assert tight(2, 3, "stars") == 2
    assert tight(1.0 + 5e-10, 1.0, "ncp") == 1.0
    for bound, cost in (
        (4, 3),
        (10**12 + 1, 10**12),
        (1.0 + 2e-9, 1.0),
        (1e-30, 0.0),
        (float("nan"), 1.0),
        (np.inf, 1.0),
    ):
        with pytest.raises(CertificateError):
            tight(bound, cost, "any")


def facts_of(module):
    residue = module.residue
    return lambda h, need: (residue(h, need)[0], {**residue(h, need)[1], "bound": 10**6})


@pytest.mark.parametrize(
    ("where", "method"), [("bounds", "hilbert"), ("three_phase", "three_phase"), ("bounds.bounds", "cascade")]
)
def test_bounds_of_tables(monkeypatch, where, method):
    module = import_module(f"shoal.problems.tables.{where}")
    monkeypatch.setattr(module, "residue", facts_of(module))
    with pytest.raises(CertificateError, match="above the cost"):
        group(TABLE, NEED, method, seed=0)


@pytest.mark.parametrize("recoding", [Recoding.stars(TABLE), Recoding((Ranges.of(np.arange(4) ** 1.5),), "ncp")])
def test_the_dual_of_matching(monkeypatch, recoding):
    module = import_module("shoal.problems.tables.methods.matching")
    ship = module.transported
    monkeypatch.setattr(module, "transported", lambda *a: (*ship(*a)[:4], ship(*a)[4] + 2**40))
    with pytest.raises(CertificateError, match="above the cost"):
        group(TABLE, Requirement(1, (2,), (1,)), "matching", recoding=recoding, seed=0)


def test_whole_number_losses(monkeypatch):
    module = import_module("shoal.problems.tables.exact.two_anonymity")
    solve = module.solve
    monkeypatch.setattr(module, "solve", lambda *a: replace(solve(*a), lower=solve(*a).upper + 1))
    with pytest.raises(CertificateError, match="above the cost"):
        group(TABLE, Requirement(2), "two_anonymity", seed=0)


def test_intervals(monkeypatch):
    module = import_module("shoal.problems.intervals")
    solve = module.solve
    monkeypatch.setattr(module, "solve", lambda *a: (*solve(*a)[:2], solve(*a)[2] + 1))
    with pytest.raises(CertificateError, match="above the cost"):
        shoal.intervals.cut([1, 2, 3], None, 1)


def test_clusters(monkeypatch):
    points = np.arange(8.0)[:, None]
    module = import_module("shoal.problems.gathering.gather")
    monkeypatch.setattr(module, "_bound", lambda *_: (1e6, "forced"))
    with pytest.raises(CertificateError, match="forced"):
        shoal.gathering.gather(points, 2)
    prices = import_module("shoal.problems.gathering.cellular_methods")
    monkeypatch.setattr(prices, "bound", lambda *_: 1e6)
    with pytest.raises(CertificateError, match="raised prices"):
        shoal.gathering.cellular(points, 2, seed=0)
