"""Rows with a missing quasi-identifier grouped among themselves: every recoding, engine and model beside it."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.histogram import Histogram
from shoal.model.recoding import Levels, Recoding
from tests.data import TREES
from tests.data import people as people_of
from tests.kept import kept, verify, write_sealed
from tests.oracles.tables import partitions

QUASI = ["age", "zip"]


def people() -> pl.DataFrame:
    return people_of(0.15).select("age", "zip", "who", "ill").with_row_index("id")


def classes(table: pl.DataFrame, before: pl.DataFrame) -> dict[bool, list[list[int]]]:
    """Ids of every class, told apart by whether their own rows lacked a value."""
    lacks = dict(zip(before["id"], before.select(pl.any_horizontal(pl.col(QUASI).is_null())).to_series(), strict=True))
    held: dict[bool, dict[Any, list[int]]] = {True: defaultdict(list), False: defaultdict(list)}
    for row in table.select(*QUASI, "id").rows():
        held[lacks[row[-1]]][row[:-1]].append(row[-1])
    return {part: list(found.values()) for part, found in held.items()}


WAYS: list[dict[str, Any]] = [
    {},
    {"publish": "ranges"},
    {"publish": "hierarchy", "hierarchies": TREES},
    {"global_recoding": True},
    {"global_recoding": True, "max_suppressed": 0.3},
    {"method": "mondrian"},
    {"max_average_risk": 0.1},
]


@pytest.mark.parametrize("more", WAYS)
def test_a_complete_row_hides_among_complete_rows_and_the_others_among_themselves(more: dict) -> None:
    before = people()
    release = shoal.anonymize(
        before.drop("who"), quasi_identifiers=QUASI, sensitive=["ill"], insensitive=["id"], k=4, l=2, missing="apart",
        seed=1, effort="fast", **more,
    )  # fmt: skip
    ill = dict(zip(before["id"], before["ill"], strict=True))
    found = classes(release.table, before)
    for ids in (*found[True], *found[False]):
        assert len(ids) >= 4
        assert max(Counter(ill[i] for i in ids).values()) * 2 <= len(ids)
    smallest = {part: min(map(len, some)) for part, some in found.items()}
    assert release.facts.missing.apart == {
        "rows": sum(map(len, found[True])), "smallest": smallest[True], "smallest_of_others": smallest[False],
        "columns": QUASI,
    }  # fmt: skip
    assert "__incomplete__" not in release.table.columns
    if release.certificate.unit in release.loss:
        assert release.certificate.cost == pytest.approx(release.loss[release.certificate.unit])
    # the same table with blanks as values mixes the two somewhere, or there would be nothing to ask for
    plain = shoal.anonymize(
        before.drop("who"), quasi_identifiers=QUASI, sensitive=["ill"], insensitive=["id"], k=4, l=2, seed=1,
        effort="fast", **more,
    )  # fmt: skip
    assert min(len(ids) for part in classes(plain.table, before).values() for ids in part) < 4


def test_persons_and_people_of_a_population_are_counted_apart_too() -> None:
    before = people()
    person = shoal.anonymize(
        before, quasi_identifiers=QUASI, sensitive=["ill"], insensitive=["id"], person="who", k=3, missing="apart",
        seed=1, effort="fast",
    )  # fmt: skip
    for ids in (ids for part in classes(person.table, before).values() for ids in part):
        assert len({i // 2 for i in ids}) >= 3
    town = pl.concat([before.select(QUASI)] * 3)
    fits = shoal.anonymize(
        before.select(*QUASI, "id"), quasi_identifiers=QUASI, insensitive=["id"], k=2, k_map=20, population=town,
        missing="apart", seed=1, effort="fast",
    )  # fmt: skip
    assert fits.audit.passes
    assert fits.audit.population["k_map"] >= 20
    assert min(len(ids) for part in classes(fits.table, before).values() for ids in part) >= 2


def test_rows_starred_whole_hide_in_their_own_part() -> None:
    rows = [(1, "a")] * 4 + [(1, "b")] + [(None, "c")] * 4 + [(None, "d")]
    table = pl.DataFrame(rows, schema={"x": pl.Int64, "y": pl.String}, orient="row")
    asked = {"quasi_identifiers": ["x", "y"], "k": 2, "global_recoding": True, "max_suppressed": 0.2, "seed": 1}
    mixed = shoal.anonymize(table, **asked)
    assert mixed.certificate.details["suppressed_rows"] == 2  # b and d, one of each part
    apart = shoal.anonymize(table, missing="apart", **asked)
    assert apart.certificate.details["suppressed_rows"] == 0
    assert apart.certificate.details["levels"] == {"x": 0, "y": 1}


CELLS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=7)


@settings(deadline=None, max_examples=40)
@given(CELLS, st.integers(1, 3), st.sampled_from(["optimal", "cascade", "global_recoding"]))
def test_never_below_the_least_over_all_partitions_that_mix_nothing(rows: list, k: int, method: str) -> None:
    histogram = Histogram.from_rows(np.array(rows)[:, :2], np.array(rows)[:, 2])
    part = [int(0 in r[:2]) for r in rows]  # 0 stands for a missing value
    least = None
    for found in partitions(len(rows)):
        if all(len(g) >= k and len({part[i] for i in g}) == 1 for g in found):
            stars = sum(len(g) * sum(len({rows[i][j] for i in g}) > 1 for j in range(2)) for g in found)
            least = stars if least is None else min(least, stars)
    apart = (histogram.quasi == 0).any(axis=1).astype(np.int64)
    recoding = Recoding(tuple(Levels.stars(s) for s in histogram.quasi_sizes), "stars")
    try:
        answer = shoal.tables.group(
            histogram, [shoal.KAnonymity(k)], method, recoding=recoding, apart=apart, seed=1, effort="fast"
        )
    except InfeasibleError:
        assert least is None
        return
    assert least is not None
    assert answer.certificate.lower_bound <= least <= answer.certificate.cost
    assert method != "optimal" or answer.certificate.cost == least
    for g in range(answer.partition.groups):
        assert np.unique(apart[answer.partition.cell[answer.partition.group == g]]).size == 1


REFUSED = [
    ({"missing": "wildcard"}, PolicyError, "reading of shoal.audit alone"),
    ({"missing": "appart"}, PolicyError, "did you mean 'apart'"),
    ({"missing": "apart", "publish": "centers"}, PolicyError, "gathers all rows together"),
    (
        {"missing": "apart", "publish": "hierarchy", "hierarchies": {"age": "intervals:5,15"}, "coarsen": "auto"},
        PolicyError,
        "one level for all rows",
    ),
    ({"missing": "apart", "k": 40}, InfeasibleError, "rows with a missing quasi-identifier apart"),
]


def test_a_part_too_far_from_the_table_is_refused_by_how_far_it_is() -> None:
    table = pl.DataFrame({"x": [1, 1, 1, 1, None, None], "s": ["a", "b", "a", "b", "a", "a"]})
    with pytest.raises(InfeasibleError, match=r"2 rows with .* among them alone: .* reach 0\.334 .* ask for t=0\.334"):
        shoal.anonymize(table, quasi_identifiers=["x"], sensitive=["s"], t=0.3, missing="apart")


@pytest.mark.parametrize(("more", "kind", "says"), REFUSED)
def test_what_cannot_be_gets_one_sentence(more: dict, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        shoal.anonymize(people().select(QUASI), **{"quasi_identifiers": QUASI, "k": 4, **more})


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", [pl.Int64, pl.Date, pl.Datetime])
def test_stars_of_a_typed_column_are_not_taken_for_rows_that_lack_it(kind: Any, ending: str, tmp_path: Path) -> None:
    """In Parquet a starred date is a missing date: more of them than rows without one is no contradiction."""
    when = pl.Series([None, None, 1, 2, 3, 3, 3], dtype=pl.Int64).cast(pl.Int64 if kind is pl.Int64 else pl.Int32)
    table = pl.DataFrame({"when": when.cast(kind), "place": list("aaabbbb")})
    release = shoal.anonymize(table, quasi_identifiers=["when", "place"], k=2, missing="apart")
    assert release.facts.stars["when"] >= 2
    target = tmp_path / f"r{ending}"
    record = kept(release.write(target))
    assert verify(target, record).holds
    assert verify(target, record, table).holds
    told = json.loads(record.read_text())
    assert told["incomplete"]["columns"] == ["when"]
    said = {"rows": 0, "smallest": 0, "smallest_of_others": told["incomplete"]["smallest"]}
    for columns in (["when"], [], None):
        told["incomplete"] = said if columns is None else said | {"columns": columns}
        write_sealed(record, told)
        wrong = {f.check for f in verify(target, record, table).findings if not f.holds}
        assert "missing rows" in wrong
        wrong = {f.check for f in verify(target, record).findings if not f.holds}
        if columns != [] or ending == ".parquet":  # a text of no letters and a missing value are one in CSV
            assert wrong == {"missing values"}  # two rows show a missing value that no star explains


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".sav", ".parquet"])
@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges"])
def test_empty_texts_are_no_missing_values(publish: str, ending: str, tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["", "", "", "x", "x", "yy"], "b": ["p", "p", "q", "q", "r", "r"]})
    asked = {"hierarchies": {"a": "prefixes:1"}} if publish == "hierarchy" else {}
    release = shoal.anonymize(table, quasi_identifiers=["a", "b"], k=2, missing="apart", publish=publish, **asked)
    target = tmp_path / f"r{ending}"
    record = kept(release.write(target))
    assert json.loads(record.read_text())["incomplete"]["columns"] == []
    for original in (None, table):
        assert verify(target, record, original).holds


def test_a_column_with_the_name_that_tells_the_rows_apart_is_refused() -> None:
    before = people().drop("who").with_columns(pl.lit("x").alias("__incomplete__"))
    asked = {"quasi_identifiers": QUASI, "sensitive": ["ill"], "insensitive": ["id"], "k": 4}
    with pytest.raises(PolicyError, match="needs itself; rename it"):
        shoal.anonymize(before, **asked, missing="apart")
    assert shoal.anonymize(before, **asked).table.height == before.height


def test_a_model_that_several_columns_miss_is_explained_once() -> None:
    """One row of a part has one value of each column: nearer than 0.5 it cannot come, and no delta allows the rest."""
    table = pl.DataFrame({"x": [1, 1, 1, None], "a": ["p", "q", "p", "q"], "b": ["u", "v", "u", "v"]})
    with pytest.raises(InfeasibleError) as refused:
        shoal.anonymize(
            table, quasi_identifiers=["x"], sensitive=["a", "b"], missing="apart", t=0.4, delta=1.2, seed=1
        )  # fmt: skip
    assert str(refused.value) == (
        "missing='apart' groups the 1 row with a missing quasi-identifier apart; among them alone: all rows as one "
        "group reach 0.5 of a, so no table in which the distribution of every group is within 0.4 of the table's "
        "(equal distance) exists; ask for t=0.5 at the least. Also, all rows as one group reach 0.5 of b. Also, a "
        "value of a is in none of these rows, so no table in which every value's share in a group is within a factor "
        "of exp(1.2) of the table's exists; no delta is large enough. Also, a value of b is in none of these rows"
    )


def test_costs_of_parts_are_counted_alike(tmp_path: Path) -> None:
    """Every row of one part loses something on the grid; in the other part, all of that column is missing."""
    drawn = np.random.default_rng(1)
    ages = [None if i % 8 == 0 else int(age) for i, age in enumerate(drawn.integers(0, 60, 60))]
    table = pl.DataFrame({"age": ages, "zip": drawn.choice([*"xyz"], 60), "ill": drawn.choice([*"uvw"], 60)})
    asked: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": ["ill"], "k": 4, "seed": 1, "missing": "apart"}
    asked |= {"publish": "ranges", "range_step": {"age": 7}, "method": "three_phase"}
    release = shoal.anonymize(table, **asked)
    assert release.certificate.unit == "ncp"
    assert release.certificate.cost == pytest.approx(release.loss["ncp"])
    release.write(tmp_path / "out.csv")
    assert verify(tmp_path / "out.csv", tmp_path / "out.record.json", table).holds
