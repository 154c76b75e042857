"""``shoal gather`` and ``shoal cellular``: what they print, what they write, how they refuse."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import shoal.problems.gathering as gathering
from shoal.engines.features import FeatureColumns, Features
from shoal.model.metric import Category, Metric, Number, Place
from shoal.publishing.crosswalks.centers import publish
from tests.commands import run


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """200 people around three towns, two of them far away from all."""
    rng = np.random.default_rng(3)
    town = rng.choice([51.5, 53.4, 55.9], 200)
    town[:2] = 70.0
    path = tmp_path_factory.mktemp("gather") / "people.csv"
    pl.DataFrame(
        {
            "name": [f"n{i}" for i in range(200)],
            "age": rng.integers(18, 90, 200),
            "sex": rng.choice(["F", "M"], 200),
            "seen": [
                f"2020-{m:02}-{d:02}" for m, d in zip(rng.integers(1, 13, 200), rng.integers(1, 29, 200), strict=True)
            ],
            "lat": (town + rng.normal(0, 0.1, 200)).round(3),
            "lng": (-1 + rng.normal(0, 0.1, 200)).round(3),
            "disease": rng.choice(["flu", "gout", "cold", "cough"], 200),
        }
    ).write_csv(path)
    return path


@pytest.fixture(scope="module")
def everything(people, tmp_path_factory):
    """One run that writes all there is to write."""
    folder = tmp_path_factory.mktemp("out")
    done = run(
        "gather", people, "--columns", "age,sex,seen", "--latitude", "lat", "--longitude", "lng", "--unit", "age=years",
        "--weights", "age=2,place=3", "--r", 6, "--epsilon", 0.01, "--sensitive", "disease", "--l", 2, "--json",
        "-o", folder / "centers.csv", "--assignments", folder / "rows.csv", "--certificate", folder / "c.json",
        "--plot", folder / "p.png", "--choices", folder / "choices.svg",
    )  # fmt: skip
    return folder, done.facts


def test_json_states_the_answer(everything):
    folder, said = everything
    assert said["points"] == 200
    assert said["smallest_cluster"] >= 6
    assert 0 <= said["left_out"] <= 2
    assert said["cost"] == said["certificate"]["cost"] == said["radius"]
    assert said["certificate"]["lower_bound"] <= said["cost"]
    assert said["mean_distance"] <= said["radius"]
    assert set(said["seconds"]) == {"read", "solve", "write"}
    assert said["output"] == str(folder / "centers.csv")
    record = json.loads((folder / "c.record.json").read_text())
    assert (record["kind"], record["certificate"]) == ("gather", said["certificate"])
    assert said["warnings"], "a record's own row is published"


def test_centers_hold_r_records_each_and_a_diverse_multiset(everything):
    folder, said = everything
    table = pl.read_csv(folder / "centers.csv", infer_schema=False)
    assert table.columns == ["cluster", "lat", "lng", "age", "sex", "seen", "records", "radius", "distance", "disease"]
    assert table.height == said["clusters"]
    records = table["records"].cast(int)
    assert records.min() >= 6
    assert records.sum() == 200 - said["left_out"]
    for line in table.iter_rows(named=True):
        counts = [int(x.split("(")[1][:-1]) for x in line["disease"].split("; ")]
        assert sum(counts) == int(line["records"])
        assert 2 * max(counts) <= sum(counts)
        assert line["radius"] == "exactly" or "years" in line["radius"] or "differ" in line["radius"]


def test_rows_show_centers_alone(everything, people):
    folder, said = everything
    rows, centers = (pl.read_csv(folder / f, infer_schema=False) for f in ("rows.csv", "centers.csv"))
    assert rows.height == 200 - said["left_out"]
    assert "name" not in rows.columns
    assert min(Counter(rows["cluster"]).values()) >= 6
    quasi = ["lat", "lng", "age", "sex", "seen"]
    assert set(rows.select("cluster", *quasi).rows()) == set(centers.select("cluster", *quasi).rows())
    before = pl.read_csv(people, infer_schema=False)
    assert not Counter(rows["disease"]) - Counter(before["disease"])


def test_the_rows_are_shuffled_unless_told(people, tmp_path):
    ages = []
    for extra in ([], ["--keep-order"], []):
        run("gather", people, "--columns", "age", "--sensitive", "name", "--r", 5, "--assignments",
                   tmp_path / "a.csv", "--force", *extra).ok()  # fmt: skip
        ages.append(pl.read_csv(tmp_path / "a.csv")["name"].to_list())
    assert ages[1] == [f"n{i}" for i in range(200)]
    assert ages[0] != ages[1]
    assert ages[0] != ages[2], "the order is drawn afresh"
    assert sorted(ages[0]) == sorted(ages[1])


def test_pictures_are_drawn(everything):
    folder, _ = everything
    assert (folder / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (folder / "choices.svg").read_text()
    assert "Do not publish it" in (folder / "choices.svg").read_text()
    assert (folder / "choices.svg").stat().st_mode & 0o077 == 0, "it shows radii that the release doesn't"


def test_a_place_alone_is_in_kilometres_and_left_out_points_are_absent(people, tmp_path):
    where = ("--latitude", "lat", "--longitude", "lng", "--r", 5)
    said = json.loads(run("gather", people, *where, "--json").stdout)
    assert said["certificate"]["unit"] == "km"
    assert said["radius"] > 1000  # the two far ones drag three others along
    done = run("gather", people, *where, "--epsilon", 0.01, "-o", tmp_path / "c.csv")
    assert "2 of 200 records left out" in done.stdout
    table = pl.read_csv(tmp_path / "c.csv")
    assert table["records"].sum() == 198
    assert table["lat"].max() < 60


@pytest.mark.parametrize("center", ["mean", "medoid"])
def test_other_centers(people, center, tmp_path):
    run("gather", people, "--columns", "age,sex", "--r", 20, "--center", center, "-o", tmp_path / "c.csv").ok()
    assert pl.read_csv(tmp_path / "c.csv")["records"].sum() == 200


def test_max_clusters_distinct_l_and_methods(people):
    base = ("gather", people, "--columns", "age", "--r", 5, "--json")
    assert json.loads(run(*base, "--max-clusters", 3).stdout)["clusters"] <= 3
    assert json.loads(run(*base, "--method", "threshold", "--improve").stdout)["method"] == "threshold"
    run(*base, "--sensitive", "disease", "--distinct-l", 5).refused(3, "4 different values")


@pytest.mark.parametrize("bad", ["nan", "inf", "", "much", "95"])
def test_a_number_that_is_none_is_named_with_its_column(bad, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("lat,age\n" + "".join(f"{50 + i / 10},{i}\n" for i in range(9)) + f"{bad},3\n")
    option = ["--latitude", "lat", "--longitude", "age"] if bad == "95" else ["--columns", "lat,age"]
    run("gather", path, *option, "--r", 2).refused(2, "'lat'")


def test_dates_with_a_hole_are_refused_and_words_are_not(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("seen,word\n2020-01-01,a\n2020-01-02,\n2020-01-05,b\n,a\n")
    run("gather", path, "--columns", "seen", "--r", 2).refused(2, "'seen' holds dates but for 1 row;")
    assert run("gather", path, "--columns", "word", "--r", 2).returncode == 0


def test_nothing_is_written_when_a_cluster_is_too_small(people, tmp_path, monkeypatch):
    true = gathering.gather

    def small(points, r, *a, **o):
        found = true(points, r - 1, *a, **o)
        return replace(found, details={**found.details, "r": r})

    monkeypatch.setattr(gathering, "gather", small)
    files = ("-o", tmp_path / "c.csv", "--assignments", tmp_path / "a.csv")
    status, _, err = run("gather", people, "--columns", "age,sex", "--r", 12, *files)
    assert status == 1
    assert re.search(r"\(r: .* below r = 12\)", err)
    assert not list(tmp_path.iterdir())


def test_plots_show_two_columns_of_numbers_or_say_that_there_are_none(tmp_path):
    from shoal.report.clusters import draw_clusters

    sex, x = np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 5.0, 6.0])
    labels, rows, radii = np.array([0, 0, 1, 1]), np.array([0, 2]), np.array([1.0, 1.0])
    plane = Place("p", geometry="plane")
    for name, features, values in (
        ("a", (Category("sex", values=2),), (sex,)),
        ("b", (Number("x"), Number("y")), (x, x)),
        ("c", (plane,), (np.stack([x, x], axis=1),)),
    ):
        metric = Metric(features=features)
        draw_clusters(tmp_path / f"{name}.svg", publish(labels, rows, metric, values), radii, "units")
        text = (tmp_path / f"{name}.svg").read_text()
        assert "<svg" in text


def test_cellular(people, tmp_path):
    done = run("cellular", people, "--columns", "age,sex", "--r", 5, "-o", tmp_path / "c.csv", "--json", "--seed", 1,
               "--sensitive", "disease", "--l", 2, "--choices", tmp_path / "choices.svg")  # fmt: skip
    said = done.facts
    assert said["smallest_cluster"] >= 5
    assert said["certificate"]["lower_bound"] <= said["cost"]
    table = pl.read_csv(tmp_path / "c.csv")
    assert table["records"].sum() == 200
    for records, disease in table.select("records", "disease").iter_rows():
        assert 2 * max(int(x.split("(")[1][:-1]) for x in disease.split("; ")) <= records
    assert "sum of size times radius" in (tmp_path / "choices.svg").read_text()


def test_cellular_takes_set_up_costs_a_diameter_and_a_method(people):
    base = ("cellular", people, "--columns", "age", "--r", 3, "--json", "--seed", 1)
    plain = json.loads(run(*base).stdout)
    dear = json.loads(run(*base, "--setup-cost", 50).stdout)
    assert dear["clusters"] < plain["clusters"]
    narrow = json.loads(run(*base, "--max-diameter", 0.5, "--method", "three_step").stdout)
    assert narrow["certificate"]["guarantee"]["factor"] == 36
    run(*base, "--max-diameter", 0).refused(3, "largest diameter")


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """Zip codes of two cities, jobs of two trades."""
    folder = tmp_path_factory.mktemp("visits")
    jobs = ["nurse", "doctor", "welder", "smith"]
    (folder / "t.csv").write_text(
        "zip,job,x,y\n" + "".join(f"0{i % 4 + 1}00{i % 2},{jobs[i % 4]},{i % 4 // 2},{i}\n" for i in range(40))
    )
    (folder / "zips.csv").write_text(
        "code,lng,lat\n"
        + "".join(f"0{i + 1}00{i % 2},{-70 + i * 0.01 + (i > 1) * 9},{40 + i * 0.01}\n" for i in range(4))
    )
    (folder / "jobs.csv").write_text("nurse;health;*\ndoctor;health;*\nwelder;metal;*\nsmith;metal;*\nspare;metal;*\n")
    return folder


def test_a_hierarchy_says_how_far_apart_values_are(visits, tmp_path):
    base = ("gather", visits / "t.csv", "--columns", "job", "--r", 15, "-o", tmp_path / "c.csv", "--json", "--force")
    done = run(*base, "--hierarchy", f"job={visits / 'jobs.csv'}")
    said = done.facts
    assert said["radius"] == 0.5  # within a trade
    assert said["clusters"] == 2
    assert "hierarchy of 3 levels" in said["metric"]["features"][0]
    assert set(pl.read_csv(tmp_path / "c.csv")["radius"]) == {"job may differ up to level 1 of 2"}
    assert json.loads(run(*base).stdout)["radius"] == 1  # without it, all values are one apart
    (tmp_path / "few.csv").write_text("nurse;health\n")
    done = run(*base, "--hierarchy", f"job={tmp_path / 'few.csv'}").refused(2, "'job'")


def test_zip_codes_are_places_of_a_coordinate_table(visits, tmp_path):
    base = ("gather", visits / "t.csv", "--columns", "zip", "--r", 15)
    where = ("--coordinates", f"zip={visits / 'zips.csv'}")
    said = run(*base, *where, "-o", tmp_path / "c.csv", "--plot", tmp_path / "p.svg", "--json").facts
    assert said["certificate"]["unit"] == "km"
    assert said["radius"] == pytest.approx(1.4, abs=0.01)  # 0.01 degrees each way, 40 north
    table = pl.read_csv(tmp_path / "c.csv", infer_schema=False)
    assert {zip_[:2] in ("01", "02") for zip_ in table["zip"]} == {True, False}
    assert set(table["zip"]) <= {"01000", "02001", "03000", "04001"}
    assert all(words.startswith("within 1.") and words.endswith(" km") for words in table["radius"])
    assert "longitude" in (tmp_path / "p.svg").read_text()
    assert run(*base, *where, "--center", "medoid").returncode == 0
    (tmp_path / "bad.csv").write_text("code,lat,lng\n01000,1,2\n")
    (tmp_path / "far.csv").write_text("code,lat,lng\n01000,100,2\n")
    (tmp_path / "twice.csv").write_text("code,lat,lng\n01000,1,2\n01000,1,2\n01000,1,3\n")
    for options, words in (
        ([*where, "--center", "mean"], "no code"),
        (["--coordinates", f"zip={tmp_path / 'bad.csv'}"], "30 rows whose code is not among the coordinates"),
        (["--coordinates", f"zip={tmp_path / 'far.csv'}"], "'lat'"),
        (["--coordinates", f"zip={tmp_path / 'twice.csv'}"], "place the code of row 3 a second time"),
        (["--coordinates", f"zap={visits / 'zips.csv'}"], "'zap'"),
        ([*where, "--categories", "zip"], "has two kinds"),
    ):
        run(*base, *options).refused(2, words)


@pytest.mark.parametrize("plane", [(), ("--plane",)])
@pytest.mark.parametrize("command", ["gather", "cellular"])
def test_a_place_and_codes_of_places_together(command, plane, visits, tmp_path):
    """The two columns of the place come first, whichever columns have codes."""
    where = ("--latitude", "x", "--longitude", "y", *plane, "--coordinates", f"zip={visits / 'zips.csv'}")
    out = tmp_path / "c.csv"
    run(command, visits / "t.csv", "--columns", "zip,job", *where, "--r", 5, "-o", out).ok()
    assert {"x", "y", "zip", "job"} <= set(pl.read_csv(out).columns)
    tables = ("--original", visits / "t.csv", "--original", visits / "zips.csv")
    run("verify", out, tmp_path / "c.certificate.json", *tables).ok()


def test_a_span_that_no_float_holds_is_refused_without_a_warning(tmp_path, recwarn):
    path = tmp_path / "wide.csv"
    path.write_text("a\n" + "1e308\n-1e308\n" * 5)
    run("gather", path, "--columns", "a", "--r", 2).refused(2, "'a' spans more than numbers can tell")
    assert not [str(w.message) for w in recwarn]


def test_coordinates_in_a_plane(visits):
    where = ("--latitude", "x", "--longitude", "y", "--plane", "--unit", "place=m")
    said = run("gather", visits / "t.csv", *where, "--r", 5, "--json").facts
    assert said["certificate"]["unit"] == "m"
    assert "in the plane" in said["metric"]["features"][0]


def test_features_from_a_frame_in_code(visits):
    frame = pl.read_csv(visits / "t.csv", infer_schema=False)
    asked = FeatureColumns(
        ["zip", "job"], hierarchies={"job": str(visits / "jobs.csv")}, coordinates={"zip": visits / "zips.csv"}
    )
    f = Features.of(frame, asked)
    g = gathering.gather(tuple(f.values), 8, metric=f.metric)
    assert g.sizes.min() >= 8
    d = f.metric.between([v[:1] for v in f.values], [v[2:3] for v in f.values])
    assert 1 <= d[0] <= np.sqrt(2)  # another trade, and nearly the span away


def test_whole_numbers_named_like_codes_are_noted(tmp_path):
    """A zip code is no length: by their difference 06001 and 06002 are alike, and 06511 is not."""
    rows = [f"{6001 + 97 * (i % 5)},{i % 2},{20 + i},{i % 7}.5" for i in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["zipCode,sex,age,type", *rows]) + "\n")
    ask = ["gather", path, "--columns", "zipCode,sex,age,type", "--r", 5, "--center", "mean"]
    said = run(*ask).ok()
    assert "note: 'zipCode': whole numbers, measured by their difference; where they are codes" in said.stderr
    assert "codes" not in run(*ask, "--categories", "zipCode").stderr
