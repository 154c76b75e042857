"""Clusters on their way out: what is tampered with is refused before a file appears, and found by verify afterwards."""

import itertools
import json
import math
import random
import secrets
from collections import Counter
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.judge.crosswalk import StatedCrosswalk
from shoal.judge.file import seal
from shoal.judge.places.cluster_cover import features_of
from shoal.judge.places.clusters import judge_clusters, spreads
from shoal.model.metric import Category, Metric, Number, Place
from shoal.publishing.crosswalks.centers import Center, multiset, radius_words
from tests.commands import run
from tests.data import ILLS, LINE, X, as_polars, clusters
from tests.fuzz import clusters as fuzz
from tests.fuzz.certificates import places, put
from tests.kept import failing, forge, holding, kept, verify, write_sealed


@pytest.mark.parametrize("seed", [2, 4, 5, 7])
def test_every_statement_bent_by_one_is_caught_or_said_to_be_stated_only(seed: int, tmp_path: Path) -> None:
    made, frame = fuzz.drawn(random.Random(f"clusters {seed}"))
    record = kept(made.write(tmp_path / "c.csv"))
    genuine, tried = json.loads(record.read_text()), 0
    trees = {"job": fuzz.TREE} if made.parameters["hierarchies"] else {}
    for way in places(genuine):
        value = reduce(lambda held, step: held[step], way, genuine)
        if any(way[:i] in fuzz.STATED for i in range(1, len(way) + 1)) or (value and isinstance(value, (dict, list))):
            continue
        for bent in fuzz.by_one(value):
            changed = put(genuine, way, bent)
            write_sealed(record, changed)
            tried += 1
            assert fuzz.caught(tmp_path / "c.csv", record, frame, trees, way), (way, value, bent)
    assert tried > 40


def test_genuine_ones_drawn_at_random_verify_and_bent_ones_do_not(tmp_path: Path) -> None:
    first = secrets.randbelow(10**6)
    came: Counter[str] = Counter()
    for seed in range(first, first + 200):  # files refuse a quarter of them, so about 24 are tried
        try:
            came[fuzz.tried(seed, tmp_path)] += 1
            came[fuzz.bent_one(seed, tmp_path)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        if came["verified"] >= 18:
            break
    assert came["verified"] >= 18


class Claim(NamedTuple):
    """What is said of a cluster: center, reach along each axis and over both, values."""

    center: tuple[int, int]
    reach: tuple[float, float]
    distance: float
    held: dict[str, int]

    def takes(self, point: tuple[int, int, str]) -> bool:
        """Whether it may hold a point."""
        away = [abs(a - b) for a, b in zip(self.center, point[:2], strict=True)]
        return away[0] <= self.reach[0] and away[1] <= self.reach[1] and math.hypot(*away) <= self.distance + 1e-9


def exhaustive(points: list[tuple[int, int, str]], claims: list[Claim]) -> bool:
    """Whether some way to deal the points out, or leave them out, fills every cluster as claimed."""
    for way in itertools.product(range(-1, len(claims)), repeat=len(points)):
        mine = [[p for p, to in zip(points, way, strict=True) if to == c] for c in range(len(claims))]
        if all(Counter(v for *_, v in own) == Counter(claim.held) and all(map(claim.takes, own))
               for own, claim in zip(mine, claims, strict=True)):  # fmt: skip
            return True
    return False


def judged(points: list[tuple[int, int, str]], claims: list[Claim]) -> dict[str, Any]:
    """What the judge finds in a file of these claims, with the points at hand."""
    sides = (Number("x"), Number("y"))
    told = [radius_words([Center(f, np.zeros(1), np.array([r])) for f, r in zip(sides, c.reach, strict=True)], 0)
            for c in claims]  # fmt: skip
    sizes = [sum(c.held.values()) for c in claims]
    frame = pl.DataFrame({
        "cluster": range(len(claims)), "x": [c.center[0] for c in claims], "y": [c.center[1] for c in claims],
        "records": sizes, "radius": told, "distance": [c.distance for c in claims],
        "d": [multiset(c.held) for c in claims],
    })  # fmt: skip
    features = [{"columns": [n], "name": n, "kind": "number", "scale": 1.0, "weight": 1.0, "unit": ""} for n in "xy"]
    asked = {"r": 1, "epsilon": 0.99, "features": features, "norm": "euclidean", "unit": "units", "center": "medoid",
             "sensitive": ["d"], "l": [1], "distinct_l": [1]}  # fmt: skip
    facts = {"rows": len(claims), "points": len(points), "records": sum(sizes), "left_out": len(points) - sum(sizes),
             "may_be_left_out": math.floor(0.99 * len(points) + 1e-9), "groups": len(claims),
             "smallest_group": min(sizes), "largest_group": max(sizes), "radius": max(frame["distance"]),
             "centers_replaced": len(claims)}  # fmt: skip
    table = pl.DataFrame(points, schema=["x", "y", "d"], orient="row")
    said = judge_clusters(frame, StatedCrosswalk(asked, facts, 9.0, 0.0, "units", {}, "gather"), "csv", table)
    return {f.check: f for f in said}


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_dealing_out_agrees_with_every_way_there_is(data: st.DataObject) -> None:
    """Claims that overlap, that hold too many, that reach too little, or that hold values of records elsewhere."""
    place = st.integers(0, 4)
    points = data.draw(st.lists(st.tuples(place, place, st.sampled_from("ab")), min_size=2, max_size=6))
    deal = data.draw(st.lists(st.integers(-1, 2), min_size=len(points), max_size=len(points)))
    claims = []
    for c in sorted(set(deal) - {-1}):
        mine = [p for p, to in zip(points, deal, strict=True) if to == c]
        center = data.draw(st.sampled_from([p[:2] for p in points]))
        short = data.draw(st.sampled_from([(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]))
        reach = [float(max(abs(p[i] - center[i]) for p in mine)) - short[i] for i in (0, 1)]
        far = max(math.dist(p[:2], center) for p in mine) - short[2]
        held = dict(Counter(v for *_, v in mine))
        claims.append(Claim(center, (max(reach[0], 0.0), max(reach[1], 0.0)), max(far, 0.0), held))
    if not claims:
        return
    if data.draw(st.booleans()):
        claims = [c._replace(held=h) for c, h in zip(claims, [x.held for x in reversed(claims)], strict=True)]
    said = judged(points, claims)
    assert said["records by d"].how == "recomputed"
    assert said["records by d"].holds is exhaustive(points, claims)


def test_each_radius_is_looked_at_by_itself() -> None:
    """A record within the distance and beyond one column's radius, and the other way round."""
    points = [(0, 0, "a"), (3, 0, "a"), (3, 3, "a")]
    for i, reach, distance, holds in ((1, (3.0, 3.0), 3.0, True), (1, (2.0, 3.0), 3.0, False),
                                      (2, (3.0, 3.0), 4.0, False), (2, (3.0, 3.0), 4.3, True)):  # fmt: skip
        mine = [points[0], points[i]]
        assert judged(mine, [Claim((0, 0), reach, distance, {"a": 2})])["records by d"].holds is holds
    for distance, holds in ((3.2, True), (4.0, False)):  # nobody is 4 away, though the columns' radii allow it
        mine = [points[0], points[1], (0, 3, "a")]
        assert judged(mine, [Claim((0, 0), (3.0, 3.0), distance, {"a": 3})])["distance"].holds is holds
    cross = [(0, 0, "a"), (3, 0, "a"), (0, 3, "a")]  # whichever column is looked at first, the other one counts too
    assert not judged(cross, [Claim((0, 0), (2.0, 2.0), 3.0, {"a": 2})])["records by d"].holds


def bent_record(made: shoal.Crosswalk, folder: Path, **changes: Any) -> dict[str, bool]:
    """What holds of a file without its source, after the statements named "part.name" were changed."""
    record = kept(made.write(folder / "b.csv"))
    for name, value in changes.items():
        part, _, own = name.partition("__")
        forge(record, lambda facts, part=part, own=own, value=value: facts[part].update({own: value}))
    return {f.check: f.holds for f in verify(folder / "b.csv", record).findings}


def test_each_statement_is_looked_at_by_itself(tmp_path: Path) -> None:
    made = clusters("gather")
    cost = made.certificate.cost
    for check, changes in (
        ("records", {"facts__points": 13}),
        ("records", {"facts__points": 13, "facts__left_out": 2}),
        ("records", {"facts__may_be_left_out": 2}),
        ("max clusters", {"parameters__max_clusters": 2}),
        ("cost", {"certificate__cost": cost + 1}),
        ("cost", {"certificate__cost": cost * (1 + 1e-6)}),
        ("ratio", {"certificate__ratio": 1.5}),
        ("ratio", {"certificate__optimal": not made.certificate.optimal}),
    ):
        assert bent_record(made, tmp_path)[check if check != "max clusters" else "cost"]
        assert not bent_record(made, tmp_path, **changes)[check], changes
    found = shoal.gathering.gather(np.array(X)[:, None], r=3, max_clusters=3)
    assert bent_record(shoal.release(found, LINE, columns=["x"]), tmp_path)["max clusters"]
    mean = clusters("gather", "mean")
    assert bent_record(mean, tmp_path)["cost"]
    assert not bent_record(mean, tmp_path, facts__centers_replaced=1)["cost"]
    dear = shoal.gathering.cellular(np.array(X)[:, None], r=3, setup_costs=0.5)
    out = shoal.release(dear, LINE, columns=["x"])
    assert dear.clusters > 1
    assert bent_record(out, tmp_path)["cost"]
    assert not bent_record(out, tmp_path, parameters__setup_cost=0.25)["cost"]


def test_a_table_with_a_record_more_is_another(tmp_path: Path) -> None:
    made = clusters("gather")
    beside = kept(made.write(tmp_path / "c.csv"))
    more = pl.concat([LINE, LINE[-1:]])
    assert failing(verify(tmp_path / "c.csv", beside, more)) == ["counts"]


def test_a_bound_beyond_what_is_found_again_is_stated_only(tmp_path: Path) -> None:
    """Lemma 1 by hand: every point of a line lies in a ball of three."""
    found = shoal.gathering.gather(np.array(X)[:, None], r=3, max_clusters=1, method="threshold")
    rho = [sorted(abs(x - y) for y in X)[2] for x in X]
    bound = max(min(max(abs(x - y), rho[j]) for j, y in enumerate(X)) for x in X)
    assert found.cost > bound * 1.01
    for low, how in ((bound, "recomputed"), (bound * (1 + 1e-6), "stated"), (bound / 2, "recomputed")):
        told = replace(found, certificate=replace(found.certificate, lower_bound=low))
        beside = kept(shoal.release(told, LINE, columns=["x"]).write(tmp_path / "c.csv"))
        verdict = verify(tmp_path / "c.csv", beside, LINE)
        assert {f.check: f.how for f in verdict.findings}["bound"] == how


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.04, 1.0, 35.2, 1e6, 2e15]), min_size=5, max_size=5), st.integers(0, 2))
def test_words_are_read_back(away: list[float], level: int) -> None:
    """By a grammar that shares nothing with what writes them."""
    levels = np.array([[0, 0], [0, 0], [1, 0]])
    features = [Number("age", unit="years"), Number("since, and", unit="years"), Number("seen", date=True),
                Place("place"), Number("pay"), Category("a; b (c)", values=2),
                Category("job", values=3, levels=levels)]  # fmt: skip
    spread = [*away, float(level > 0), float(level)]
    words = radius_words([Center(f, np.zeros(1), np.array([s])) for f, s in zip(features, spread, strict=True)], 0)
    stated = [{"columns": [f.name] * (1 + isinstance(f, Place)), "name": f.name, "unit": getattr(f, "unit", ""),
               "kind": {Category: "category", Place: "place"}.get(type(f), "date" if f.name == "seen" else "number"),
               "geometry": "great-circle", "levels": 2 if f.name == "job" else 1} for f in features]  # fmt: skip
    found = spreads([words], features_of({"features": stated}))[0]
    for told, true in zip(found.tolist(), spread, strict=True):
        assert true <= told <= 1.1 * true + 1e-12 * true


@pytest.mark.parametrize("bent", [{"levels": 0}, {"levels": True}, {"scale": 0}, {"weight": -1}, {"period": -1.0}])
def test_a_feature_that_cannot_be_is_refused(bent: dict) -> None:
    one = {"columns": ["x"], "name": "x", "kind": "category", "levels": 1}
    assert features_of({"features": [one]})
    with pytest.raises(VerificationError, match="a feature that cannot be"):
        features_of({"features": [one | bent]})


def test_words_of_another_form_are_refused() -> None:
    one = features_of({"features": [{"columns": ["x"], "name": "x", "kind": "number"}]})
    for words in ("", "within 3", "within 3 in y", "within  3 in x", "within 3 in x; sex may differ", "near"):
        with pytest.raises(VerificationError, match="as its columns require"):
            spreads([words], one)


def test_frames_come_back_as_they_came(tmp_path: Path) -> None:
    import duckdb

    LINE.write_parquet(tmp_path / "t.parquet")
    expected = clusters("gather").table
    relation = duckdb.connect().from_arrow(LINE.to_arrow())
    for data in (LINE.to_pandas(), LINE.to_arrow(), LINE.lazy(), LINE, relation, tmp_path / "t.parquet"):
        made = clusters("gather", frame=data)
        kind = pl.DataFrame if isinstance(data, Path) else type(data)
        for frame in (made.table, made.assignments):
            assert isinstance(frame, kind)
        assert as_polars(made.table).to_dicts() == expected.to_dicts()


@pytest.mark.parametrize("center", ["record", "mean", "medoid"])
def test_centers_of_hours_lie_between_them_around_midnight(center: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"hour": [23, 23, 0, 1, 1, 12, 12, 13, 11]})
    frame.write_csv(tmp_path / "visits.csv")
    out = tmp_path / "centers.csv"
    done = run("gather", tmp_path / "visits.csv", "--columns", "hour", "--cyclic", "hour=24", "--r", 3, "--unit",
               "hour=hours", "--center", center, "-o", out).ok()  # fmt: skip
    assert "the shorter way around 24" in done.stdout
    made = pl.read_csv(out)
    assert made["hour"].to_list() == [0, 12]
    assert made["radius"].to_list() == ["within 1 hours"] * 2
    held = tmp_path / "centers.record.json"
    assert verify(out, held, tmp_path / "visits.csv").holds
    for period in (0, 20):  # on a line, or around another circle, they are no such clusters
        record = json.loads(held.read_text())
        record["parameters"]["features"][0]["period"] = period
        (tmp_path / "bent.json").write_text(json.dumps(record | {"seal": seal(record)}))
        proof, source = tmp_path / "centers.certificate.json", tmp_path / "visits.csv"
        verdict = shoal.verify(out, proof, source, record=tmp_path / "bent.json")
        assert {f.check for f in verdict.findings if not f.holds} > {"record"}


def test_an_answer_of_other_data_is_refused() -> None:
    found = shoal.gathering.gather(np.array(X)[:, None], r=3)
    with pytest.raises(InputError, match="does not belong"):
        shoal.release(found, LINE[::-1], columns=["x"])
    with pytest.raises(InputError, match="12 records, the data have 11"):
        shoal.release(found, LINE[1:], columns=["x"])
    with pytest.raises(InputError, match="does not measure column 'd'"):
        shoal.release(found, LINE, columns=["x", "d"])
    with pytest.raises(PolicyError, match="say which columns"):
        shoal.release(found, LINE)
    with pytest.raises(PolicyError, match="colums"):
        shoal.release(found, LINE, colums=["x"])
    with pytest.raises(PolicyError, match="'nix'"):
        shoal.release(found, LINE, columns=["nix"])
    matrix = shoal.gathering.gather(np.abs(np.subtract.outer(X, X)), r=3, metric="precomputed")
    with pytest.raises(PolicyError, match="no columns"):
        shoal.release(matrix, LINE, columns=["x"])
    codes = np.unique(ILLS, return_inverse=True)[1]
    diverse = shoal.gathering.gather(LINE.select("x"), r=3, sensitive=codes, l=2)
    with pytest.raises(PolicyError, match="name them with sensitive="):
        shoal.release(diverse, LINE, columns=["x"])
    named = shoal.gathering.gather(LINE.select("x"), r=3)
    assert (
        shoal.release(named, LINE).table["x"].to_list() == shoal.release(found, LINE.select("x")).table["x"].to_list()
    )


def test_a_condition_that_is_not_kept_is_refused(tmp_path: Path) -> None:
    found = shoal.gathering.gather(np.array(X)[:, None], r=3)
    bent = replace(found, details={**found.details, "distinct_l": [4], "l": [1]})
    with pytest.raises(VerificationError, match=r"\(distinct l of d"):
        shoal.release(bent, LINE, columns=["x"], sensitive=["d"]).write(tmp_path / "c.csv")


def test_the_order_of_assignments_is_secret_unless_kept() -> None:
    kept, fresh, other = (clusters("gather", keep_order=k).assignments["d"].to_list() for k in (True, False, False))
    own = [d for d in ILLS if d != "odd"]
    assert kept == own
    assert sorted(fresh) == sorted(own)
    assert len({tuple(x) for x in (kept, fresh, other)}) > 1
    same = [clusters("gather", secret=b"0123456789abcdef").assignments.rows() for _ in range(2)]
    assert same[0] == same[1]
    with pytest.raises(PolicyError, match="16 bytes"):
        clusters("gather", secret=b"short")


def test_clusters_are_numbered_by_their_centers_and_not_by_rows() -> None:
    rng = np.random.default_rng(1)
    order = rng.permutation(12)
    found = shoal.gathering.gather(np.array(X)[order][:, None], r=3)
    table = shoal.release(found, LINE[order], columns=["x"]).table
    assert table["x"].is_sorted()
    assert table["cluster"].to_list() == list(range(table.height))


def test_who_publishes_records_is_told_so() -> None:
    made = clusters("gather")
    assert "real person" in made.warnings[0]
    assert "center='mean'" in made.warnings[0]
    assert not clusters("gather", "mean").warnings
    assert set(made.table["x"]) <= set(X)


@pytest.mark.parametrize(("lat", "lng", "radius"), [(51.5, -1.0, 30.0), (0.0, 179.9, 100.0), (-20.0, -179.99, 3.0),
                                                    (88.0, 10.0, 500.0), (-89.5, 100.0, 2000.0), (60.0, 0.0, 12000.0),
                                                    (10.0, 20.0, 19000.0)])  # fmt: skip
def test_a_circle_holds_what_is_within_its_radius(lat: float, lng: float, radius: float) -> None:
    from matplotlib.path import Path as Outline

    from shoal.report.clusters import circle

    rng = np.random.default_rng(3)
    parts = circle(lat, lng, radius)
    assert all(np.abs(part[:, 0]).max() <= 180 and np.abs(part[:, 1]).max() <= 90 for part in parts)
    outlines = [Outline(np.concatenate([p, p[:1]])) for p in parts]
    near = far = 0
    for x, z in zip(rng.uniform(-179.9, 179.9, 4000), rng.uniform(-1, 1, 4000), strict=True):
        share = rng.uniform(0, 2)
        if rng.random() < 0.5:  # near by
            y = max(-89.9, min(89.9, lat + share * rng.uniform(-1, 1) * radius / 111))
            x = (
                lng + rng.uniform(-1, 1) * share * radius / 111 / max(math.cos(math.radians(y)), 0.01) + 180
            ) % 360 - 180
        else:
            y = math.degrees(math.asin(z))
        a, b = math.radians(lat), math.radians(y)
        cosine = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(math.radians(x - lng))
        away = 6371.0088 * math.acos(max(-1.0, min(1.0, cosine)))
        inside = any(o.contains_point((x, y)) for o in outlines)
        if away < 0.995 * radius:
            near += 1
            assert inside, (x, y, away)
        elif away > 1.02 * radius and radius < 18000:
            far += 1
            assert not inside, (x, y, away)
    assert near > 100
    assert far > 100 or radius > 18000  # all the world


def test_maps_and_geojson_show_a_circle_for_each_cluster(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"id": [f"person-{i}" for i in range(40)], "lat": rng.normal(51, 0.1, 40),
                          "lng": rng.normal(179.99, 0.1, 40), "d": rng.choice(["flu", "gout"], 40)})  # fmt: skip
    frame = frame.with_columns(lng=(pl.col("lng") + 180) % 360 - 180)
    found = shoal.gathering.gather(frame.select("lat", "lng"), r=5, metric="great-circle")
    made = shoal.release(found, frame, place=("lat", "lng"), sensitive=["d"], center="mean")
    held = json.loads(made.geojson(tmp_path / "c.geojson").read_text())["features"]
    assert len(held) == made.table.height == made.map(tmp_path / "m.html").read_text().count("<path")
    assert "largest radius " in (tmp_path / "m.html").read_text()
    assert "no answer below" not in (tmp_path / "m.html").read_text(), "the bound follows from what is hidden"
    cells = shoal.release(shoal.gathering.cellular(frame.select("lat", "lng"), r=5, metric="great-circle"), frame,
                          place=("lat", "lng"))  # fmt: skip
    assert "no answer below" not in cells.map(tmp_path / "cells.html").read_text()
    assert {f["geometry"]["type"] for f in held} <= {"Polygon", "MultiPolygon"}
    assert held[0]["properties"]["records"] == made.table["records"][0]
    assert made.map(tmp_path / "m.png").stat().st_size > 1000
    for name in ("c.geojson", "m.html"):
        assert "person-" not in (tmp_path / name).read_text()
    plane = shoal.gathering.gather((frame.select("lat", "lng").to_numpy(),), r=5,
                                   metric=Metric(features=(Place("p", geometry="plane"),)))  # fmt: skip
    flat = shoal.release(plane, frame, place=("lat", "lng"))
    assert "<path" in flat.map(tmp_path / "f.html").read_text()
    with pytest.raises(PolicyError, match="of a plane"):
        flat.geojson(tmp_path / "f.geojson")
    assert not (tmp_path / "f.geojson").exists()
    with pytest.raises(PolicyError, match="a map needs coordinates or polygons"):
        clusters("gather").map(tmp_path / "no.html")


def test_the_picture_shows_pairs_of_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"age": rng.integers(20, 60, 40), "pay": rng.normal(0, 1, 40), "sex": rng.choice(["F", "M"], 40)}
    )
    metric = Metric(features=(Number("age", scale=40), Number("pay"), Category("sex", values=2)))
    points = (frame["age"].to_numpy(), frame["pay"].to_numpy(), np.unique(frame["sex"], return_inverse=True)[1])
    made = shoal.release(shoal.gathering.gather(points, r=5, metric=metric), frame)
    text = made.plot(tmp_path / "p.svg").read_text()
    for a, b in (("age", "pay"), ("age", "sex"), ("pay", "sex")):
        assert f"<!-- {a} -->" in text
        assert f"<!-- {b} -->" in text
    assert text.count('id="axes_') >= 4
    assert "<!-- M -->" in text


def test_coordinates_and_hierarchies_are_checked_where_they_are_at_hand(tmp_path: Path) -> None:
    from shoal.engines.features import FeatureColumns, Features

    zips = pl.DataFrame({"code": ["01", "02", "03"], "lat": [40.0, 40.1, 47.0], "lng": [-70.0, -70.0, -80.0]})
    tree = [["nurse", "health"], ["smith", "metal"], ["welder", "metal"]]
    frame = pl.DataFrame({"zip": ["01", "02", "03"] * 8, "job": ["nurse", "smith", "welder", "smith"] * 6})
    told = Features.of(frame, FeatureColumns(["zip", "job"], hierarchies={"job": tree}, coordinates={"zip": zips}))
    found = shoal.gathering.gather(tuple(told.values), r=5, metric=told.metric)
    made = shoal.release(found, frame, columns=["zip", "job"], hierarchies={"job": tree}, coordinates={"zip": zips})
    beside = kept(made.write(tmp_path / "c.csv"))
    for original, trees, how in (
        (frame, {}, {"distance": "stated", "records": "checked for consistency"}),
        ([frame, zips], {"job": tree}, {"distance": "recomputed", "records": "recomputed", "centers": "recomputed"}),
    ):
        verdict = holding(verify(tmp_path / "c.csv", beside, original, hierarchies=trees))
        assert how.items() <= {f.check: f.how for f in verdict.findings}.items()
    far = zips.with_columns(lat=pl.Series([40.0, 44.1, 47.0]))
    assert not verify(tmp_path / "c.csv", beside, [frame, far], hierarchies={"job": tree}).holds
    with pytest.raises(VerificationError, match="not the one certified"):
        verify(tmp_path / "c.csv", beside, frame, hierarchies={"job": [*tree[:2], ["welder", "health"]]})


def test_on_the_command_line(tmp_path: Path) -> None:
    table, out, rows = tmp_path / "t.csv", tmp_path / "c.csv", tmp_path / "r.csv"
    LINE.write_csv(table)
    for kind in ("gather", "cellular"):
        words = ("--columns", "x", "--r", 3, "--sensitive", "d", "--epsilon", 0.1, "-o", out, "--assignments", rows)
        status, text, err = run(kind, table, *words, "--report", tmp_path / "r.html", "--json", "--force")
        said = json.loads(text)
        assert (status, said["certificate_file"]) == (0, str(tmp_path / "c.certificate.json"))
        assert "--center mean" in err
        assert "center=" not in err + " ".join(said["warnings"])
        for path in (out, rows):
            check = ("verify", path, said["certificate_file"], "--record", said["record_file"], "--json")
            assert run(*check)[0] == run(*check, "--original", table)[0] == 0
        LINE.with_columns(d=pl.Series([*ILLS[:-2], "odd", "odd"])).write_csv(tmp_path / "other.csv")
        status, text, _ = run(*check, "--original", tmp_path / "other.csv")
        assert (status, [f["check"] for f in json.loads(text)["findings"] if not f["holds"]]) == (1, ["records by d"])
    text = "".join(p.read_text() for p in (out, rows, tmp_path / "r.html", tmp_path / "c.certificate.json"))
    assert "person-" not in text


def test_a_place_between_other_features_is_found_by_its_two_columns() -> None:
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({n: rng.normal(50, 3, 20).round(3) for n in ("age", "a", "b", "pay")})
    metric = Metric(features=(Number("years"), Place("home", geometry="plane"), Number("income")))
    parts = (frame["age"].to_numpy(), frame.select("a", "b").to_numpy(), frame["pay"].to_numpy())
    found = shoal.gathering.gather(parts, r=4, metric=metric)
    told = shoal.release(found, frame)  # no column is called as a feature is
    named = shoal.release(found, frame, columns=["age", "pay"], place=("a", "b"))
    assert sorted(told.table.columns) == sorted(named.table.columns)
    assert {"age", "a", "b", "pay"} <= set(told.table.columns)
    assert sorted(told.table["pay"]) == sorted(named.table["pay"])
