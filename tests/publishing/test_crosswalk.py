"""Crosswalks on their way out: what is tampered with is refused before the file appears, and by verify afterwards."""

import json
import os
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
from shoal.engines.features import FeatureColumns, Features
from shoal.errors import InputError, PolicyError, VerificationError
from tests.commands import run
from tests.data import AGES, AREAS, NAMES, NEIGHBORS, PAIRS, released
from tests.data import LINE as RECORDS
from tests.kept import failing, forge, holding, kept, prove, verify


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
    assert verify(folder / f"x{ending}", released("regions")[0].write(folder / f"x{ending}")).holds


def test_regions_that_cross_a_boundary_or_a_gap_are_refused(tmp_path: Path) -> None:
    table, pairs, numbers = AREAS, NEIGHBORS, PAIRS
    across = shoal.regions.merge(numbers, table["people"], 12, seed=1)
    with pytest.raises(VerificationError, match="boundary"):
        shoal.release(across, table, weight="people", edges=numbers, boundary="state").write(tmp_path / "x.csv")
    good = shoal.release(across, table, weight="people", edges=numbers)
    beside = kept(good.write(tmp_path / "x.csv"))
    assert verify(tmp_path / "x.csv", beside, [table, pairs]).holds
    verdict = verify(tmp_path / "x.csv", beside, [table, pairs[1:]])
    assert failing(verdict) == ["connected"]
    with pytest.raises(InputError, match="does not belong"):
        shoal.release(across, table[::-1].with_columns(people=2), weight="people", edges=numbers)


def test_a_public_page_beside_a_hierarchy_alone_would_state_weights_that_it_does_not_show(tmp_path: Path) -> None:
    made = released("regions")[0]
    made.write(None, also={"hierarchy": tmp_path / "h.csv"})
    with pytest.raises(PolicyError, match="a hierarchy alone does not show"):
        made.report(tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()
    assert made.report(tmp_path / "r.html", internal=True).name == "r.internal.html"
    made.write(tmp_path / "x.csv", also={"hierarchy": tmp_path / "h.csv"})
    assert made.report(tmp_path / "r.html").exists()


def test_regions_on_the_command_line(tmp_path: Path) -> None:
    table, pairs = AREAS, NEIGHBORS
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


_OLD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # problem, settings of the call, what a certificate of an earlier version states too; the method doesn't read it
    ("labels", {}, {"order": "given", "seed": 3}),
    ("labels", {"method": "exact"}, {"order": "random", "seed": 3}),
    ("labels", {"method": "fold", "order": "given"}, {"seed": 3}),
    ("tiles", {}, {"rule": "median"}),
    ("gather", {"method": "exact"}, {"improve": True}),
    ("gather", {"sensitive": RECORDS["d"], "l": 2}, {"improve": True}),
    ("cellular", {}, {}),
]


@pytest.mark.parametrize(("kind", "how", "stated"), _OLD)
def test_an_older_answer_is_found_again_without_what_its_method_does_not_read(
    kind: str, how: dict[str, Any], stated: dict[str, Any], tmp_path: Path
) -> None:
    frame = NAMES if kind == "labels" else RECORDS.with_columns(y=pl.col("x") * 7 % 5)
    if kind == "labels":
        made = shoal.release(shoal.labels.cover(NAMES["people"], 4, **how), NAMES, label="name", count="people")
    elif kind == "tiles":
        made = shoal.release(shoal.tiles.split(frame[["x", "y"]], 3, **how), frame, x="x", y="y")
    else:
        solve: Any = getattr(shoal.gathering, kind)
        more = {"sensitive": ["d"]} if "sensitive" in how else {}
        made = shoal.release(solve(frame[["x"]], r=3, **how), frame, columns=["x"], **more)
    record = kept(made.write(tmp_path / "x.csv"))
    forge(record, lambda facts: facts["certificate"]["details"]["run"].update(stated))
    assert holding(prove(tmp_path / "x.csv", record, frame, effort="same"))


def test_another_source_is_found_out(tmp_path: Path) -> None:
    made, source = released("labels")
    beside = kept(made.write(tmp_path / "x.csv"))
    other = source.with_columns(people=pl.Series([5, 2, 2, 4, 3, 3, 0]))
    verdict = verify(tmp_path / "x.csv", beside, other)
    assert failing(verdict) == ["counts"]
    less = verify(tmp_path / "x.csv", beside, source[1:])
    assert "values" in failing(less)


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
    expected = released("labels")[0].table
    for data in (NAMES.to_pandas(), NAMES.to_arrow(), NAMES.lazy(), tmp_path / "t.parquet"):
        assert shoal.release(found, data, label="name", count="people").table.equals(expected)
    made = shoal.release(found, tmp_path / "t.parquet", label="name", count="people")
    with pytest.raises(InputError, match="is a file that is read"):
        made.write(tmp_path / "t.parquet")


def test_reports_and_pictures(tmp_path: Path) -> None:
    made, _ = released("labels")
    page = made.report(tmp_path / "r.html").read_text()
    assert "The request" in page
    assert "Adams" not in page
    assert made.plot(tmp_path / "p.svg").read_text().startswith("<svg")
    with pytest.raises(PolicyError, match="a map needs coordinates or polygons"):
        made.map(tmp_path / "m.html")
    held = {path: path.read_bytes() for path in (tmp_path / "r.html", tmp_path / "p.svg")}
    for draw, path in zip((made.report, made.plot), held, strict=True):
        with pytest.raises(PolicyError, match="exists already"):
            draw(path, overwrite=False)
    assert held == {path: path.read_bytes() for path in held}


def test_signed(tmp_path: Path) -> None:
    from shoal.publishing.documents import make_key

    private, public = make_key(tmp_path / "key")
    made, source = released("labels")
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
        holding(verify(tmp_path / "x.csv", beside, frame))


@pytest.mark.parametrize("older", ["certificate", "release"])
def test_of_a_crosswalk_and_a_certificate_of_two_runs_the_older_is_named(tmp_path: Path, older: str) -> None:
    """What a kill between two renames leaves."""
    target = tmp_path / "x.csv"
    beside = released("labels")[0].write(target)
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


def test_a_unit_belongs_to_the_place_or_the_column_that_has_one() -> None:
    table = pl.DataFrame({"lat": [1.0, 2.0], "lng": [3.0, 4.0], "place": ["Ulm", "Bonn"]})
    both = FeatureColumns(["place"], place=("lat", "lng"), units={"place": "km"})
    assert [f.unit for f in Features.of(table, both).metric.features if f.name == "place" and hasattr(f, "unit")] == [
        "km"
    ]
    Features.of(table, FeatureColumns(["place"], units={"place": ""}))
    with pytest.raises(PolicyError, match="column 'place' holds words or codes, which have no unit"):
        Features.of(table, FeatureColumns(["place"], units={"place": "km"}))


@pytest.mark.parametrize("unit", ["km", ""])
def test_codes_with_coordinates_are_measured_in_km(unit: str) -> None:
    table = pl.DataFrame({"zip": ["89073", "53111"]})
    at = pl.DataFrame({"zip": ["89073", "53111"], "lat": [48.4, 50.7], "lng": [10.0, 7.1]})
    made = Features.of(table, FeatureColumns(["zip"], coordinates={"zip": at}, units={"zip": unit}))
    assert made.metric.features[0].unit == "km"
    with pytest.raises(PolicyError, match="the coordinates of 'zip' are measured in km, not 'miles'"):
        Features.of(table, FeatureColumns(["zip"], coordinates={"zip": at}, units={"zip": "miles"}))


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
        holding(verify(tmp_path / "o.csv", record, original=[areas, pairs]))
        assert made.parameters["objective"] == answer.certificate.details["objective"][0]
    with pytest.raises(PolicyError, match="leave objective= out"):
        shoal.release(answer, areas, weight="pop", edges=edges, id="id", regions=number, objective="compact")


@pytest.mark.parametrize("objective", ["max", "sumsq"])
def test_the_command_and_python_count_regions_in_the_column_of_weights(objective: str, tmp_path: Path) -> None:
    areas, edges = pl.DataFrame({"id": list("abcd"), "cows": [3, 2, 4, 3]}), [(0, 1), (1, 2), (2, 3)]
    pairs = pl.DataFrame([("a", "b"), ("b", "c"), ("c", "d")], orient="row", schema=["from", "to"])
    areas.write_csv(tmp_path / "areas.csv")
    pairs.write_csv(tmp_path / "pairs.csv")
    asked = ["--weight", "cows", "--k", 5, "--objective", objective, "--seed", 1, "-o", tmp_path / "cli.csv"]
    run("regions", tmp_path / "areas.csv", tmp_path / "pairs.csv", *asked).ok()
    squared = "squared " if objective == "sumsq" else ""
    assert json.loads((tmp_path / "cli.certificate.json").read_text())["certificate"]["unit"] == f"{squared}cows"
    for found in (shoal.regions.merge, shoal.regions.nested):
        k: Any = 5 if found is shoal.regions.merge else [5, 12]
        answer = found(edges, areas["cows"].to_list(), k, objective=objective, seed=1)
        first = answer if found is shoal.regions.merge else answer.levels[0]
        assert first.certificate.unit == f"{squared}weight"
        made = shoal.release(answer, areas, weight="cows", edges=edges, id="id")
        assert made.certificate.unit == f"{squared}cows"
        assert [level["unit"] for level in made.facts.get("levels", ())] in ([], [f"{squared}cows"])
        named = found(edges, areas["cows"].to_list(), k, objective=objective, seed=1, unit="head of cattle")
        made = shoal.release(named, areas, weight="cows", edges=edges, id="id")
        assert made.certificate.unit == f"{squared}head of cattle"


@pytest.mark.parametrize(("own", "other"), [("count", "sumsq"), ("sumsq", "count"), ("count", "compact")])
def test_a_release_of_regions_refuses_another_objective(own: str, other: str) -> None:
    areas, edges = pl.DataFrame({"id": list("abcd"), "pop": [3, 2, 4, 3]}), [(0, 1), (1, 2), (2, 3)]
    answer = shoal.regions.merge(edges, areas["pop"].to_list(), 3, objective=own, seed=1)
    with pytest.raises(PolicyError, match=f"objective is '{own}', not '{other}'; leave objective= out"):
        shoal.release(answer, areas, weight="pop", edges=edges, id="id", objective=other)


@pytest.mark.parametrize("number", [None, 2])
@pytest.mark.parametrize(("objective", "more"), [("similar", {"similar": ["x"]}), ("compact", {})])
def test_a_release_of_regions_takes_the_objective_of_its_answer(objective: str, more: Any, number: int | None) -> None:
    areas, edges = pl.DataFrame({"id": list("abcd"), "pop": [3, 2, 4, 3], "x": [0, 1, 2, 3]}), [(0, 1), (1, 2), (2, 3)]
    asked = {"coordinates": np.column_stack([areas["x"], areas["x"]]), "geographic": False, "regions": number}
    asked |= {"similar": areas["x"].to_numpy()} if more else {}
    answer = shoal.regions.merge(edges, areas["pop"].to_list(), 3, objective=objective, seed=1, **asked)
    told = {"weight": "pop", "edges": edges, "id": "id", "regions": number, **more}
    made = shoal.release(answer, areas, objective=objective, **told)
    assert made.parameters["objective"] == answer.certificate.details["objective"][0]
    with pytest.raises(PolicyError, match="leave objective= out"):
        shoal.release(answer, areas, objective="excess", **told)


def test_the_bound_of_intervals_of_texts_is_found_again(tmp_path: Path) -> None:
    frame = pl.DataFrame({"name": ["a", "b", "c"], "people": [3, 3, 3]})
    out = shoal.release(shoal.intervals.cut(["a", "b", "c"], [3] * 3, 4), frame, value="name", count="people")
    out.write(tmp_path / "c.csv")  # one interval of 9: counting alone says 5
    found = {f.check: f for f in verify(tmp_path / "c.csv", original=frame).findings}
    assert (out.certificate.lower_bound, found["bound"].how) == (9, "recomputed")


def commas(table: pl.DataFrame, *names: str) -> pl.DataFrame:
    """A table in which columns of numbers are texts with decimal commas."""
    return table.with_columns(pl.col(names).cast(pl.String).str.replace(".", ",", literal=True))


PLACES = pl.DataFrame(
    {"lng": [9 + i * 7 % 30 / 8 for i in range(30)], "lat": [48 + i * 11 % 30 / 8 for i in range(30)]}
)
MARKS = {"lng": ",", "lat": ","}


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_tiles_of_coordinates_with_decimal_commas_are_those_of_the_numbers(tmp_path: Path, kind: str) -> None:
    found = shoal.tiles.split(PLACES.to_numpy(), 5, coordinates="geographic")
    texts: Any = commas(PLACES, "lng", "lat")
    texts.write_csv(tmp_path / "points.csv", separator=";")
    texts = texts.to_pandas() if kind == "pandas" else texts
    plain = shoal.release(found, PLACES, x="lng", y="lat")
    made = shoal.release(found, texts, x="lng", y="lat", decimal=MARKS)
    assert made.table.equals(plain.table)
    made.write(tmp_path / "tiles.csv")
    for original in (texts, tmp_path / "points.csv"):
        holding(shoal.verify(tmp_path / "tiles.csv", original=original))
    assert shoal.prove(tmp_path / "tiles.csv", original=tmp_path / "points.csv").holds
    for data in (PLACES, texts):
        assert shoal.assign(tmp_path / "tiles.csv", data).groups == found.labels.tolist()
    renamed = commas(PLACES, "lng", "lat").rename({"lng": "a", "lat": "b"})
    assert shoal.assign(plain, renamed, x="a", y="b", decimal={"a": ",", "b": ","}).groups == found.labels.tolist()
    with pytest.raises(
        InputError, match="'a' holds no numbers in any row; write decimal points for its commas, or name"
    ):
        shoal.assign(plain, renamed, x="a", y="b")
    with pytest.raises(InputError, match=r"'lng' has no finite number with the decimal mark '.'"):
        shoal.release(found, commas(PLACES, "lng", "lat"), x="lng", y="lat", decimal={"lng": "."})
    with pytest.raises(PolicyError, match="'age' is not a column of coordinates"):
        shoal.release(found, texts, x="lng", y="lat", decimal={"age": ","})


def test_clusters_of_places_with_decimal_commas_are_those_of_the_numbers(tmp_path: Path) -> None:
    texts = commas(PLACES, "lng", "lat")
    asked = FeatureColumns((), place=("lat", "lng"), decimal=MARKS)
    features, same = Features.of(texts, asked), Features.of(PLACES, FeatureColumns((), place=("lat", "lng")))
    assert all((a == b).all() for a, b in zip(features.values, same.values, strict=True))
    found = shoal.gathering.gather(tuple(features.values), 4, metric=features.metric)
    plain = shoal.release(found, PLACES, columns=[], place=("lat", "lng"), center="mean")
    made = shoal.release(found, texts, columns=[], place=("lat", "lng"), decimal=MARKS, center="mean")
    assert made.table.equals(commas(plain.table, "lat", "lng"))
    texts.write_csv(tmp_path / "points.csv", separator=";")
    made.write(tmp_path / "centers.csv")
    holding(shoal.verify(tmp_path / "centers.csv", original=tmp_path / "points.csv"))
    assert shoal.prove(tmp_path / "centers.csv", original=tmp_path / "points.csv").holds
    with pytest.raises(PolicyError, match="'lat' and 'lng' are one place; name the same decimal mark"):
        Features.of(texts, FeatureColumns((), place=("lat", "lng"), decimal={"lat": ","}))


def test_areas_with_decimal_commas_are_those_of_the_numbers(tmp_path: Path) -> None:
    plain = pl.DataFrame({"id": list("abcdef"), "people": [5, 3, 4, 6, 2, 7], "rent": [9.5, 9.25, 3.5, 3.25, 8.5, 3.0]})
    pl.DataFrame({"u": list("abcde"), "v": list("bcdef")}).write_csv(tmp_path / "pairs.csv")
    plain.write_csv(tmp_path / "plain.csv")
    commas(plain, "rent").write_csv(tmp_path / "areas.csv", separator=";")
    asked = ("pairs.csv", "--weight", "people", "--k", "8", "--similar", "rent", "--seed", "1", "-o")
    refused = run("regions", "areas.csv", *asked, "no.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--decimal rent=," in refused.stderr
    run("regions", "areas.csv", *asked, "out.csv", "--decimal", "rent=,", cwd=tmp_path).ok()
    run("regions", "plain.csv", *asked, "same.csv", cwd=tmp_path).ok()
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "same.csv").read_bytes()
    run("verify", "out.csv", "--original", "areas.csv", "--original", "pairs.csv", cwd=tmp_path).ok()


@pytest.mark.parametrize("kind", ["tiles", "gather", "regions", "labels"])
@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".parquet"])
def test_empty_texts_beside_missing_values_are_for_parquet(kind: str, ending: str, tmp_path: Path) -> None:
    """A text file makes them one value, so that what was judged would not be what is read."""
    n = 24
    ids = [f"z{i}" for i in range(n)]
    frame = pl.DataFrame({"id": ids, "x": range(n), "y": range(n), "ill": ["", None, "flu"] * 8, "people": [3] * n})
    out = tmp_path / f"r{ending}"
    if kind == "tiles":
        found = shoal.tiles.split(frame.select("x", "y").to_numpy(), 3, sensitive=frame["ill"].to_list(), distinct_l=2)
        made = shoal.release(found, frame.drop("id", "people"), x="x", y="y", sensitive="ill")
    elif kind == "gather":
        found = shoal.gathering.gather(frame.select("x").to_numpy(), 3, sensitive=np.arange(n) % 3, distinct_l=2)
        made = shoal.release(found, frame, columns=["x"], sensitive=["ill"])
    elif kind == "regions":
        pairs = np.array([(i, i + 3) for i in range(n - 3)])
        found = shoal.regions.merge(pairs, frame["people"], 6, boundary=frame["ill"].to_list())
        made = shoal.release(found, frame, weight="people", edges=pairs, boundary="ill")
    else:
        made = shoal.release(shoal.labels.cover([8, 8, 8], 8), frame, label="ill")
    if ending == ".parquet":
        record = kept(made.write(out))
        assert verify(out, record).holds
    else:
        with pytest.raises(InputError, match="'ill' has empty texts and missing values"):
            made.write(out)
        assert not out.exists()


@pytest.mark.parametrize("kind", ["gather", "cellular"])
def test_centers_with_empty_texts_beside_missing_values_are_for_parquet(kind: str, tmp_path: Path) -> None:
    """A center that is read with a missing value has other distances than one with an empty text."""
    frame = pl.DataFrame({"x": range(24), "sex": ["", None, "f", "m"] * 6})
    frame.write_parquet(tmp_path / "t.parquet")
    asked = [kind, tmp_path / "t.parquet", "--columns", "x,sex", "--r", 3]
    for ending in (".csv", ".xlsx", ".sav"):
        run(*asked, "-o", tmp_path / f"r{ending}").refused(2, "column 'sex' has empty texts and missing values")
    run(*asked, "-o", tmp_path / "r.parquet").ok()
    run("verify", tmp_path / "r.parquet", "--original", tmp_path / "t.parquet").ok()


@pytest.mark.parametrize("kind", ["tiles", "gather", "regions", "labels"])
def test_a_csv_with_both_has_missing_values_alone(kind: str, tmp_path: Path) -> None:
    lines = [f"z{i},{i},{i},3,{('', chr(34) * 2, 'flu')[i % 3]}" for i in range(24)]
    (tmp_path / "t.csv").write_text("id,x,y,people,ill\n" + "\n".join(lines) + "\n")
    (tmp_path / "e.csv").write_text("a,b\n" + "".join(f"z{i},z{i + 1}\nz{i},z{i + 2}\n" for i in range(22)))
    more = {
        "tiles": ["--x", "x", "--y", "y", "--k", 3, "--sensitive", "ill", "--distinct-l", 2],
        "gather": ["--columns", "x", "--r", 3, "--sensitive", "ill", "--distinct-l", 2],
        "regions": [tmp_path / "e.csv", "--id", "id", "--weight", "people", "--k", 6, "--soft-boundary", "ill"],
        "labels": ["--label", "ill", "--k", 8],
    }[kind]
    run(kind, tmp_path / "t.csv", *more, "-o", tmp_path / "r.csv").ok()
    asked = ["verify", tmp_path / "r.csv", "--original", tmp_path / "t.csv"]
    if kind == "regions":
        run(*asked).refused(2, "the pairs of neighbors, or the polygons, as a second --original")
        asked += ["--original", tmp_path / "e.csv"]
    run(*asked).ok()


@pytest.mark.parametrize(("sensitive", "named"), [("ill", "the sensitive column"), ("y,ill", "column number 2")])
def test_a_sensitive_column_that_no_clusters_can_hide_is_named(sensitive: str, named: str, tmp_path: Path) -> None:
    pl.DataFrame({"x": range(6), "y": range(6), "ill": ["flu"] * 4 + ["gout"] * 2}).write_csv(tmp_path / "t.csv")
    asked = [
        "gather",
        tmp_path / "t.csv",
        "--columns",
        "x",
        "--r",
        2,
        "--sensitive",
        sensitive,
        "-o",
        tmp_path / "r.csv",
    ]
    run(*asked, "--l", 2).refused(3, f"{named} is 66.7 % of the points")
    run(*asked, "--distinct-l", 3).refused(3, f"{named} has 2 different values")


def test_an_empty_text_has_no_place_in_an_order() -> None:
    """In a text file it is a missing value."""
    frame = pl.DataFrame({"v": ["x", "", "b"] * 4})
    with pytest.raises(InputError, match="'v' has missing values, which have no place in an order"):
        shoal.release(shoal.intervals.cut(frame["v"], None, 4), frame, value="v")
