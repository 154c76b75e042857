"""The report of every problem: its figures are those of the files written, and nothing of the source is in it."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.report.words import shown, theorem_words
from tests.commands import run
from tests.kept import kept
from tests.report.links import dead_links
from tests.report.test_page import Nesting, figures_of

RNG = np.random.default_rng(5)
N = 240
POINTS = pl.DataFrame(
    {
        "lng": 9 + RNG.normal(size=N) / 9,
        "lat": 48 + RNG.normal(size=N) / 9,
        "age": RNG.integers(20, 70, N),
        "ill": ["MARKRARE"] * 7 + RNG.choice(["flu", "gout", "cough"], N - 7).tolist(),  # fewer than a cluster holds
        "name": [f"MARKNAME{i}" for i in range(N)],
    }
)
NAMES = pl.DataFrame({"name": [f"MARKLABEL{i}" for i in range(60)], "people": RNG.integers(0, 40, 60)})
SIDE = 5
AREAS = pl.DataFrame({"id": [f"MARKAREA{i}" for i in range(SIDE**2)], "people": RNG.integers(100, 900, SIDE**2)})
EDGES = [(i, i + 1) for i in range(SIDE**2) if (i + 1) % SIDE] + [(i, i + SIDE) for i in range(SIDE**2 - SIDE)]


def made_of(kind: str) -> tuple[shoal.Crosswalk, int]:
    """A release of each kind, and the least that was asked of a group."""
    if kind == "labels":
        found = shoal.labels.cover(NAMES["people"], 50)
        return shoal.release(found, NAMES, label="name", count="people"), 50
    if kind == "intervals":
        return shoal.release(shoal.intervals.cut(POINTS["age"], None, 12, "range"), POINTS, value="age"), 12
    if kind == "regions":
        found = shoal.regions.merge(EDGES, AREAS["people"].to_numpy(), 2000, effort="fast", seed=1)
        return shoal.release(found, AREAS, weight="people", edges=EDGES, id="id"), 2000
    if kind == "tiles":
        points = POINTS.select("lng", "lat").to_numpy()
        found = shoal.tiles.split(points, 10, coordinates="geographic", effort="fast")
        return shoal.release(found, POINTS, x="lng", y="lat"), 10
    solve = getattr(shoal.gathering, kind)
    found = solve(POINTS.select("lng", "lat").to_numpy(), 8, epsilon=0.02)
    return shoal.release(found, POINTS, columns=["lng", "lat"], sensitive=["ill"], center="mean"), 8


def sizes_in(kind: str, path: Path) -> list[int]:
    """Records of every group, from the file alone."""
    frame = pl.read_csv(path)
    grouped = ("group", "group_count")
    named = {
        "labels": grouped,
        "intervals": grouped,
        "regions": ("region", "region_weight"),
        "tiles": ("tile", "records"),
    }
    keys = named.get(kind, ("cluster", "records"))
    own = frame.unique(keys[0])
    return sorted(own.filter(pl.col(keys[1]) > 0)[keys[1]].to_list())


def lost_in(kind: str, path: Path) -> list[float]:
    """What each group lost, from the file alone."""
    frame = pl.read_csv(path)
    if kind in ("labels", "intervals"):
        return frame.group_by("group").len()["len"].to_list()
    if kind == "regions":
        return frame.group_by("region").len()["len"].to_list()
    if kind in ("gather", "cellular"):
        return frame["distance"].to_list()
    out = []
    for x0, y0, x1, y1 in frame.unique("tile").select("lng_low", "lat_low", "lng_high", "lat_high").rows():
        if None not in (x0, y0, x1, y1):
            km = 111.1950802335329
            out.append((y1 - y0) * km + (x1 - x0) * km * float(np.cos(np.radians((y0 + y1) / 2))))
    return out


@pytest.mark.parametrize("kind", ["labels", "intervals", "regions", "tiles", "gather", "cellular"])
def test_the_figures_are_those_of_the_files(kind: str, tmp_path: Path) -> None:
    made, least = made_of(kind)
    out = tmp_path / "x.csv"
    beside = kept(made.write(out))
    text = made.report(tmp_path / "r.html", internal=True).read_text(encoding="utf-8")
    parser = Nesting()
    parser.feed(text)
    assert parser.open == []
    told, record = figures_of(text), json.loads(beside.read_text())
    sizes = sizes_in(kind, out)
    assert [int(s) for s, n in told["sizes"].items() for _ in range(n)] == sizes
    after = told["after"]
    assert (after["groups"], after["smallest"], after["largest"]) == (len(sizes), sizes[0], sizes[-1])
    assert after["records"] == sum(sizes)
    assert after["below"] == after["below_records"] == 0
    assert told["k"] == least <= sizes[0]
    assert after["prosecutor_max"] == pytest.approx(1 / sizes[0])
    assert after["marketer"] == pytest.approx(len(sizes) / sum(sizes))
    lost = sorted(lost_in(kind, out))
    assert (told["loss"]["least"], told["loss"]["most"]) == pytest.approx((lost[0], lost[-1]), rel=1e-5, abs=1e-5)
    assert told["loss"]["half"] == pytest.approx(float(np.median(lost)), rel=1e-5, abs=1e-5)
    assert sum(b["groups"] for b in told["loss"]["bars"]) == len(lost)
    assert told["written"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert told["certificate"]["cost"] == record["certificate"]["cost"]
    assert (told["parameters"], told["facts"]) == (record["parameters"], record["facts"])
    assert told["columns"] == pl.read_csv(out).columns
    visible = text.split("<script")[0]
    for wanted in ("The request", "What was released", "Privacy before and after", "group by group", "certificate",
                   "What was assumed", "What this does not promise", "make and check it again", "prosecutor", "<svg",
                   "x.certificate.json", told["written"]["sha256"], f"at least {least:,}",
                   f"<code>shoal {kind}</code> with the request above"):  # fmt: skip
        assert wanted in visible, wanted
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(|<link", re.sub(r'xmlns="[^"]*"', "", text))
    assert "MARK" not in re.sub(r"base64,[^\"]*", "", text)  # four letters happen to stand in a picture
    assert "{&#x27;" not in visible
    assert ("<img" in visible) is (kind in ("tiles", "gather", "cellular"))


def test_before_counts_what_the_source_has(tmp_path: Path) -> None:
    before = made_of("labels")[0].figures()["before"]
    people = NAMES["people"].to_list()
    assert (before["groups"], before["records"], before["largest"]) == (60, sum(people), max(people))
    assert before["below"] == sum(0 < n < 50 for n in people)
    assert before["records_at_risk"] == pytest.approx(sum(n for n in people if 0 < n < 5) / sum(people))
    before = made_of("tiles")[0].figures()["before"]
    assert (before["groups"], before["alone"], before["prosecutor_max"]) == (N, N, 1)
    before = made_of("regions")[0].figures()["before"]
    assert (before["groups"], before["records"]) == (SIDE**2, AREAS["people"].sum())


def test_what_was_left_out_is_said() -> None:
    made, _ = made_of("gather")
    out = made.facts["left_out"]
    from shoal.report.crosswalk import answer

    assert out > 0
    assert f"{out} record" in answer(made.figures())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Du, Eppstein, Goodrich, Lueker 2009, Theorem 9", "shared out"),
        ("Du, Eppstein, Goodrich, Lueker 2009, Theorem 10: at most", "combinations"),
        ("Xiao, Yi, Tao 2010, Theorem 5.19", "three phases"),
        ("docs/gathering.md, Theorem 5: the largest of the paid clusters", "payer"),
        ("docs/gathering.md, Theorem 1: disjoint nearest-r balls", "Balls"),
        ("optimal by dynamic programming over all cuts", "no cut is missed"),
        ("bisection over integer programs", "halving"),
        ("one integer program over all centers and radii", "among all answers"),
        ("largest tau (docs/gathering.md, Lemma 1)", "r records as near"),
        ("raised prices (docs/gathering.md, Lemma 3)", "price"),
        ("counting: total weight over the most tiles there can be", "shared"),
        ("half the largest threshold whose test failed (Aggarwal et al. 2006, Lemma 2.1)", "far apart"),
    ],
)
def test_each_theorem_is_told_as_itself(text: str, word: str) -> None:
    assert word in theorem_words(text)


COMMANDS = {
    "labels": ("names.csv", "--label name --count people --k 50"),
    "intervals": ("points.csv", "--value age --k 12"),
    "regions": ("areas.csv", "edges.csv --weight people --k 2000"),
    "tiles": ("points.csv", "--x lng --y lat --k 10"),
    "gather": ("points.csv", "--columns lng,lat --r 8"),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_on_the_command_line(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    POINTS.write_csv("points.csv")
    NAMES.write_csv("names.csv")
    AREAS.write_csv("areas.csv")
    names = AREAS["id"].to_list()
    pl.DataFrame({"u": [names[a] for a, _ in EDGES], "v": [names[b] for _, b in EDGES]}).write_csv("edges.csv")
    table, rest = COMMANDS[kind]
    said = run(kind, table, *rest.split(), "-o", "out.csv", "--report", "r.html", "--json").facts
    told = figures_of(Path("r.html").read_text(encoding="utf-8"))
    assert said["report"] == "r.html"
    del told["shown"]
    assert {**said["figures"], "made_at": ""} == {**told, "made_at": ""}
    assert told["written"]["file"] == "out.csv"
    assert (told["internal"], told["source"]) == (False, "not stated")


def test_how_outlines_were_read_is_said_in_words(tmp_path: Path) -> None:
    """And not by the names that a certificate has for it."""
    rings = [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]] for x in range(4)]
    areas = [
        {"type": "Feature", "properties": {"id": f"a{x}", "people": 5},
         "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for x, ring in enumerate(rings)
    ]  # fmt: skip
    (tmp_path / "areas.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": areas}))
    page, more = tmp_path / "r.html", ("--weight", "people", "--k", 10, "--report")
    for tolerance, says in ((), "borders<"), (("--tolerance", 0.5), "borders; borders up to 0.5 km apart are one<"):
        run("regions", tmp_path / "areas.geojson", *more, page, *tolerance, "--force")
        text = page.read_text(encoding="utf-8")
        assert f"neighbors share a part of their {says}" in text
        assert "centers none" not in text


@pytest.mark.parametrize(("cost", "words"), [(1.0, "1 unit "), (2.0, "2 units ")])
def test_one_unit_is_no_units(cost: float, words: str) -> None:
    assert shown(cost, "units from a center").startswith(words)


def test_a_picture_that_matplotlib_cannot_draw_is_said(monkeypatch, tmp_path):
    from shoal import errors

    points = pl.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.0, 1.0]})
    made = shoal.release(shoal.tiles.split(points.to_numpy(), 2), points, x="x", y="y")

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(errors, "import_module", missing)
    made.report(tmp_path / "report.html")
    assert "not drawn without matplotlib" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_limits_name_ways_out_that_are_there():
    """Labels and intervals know no l; clusters say how far apart one unit is."""
    from shoal.report.crosswalk import assumptions, limits

    for kind in ("labels", "intervals", "regions", "gather"):
        told = made_of(kind)[0].figures()
        (first, *_) = limits(told)
        assert first.startswith("Homogeneity: everybody in a")
        assert ("--l" in first) is (kind in ("regions", "gather"))
        assert "a interval" not in first
    features = [
        {"name": "age", "kind": "number", "weight": 2.0, "scale": 10.0, "unit": "years"},
        {"name": "sex", "kind": "category", "weight": 0.5, "levels": 1},
        {"name": "note", "kind": "date", "weight": 0.0, "scale": 1.0, "unit": ""},
        {"name": "day", "kind": "date", "weight": 1.0, "scale": 7.0, "unit": ""},
    ]
    said = " ".join(assumptions({**told, "parameters": {**told["parameters"], "features": features}}))
    assert (
        "5 years of age count 1; another value of sex counts 0.5; note counts nothing; 7 days of day count 1." in said
    )


@pytest.mark.parametrize("kind", ["labels", "intervals", "regions", "tiles", "gather", "cellular"])
def test_every_line_of_the_request_is_in_words(tmp_path: Path, kind: str) -> None:
    """No name of an argument, no word of Python: a board reads it."""
    made, _ = made_of(kind)
    made.write(tmp_path / "out.csv")
    text = made.report(tmp_path / "page.html", internal=True).read_text(encoding="utf-8")
    request = re.search(r"(?s)The request</caption>(.*?)</table>", text)[1]
    named = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", request)
    assert len(named) >= 4
    for raw in ("k", "r", "objective", "x", "y", "sparse", "extent", "norm", "improve", "True", "False", "time limit"):
        assert raw not in named, raw
    seed = figures_of(text)["certificate"]["details"].get("run", {}).get("seed")
    assert seed is None or str(seed) in named, "as it is typed"
    record = re.search(r"(?s)Also on record</caption>(.*?)</table>", text)
    for raw in ("tau", "kappa", "blocks", "strategies", "excess<", "squares<", "tree degree", "service"):
        assert record is None or raw not in record[1], raw
    stated = re.search(r"(?s)why no release loses less(.*?)</tr>", text)[1]
    assert re.search(r"<td[^>]*>\s*[A-Z][^<]*\. \(docs/", stated) or "The proof." in stated, "plain words first"
    assert not dead_links(text)


def test_a_page_is_named_after_the_first_file_of_an_answer(tmp_path):
    points = pl.DataFrame({"x": [0, 1, 2, 3], "y": [0, 1, 0, 1]})
    made = shoal.release(shoal.tiles.split(points, 2), points, x="x", y="y")
    assert "<title>Release report: an answer that is not written yet" in made.report(tmp_path / "r.html").read_text()
    made.write(None, also={"tiles": tmp_path / "tiles.csv"})
    assert "<title>Release report: tiles.csv" in made.report(tmp_path / "s.html").read_text()
    made.write(tmp_path / "places.csv", also={"tiles": tmp_path / "again.csv"})
    assert "<title>Release report: places.csv" in made.report(tmp_path / "t.html").read_text()
