"""``shoal tiles`` with every setting, what it writes judged again by ``shoal verify``; and ``shoal assign``."""

import json
import os

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError, VerificationError
from shoal.model.certificate import Certificate
from shoal.publishing.sources import Sources, findings
from tests.commands import run
from tests.kept import forge, holding, kept, put, verify


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("points") / "points.csv"
    pl.DataFrame(
        {
            "lng": rng.normal(-100, 2, 600).round(3),
            "lat": rng.normal(40, 1, 600).round(3),
            "state": rng.choice(["NE", "KS"], 600),
            "illness": rng.choice(["flu", "gout", "none"], 600),
            "patient": rng.integers(0, 300, 600),
        }
    ).write_csv(path)
    return path


@pytest.fixture(scope="module")
def everything(points, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    done = run(
        "tiles", points, "--x", "lng", "--y", "lat", "--k", 6, "--boundary", "state", "--sensitive", "illness",
        "--distinct-l", 2, "--person", "patient", "--max-width", 150, "--grid", 0.01, "--center", "draw",
        "--sparse", "leave-out", "--seed", 3, "-o", folder / "c.csv", "--tiles", folder / "t.geojson",
        "--table", folder / "table.csv", "--certificate", folder / "p.json", "--map", folder / "m.html", "--json",
    )  # fmt: skip
    return folder, done.facts


def test_the_same_from_python(everything, points):
    folder, said = everything
    frame = pl.read_csv(points)
    found = shoal.tiles.split(
        frame.select("lng", "lat").to_numpy(), 6, coordinates="geographic", boundary=frame["state"],
        sensitive=frame["illness"], distinct_l=2, person=frame["patient"], max_width=150, grid=0.01, center="draw",
        sparse="leave-out", seed=3,
    )  # fmt: skip
    assert (len(found), found.cost) == (said["tiles"], said["cost"])
    own = pl.read_csv(folder / "c.csv").unique("tile").sort("tile")
    assert np.allclose(own.select("lng_low", "lat_low", "lng_high", "lat_high").to_numpy(), found.bounds)
    assert said["rows_left_out"] == int((found.labels < 0).sum())
    assert own["persons"].min() >= 6


@pytest.mark.parametrize("name", ["c.csv", "t.geojson", "table.csv"])
def test_every_output_verifies_and_a_changed_one_does_not(everything, points, name, tmp_path):
    folder, _ = everything
    holding(verify(folder / name, folder / "p.json", points))
    text = (folder / name).read_text()
    (tmp_path / name).write_text(text.replace("NE", "KS", 1))
    assert not verify(tmp_path / name, folder / "p.json", points).holds


def test_the_table_has_neither_coordinates_nor_persons(everything):
    folder, said = everything
    table = pl.read_csv(folder / "table.csv")
    assert not {"lng", "lat", "patient"} & set(table.columns)
    assert table.group_by("tile").agg(pl.col("illness").n_unique(), pl.col("state").n_unique()).select(
        (pl.col("illness") >= 2).all(), (pl.col("state") == 1).all()
    ).row(0) == (True, True)  # fmt: skip
    assert len(table) + said["rows_left_out"] == 600


CHANGES = {
    "width": lambda f: f.with_columns(lat_high=pl.col("lat_high") + 5),
    "grid": lambda f: f.with_columns(lat_low=pl.col("lat_low") - 0.0003),
    "extent": lambda f: f.with_columns(lng_low=pl.lit(None, pl.Float64)),
    "persons": lambda f: f.with_columns(persons=pl.lit(5)),
    "persons counted": lambda f: f.with_columns(persons=pl.col("persons") + 1),
    "disjoint": lambda f: f.with_columns(lng_low=pl.col("lng_low") - 1),
    "counts": lambda f: f.with_columns(records=pl.col("records") + 1),
    "tiles": lambda f: f.with_columns(lat_high=pl.col("lat_high") + pl.int_range(f.height) * 0.01),
}


@pytest.mark.parametrize("check", CHANGES)
def test_the_judge_finds_what_breaks_a_setting(everything, points, check):
    """A judge that is handed a certificate that fits, and a file that does not keep to what was asked."""
    folder, _ = everything
    record = json.loads((folder / "p.record.json").read_text())
    frame = CHANGES[check](pl.read_csv(folder / "c.csv"))
    found = findings(
        record, Certificate.from_dict(record["certificate"]), frame, "parquet", Sources(pl.read_csv(points))
    )
    assert check in {f.check for f in found if not f.holds}


def test_the_judge_counts_sensitive_values_again(points, everything):
    folder, _ = everything
    record = json.loads((folder / "p.record.json").read_text())
    same = pl.read_csv(points).with_columns(illness=pl.lit("flu"))
    certificate = Certificate.from_dict(record["certificate"])
    found = findings(record, certificate, pl.read_csv(folder / "c.csv"), "parquet", Sources(same))
    assert [f.check for f in found if not f.holds] == ["distinct l"]
    record["parameters"]["l"] = 2
    table = pl.read_csv(folder / "table.csv").with_columns(illness=pl.lit("flu"))
    found = findings(record, certificate, table, "parquet", Sources(), "table")
    assert {f.check for f in found if not f.holds} == {"l", "distinct l"}


def test_the_certificate_states_the_order_of_the_table(points, tmp_path):
    (tmp_path / "key").write_bytes(b"sixteen bytes or more")
    asked = ["tiles", points, "--x", "lng", "--y", "lat", "--k", 6, "--table", tmp_path / "t.csv", "--tiles", "x.csv"]
    asked += ["--identifiers", "patient", "--force"]
    orders = []
    for more in ([], ["--secret", tmp_path / "key"], ["--keep-order"]):
        run(*asked, *more, cwd=tmp_path).ok()
        held = {part["part"]: part for part in json.loads((tmp_path / "t.certificate.json").read_text())["also"]}
        orders.append(held["table"]["order"])
        assert "order" not in held["tiles"]
        run("verify", tmp_path / "t.csv", "--original", points).ok()
    assert orders == ["fresh secret", "caller's secret", "as in the table"]


@pytest.mark.parametrize("command", ["tiles", "gather"])
def test_an_order_that_is_none_of_the_words_is_refused(command, points, tmp_path):
    where = ["--x", "lng", "--y", "lat", "--k", 6, "--identifiers", "patient", "--table"]
    asked = where if command == "tiles" else ["--columns", "lng,lat", "--r", 60, "--assignments"]
    run(command, points, *asked, tmp_path / "t.csv").ok()
    certificate = tmp_path / "t.certificate.json"
    for paper in (certificate, kept(certificate)):
        forge(paper, lambda facts: facts["also"][0].pop("order"))
    holding(shoal.verify(tmp_path / "t.csv", certificate))  # as certificates of tiles had none
    for paper in (certificate, kept(certificate)):
        forge(paper, put("also", 0, "order", to="by the name Ada Byron"))
    with pytest.raises(VerificationError, match="states no order of rows that there is"):
        shoal.verify(tmp_path / "t.csv", certificate)


@pytest.mark.parametrize("command", ["tiles", "gather"])
def test_a_secret_may_come_from_a_pipe(command, points, tmp_path):
    where = ["--x", "lng", "--y", "lat", "--k", 6, "--identifiers", "patient", "--table"]
    asked = where if command == "tiles" else ["--columns", "lng,lat", "--r", 60, "--assignments"]
    written = []
    for _ in range(2):
        end, begin = os.pipe()
        os.write(begin, b"sixteen bytes or more")
        os.close(begin)
        run(command, points, *asked, tmp_path / "t.csv", "--secret", f"/dev/fd/{end}", "--force").ok()
        os.close(end)
        written.append((tmp_path / "t.csv").read_bytes())
    assert written[0] == written[1]


def test_assign_at_the_command_line(everything, points, tmp_path):
    folder, _ = everything
    frame = pl.read_csv(points).head(40).with_columns(lng=pl.col("lng") + 0.001)
    frame.write_csv(tmp_path / "new.csv")
    done = run("assign", folder / "c.csv", tmp_path / "new.csv", "--certificate", folder / "p.json",
               "-o", tmp_path / "out.csv", "--json")  # fmt: skip
    said = done.facts
    assert said["rows"] == 40
    back = pl.read_csv(tmp_path / "out.csv")
    assert back["tile"].null_count() == said["outside"]
    assert "lng" not in back.columns
    people = run("assign", folder / "c.csv", tmp_path / "new.csv", "--certificate", folder / "p.json")
    assert "not with the new ones alone" in people.stdout


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"sensitive": "illness"}, PolicyError, "belong together"),
        ({"l": 2}, PolicyError, "belong together"),
        ({"sensitive": "illness", "l": 0}, PolicyError, "at least 1"),
        ({"sensitive": "illness", "distinct_l": 1.5}, PolicyError, "whole number"),
        ({"max_width": 3, "extent": "plane"}, PolicyError, "needs tiles with ends"),
        ({"max_width": 0}, PolicyError, "above 0"),
        ({"max_width": 0.001}, InfeasibleError, "leave-out"),
        ({"max_width": 0.001, "sparse": "leave-out"}, InfeasibleError, "every record"),
        ({"grid": 7}, PolicyError, "divide 180"),
        ({"grid": -1}, PolicyError, "above 0"),
        ({"center": "middle"}, PolicyError, "center"),
        ({"center": "draw", "extent": "plane"}, PolicyError, "needs tiles with ends"),
        ({"sparse": "drop"}, PolicyError, "records in no tile"),
        ({"person": "patient", "weights": "patient"}, PolicyError, "one record"),
        ({"person": "patient", "sensitive": "illness", "l": 2}, PolicyError, "distinct"),
        ({"method": "proportional", "max_width": 300}, PolicyError, "proportional"),
        ({"boundary": "patient"}, InfeasibleError, "fewer than k"),
        ({"sensitive": "illness", "distinct_l": 9}, InfeasibleError, "no tile exists"),
        ({"boundary": ["NE"]}, InputError, "one value for each"),
        ({"boundary": "NE"}, InputError, "one value for each"),
    ],
)
def test_refusals(points, asked, error, says):
    frame = pl.read_csv(points)
    columns = {n: frame[v] if isinstance(v, str) and v in frame.columns else v for n, v in asked.items()}
    with pytest.raises(error, match=says):
        shoal.tiles.split(frame.select("lng", "lat").to_numpy(), 6, coordinates="geographic", **columns)


@pytest.mark.parametrize(
    "asked",
    [
        ("tiles", "points.csv", "--x", "lng", "--y", "lat", "--k", 60),
        ("labels", "points.csv", "--label", "state", "--k", 60),
        ("intervals", "points.csv", "--value", "lat", "--k", 60),
        ("gather", "points.csv", "--columns", "lng,lat", "--r", 60),
    ],
    ids=lambda asked: asked[0],
)
def test_a_certificate_states_the_proved_ratio_unless_it_is_asked_not_to(points, tmp_path, asked):
    for more, stated in (((), True), (("--no-bound",), False)):
        run(*asked, *more, "--no-record", "-o", tmp_path / "out.csv", "--force", cwd=points.parent).ok()
        written = json.loads((tmp_path / "out.certificate.json").read_text(encoding="utf-8"))
        assert (written["certificate"]["ratio_at_most"] is not None) == stated
        assert not (tmp_path / "out.record.json").exists()
