"""Outlines put together from areas, and maps that say what they show."""

import itertools
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError, PolicyError
from shoal.report import clusters, maps
from shoal.report.maps import SHADES, UNDER, draw_regions
from shoal.report.outlines import dissolve, doubled_area, geojson, outline
from shoal.report.pictures import COLORS, albers, as_svg, as_text, colors, seam, sheet_of, unwrapped


def square(x, y, side=1.0):
    return [[np.array([[x, y], [x + side, y], [x + side, y + side], [x, y + side]], float)]]


def surface(shape):
    return sum(doubled_area(ring) for polygon in shape for ring in polygon) / 2


def test_a_shared_side_goes_whichever_way_the_rings_run():
    right = [[ring[::-1] for ring in polygon] for polygon in square(1, 0)]
    [[ring]] = dissolve([square(0, 0), right])
    assert len(ring) == 6
    assert doubled_area(ring) == 4


def test_a_ring_of_squares_has_a_hole():
    around = [square(x, y) for x in range(3) for y in range(3) if (x, y) != (1, 1)]
    [[outside, hole]] = dissolve(around)
    assert doubled_area(outside) == 18
    assert doubled_area(hole) == -2
    [[filled]] = dissolve([*around, square(1, 1)])
    assert doubled_area(filled) == 18


def test_squares_that_meet_in_a_corner_stay_two():
    assert [[len(ring) for ring in polygon] for polygon in dissolve([square(0, 0), square(1, 1)])] == [[4], [4]]


def test_a_pinched_ring_becomes_an_outside_and_a_hole():
    """Seven squares around a hole that touches the outside in a corner."""
    ring = [square(x, y) for x in range(3) for y in range(3) if (x, y) not in ((1, 1), (2, 2))]
    [[outside, hole]] = dissolve(ring)
    assert (doubled_area(outside), doubled_area(hole)) == (16, -2)


@pytest.mark.parametrize("turn", [1, -1])
def test_an_area_fills_the_hole_of_another(turn):
    [[outside]], [[hole]] = square(0, 0, 3), square(1, 1)
    holed = [[outside[::turn], hole]]
    assert [doubled_area(ring) for ring in dissolve([holed])[0]] == [18, -2]
    assert [[doubled_area(ring) for ring in polygon] for polygon in dissolve([holed, square(1, 1)])] == [[18]]


def test_collapsed_rings_are_nothing():
    line = [[np.array([[0.0, 0], [1, 0]])]]
    assert dissolve([line]) == []
    assert dissolve([]) == []


@settings(deadline=None, max_examples=60)
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_squares_of_a_grid_keep_their_surface(cells):
    made = dissolve([square(x, y) for x, y in sorted(cells)])
    assert surface(made) == len(cells)
    for polygon in made:
        assert doubled_area(polygon[0]) > 0
        assert all(doubled_area(hole) < 0 for hole in polygon[1:])
        for ring in polygon:
            assert len({tuple(p) for p in ring.tolist()}) == len(ring)  # no ring meets itself


def test_geojson_closes_its_rings():
    held = json.loads(geojson([dissolve([square(0, 0)])], [{"region": "a"}]))
    [feature] = held["features"]
    assert feature["geometry"]["type"] == "MultiPolygon"
    ring = feature["geometry"]["coordinates"][0][0]
    assert ring[0] == ring[-1]
    assert len(ring) == 5


def test_neighbors_have_different_colors():
    shapes = [square(x, y) for x in range(6) for y in range(6)]
    labels = np.arange(36) // 2
    color = colors(shapes, labels, 18)
    for i in range(36):
        for j in range(36):
            apart = abs(i // 6 - j // 6) <= 1 and abs(i % 6 - j % 6) <= 1
            assert not apart or labels[i] == labels[j] or color[labels[i]] != color[labels[j]]


def test_the_cone_keeps_areas_and_the_equator_is_drawn():
    for south in (30.0, -40.0, -1.0):
        place = albers(np.array([-10.0, south, 10.0, south + 12]))
        for lat in (south, south + 6, south + 11):
            got = abs(doubled_area(place(square(3.0, lat, 0.1)[0][0]))) / 2
            true = 6371.0**2 * np.radians(0.1) * np.diff(np.sin(np.radians([lat, lat + 0.1])))[0]
            assert got == pytest.approx(true, rel=1e-3)
        assert (place(np.array([[0.0, south + 1]])) < place(np.array([[1.0, south + 2]]))).all()  # east right, north up


def test_the_date_line_tears_nothing():
    boxes = np.array([[178.0, 0, 179, 1], [-179, 0, -178, 1], [170, 0, 171, 1]])
    cut = seam(boxes)
    east, west = (unwrapped(np.array([[x, 0.0], [x + 1, 1]]), cut) for x in (178.0, -179.0))
    assert 0 < west[0, 0] - east[0, 0] <= 3


def test_borders_still_cancel_on_the_globe():
    """A strip of areas along awkward longitudes: no inner side may survive, wherever each ring begins."""
    x = np.linspace(-73.7, -71.8, 14).round(5)
    shapes = [
        [[np.roll([[a, 41.1], [b, 41.1], [b, 42.03], [a, 42.03]], i, axis=0)]]
        for i, (a, b) in enumerate(itertools.pairwise(x.tolist()))
    ]
    sheet = sheet_of(shapes, np.zeros(13, np.int64), np.ones(13, np.int64), 1, True)
    assert [[len(ring) for ring in polygon] for polygon in sheet.outlines[0]] == [[28]]
    apart = sheet_of(shapes, np.arange(13), np.ones(13, np.int64), 1, True).color
    assert all(a != b for a, b in itertools.pairwise(apart))


@pytest.fixture
def scene():
    shapes = [square(x, y) for x in range(4) for y in range(3)]
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, -1, 2, 2])
    return {
        "shapes": shapes,
        "labels": labels,
        "ids": [f"0{i}" for i in range(12)],
        "weights": np.arange(12),
        "regions": ["00+2", "03+2", "06+4"],
    }


def test_without_classes_of_areas_a_page_shows_sums_alone(scene, tmp_path):
    others = {**scene, "weights": np.array([1, 2, 0, 5, 3, 4, 12, 0, 21, 9, 7, 2])}
    pages = {}
    for shown in (True, False):
        for i, own in enumerate((scene, others)):
            draw_regions(tmp_path / "map.html", **own, k=3, area_classes=shown)
            pages[shown, i] = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert pages[False, 0] == pages[False, 1]
    assert pages[True, 0] != pages[True, 1]
    assert "areas by weight" in pages[True, 0]
    assert "areas by weight" not in pages[False, 0]


def test_the_page_is_one_file_that_names_everything(scene, tmp_path):
    path = tmp_path / "map.html"
    draw_regions(path, **scene, areas=["<b>"] * 12, k=3, unit="cows & calves", title="A & B", note="n < m")
    text = path.read_text(encoding="utf-8")
    assert "@@" not in text
    assert not re.search(r"(src|href)=|url\(|https?://", text)
    assert text.count('data-i="') == 12
    assert text.count('class="o ') == 1
    assert "A &amp; B" in text
    assert "n &lt; m" in text
    assert "<b>" not in text
    held = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert held["total"] == [3, 12, 21 + 10 + 11]
    assert held["size"] == [3, 3, 5]
    assert held["region"][9] == -1
    assert held["class"] == [0, 0, 0, 1, 2, 3, 4, 4, 4, 5, 5, 5]  # under 3, then steps of 3
    assert "weights" not in held
    assert len(re.search(r'<g id="lines"[^>]*>(.*?)</g>', text)[1].split("<path")) == 4


def test_an_area_below_k_says_nothing_but_that(scene, tmp_path):
    """Two maps of which only the areas' own weights differ, below k: the same bytes, in every form."""
    other = {**scene, "weights": np.array([1, 1, 1, *range(3, 12)])}
    for ending in ("html", "png", "svg"):
        made = []
        for i, held in enumerate((scene, other)):
            path = tmp_path / f"{i}.{ending}"
            draw_regions(path, **held, k=3, geographic=False)
            made.append(re.sub(rb"<dc:date>.*?</dc:date>|id=\"\w+\"|#\w+", b"", path.read_bytes()))
        assert made[0] == made[1]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.tuples(*[st.floats(-2000, 2000)] * 2), min_size=3, max_size=9), min_size=1, max_size=3))
def test_an_outline_in_steps_is_the_outline_to_a_hundredth(rings):
    """Read back as SVG reads it: numbers parted by a sign, a blank or nothing at all before a dot."""
    kept = []
    for ring in rings:
        points = np.round(np.array(ring) * 100).astype(int)
        points = points[(points != np.roll(points, 1, axis=0)).any(axis=1)]
        kept += [points] if len(points) > 2 else []
    text = outline([np.array(ring) for ring in rings])
    read = [[float(v) for v in re.findall(r"-?\d*\.?\d+", part)] for part in re.findall(r"M([^z]*)z", text)]
    assert len(read) == len(kept)
    for numbers, points in zip(read, kept, strict=True):
        got = np.cumsum(np.array(numbers).reshape(-1, 2), axis=0)
        assert np.abs(got * 100 - points).max() < 1e-6 * 100


MACHADO = {  # severity 1.0, linear RGB
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(color, seen):
    """A color as somebody sees it, in CIE L*a*b*."""
    rgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if seen in MACHADO:
        linear = np.clip(np.array(MACHADO[seen]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(xyz / [0.9505, 1, 1.089])
    f = np.where(f**3 > 0.008856, f, 7.787 * f**3 + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen", ["all", *MACHADO])
def test_colors_are_told_apart_by_everybody(seen):
    apart = min(np.linalg.norm(lab(a, seen) - lab(b, seen)) for a, b in itertools.combinations(COLORS, 2))
    assert apart > 6  # about three times what is just noticed
    for scale in ((UNDER, *SHADES), maps.TILE_COLORS):
        light = [lab(c, seen)[0] for c in scale]
        assert all(a - b > 3 for a, b in itertools.pairwise(light))  # darker from step to step, for print too


@pytest.mark.parametrize(("ending", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_by_ending(scene, tmp_path, ending, head):
    path = tmp_path / f"map.{ending}"
    draw_regions(path, **scene, geographic=False, title="T", note="N")
    assert path.read_bytes().startswith(head)


def test_far_islands_are_drawn_in_boxes_of_their_own():
    """Two islands off a large map, one of two areas: each in its box, below the map, at most at the map's scale."""
    far = [square(500, 500), square(-900, 300), square(-899, 300, 40)]
    shapes = [square(x, y) for x in range(20) for y in range(20)] + far
    labels = np.array([0] * 400 + [1, 2, 2])
    sheet = sheet_of(shapes, labels, np.ones(403, np.int64), 1, False)
    assert sheet.outside == 0
    assert len(sheet.boxes) == 2
    main = np.concatenate([ring for shape in sheet.areas[:400] for polygon in shape for ring in polygon])
    side = surface(sheet.areas[0])
    assert surface(sheet.areas[7]) == pytest.approx(side)
    assert surface(sheet.areas[402]) <= 1600 * abs(side) * (1 + 1e-9)
    for held, box in zip(([401, 402], [400]), sheet.boxes, strict=True):  # the larger first
        x, y, wide, tall = box
        points = np.concatenate([ring for i in held for polygon in sheet.areas[i] for ring in polygon])
        assert (points >= [x, y]).all()
        assert (points <= [x + wide, y + tall]).all()
        assert main[:, 1].max() < y
        assert 0 <= x <= x + wide <= sheet.width + 1e-9
        assert y + tall <= sheet.height + 1e-9
        lines = np.concatenate([r for polygon in sheet.outlines[labels[held[0]]] for r in polygon])
        assert (lines >= [x, y]).all()
        assert (lines <= [x + wide, y + tall]).all()
    assert sheet.focus == (0.0, 0.0, sheet.width, sheet.height)


def test_many_far_islands_are_left_to_the_zoom():
    far = [square(500 + 200 * i, 900 * (i % 2)) for i in range(6)]
    shapes = [square(x, y) for x in range(30) for y in range(30)] + far
    sheet = sheet_of(shapes, np.zeros(906, np.int64), np.ones(906, np.int64), 1, False)
    assert sheet.outside == 6
    assert not sheet.boxes
    assert sheet.focus[2] < 0.1 * sheet.width


def test_refusals(scene, tmp_path):
    with pytest.raises(PolicyError, match="kind of map"):
        draw_regions(tmp_path / "map.gif", **scene)
    with pytest.raises(InputError, match="none of the areas has a polygon"):
        draw_regions(tmp_path / "map.png", **{**scene, "shapes": [[]] * 12})


def test_one_giant_leaves_the_others_their_height():
    giant, others = [90_000, *range(10, 40)], list(range(10, 40))
    tall = [[float(h) for h in re.findall(r' height="([\d.]+)"/>', as_svg(loads, 10, None, "sizes"))]
            for loads in (giant, others)]  # fmt: skip
    assert min(tall[0]) > 10
    assert tall[0] == sorted(tall[0], reverse=True)
    assert "each doubling" in as_svg(giant, 10, None, "sizes")
    assert "each doubling" not in as_svg(others, 10, None, "sizes")
    for loads, rows in ((giant, 4), (others, 8), ([10], 1), ([0, 3, 9], 8)):
        lines = as_text(loads, 10)
        assert sum(int(line.split()[-1]) for line in lines) == len(loads)
        assert sum(not line.endswith(" 0") for line in lines) <= rows <= 8
    assert max(int(line.split()[-1]) for line in as_text(giant, 10)) < len(others)


def test_circles_are_a_page_for_keys_and_readers(tmp_path):
    centers, said = np.array([[-17.0, 179.9], [-16, 170]]), ["<i>12</i> records", "11 records @@ink@@"]
    clusters.draw_circles(tmp_path / "c.html", centers, np.array([40.0, 0.0]), said, title="C & D")
    text = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|url\(|https?://", text)
    assert "<i>12" not in text
    assert text.count("@@ink@@") == 2  # what is filled in is not looked at again
    assert 'tabindex="0"' in text
    held = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert held["length"] == "km"
    assert len(held["places"]) == 2


@pytest.mark.parametrize("geographic", [True, False])
@pytest.mark.parametrize("centers", [[[40.0, 9.0]], [[40.0, 9.0], [41.0, 9.0]]])
def test_circles_without_a_radius_are_seen(geographic, centers, tmp_path):
    """Records at one place have a circle of some width, and the sheet has one, too."""
    asked = [np.array(centers), np.zeros(len(centers)), ["2 records"] * len(centers)]
    clusters.draw_circles(tmp_path / "c.html", *asked, geographic=geographic)
    text = (tmp_path / "c.html").read_text()
    assert all(float(side) > 0 for side in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())
    for path in re.findall(r'<path d="([^"]+)"', text):
        assert len(path) > 30
    clusters.draw_circles(tmp_path / "c.svg", *asked, geographic=geographic)


def test_circles_over_each_other_are_filled_the_thinner(tmp_path):
    """Where two hundred lie over one place a reader still sees that they are many; lone ones are as before."""

    def opaque(centers):
        clusters.draw_circles(
            tmp_path / "c.html", centers, np.full(len(centers), 1.0), [""] * len(centers), geographic=False
        )
        return float(
            re.search(r"#circles path \{ fill: #\w+; fill-opacity: ([\d.]+)", (tmp_path / "c.html").read_text())[1]
        )

    apart = np.column_stack([np.arange(9) % 3, np.arange(9) // 3]) * 3.0
    assert opaque(apart) == 0.18
    assert opaque(np.repeat(apart, 20, axis=0)) < 0.06
