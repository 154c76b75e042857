"""The map draws what the tiles say and nothing else."""

import json
import re

import numpy as np
import pytest

from shoal.errors import InputError, PolicyError
from shoal.problems.tiles import split
from shoal.report import maps, pictures
from shoal.report.maps import draw_tiles, geojson


@pytest.fixture(scope="module")
def tiles():
    return split(np.random.default_rng(1).normal(size=(500, 2)).round(3), 10)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_every_kind_of_map_is_written(tiles, tmp_path, ending):
    path = tmp_path / f"map.{ending}"
    draw_tiles(path, tiles.bounds, tiles.counts, title="T", note="N")
    start = path.read_bytes()[:100]
    assert {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}[ending] in start


def test_the_page_holds_the_tiles_and_no_point(tiles, tmp_path):
    path = tmp_path / "map.html"
    draw_tiles(path, tiles.bounds, tiles.counts, title="a <b> & c", note="50 % & more")
    text = path.read_text(encoding="utf-8")
    assert "@@" not in text
    assert "<title>a &lt;b&gt; &amp; c</title>" in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert data["counts"] == tiles.counts.tolist()
    shown = np.array([[np.nan if v is None else v for v in row] for row in data["bounds"]])
    assert np.array_equal(shown, np.where(np.isfinite(tiles.bounds), tiles.bounds, np.nan), equal_nan=True)
    assert text.count("M") >= len(tiles)
    rects = np.array(data["rects"])
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', text).groups())
    assert (rects[:, :2] >= 0).all()
    assert (rects[:, 0] + rects[:, 2]).max() <= width * 1.001
    assert (rects[:, 1] + rects[:, 3]).max() <= height * 1.001
    assert "Outer tiles go on beyond what is drawn." in text


def test_tiles_without_an_end_are_no_streaks():
    """A ring of unbounded tiles around small ones, and one far out on its own."""
    points = np.random.default_rng(4).normal(size=(900, 2))
    points = np.concatenate([points, np.tile([[40.0, 40.0]], (12, 1))])
    found = split(points, 10)
    sheet = maps.tile_sheet(found.bounds, found.counts, "projected", None)
    b = found.bounds
    finite = np.isfinite(b).all(axis=1)
    usual = np.median(sheet.rects[finite][:, 2:], axis=0)
    for axis in (0, 1):
        cut = np.isinf(b[:, axis]) ^ np.isinf(b[:, axis + 2])
        assert cut.any()
        assert (sheet.rects[cut][:, 2 + axis] <= 4.01 * usual[axis] * 2).all()


def test_boxes_are_drawn_when_given(tiles, tmp_path):
    draw_tiles(tmp_path / "a.html", tiles.bounds, tiles.counts)
    draw_tiles(tmp_path / "b.html", tiles.bounds, tiles.counts, boxes=tiles.boxes)
    a, b = ((tmp_path / f"{n}.html").read_text() for n in "ab")
    assert "t pale" in b
    assert '"t pale"' not in a
    draw_tiles(tmp_path / "b.png", tiles.bounds, tiles.counts, boxes=tiles.boxes)


def test_across_the_date_line(tmp_path):
    rng = np.random.default_rng(2)
    lng = 180 + rng.normal(0, 1, 200)
    points = np.stack([np.where(lng > 180, lng - 360, lng), rng.normal(-17, 1, 200)], axis=1)
    tiles = split(points, 10, coordinates="geographic")
    sheet = maps.tile_sheet(tiles.bounds, tiles.counts, "geographic", tiles.seam)
    assert sheet.unit == "km"
    area = sheet.rects[:, 2] * sheet.rects[:, 3]
    assert area.sum() < sheet.width * sheet.height  # and does not go around the earth
    assert sheet.width / sheet.scale < 2000
    assert (sheet.rects[:, 2:] > 0).all()


@pytest.mark.parametrize("points", [[(1.0, 2.0)] * 3, [(0, 0), (0, 5), (0, 9)], [(3, 3), (1e9, 3)]])
def test_degenerate_sheets(points, tmp_path):
    tiles = split(points, 1)
    for ending in ("png", "html"):
        draw_tiles(tmp_path / f"m.{ending}", tiles.bounds, tiles.counts)
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    sheet = maps.tile_sheet(tiles.bounds, tiles.counts, "projected", None)
    assert len(sheet.rects) == tiles.counts.size
    assert np.isfinite(sheet.rects).all()
    assert (sheet.rects[:, 2:] > 0).all()


def test_densities_are_records_over_area():
    bounds = np.array([[-np.inf, -np.inf, 0, np.inf], [0, -np.inf, 4, np.inf], [4, -np.inf, np.inf, np.inf]])
    sheet = maps.tile_sheet(bounds, np.array([5, 10, 5]), "projected", None)
    wide = sheet.rects[:, 2] / sheet.scale
    assert wide[1] == pytest.approx(4)
    assert sheet.density[1] == pytest.approx(10 / (wide[1] * sheet.rects[1, 3] / sheet.scale))


def test_steps_name_every_color():
    for low, high in ((1, 2), (0.001, 5000), (7, 7), (1e-9, 1e9)):
        density = np.geomspace(low, high, 200)
        breaks = maps.density_breaks(density)
        assert len(breaks) < len(maps.TILE_COLORS)
        assert (np.diff(breaks) > 0).all()


def test_a_bar_is_round_and_fits():
    for width in (0.037, 1.0, 7.3, 900.0):
        assert 0 < pictures.bar_length(width) <= width
    assert pictures.bar_length(7.3) == 5


def test_refusals(tiles, tmp_path):
    with pytest.raises(PolicyError, match="kind of map"):
        draw_tiles(tmp_path / "map.docx", tiles.bounds, tiles.counts)
    with pytest.raises(InputError, match="bounds"):
        draw_tiles(tmp_path / "map.png", tiles.bounds[:, :2], tiles.counts)
    with pytest.raises(PolicyError, match="projected"):
        geojson(tiles.bounds, [{}] * len(tiles), "projected")


def test_the_earth_is_one():
    from shoal.problems.tiles.cells import KM_PER_DEGREE

    assert maps.KM_PER_DEGREE == KM_PER_DEGREE
