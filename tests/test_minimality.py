"""``minimality``: what it refuses, what a release and its certificate say of it, and that all ways to ask are one."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from tests.data import drawn

SECRET = b"sixteen bytes or more"
ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "sex", "town"], "sensitive": ["ill"]}
ASKED: dict[str, Any] = {**ROLES, "k": 2, "l": 2, "minimality": 0.5, "effort": "fast", "seed": 1}
RECODINGS: list[dict[str, Any]] = [
    {},
    {"publish": "ranges", "range_step": {"age": 2}},
    {"publish": "hierarchy", "hierarchies": {"age": "intervals:5,10"}},
    {"weights": {"age": 3.0}},
]


def people(n: int = 400) -> pl.DataFrame:
    ills = dict(zip("uvwxyz", [0.3, 0.3, 0.1, 0.1, 0.1, 0.1], strict=True))
    return drawn(n, n, age=(20, 40), sex="mf", town="abc", ill=ills)


@pytest.mark.parametrize("more", RECODINGS)
@pytest.mark.parametrize(("k", "l", "p"), [(2, 2, 0.5), (3, 2, 0.4), (5, 1, 0.6)])
def test_no_group_holds_a_value_on_a_larger_share(k: int, l: int, p: float, more: dict[str, Any]) -> None:
    release = shoal.anonymize(people(), **{**ASKED, **more, "k": k, "l": l, "minimality": p}, secret=SECRET)
    names = ROLES["quasi_identifiers"]
    rows = release.table.group_by(names).agg(pl.len(), pl.col("ill").value_counts().struct.field("count").max())
    assert (rows["count"] <= p * rows["len"]).all()
    assert rows["len"].min() >= k
    assert release.certificate.details["minimality"]["decoys"] < release.facts.rows


def test_the_certificate_states_it_and_no_figure_of_the_decoys(tmp_path: Path) -> None:
    before = people()
    release = shoal.anonymize(before, **ASKED)
    beside = release.write(tmp_path / "out.csv")
    said = json.loads(beside.read_text())
    assert said["policy"]["minimality"] == 0.5
    assert "decoys" not in beside.read_text()
    kept = json.loads((tmp_path / "out.record.json").read_text())
    assert kept["certificate"]["details"]["minimality"]["decoys"] > 0
    found = shoal.verify(tmp_path / "out.csv", original=before, record=tmp_path / "out.record.json")
    assert any(f.check == "minimality" and "0.5 asked" in f.found for f in found.findings)
    one, other = (shoal.anonymize(before, **ASKED, secret=s).table for s in (SECRET, SECRET[::-1]))
    assert set(one.rows()) != set(other.rows()), "the draws are the secret's"


def test_a_table_that_breaks_it_is_not_written(tmp_path: Path) -> None:
    release = shoal.anonymize(people(), **ASKED)
    object.__setattr__(release.policy, "minimality", 0.1)
    with pytest.raises(shoal.VerificationError, match=r"minimality=0\.1 was asked"):
        release.check()
    with pytest.raises(shoal.VerificationError, match=r"minimality=0\.1 was asked"):
        release.write(tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"minimality": 0}, "minimality=0: a share above 0 and below 1"),
    ({"minimality": 1}, "minimality=1: a share"),
    ({"minimality": "half"}, "minimality='half': a share"),
    ({"minimality": True}, "minimality=True: a share"),
    ({"sensitive": [], "l": None, "insensitive": ["ill"]}, "name one with sensitive"),
    ({"publish": "centers"}, "publish='centers'"),
    ({"person": "id"}, "person= or household="),
    ({"household": "id"}, "person= or household="),
    ({"population_weights": "id"}, "a population"),
    ({"population": people()}, "a population"),
    ({"coordinates": ["x", "y"], "publish": "hierarchy"}, "coordinates"),
    ({"global_recoding": True}, "global_recoding"),
    ({"coarsen": "auto", "publish": "hierarchy", "hierarchies": {"age": "intervals:5"}}, "coarsen"),
    ({"max_level": {"age": 1}}, "max_level"),
    ({"max_average_risk": 0.1}, "max_average_risk"),
    ({"missing": "apart"}, "missing='apart'"),
    ({"shards": 2}, "shards"),
    ({"keep_order": True}, "keep_order"),
    ({"method": "three_phase"}, "method='three_phase'"),
]


@pytest.mark.parametrize(("more", "says"), REFUSED)
def test_what_it_does_not_cover_is_refused_by_name(more: dict[str, Any], says: str) -> None:
    with pytest.raises(shoal.PolicyError) as refused:
        shoal.Policy(**{name: held for name, held in {**ASKED, **more}.items() if held is not None})
    assert says in str(refused.value)


def test_beside_another_release_it_is_refused(tmp_path: Path) -> None:
    before = people()
    with pytest.raises(shoal.PolicyError, match="proved of one release alone, and after="):
        shoal.anonymize(before, **ASKED, after=shoal.anonymize(before, **ROLES, k=2, effort="fast"))
    with pytest.raises(shoal.PolicyError, match="a series cannot keep minimality"):
        shoal.Series.start(tmp_path / "series", shoal.Policy(**ASKED))


def test_a_value_that_is_too_common_is_refused_with_the_least_share() -> None:
    before = people().with_columns(
        pl.when(pl.int_range(pl.len()) < 240).then(pl.lit("u")).otherwise("ill").alias("ill")
    )
    share = before["ill"].value_counts()["count"].max() / before.height
    with pytest.raises(shoal.InfeasibleError, match=rf"'ill' is {100 * share:.1f} % .* ask for minimality=0\.\d+ at"):
        shoal.anonymize(before, **{**ASKED, "l": None, "minimality": 0.5})


def test_a_budget_of_rows_starred_whole_is_kept() -> None:
    before = people()
    assert shoal.anonymize(before, **ASKED, max_suppressed=0.9).audit.passes
    with pytest.raises(shoal.InfeasibleError, match=r"max_suppressed=0\.001 allows 0"):
        shoal.anonymize(before, **{**ASKED, "k": 40}, max_suppressed=0.001)
