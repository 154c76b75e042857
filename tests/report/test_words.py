"""What a release's words warn of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from shoal.model.cards import floored
from shoal.model.certificate import Certificate
from shoal.model.policy import Policy
from shoal.problems.catalogue import CATALOGUE, crosswalk_problems, names
from shoal.report.parts import BOUNDS_PAGE, METHOD_PAGES, PROOFS, certificate_words, promise, proved
from shoal.report.sections import assumptions, attacks


def warned(**asked: Any) -> bool:
    policy = Policy.of(quasi_identifiers=["age"], **asked).describe()
    return any(text.startswith("Homogeneity") for text in attacks(policy))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"k": 2}, True),
        ({"k": 2, "sensitive": ["hiv"]}, True),
        ({"k": 2, "l": 1, "sensitive": ["hiv"]}, True),
        ({"k": 2, "l": 2, "sensitive": ["hiv"]}, False),
        ({"alpha_k": (0.5, 2), "sensitive": ["hiv"]}, False),
        ({"privacy": [{"model": "LDiversity", "l": 2, "column": "d"}], "sensitive": ["d", "hiv"]}, True),
        ({"privacy": [{"model": "LDiversity", "l": 2, "column": "d"}], "sensitive": ["d"]}, False),
    ],
)
def test_a_sensitive_column_without_a_model_does_not_silence_the_warning(asked: dict[str, Any], expected: bool) -> None:
    assert warned(**asked) == expected


def test_centers_are_said_to_be_somebodys_record() -> None:
    asked = {"quasi_identifiers": ["age"], "k": 2}
    for publish, said in (("centers", True), ("stars", False)):
        policy = Policy.of(publish=publish, **asked).describe()
        assert any("the record of one of its people" in text for text in attacks(policy)) == said
        assert any(text.startswith("Distance: ") for text in assumptions(policy)) == said


def test_a_group_that_agrees_is_said_to() -> None:
    audit = {"smallest_class": 5, "sensitive": {"hiv": {"alpha": 1.0}, "d": {"alpha": 0.4004}}}
    certificate = {"cost": 3, "lower_bound": 2, "unit": "stars", "ratio": 1.5, "optimal": False, "details": {}}
    certificate["guarantee"] = {"factor": None, "additive": None, "theorem": "none: a heuristic"}
    release = {"rows": 10, "loss": {"suppressed_tuples": 2}, "stars": {"a": 3}, "certificate": certificate}
    text = promise({"release": release, "audit": audit})
    assert "at least 4 others" in text
    assert "100" not in text
    assert "hiv" not in text, "a disclosure is no promise: the page warns of it before"
    assert "more than 40.1 % of the rows share a value of d" in text
    assert "2 of 10 rows were changed and 3 values hidden" in text
    assert "at most 1.5 times the least possible, proved" in text
    one_level = certificate | {"details": {"uniform_cost": 3}}
    assert "times" not in promise({"release": release | {"certificate": one_level}, "audit": audit})


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (2.0, "that is the least possible, proved."),
        (2.0000000001, "that is the least possible up to rounding, proved."),
        (2.0001, "so this one costs at most 1.001 times the least possible, proved."),
    ],
)
def test_what_differs_by_rounding_is_no_gap(cost: float, said: str) -> None:
    proof = Certificate(cost=cost, lower_bound=2.0, unit="ncp").as_dict()
    assert proved(proof, "every release").endswith(said)


def test_a_length_is_said_to_be_one() -> None:
    proof = Certificate(cost=1.5, lower_bound=1.5, unit="units").as_dict()
    assert "1.5 units from a center to the farthest row of its group" in certificate_words(
        {"certificate": proof, "method": "local"}
    )


def test_pages_of_the_guide_have_the_sections_that_reports_name():
    assert set(METHOD_PAGES) == set(names("tables")) - {"auto"}
    proofs = [CATALOGUE[kind].proofs for kind in crosswalk_problems()]
    for page, section in [BOUNDS_PAGE, *METHOD_PAGES.values(), *PROOFS.values(), *proofs]:
        text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8").replace("`", "")
        assert not section or f"# {section}\n" in text


@pytest.mark.parametrize("bound", [0.02777659088920656, 3378.96, 0.1, 1234567.8, 5e-324, 7])
def test_a_bound_is_never_rounded_up(bound: float) -> None:
    """A reader who takes the figure for the bound must not be told more than is proved."""
    certificate = Certificate(cost=2 * bound, lower_bound=bound, unit="ncp").as_dict()
    text = proved(certificate, "every release")
    shown = float(re.search(r"costs at least .*?([\d,]*\.?\d+(?:e[-+]?\d+)?)", text)[1].replace(",", ""))
    assert bound * (1 - 1e-3) <= shown <= bound
    assert shown == float(floored(bound).replace(",", ""))


def test_the_scale_of_a_mean_loss_is_said() -> None:
    said = proved(Certificate(cost=0.05, lower_bound=0.04, unit="ncp").as_dict(), "every release")
    assert said.startswith("It costs a mean loss per value of 0.05 (0: every value as it came, 1: nothing left); every")
