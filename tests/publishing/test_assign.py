"""New records in the groups of a former answer, against a lookup written out."""

import json
import unicodedata
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines.features import FeatureColumns, Features
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.publishing.sources import findings


def tiles_of(folder, **how):
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "lng": (179.5 + rng.normal(0, 1, 200)).round(2),
            "lat": rng.normal(-17, 1, 200).round(2),
            "state": rng.choice(["A", "B"], 200),
        }
    ).with_columns(pl.when(pl.col("lng") >= 180).then(pl.col("lng") - 360).otherwise("lng").round(2).alias("lng"))
    boundary = frame["state"] if how.pop("bounded", False) else None
    found = shoal.tiles.split(
        frame.select("lng", "lat").to_numpy(), 10, coordinates="geographic", boundary=boundary, **how
    )
    out = shoal.release(found, frame, x="lng", y="lat", boundary=None if boundary is None else "state")
    out.write(folder / "tiles.csv", also={"tiles": folder / "own.csv"})
    return frame, found, out


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("extent", ["plane", "data"])
def test_new_points_get_the_tile_that_holds_them(tmp_path, bounded, extent):
    frame, found, out = tiles_of(tmp_path, bounded=bounded, extent=extent)
    rng = np.random.default_rng(8)
    lng = (179.5 + rng.normal(0, 2, 90)).round(2)
    new = pl.DataFrame(
        {"lng": np.where(lng >= 180, lng - 360, lng).round(2), "lat": rng.normal(-17, 2, 90).round(2),
         "state": rng.choice(["A", "B", "C"], 90), "note": np.arange(90)}
    )  # fmt: skip
    expected = []
    for a, b, s in new.select("lng", "lat", "state").rows():
        hit = [i for i in range(len(found)) if found.contains(i, np.array([[a, b]]))[0]
               and (found.boundary is None or found.boundary[i] == s)]  # fmt: skip
        expected.append(hit[0] if hit else None)
    for answer in (out, tmp_path / "tiles.csv", tmp_path / "tiles.certificate.json"):
        got = shoal.assign(answer, new)
        assert got.groups == expected
        assert got.outside == expected.count(None)
        met = {g: expected.count(g) for g in set(expected) - {None}}
        assert got.alone == sum(n < 10 for n in met.values())
        assert got.rows_alone == sum(n for n in met.values() if n < 10)
    assert (got.outside > 0) == (bounded or extent == "data")
    assert "lng" not in got.table.columns
    assert "lat" not in got.table.columns
    got.write(tmp_path / "new.csv")
    back = pl.read_csv(tmp_path / "new.csv").sort("note")
    assert back["tile"].to_list() == expected
    assert [*shoal.assign(out, frame).groups] == found.labels.tolist()


def test_the_answer_must_be_as_certified(tmp_path):
    tiles_of(tmp_path)
    text = (tmp_path / "tiles.csv").read_text()
    head, first, *rest = text.splitlines()
    (tmp_path / "tiles.csv").write_text("\n".join([head, *rest, first]) + "\n")
    with pytest.raises(VerificationError, match="not as certified"):
        shoal.assign(tmp_path / "tiles.csv", pl.DataFrame({"lng": [1.0], "lat": [2.0]}))


def test_columns_of_other_names_and_what_is_missing(tmp_path):
    frame, found, out = tiles_of(tmp_path, bounded=True)
    other = frame.rename({"lng": "a", "lat": "b", "state": "s"})
    got = shoal.assign(out, other, x="a", y="b", boundary="s")
    assert got.groups == found.labels.tolist()
    assert "a_low" in got.table.columns
    with pytest.raises(PolicyError, match="boundary="):
        shoal.assign(out, other, x="a", y="b")
    with pytest.raises(InputError, match="names no columns"):
        shoal.assign(found, frame)


def test_intervals_hold_what_lies_between_their_values(tmp_path):
    frame = pl.DataFrame({"age": [1, 2, 5, 20, 21, 29]})
    made = shoal.release(shoal.intervals.cut(frame["age"].to_list(), None, 3), frame, value="age")
    made.write(tmp_path / "ages.csv")
    names = dict(made.content.select("value", "group_label").rows())
    got = shoal.assign(tmp_path / "ages.csv", pl.DataFrame({"age": [1, 4, 10, 21, 25, 99, 0]}))
    first, last = names[1], names[29]
    assert got.groups == [first, first, None, last, last, None, None]
    assert got.outside == 3
    assert got.table.columns == ["group_label"]


def test_labels_and_regions(tmp_path):
    frame = pl.DataFrame({"name": ["x", "y", "z", "u"], "people": [3, 3, 3, 3]})
    made = shoal.release(shoal.labels.cover(frame["people"], 6), frame, label="name", count="people")
    own = dict(made.content.select("value", "group_label").rows())
    got = shoal.assign(made, pl.DataFrame({"name": ["x", "q", None, "u"], "n": [1, 2, 3, 4]}))
    assert got.groups == [own["x"], None, None, own["u"]]
    areas = pl.DataFrame({"zip": ["01", "02", "03", "04"], "people": [5, 5, 5, 5]})
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    made = shoal.release(shoal.regions.merge(edges, areas["people"].to_numpy(), 10), areas, weight="people",
                         edges=edges, id="zip")  # fmt: skip
    made.write(tmp_path / "r.csv")
    own = dict(made.content.select("area", "region").rows())
    got = shoal.assign(tmp_path / "r.csv", pl.DataFrame({"zip": ["04", "01", "99"]}))
    assert got.groups == [own["04"], own["01"], None]
    assert got.alone == len(set(got.groups) - {None})
    json.dumps(got.as_dict())


def test_empty_arguments_are_as_if_left_out():
    made = shoal.release(shoal.labels.cover([5, 5], 5), pl.DataFrame({"name": ["a", "b"], "n": [5, 5]}), label="name",
                         count="n")  # fmt: skip
    new = pl.DataFrame({"name": ["a", "b"]})
    assert shoal.assign(made, new, decimal={}, x="", boundary="").groups == shoal.assign(made, new).groups
    with pytest.raises(PolicyError, match="x='name' has no effect on an answer of labels"):
        shoal.assign(made, new, x="name")
    with pytest.raises(PolicyError, match=r"^decimal has no effect on an answer of labels"):
        shoal.assign(made, new, decimal={"n": ","})


def test_a_group_with_exactly_k_new_records_is_not_alone():
    frame = pl.DataFrame({"age": [1, 2, 5, 20, 21, 29]})
    made = shoal.release(shoal.intervals.cut(frame["age"].to_list(), None, 3), frame, value="age")
    got = shoal.assign(made, pl.DataFrame({"age": [1, 2, 4, 20, 29]}))
    assert (got.alone, got.rows_alone) == (1, 2)


def test_the_judge_finds_a_center_that_is_no_mean(tmp_path):
    _, _, out = tiles_of(tmp_path)
    moved = out.content.with_columns(lat_center=pl.col("lat_center") + 0.1)
    record = {"kind": "tiles", "parameters": out.parameters, "facts": out.facts}
    for content, says in ((out.content, set()), (moved, {"centers"})):
        found = findings(record, out.certificate, content, "parquet", out.sources)
        assert {f.check for f in found if not f.holds} == says


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([1, 2, 5, 20, 21, 29], ["x", "y", "15", "z", "4", " 25 "], [None, None, None, None, 0, 1]),
        ([1, 2, 5, 20, 21, 29], [2.5, 6.0, float("nan"), None, 29.0], [0, None, None, None, 1]),
        ([1, 2, 5, 20, 21, 29], [True, False], [None, None]),
        (["1", "2", "5", "20", "21", "29"], [4, 20, 30], [0, 1, None]),
        ([date(2020, 1, d) for d in (1, 2, 5, 20, 21, 29)],
         [datetime(2020, 1, 3, 5), datetime(2020, 1, 29), datetime(2020, 1, 29, 1), None], [0, 1, None, None]),
        ([date(2020, 1, d) for d in (1, 2, 5, 20, 21, 29)], ["2020-01-03", "no", "2020-01-21 04:00:00"], [0, None, 1]),
        (list("abcmno"), ["bb", "d", "n"], [0, None, 1]),
    ],
)  # fmt: skip
def test_a_value_of_another_type_lies_where_it_means(tmp_path, old, new, expected):
    frame = pl.DataFrame({"v": old})
    values = [int(v) for v in old] if old[0] == "1" else old
    made = shoal.release(shoal.intervals.cut(values, None, 3), frame, value="v")
    made.write(tmp_path / "v.csv")
    ends = [made.content["group_label"][0], made.content["group_label"][-1]]
    for answer in (made, tmp_path / "v.csv"):
        got = shoal.assign(answer, pl.DataFrame({"v": new})).groups
        assert got == [None if e is None else ends[e] for e in expected]


def test_labels_that_differ_by_a_blank_or_a_type(tmp_path):
    names = ["a", " a", None, "", "q"]
    frame = pl.DataFrame({"v": names, "n": [9, 8, 7, 6, 5]})
    made = shoal.release(shoal.labels.cover(frame["n"], 5), frame, label="v", count="n")
    own = dict(made.content.select("value", "group_label").rows())
    assert shoal.assign(made, frame).groups == [own[v] for v in names]
    made.write(tmp_path / "v.parquet")
    assert shoal.assign(tmp_path / "v.parquet", frame).groups == [own[v] for v in names]
    assert shoal.assign(made, pl.DataFrame({"v": ["q ", "a "]})).groups[0] == own["q"]
    frame = pl.DataFrame({"v": [1, 2, 3, 10], "n": [5, 5, 5, 5]})
    made = shoal.release(shoal.labels.cover(frame["n"], 10), frame, label="v", count="n")
    made.write(tmp_path / "w.csv")
    own = dict(made.content.select("value", "group_label").rows())
    for answer in (made, tmp_path / "w.csv"):
        assert shoal.assign(answer, pl.DataFrame({"v": [1.0, 10.0, None, 2.5]})).groups == [own[1], own[10], None, None]
        assert shoal.assign(answer, pl.DataFrame({"v": ["01", "3"]})).groups == [None, own[3]]


def test_what_may_be_one_or_another_is_none():
    frame = pl.DataFrame({"v": ["a ", " a", "01", "7"], "n": [5, 5, 5, 5]})
    made = shoal.release(shoal.labels.cover(frame["n"], 5), frame, label="v", count="n")
    own = dict(made.content.select("value", "group_label").rows())
    assert own["a "] != own[" a"]
    assert shoal.assign(made, pl.DataFrame({"v": ["a", " a", "7"]})).groups == [None, own[" a"], own["7"]]
    assert shoal.assign(made, pl.DataFrame({"v": [1, 7]})).groups == [None, own["7"]]


def test_moments_with_a_zone_are_in_the_interval_of_their_moment(tmp_path):
    old = ["2020-01-01T10:00:00+02:00", "2020-01-01T09:30:00+01:00", "2021-05-05T00:00:00Z", "2021-05-05T06:00:00Z"]
    new = ["2020-01-01T08:10:00Z", "2020-01-01T11:15:00+03:00", "2020-01-01T08:10:00", "2021-05-05T09:00:00+08:00",
           "2021-05-05T07:00:00Z", "2020-06-01T00:00:00Z"]  # fmt: skip
    inside = [0, 0, None, 1, None, None]
    for frame in (pl.DataFrame({"v": old}), pl.DataFrame({"v": [datetime.fromisoformat(t) for t in old]})):
        made = shoal.release(shoal.intervals.cut(frame["v"], None, 2), frame, value="v")
        made.write(tmp_path / "v.csv")
        names = made.content["group_label"].unique(maintain_order=True).to_list()
        for answer in (made, tmp_path / "v.csv"):
            got = shoal.assign(answer, pl.DataFrame({"v": new})).groups
            assert got == [None if i is None else names[i] for i in inside]
            aware = [datetime.fromisoformat(t) for t, i in zip(new, inside, strict=True) if i is not None]
            assert shoal.assign(answer, pl.DataFrame({"v": aware})).groups == [names[0], names[0], names[1]]


@pytest.mark.parametrize(("column", "value"), [("lat", 90.5), ("lat", -91.0), ("lng", -180.5), ("lng", 361.0)])
def test_a_new_point_that_is_no_place_is_refused(tmp_path, column, value):
    """A longitude of 700 was taken for one of -20, and exchanged coordinates got an open tile at the edge."""
    out = tiles_of(tmp_path)[2]
    good = pl.DataFrame({"lng": [179.0, -180.0, 360.0], "lat": [-17.0, 90.0, -90.0]})
    assert shoal.assign(out, good).table.height == 3
    wrong = good.with_columns(pl.Series(column, [*good[column][:2], value]))
    for new in (wrong, wrong.to_pandas()):
        with pytest.raises(InputError, match=rf"column '{column}' has no .* in 1 of 3 rows; exchange") as caught:
            shoal.assign(out, new)
        assert str(value) not in str(caught.value)


def test_a_column_that_was_not_found_is_sought_among_those_there():
    made = shoal.release(shoal.labels.cover([2, 2], k=2), pl.DataFrame({"job": ["a", "a", "b", "b"]}), label="job")
    with pytest.raises(PolicyError, match=r"no column 'job' to look up in labels; .* one of theirs: 'work', 'age'"):
        shoal.assign(made, pl.DataFrame({"work": ["a"], "age": [3]}))


@pytest.mark.parametrize("around", [False, True])
def test_points_far_from_all_sides_are_counted(tmp_path, around):
    """A tile without an end holds a place whose coordinates are exchanged; the sentences say that it is far away."""
    frame, _, out = tiles_of(tmp_path) if around else (None, None, None)
    if not around:
        rng = np.random.default_rng(4)
        frame = pl.DataFrame({"lng": rng.normal(-3, 0.3, 200).round(3), "lat": rng.normal(51, 0.3, 200).round(3)})
        found = shoal.tiles.split(frame.to_numpy(), 10, coordinates="geographic")
        out = shoal.release(found, frame, x="lng", y="lat")
        out.write(tmp_path / "tiles.csv")
    own = frame.select("lng", "lat")
    assert shoal.assign(out, own).as_dict()["far_away"] == 0
    wrong = own.head(3).select(lng="lat", lat=pl.col("lng").clip(-90, 90))
    sides = out.content.select(pl.col("^(lng|lat)_(low|high)$").cast(pl.Float64)).unique()
    low, high = (float(f(sides["lat_low"].drop_nulls())) for f in (min, max))
    high = max(high, float(sides["lat_high"].drop_nulls().max()))
    edge = pl.DataFrame({"lng": [own["lng"][0]] * 2, "lat": [high + (high - low) * x for x in (0.99, 1.01)]})
    for answer in (out, tmp_path / "tiles.csv"):
        later = shoal.assign(answer, pl.concat([own, wrong, edge]))
        assert later.as_dict()["far_away"] == later.far == 4
        assert later.sentences()[0].startswith("4 records farther from the sides of the tiles")
    west = own.with_columns(pl.when(pl.col("lng") < 0).then(pl.col("lng") + 360).otherwise("lng").alias("lng"))
    assert shoal.assign(out, west).far == 0


def test_names_with_accents_of_their_own_are_the_same_names():
    found = shoal.regions.merge([(0, 1), (1, 2)], [3, 4, 5], 3, seed=1)
    areas = pl.DataFrame({"id": ["Zürich", "Köln", "Bern"], "people": [3, 4, 5]})
    out = shoal.release(found, areas, weight="people", edges=[(0, 1), (1, 2)])
    new = [unicodedata.normalize("NFD", name) for name in ("Zürich", "Bern", "Ulm")]
    later = shoal.assign(out, pl.DataFrame({"area": new}))
    assert later.groups[:2] == shoal.assign(out, pl.DataFrame({"area": ["Zürich", "Bern"]})).groups
    assert later.outside == 1


def test_the_original_in_the_place_of_the_certificate_is_told(tmp_path):
    frame, _, _ = tiles_of(tmp_path)
    with pytest.raises(PolicyError, match="the certificate is one DataFrame"):
        shoal.verify(tmp_path / "tiles.csv", frame)


@pytest.mark.parametrize("center", ["record", "mean"])
@pytest.mark.parametrize("commas", [False, True])
def test_new_records_get_the_nearest_center_whose_cluster_reaches_them(tmp_path, center, commas):
    rng = np.random.default_rng(5)

    def drawn(n, spread):
        table = pl.DataFrame({"age": (rng.normal(40, spread, n) * 2).round() / 2, "sex": rng.choice(["f", "m"], n),
                              "note": np.arange(n)})  # fmt: skip
        texts = pl.col("age").cast(pl.String).str.replace(".", ",", literal=True)
        return table.with_columns(texts) if commas else table

    old, new = drawn(60, 9), drawn(80, 16)
    asked = FeatureColumns(["age", "sex"], decimal={"age": ","} if commas else {})
    features = Features.of(old, asked)
    found = shoal.gathering.gather(tuple(features.values), 5, metric=features.metric)
    out = shoal.release(found, old, columns=["age", "sex"], decimal=asked.decimal, center=center)
    out.write(tmp_path / "centers.csv", also={"assignments": tmp_path / "rows.csv"})

    def number(value):
        return float(str(value).replace(",", "."))

    scale, expected = np.ptp([number(a) for a in old["age"]]), []
    for age, sex in new.select("age", "sex").rows():
        away = [(np.hypot((number(age) - number(a)) / scale, sex != s), c)
                for c, a, s, far in out.table.select("cluster", "age", "sex", "distance").rows()
                if np.hypot((number(age) - number(a)) / scale, sex != s) <= far + 1e-9]  # fmt: skip
        expected.append(min(away)[0] if away else None)
    for answer in (out, tmp_path / "centers.csv", tmp_path / "centers.certificate.json"):
        got = shoal.assign(answer, new)
        centers = {c: (number(a), s) for c, a, s in out.table.select("cluster", "age", "sex").rows()}
        for (age, sex), group, least in zip(new.select("age", "sex").rows(), got.groups, expected, strict=True):
            assert (group is None) == (least is None)
            if group is not None:
                a, s = centers[group]
                assert np.hypot((number(age) - a) / scale, sex != s) == pytest.approx(least, abs=1e-12)
        assert got.outside == expected.count(None) > 0
        assert got.k == 5
    assert "farther away than the published radius" in " ".join(got.sentences())
    assert got.table.columns == ["cluster", "age", "sex", "radius", "distance", "note"]
    assert None not in shoal.assign(out, old).groups
    plain = new.with_columns(age=pl.Series([number(a) for a in new["age"]]))
    assert shoal.assign(out, plain.to_pandas()).groups == got.groups
    got.write(tmp_path / "new.csv")
    assert pl.read_csv(tmp_path / "new.csv").sort("note")["cluster"].to_list() == got.groups
    with pytest.raises(PolicyError, match="'age' is not a column"):
        shoal.assign(out, new.drop("age"))
    gone = pl.lit("" if commas else None).alias("age")
    with pytest.raises((InputError, PolicyError), match="'age'"):
        shoal.assign(out, new.with_columns(gone))
    with pytest.raises(InputError, match="row for each cluster"):
        shoal.assign(tmp_path / "rows.csv", new, certificate=tmp_path / "centers.certificate.json")
    (tmp_path / "centers.record.json").unlink()
    with pytest.raises(InputError, match="only it has the scales"):
        shoal.assign(tmp_path / "centers.csv", new)
