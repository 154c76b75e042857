"""Crosswalks on their way out: what is tampered with is refused before the file appears, and by verify afterwards."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.engines import store as storing
from shoal.engines.features import FeatureColumns, Features
from shoal.errors import InputError, PolicyError, VerificationError
from tests.commands import run
from tests.kept import kept, verify

NAMES = pl.DataFrame(
    {"name": ["Adams", "Baker", "Clark", "Davis", "Evans", "", "Zoe"], "people": [5, 2, 2, 4, 3, 2, 0]}
)
AGES = pl.DataFrame({"age": [17, 18, 18, 19, 22, 25, 25, 31, 40, 41]})
Tamper = Callable[[pl.DataFrame], pl.DataFrame]


def made_of(kind: str) -> tuple[shoal.Crosswalk, Any]:
    """A small release of each kind, and its sources for verify."""
    if kind == "labels":
        return shoal.release(shoal.labels.cover(NAMES["people"], 4), NAMES, label="name", count="people"), NAMES
    return shoal.release(shoal.intervals.cut(AGES["age"], None, 3, "range"), AGES, value="age"), AGES


def moved(frame: pl.DataFrame) -> pl.DataFrame:
    """The first row goes to the last row's group, with all that is said of it."""
    own = frame.columns[0]
    return pl.concat([frame[:1].select(own).hstack(frame[-1:].drop(own)), frame[1:]])


def dropped(frame: pl.DataFrame) -> pl.DataFrame:
    return frame[1:]


def twice(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame, frame[:1]])


def small(frame: pl.DataFrame) -> pl.DataFrame:
    """One group says that it holds one record."""
    return frame.with_columns(group_count=pl.when(pl.col("group") == 0).then(1).otherwise(pl.col("group_count")))


def grown(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(group_count=pl.col("group_count") + (pl.col("group") == 0))


def one_name(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(group_label=pl.lit("all"))


def foreign(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(value=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("99")).otherwise(
        pl.col("value").cast(pl.String)))  # fmt: skip


def areas() -> tuple[pl.DataFrame, pl.DataFrame, list[tuple[int, int]]]:
    """Eight areas in a row and one far away, in two states; and the pairs of neighbors by name and by number."""
    names = [f"0{i}" for i in range(8)] + ["11"]
    table = pl.DataFrame({"id": names, "people": [3, 3, 3, 3, 3, 4, 3, 3, 1], "state": ["w"] * 3 + ["e"] * 6})
    numbers = [(i, i + 1) for i in range(7)]
    return table, pl.DataFrame([(names[a], names[b]) for a, b in numbers], schema=["u", "v"], orient="row"), numbers


def made_of_areas() -> tuple[shoal.Crosswalk, list[pl.DataFrame]]:
    table, pairs, numbers = areas()
    found = shoal.regions.merge(numbers, table["people"], 6, boundaries=table["state"], seed=1)
    return shoal.release(found, table, weight="people", edges=numbers, boundary="state"), [table, pairs]


def swapped(frame: pl.DataFrame) -> pl.DataFrame:
    """Areas of equal weight change places between the first and the last region, which cuts both in two."""
    first, last = frame["region"].to_list().index("00+2"), 7
    rows = frame.rows()
    rows[first], rows[last] = (rows[first][0], *rows[last][1:]), (rows[last][0], *rows[first][1:])
    return pl.DataFrame(rows, schema=frame.schema, orient="row")


def lighter(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(region_weight=pl.when(pl.col("region") == "00+2").then(5).otherwise("region_weight"))


def heavier(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(region_weight=pl.when(pl.col("region") == "00+2").then(10).otherwise("region_weight"))


def left_out(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(region=pl.when(pl.col("area") == "00").then(pl.lit("*")).otherwise("region"))


REGIONS = [(moved, "areas"), (dropped, "one row each"), (twice, "one row each"), (swapped, "connected"),
           (lighter, "k"), (heavier, "weight people"), (left_out, "left out")]  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx"])
def test_genuine_regions_verify(ending: str, tmp_path: Path) -> None:
    made, source = made_of_areas()
    beside = kept(made.write(tmp_path / f"x{ending}"))
    for original in (None, source):
        verdict = verify(tmp_path / f"x{ending}", beside, original)
        assert verdict.holds, verdict.findings
    how = {f.check: f.how for f in verdict.findings}
    assert (how["connected"], how["boundary"], how["weight people"]) == ("recomputed",) * 3
    assert "00+2" not in made.report(tmp_path / "r.html").read_text()


def test_sensitive_values_that_look_alike_or_are_missing_are_told() -> None:
    table = pl.DataFrame({"x": range(6), "y": [0] * 6, "s": ["flu", "flu ", None] * 2})
    tiles = shoal.tiles.split(table[["x", "y"]], 2, sensitive=table["s"], l=2)
    clusters = shoal.gathering.gather(table[["x"]], 2)
    for made in (shoal.release(tiles, table, x="x", y="y", sensitive="s"),
                 shoal.release(clusters, table, columns=["x"], sensitive=["s"])):  # fmt: skip
        alike, missing = made.warnings[-2:]
        assert "2 values in 4 rows differ from another one only by case" in alike
        assert "2 missing values count as a sensitive value" in missing
    named = table.rename({"s": "email"})
    made = shoal.release(clusters, named, columns=["x"], sensitive=["email"])
    assert made.warnings[-3].startswith("the sensitive column 'email' is published as it is")


def test_places_that_are_codes_are_told_of_clusters() -> None:
    table = pl.DataFrame({"lat": [40.0, 41.0, 0.0, 77.7777], "lng": [8.0, 9.0, 0.0, 77.7777]})
    features = Features.of(table, FeatureColumns((), place=("lat", "lng")))
    found = shoal.gathering.gather(tuple(features.values), 2, metric=features.metric)
    made = shoal.release(found, table, columns=[], place=("lat", "lng"))
    assert made.warnings[-1].startswith("2 rows with codes for coordinates")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_folder_whose_name_is_a_pattern_is_a_folder(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / "d[1]"
    folder.mkdir()
    assert verify(folder / f"x{ending}", made_of_areas()[0].write(folder / f"x{ending}")).holds


@pytest.mark.parametrize(("tamper", "check"), REGIONS)
def test_wrong_regions_are_refused_and_found(
    tamper: Tamper, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, source = made_of_areas()
    beside = kept(made.write(tmp_path / "x.csv"))
    tamper(made.table).write_csv(tmp_path / "x.csv")
    verdict = verify(tmp_path / "x.csv", beside, source)
    assert {"file", check} <= {f.check for f in verdict.findings if not f.holds}
    genuine = storing.store
    monkeypatch.setattr("shoal.publishing.crosswalks.crosswalk.store", lambda frame, path: genuine(tamper(frame), path))
    with pytest.raises(VerificationError, match="nothing was published"):
        made.write(tmp_path / "y.csv")
    assert not list(tmp_path.glob("y*"))


def test_regions_that_cross_a_boundary_or_a_gap_are_refused(tmp_path: Path) -> None:
    table, pairs, numbers = areas()
    across = shoal.regions.merge(numbers, table["people"], 12, seed=1)
    with pytest.raises(VerificationError, match="boundary"):
        shoal.release(across, table, weight="people", edges=numbers, boundary="state").write(tmp_path / "x.csv")
    good = shoal.release(across, table, weight="people", edges=numbers)
    beside = kept(good.write(tmp_path / "x.csv"))
    assert verify(tmp_path / "x.csv", beside, [table, pairs]).holds
    verdict = verify(tmp_path / "x.csv", beside, [table, pairs[1:]])
    assert [f.check for f in verdict.findings if not f.holds] == ["connected"]
    with pytest.raises(InputError, match="does not belong"):
        shoal.release(across, table[::-1].with_columns(people=2), weight="people", edges=numbers)


def test_regions_on_the_command_line(tmp_path: Path) -> None:
    table, pairs, _ = areas()
    nodes, edges, out = tmp_path / "n.csv", tmp_path / "e.csv", tmp_path / "x.csv"
    table.write_csv(nodes)
    pairs.write_csv(edges)
    asked = ("--weight", "people", "--k", 6, "--boundary", "state", "--at-most", "areas=4", "-o", out, "--json")
    status, text, _ = run("regions", nodes, edges, *asked)
    said = json.loads(text)
    assert (status, said["certificate_file"]) == (0, str(tmp_path / "x.certificate.json"))
    check = ("verify", out, said["certificate_file"], "--json")
    assert run(*check)[0] == run(*check, "--original", nodes, "--original", edges)[0] == 0
    table.with_columns(people=pl.lit(4)).write_csv(nodes)
    status, text, _ = run(*check, "--original", nodes, "--original", edges)
    assert (status, [f["check"] for f in json.loads(text)["findings"] if not f["holds"]]) == (1, ["weight people"])


GROUPED = [moved, dropped, twice, small, grown, one_name, foreign]
CASES = [(kind, tamper) for kind in ("labels", "intervals") for tamper in GROUPED]


@pytest.mark.parametrize("kind", ["labels", "intervals"])
@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".parquet", ".xlsx"])
def test_genuine_ones_verify(kind: str, ending: str, tmp_path: Path) -> None:
    made, source = made_of(kind)
    beside = kept(made.write(tmp_path / f"x{ending}"))
    assert beside == tmp_path / "x.record.json"
    record = json.loads(beside.read_text())
    assert record["kind"] == kind
    for original in (None, source):
        verdict = verify(tmp_path / f"x{ending}", beside, original)
        assert verdict.holds, verdict.findings
        assert verdict.audit is None
    how = {f.check: f.how for f in verdict.findings}
    assert (how["counts"], how["cost"], how["bound"]) == ("recomputed",) * 3
    assert json.loads(json.dumps(verdict.as_dict()))["holds"]


@pytest.mark.parametrize(("kind", "tamper"), CASES)
def test_nothing_wrong_gets_its_name(
    kind: str, tamper: Tamper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = made_of(kind)
    genuine = storing.store
    monkeypatch.setattr(
        "shoal.publishing.crosswalks.crosswalk.store", lambda frame, path, *more: genuine(tamper(frame), path, *more)
    )
    (tmp_path / "x.csv").write_text("what was there")
    with pytest.raises(VerificationError, match="nothing was published"):
        made.write(tmp_path / "x.csv")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"x.csv": "what was there"}


@pytest.mark.parametrize(("kind", "tamper"), CASES)
def test_verify_finds_what_was_changed_afterwards(kind: str, tamper: Tamper, tmp_path: Path) -> None:
    made, source = made_of(kind)
    beside = kept(made.write(tmp_path / "x.csv"))
    tamper(made.table).write_csv(tmp_path / "x.csv")
    verdict = verify(tmp_path / "x.csv", beside, source)
    failed = {f.check for f in verdict.findings if not f.holds}
    assert "file" in failed
    assert failed - {"file"}, "the hash alone found it"


@pytest.mark.parametrize("kind", ["labels", "intervals"])
def test_a_certificate_that_was_changed(kind: str, tmp_path: Path) -> None:
    made, source = made_of(kind)
    beside = kept(made.write(tmp_path / "x.csv"))
    record = json.loads(beside.read_text())
    for part, name, value in (("parameters", "k", 2), ("facts", "smallest_group", 99), ("certificate", "cost", 10**6)):
        bent = json.loads(json.dumps(record))
        bent[part][name] = value
        beside.write_text(json.dumps(bent))
        assert not verify(tmp_path / "x.csv", beside, source).holds
    for part in ("facts", "parameters", "certificate"):
        bent = {name: held for name, held in record.items() if name != part}
        beside.write_text(json.dumps(bent))
        with pytest.raises(InputError):
            verify(tmp_path / "x.csv", beside)
    certificate = tmp_path / "x.certificate.json"
    certificate.write_text(json.dumps(json.loads(certificate.read_text()) | {"kind": "riddles"}))
    with pytest.raises(InputError, match="of a kind"):
        shoal.verify(tmp_path / "x.csv", certificate)


def test_another_source_is_found_out(tmp_path: Path) -> None:
    made, source = made_of("labels")
    beside = kept(made.write(tmp_path / "x.csv"))
    other = source.with_columns(people=pl.Series([5, 2, 2, 4, 3, 3, 0]))
    verdict = verify(tmp_path / "x.csv", beside, other)
    assert [f.check for f in verdict.findings if not f.holds] == ["counts"]
    less = verify(tmp_path / "x.csv", beside, source[1:])
    assert "values" in [f.check for f in less.findings if not f.holds]


def test_a_bound_too_good_is_found_out(tmp_path: Path) -> None:
    """The best cut is found again by trying every one."""
    from dataclasses import replace

    worse = shoal.release(shoal.intervals.cut(AGES["age"], None, 5, "range"), AGES, value="age")
    proof = replace(worse.certificate, lower_bound=worse.certificate.cost)
    bent = replace(worse, parameters={**worse.parameters, "k": 3}, certificate=proof)
    with pytest.raises(VerificationError, match="bound"):
        bent.write(tmp_path / "x.csv")


def test_an_answer_of_other_data_is_refused() -> None:
    found = shoal.labels.cover(NAMES["people"], 4)
    with pytest.raises(InputError, match="does not belong"):
        shoal.release(found, NAMES[::-1], label="name", count="people")
    with pytest.raises(InputError, match="none of column"):
        shoal.release(shoal.intervals.cut([1, 2, 3], None, 1), AGES, value="age")
    with pytest.raises(InputError, match="no answer"):
        shoal.release(3, NAMES)
    with pytest.raises(PolicyError, match="a release of labels needs the names of columns: label="):
        shoal.release(found, NAMES)
    with pytest.raises(PolicyError, match="lable"):
        shoal.release(found, NAMES, lable="name")
    short = shoal.labels.cover(NAMES["people"], 4, "bicriteria")
    with pytest.raises(PolicyError, match="not k-anonymous"):
        shoal.release(short, NAMES, label="name", count="people").write("x.csv")


def test_every_frame_is_taken(tmp_path: Path) -> None:
    NAMES.write_parquet(tmp_path / "t.parquet")
    found = shoal.labels.cover(NAMES["people"], 4)
    expected = made_of("labels")[0].table
    for data in (NAMES.to_pandas(), NAMES.to_arrow(), NAMES.lazy(), tmp_path / "t.parquet"):
        assert shoal.release(found, data, label="name", count="people").table.equals(expected)
    made = shoal.release(found, tmp_path / "t.parquet", label="name", count="people")
    with pytest.raises(InputError, match="is a file that is read"):
        made.write(tmp_path / "t.parquet")


def test_reports_and_pictures(tmp_path: Path) -> None:
    made, _ = made_of("labels")
    page = made.report(tmp_path / "r.html").read_text()
    assert "What was asked" in page
    assert "Adams" not in page
    assert made.plot(tmp_path / "p.svg").read_text().startswith("<svg")
    with pytest.raises(PolicyError, match="no map"):
        made.map(tmp_path / "m.html")
    with pytest.raises(PolicyError, match="exists already"):
        made.report(tmp_path / "r.html", overwrite=False)


def test_signed(tmp_path: Path) -> None:
    from shoal.publishing.documents import make_key

    private, public = make_key(tmp_path / "key")
    made, source = made_of("labels")
    beside = kept(made.write(tmp_path / "x.csv", sign=private))
    assert verify(tmp_path / "x.csv", beside, source, signer=public).holds
    made.write(tmp_path / "x.csv")
    assert not verify(tmp_path / "x.csv", beside, source, signer=public).holds


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 6)), min_size=1, max_size=12),
    st.integers(1, 6),
    st.sampled_from(["max", "squares", "range"]),
)
def test_drawn_ones_verify(tmp_path: Path, rows: list[tuple[int, int]], k: int, objective: str) -> None:
    frame = pl.DataFrame(rows, schema=["v", "n"], orient="row")
    if frame["n"].sum() < k:
        return
    sums = frame.group_by("v", maintain_order=True).agg(pl.col("n").sum())
    for made in (
        shoal.release(shoal.labels.cover(sums["n"], k), frame, label="v", count="n"),
        shoal.release(shoal.intervals.cut(frame["v"], frame["n"], k, objective), frame, value="v", count="n"),
    ):
        beside = kept(made.write(tmp_path / "x.csv"))
        verdict = verify(tmp_path / "x.csv", beside, frame)
        assert verdict.holds, verdict.findings


def made_of_points(coordinates: str = "projected") -> tuple[shoal.Crosswalk, pl.DataFrame]:
    rng = np.random.default_rng(4)
    x = (180 + rng.normal(0, 2, 60)).round(2)
    frame = pl.DataFrame({"x": np.where(x > 180, x - 360, x) if coordinates == "geographic" else x,
                          "y": rng.normal(-17, 1, 60).round(2), "n": rng.integers(1, 4, 60)})  # fmt: skip
    found = shoal.tiles.split(frame.select("x", "y").to_numpy(), 9, frame["n"].to_numpy(), coordinates=coordinates)
    return shoal.release(found, frame, x="x", y="y", weight="n"), frame


def stretched(frame: pl.DataFrame) -> pl.DataFrame:
    """One tile without bounds overlaps all others."""
    wide = [pl.when(pl.col("tile") == 2).then(None).otherwise(c).alias(c)
            for c in ("x_low", "x_high", "y_low", "y_high")]  # fmt: skip
    return frame.with_columns(wide)


def fuller(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(records=pl.col("records") + (pl.col("tile") == 2))


def elsewhere(frame: pl.DataFrame) -> pl.DataFrame:
    """The first place goes to a tile that does not hold it."""
    return pl.concat([frame[:1].select("x", "y").hstack(
        frame.filter(pl.col("tile") != frame["tile"][0])[:1].drop("x", "y")), frame[1:]])  # fmt: skip


TILES = [(stretched, "disjoint"), (fuller, "counts"), (elsewhere, "inside"), (dropped, "one row each")]


@pytest.mark.parametrize("coordinates", ["projected", "geographic"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_genuine_tiles_verify(ending: str, coordinates: str, tmp_path: Path) -> None:
    made, source = made_of_points(coordinates)
    beside = kept(made.write(tmp_path / f"x{ending}"))
    for original in (None, source):
        verdict = verify(tmp_path / f"x{ending}", beside, original)
        assert verdict.holds, verdict.findings
    assert {f.check: f.how for f in verdict.findings}["counts"] == "recomputed"


@pytest.mark.parametrize("coordinates", ["projected", "geographic"])
@pytest.mark.parametrize(("tamper", "check"), TILES)
def test_wrong_tiles_are_refused_and_found(
    tamper: Tamper, check: str, coordinates: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, source = made_of_points(coordinates)
    beside = kept(made.write(tmp_path / "x.csv"))
    tamper(made.table).write_csv(tmp_path / "x.csv")
    verdict = verify(tmp_path / "x.csv", beside, source)
    assert {"file", check} <= {f.check for f in verdict.findings if not f.holds}
    genuine = storing.store
    monkeypatch.setattr("shoal.publishing.crosswalks.crosswalk.store", lambda frame, path: genuine(tamper(frame), path))
    with pytest.raises(VerificationError, match="nothing was published"):
        made.write(tmp_path / "y.csv")
    assert not list(tmp_path.glob("y*"))


@pytest.mark.parametrize("older", ["certificate", "release"])
def test_of_a_crosswalk_and_a_certificate_of_two_runs_the_older_is_named(tmp_path: Path, older: str) -> None:
    """What a kill between two renames leaves."""
    target = tmp_path / "x.csv"
    beside = made_of("labels")[0].write(target)
    kept = (beside if older == "certificate" else target).read_bytes()
    time = 2 * 10**9 if older == "certificate" else 10**9  # seconds: when the file was written
    shoal.release(shoal.labels.cover(NAMES["people"], 7), NAMES, label="name", count="people").write(target)
    (beside if older == "certificate" else target).write_bytes(kept)
    os.utime(target, (time, time))
    file = verify(target, beside).findings[0]
    assert (file.check, file.holds) == ("file", False)
    assert f"by their times the {older} is the older" in file.found


POINTS = [(float(i % 4), float(i // 4)) for i in range(12)]
LINE = [(i, i + 1) for i in range(11)]
CODED = pl.DataFrame({"code": ["1"], "lat": [1], "lng": [1]})
ODD: dict[str, Any] = {
    "longitudes": lambda v: shoal.tiles.split([(v, 1.0), *POINTS], 3, coordinates="geographic"),
    "latitudes": lambda v: shoal.tiles.split([(1.0, v), *POINTS], 3, coordinates="geographic"),
    "records of places": lambda v: shoal.tiles.split(POINTS, 3, [1] * 11 + [f"{v}x"]),
    "weights": lambda v: shoal.regions.merge(LINE, [3] * 11 + [v], 5),
    "costs": lambda v: shoal.gathering.cellular(POINTS, 2, [1.0] * 11 + [-v]),
    "codes": lambda v: Features.of(
        pl.DataFrame({"zip": ["1", str(v)]}), FeatureColumns(["zip"], coordinates={"zip": CODED})
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_a_refusal_of_a_problem_shows_no_value(what: str) -> None:
    for value in (735.19, -735.19) if what != "costs" else (735.19,):
        with pytest.raises(InputError) as refused:
            ODD[what](value)
        assert "735" not in "".join(traceback.format_exception(refused.value)[-1:])
        assert "735" not in str(refused.value.__cause__)


def test_missing_sensitive_values_are_one_of_their_own() -> None:
    found = shoal.gathering.gather(POINTS, 3, sensitive=["a", None] * 6, distinct_l=2)
    assert found.sizes.min() >= 3


def test_no_crosswalk_of_tiles_tells_the_order_of_the_table(tmp_path: Path) -> None:
    written = set()
    for order in (range(12), range(11, -1, -1)):
        held = pl.DataFrame([POINTS[i] for i in order], schema=["x", "y"], orient="row")
        made = shoal.release(shoal.tiles.split(held.to_numpy(), 3), held, x="x", y="y")
        made.write(tmp_path / "out.csv")
        written.add((tmp_path / "out.csv").read_text())
    assert len(written) == 1


@pytest.mark.parametrize("objective", [None, "count", "sumsq", "excess", ["count", "max"]])
@pytest.mark.parametrize("number", [None, 2])
def test_a_release_of_regions_knows_the_answers_objective(objective: Any, number: int | None, tmp_path: Path) -> None:
    """Without being told, and where a number of regions is asked for, of which "count" says nothing."""
    areas, edges = pl.DataFrame({"id": list("abcd"), "pop": [3, 2, 4, 3]}), [(0, 1), (1, 2), (2, 3)]
    pairs = pl.DataFrame([("a", "b"), ("b", "c"), ("c", "d")], orient="row", schema=["from", "to"])
    answer = shoal.regions.merge(edges, areas["pop"].to_list(), 3, objective=objective, regions=number, seed=1)
    for told in ({}, {} if objective is None else {"objective": objective}):
        made = shoal.release(answer, areas, weight="pop", edges=edges, id="id", regions=number, **told)
        record = kept(made.write(tmp_path / "o.csv"))
        verdict = verify(tmp_path / "o.csv", record, original=[areas, pairs])
        assert verdict.holds, [f for f in verdict.findings if not f.holds]
        assert made.parameters["objective"] == answer.certificate.details["objective"][0]
    with pytest.raises(PolicyError, match="leave objective= out"):
        shoal.release(answer, areas, weight="pop", edges=edges, id="id", regions=number, objective="compact")


def test_the_bound_of_intervals_of_texts_is_found_again(tmp_path: Path) -> None:
    frame = pl.DataFrame({"name": ["a", "b", "c"], "people": [3, 3, 3]})
    out = shoal.release(shoal.intervals.cut(["a", "b", "c"], [3] * 3, 4), frame, value="name", count="people")
    out.write(tmp_path / "c.csv")  # one interval of 9: counting alone says 5
    found = {f.check: f for f in verify(tmp_path / "c.csv", original=frame).findings}
    assert (out.certificate.lower_bound, found["bound"].how) == (9, "recomputed")
