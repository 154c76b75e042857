"""The pages without a browser: what a click changes, what is refused in words, and that two windows do not mix."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from tests.commands import run as command
from tests.engines.test_arx import TABLE as ARX_TABLE
from tests.engines.test_arx import project as arx_project
from tests.workbench.simulated import (
    FOLDER,
    PATH,
    button,
    enter,
    every,
    field,
    fill,
    go,
    hold,
    on_pages,
    opened,
    people,
    run,
    see,
    the,
    until,
)

pytest.importorskip("nicegui", reason="nicegui is not installed: pip install 'shoal[workbench]'")


TABLE = "Table of a database (DuckDB, SQLite), sheet of Excel, or layer of a map"


def roles(user: Any) -> list[Any]:
    """The choices of roles, in the table's order."""
    return [e for e in every(user, "toggle") if "quasi_identifiers" in e.options]


@on_pages()
async def test_a_role_changes_by_a_click_and_the_line_on_top_says_so(user: Any, task: Any):
    assert [task.role(c) for c in ("name", "age")] == ["identifiers", "quasi_identifiers"]
    await see(user, "name leaves the table")
    go(user, "2 Roles")
    await see(user, "quasi-identifiers together")
    roles(user)[1].set_value("insensitive")
    await see(user, ": zip published as")
    assert task.role("age") == "insensitive"
    button(user, "Undo").click()
    await see(user, ": age and zip published as")
    button(user, "Redo").click()
    await see(user, ": zip published as")
    assert task.role("age") == "insensitive"
    assert task.sentence() == next(e.text for e in user.find(": zip published as").elements)


@on_pages()
async def test_a_model_is_asked_for_by_its_switch_and_its_number(user: Any, task: Any):
    go(user, "3 Models")
    (entropy,) = (e for e in every(user, "switch") if "entropy" in e.text.lower())
    entropy.set_value(True)
    assert task.settings["entropy_l"] == 2.0
    assert any("entropy" in model.name for model in shoal.Policy.of(task.asked()).privacy)
    enter(user, "k", 9)
    await see(user, "at least 9 rows")
    assert task.asked()["k"] == 9
    entropy.set_value(False)
    assert "entropy_l" not in task.settings
    task.change(alpha_k=[0.7, 9], l=None)
    window_again = f"/w/{task.name}"
    await user.open(window_again)
    go(user, "3 Models")
    enter(user, "k", 11)
    await see(user, "at least 11 rows, and at most the share 0.7")  # said once, with the k of both
    assert task.asked()["alpha_k"] == [0.7, 11]
    assert field(user, "alpha_k: k").value == 11
    enter(user, "alpha_k: k", 20)
    enter(user, "k", 4)
    assert (task.asked()["k"], task.asked()["alpha_k"]) == (4, [0.7, 20])


def test_ends_of_ranges_of_dates_are_months_or_years(tmp_path: Path):
    born = [f"19{40 + i * 7 % 55}-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(200)]
    table = pl.DataFrame({"born": born, "zip": ["01", "02"] * 100, "height": [150.25 + i / 4 for i in range(200)]})
    table.with_columns(disease=pl.Series(["flu", "gout"] * 100)).write_csv(tmp_path / "born.csv")

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        assert task.asked()["range_step"] == {"born": "year", "height": 2}
        go(user, "3 Models")
        field(user, "Ranges of born end with a full").set_value("month")
        assert task.asked()["range_step"] == {"born": "month", "height": 2}
        field(user, "Ranges of born end with a full").set_value(None)
        assert task.asked()["range_step"] == {"height": 2}
        label = "Values of height from here up are one (top)"
        enter(user, label, 190)
        assert task.asked()["top"] == {"height": 190}
        task.give_role("height", "insensitive")
        assert not task.asked().get("top")

    run(walk, tmp_path, first=str(tmp_path / "born.csv"))


@on_pages()
async def test_the_page_of_models_speaks_of_no_options_and_a_population_opens_its_models(
    user: Any, task: Any, tmp_path: Path
):
    go(user, "3 Models")
    words = [e.text for e in every(user, "switch")] + [str(e.props.get("label")) for e in every(user, "input")]
    assert len(words) > 15
    assert not [w for w in words if "--" in w]

    def of_population() -> list[Any]:
        return [e for e in every(user, "switch") if e.text.startswith(("k-map", "delta-presence"))]

    assert [e.enabled for e in of_population()] == [False, False]
    enter(user, "Path of the population's table", str(tmp_path / "people.csv"))
    await until(lambda: [e.enabled for e in of_population()] == [True, True], "they stay shut")
    of_population()[1].set_value(True)
    assert {"k_map", "presence"} & set(task.settings)


@on_pages()
async def test_how_long_to_search_is_a_word_or_a_number_of_seconds(user: Any, task: Any):
    task.change(effort=2.5)  # as a saved policy may have it
    go(user, "3 Models")
    way = field(user, "How long to search (effort)")
    assert (way.value, field(user, "Seconds").value) == ("seconds", 2.5)
    enter(user, "Seconds", 30)
    assert task.asked()["effort"] == 30.0
    seconds = field(user, "Seconds")
    way.set_value("fast")
    assert (task.asked()["effort"], seconds.visible) == ("fast", False)
    way.set_value("seconds")
    assert (task.asked()["effort"], seconds.visible) == (30.0, True)


@on_pages()
async def test_a_hierarchy_is_made_by_the_wizard_changed_by_hand_and_saved_as_arx_reads_it(user: Any, task: Any):
    go(user, "4 Hierarchies")
    field(user, "Column").set_value("zip")
    fill(user, "How it is made", "order", "Show the tree")
    await see(user, "01230 to 01232")
    await see(user, "of the rows")
    for value in ("01230", "01233"):
        mark = the(user, "checkbox", f"{value}: ")
        mark.set_value(True)
    fill(user, "Class for the marked values, also a new one", "west", "Move")
    await see(user, "west")
    button(user, "Use this hierarchy").click()
    await until(lambda: "zip" in task.settings.get("hierarchies", {}), "the hierarchy is not used")
    saved = Path(task.settings["hierarchies"]["zip"]).read_text().splitlines()
    assert "01230;west;*" in saved
    assert "01233;west;*" in saved
    assert len(saved) == 7
    assert task.asked()["publish"] == "hierarchy"
    assert shoal.Hierarchy.of(task.settings["hierarchies"]["zip"]) is not None


@on_pages()
async def test_a_hierarchy_in_use_is_opened_again_changed_taken_back_and_removed(user: Any, task: Any):
    def marked(user: Any, value: str, target: str) -> None:
        mark = the(user, "checkbox", f"{value}: ")
        mark.set_value(True)
        fill(user, "Class for the marked values, also a new one", target, "Move")

    def names(user: Any) -> set[str]:
        return {e.value for e in every(user, "input") if "Name of the class" in str(e.props)}

    go(user, "4 Hierarchies")
    way = field(user, "How it is made")
    assert way.value == "intervals"  # of age, the first column
    button(user, "Show the tree").click()
    await until(lambda: "20-21" in names(user), "no classes of two years for thirty ages")
    field(user, "Column").set_value("zip")
    assert way.value == "intervals"
    assert names(user) == set()  # what is shown is never another column's
    way.set_value("order")
    button(user, "Show the tree").click()
    await until(lambda: "01230 to 01232" in names(user), "no tree")
    marked(user, "01236", "01230 to 01232")
    await until(lambda: "01236" not in names(user), "not moved")
    button(user, "Undo this edit").click()
    await until(lambda: "01236" in names(user), "not taken back")
    marked(user, "01236", "01233 to 01235")
    button(user, "Use this hierarchy").click()
    await until(lambda: "zip" in task.settings.get("hierarchies", {}), "not used")
    first = Path(task.settings["hierarchies"]["zip"])
    assert "01236;01233 to 01235;*" in first.read_text().splitlines()
    field(user, "Column").set_value("zip")
    assert field(user, "How it is made").value == "in_use"
    button(user, "Show the tree").click()
    await until(lambda: names(user) == {"01230 to 01232", "01233 to 01235"}, "not the one in use")
    marked(user, "01230", "apart")
    button(user, "Use this hierarchy").click()
    await until(lambda: task.settings["hierarchies"]["zip"] != str(first), "not used")
    assert "01230;apart;*" in Path(task.settings["hierarchies"]["zip"]).read_text().splitlines()
    await until(lambda: every(user, "button"), "no page")
    button(user, "Remove").click()
    assert "hierarchies" not in task.settings
    button(user, "Show the tree").click()
    await until(lambda: "20-21" in names(user), "no tree of age")
    field(user, "Column").set_value("zip")
    button(user, "Use this hierarchy").click()  # the one proposed for zip, not what was shown of age
    await until(lambda: task.settings.get("hierarchies"), "not used")
    assert task.settings["hierarchies"] == {"zip": "intervals:2,4"}


def test_a_hierarchy_of_more_values_than_a_page_shows_is_used_whole(tmp_path: Path):
    many, rng = 2500, np.random.default_rng(3)
    table, tree = tmp_path / "codes.csv", tmp_path / "tree.csv"
    codes = [f"c{i:04}" for i in range(many)]
    pl.DataFrame({"code": codes * 2, "a": rng.integers(0, 3, 2 * many), "b": 1, "c": 2}).write_csv(table)
    tree.write_text("".join(f"c{i:04};{i // 500};*\n" for i in range(many + 9)))  # of which nine are not in the table

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.change(quasi_identifiers=["code"], identifiers=[], sensitive=[], insensitive=["a", "b", "c"], l=None)
        go(user, "4 Hierarchies")
        fill(user, "Path of the file", tree, "Read it")
        await see(user, "Too many values to edit by hand")
        button(user, "Add a level").click()
        await see(user, "This column has too many values to edit by hand.")
        button(user, "Use this hierarchy").click()
        await until(lambda: task.settings.get("hierarchies"), "not used")
        assert Path(task.settings["hierarchies"]["code"]).read_text() == tree.read_text()
        field(user, "How it is made").set_value("order")
        fill(user, "Values in a class", "500", "Show the tree")
        await see(user, "c0000 to c0499")
        button(user, "Use this hierarchy").click()
        await until(lambda: task.settings["hierarchies"]["code"].endswith("2.csv"), "not used")
        assert len(Path(task.settings["hierarchies"]["code"]).read_text().splitlines()) == many

    run(walk, tmp_path, first=str(table))


@pytest.mark.parametrize(
    ("numbers", "widths"),
    [
        (range(17, 91), "5, 10, 20"), ([1, 2, 3, 4, 5], "2, 4"), ([0.5, 2.5, 6, 9, 13, 16.5, 23], "2, 4, 8"),
        ([0, 99_999], "10000, 20000, 40000"), ([0.1, 0.2], "0.01, 0.02, 0.04"), ([7, 7], ""), (["x", "c2"], ""),
        ([1, 2], "2"), ([-1e300, 1e300], ""), ([0, 1e-300], ""), ([1, "inf"], ""),
    ],
)  # fmt: skip
def test_widths_are_proposed_that_suit_the_numbers(numbers: Any, widths: str):
    from shoal.workbench.jobs import _widths

    assert _widths(pl.Series([str(x) for x in numbers])) == widths
    if widths:
        values = [str(x) for x in numbers]
        assert shoal.Hierarchy.of(f"intervals:{widths.replace(' ', '')}").resolve(values, "n", None).labels


@on_pages()
async def test_a_grid_is_tried_and_a_point_taken_is_what_is_asked_also_beside_alpha(user: Any, task: Any):
    task.change(alpha_k=[0.6, 7], l=None)
    go(user, "5 Explore")
    field(user, "k, separated by commas").set_value("2, 4")
    fill(user, "l, separated by commas (1 asks nothing)", "1", "Try the grid")
    await until(lambda: len(task.points) == 2 and task.points[0].get("frontier") is not None, "no points")
    await until(lambda: any(p["frontier"] for p in task.points), "the grid did not end")
    assert [p["k"] for p in task.points] == [2, 4]
    assert task.points[0]["risk"] > 1 / 7  # a class of fewer than 7 rows: k alone rules
    (table,) = user.find(marker="points").elements
    user.find(marker="points").trigger("take", 0)
    assert table.rows[0]["k"] == 2
    await see(user, "Taken: k = 2, l = 1")
    assert task.asked()["alpha_k"] == [0.6, 2]
    assert task.asked()["k"] == 2


@pytest.mark.parametrize("degrees", [True, False])
@pytest.mark.parametrize("way", ["tiles", "clusters"])
def test_the_command_of_places_makes_what_the_page_draws(way: str, degrees: bool, tmp_path: Path, monkeypatch):
    from shoal.workbench.jobs import places
    from shoal.workbench.projects import placing

    rng = np.random.default_rng(2)
    table = tmp_path / "it's points.csv"
    where = {"lon": rng.normal(9, 2, 90).round(3), "lat": rng.normal(52, 1, 90).round(3)}
    pl.DataFrame(where).write_csv(table, separator=";")
    drawn = places(lambda *_: None, {"path": str(table), "separator": ";"}, "lon", "lat", way, 4, degrees)
    assert drawn["unit"] == ("records in the largest tile" if way == "tiles" else "km" if degrees else "units")
    words = shlex.split(placing(str(table), "lon", "lat", way, 4, degrees, {"separator": ";"}))
    monkeypatch.chdir(tmp_path)
    command(*words[1:]).ok()
    stem = f"it's points.{way}"
    assert (tmp_path / f"{stem}.html").exists()
    held = json.loads((tmp_path / f"{stem}.certificate.json").read_text())
    made = pl.read_csv(f"{stem}.csv")
    assert made.height == drawn["groups"], "a row of a place would show where someone is"
    if way == "tiles":
        ends = ("lon_low", "lat_low", "lon_high", "lat_high")
        tiles = {tuple(row[e] for e in ends) for row in made.iter_rows(named=True)}
        mine = {tuple(None if abs(x) == np.inf else round(x, 6) for x in box) for box in drawn["boxes"]}
        assert {tuple(None if x is None else round(float(x), 6) for x in box) for box in tiles} == mine
    else:
        assert held["certificate"]["cost"] == pytest.approx(drawn["cost"], rel=1e-6)


def test_what_is_asked_and_what_came_of_places_is_said_in_words() -> None:
    from shoal.workbench.models_step import in_words
    from shoal.workbench.places_step import _outcome

    assert in_words({"k": 5, "alpha_k": (0.7, 5)}) == ["k = 5", "alpha = 0.7"]
    assert in_words({"alpha_k": (0.7, 5), "t": 0.2}, but=("k",)) == ["alpha = 0.7", "t = 0.2"]
    tiles = {"groups": 9, "smallest": 5, "cost": 5.0, "bound": 5.0, "unit": "records in the largest tile"}
    assert _outcome(tiles, "tiles").endswith("The largest tile has 5 points, and nothing less is possible.")
    wide = {"groups": 9, "smallest": 5, "cost": 0.5, "bound": 0.25, "unit": "units"}
    assert _outcome(wide, "clusters").endswith("The widest radius is 0.5, and less than 0.25 is impossible.")
    assert "is 0.5 km, and" in _outcome({**wide, "unit": "km"}, "clusters")


def test_what_an_intruder_reaches_is_a_share_or_found_or_nothing_to_guess() -> None:
    from shoal.workbench.release_step import _reached, _sentence

    share = {
        "attack": "linkage", "name": "exact", "measures": "links that are right", "figure": 0.25, "low": None,
        "baselines": {}, "promise": None, "people": 8,
    }  # fmt: skip
    file = {**share, "attack": "files", "measures": "1 where rows follow a column, 0 where not", "figure": 0.0}
    none = {**share, "figure": None, "people": 0}
    assert [_sentence(f) for f in (share, file, {**file, "figure": 1.0})] == ["25.0 %.", "Not found.", "Found."]
    assert _sentence(none) == "This attack finds nothing to guess in this release."
    assert _sentence({**none, "people": 3}) == "It is unknown."
    assert _reached([share, file, none])["yAxis"]["data"] == ["linkage: exact"]


@on_pages()
async def test_a_release_is_made_into_a_folder_verified_and_not_over_another(user: Any, task: Any, tmp_path: Path):
    out = tmp_path / "out"
    task.change(effort="fast")
    go(user, "6 Release")
    fill(user, FOLDER, out, "Make the release")
    await see(user, "Verified: it was read back, judged again and holds.")
    assert {p.name for p in out.iterdir()} == {
        "people.release.csv", "people.release.certificate.json", "people.release.record.json",
        "people.release.report.html", "people.release.report.json", "people.release.policy.toml",
        "people.release.py", "people.release.ipynb", "people.release.sh", "secret.key",
    }  # fmt: skip
    assert shoal.verify(out / "people.release.csv", out / "people.release.certificate.json").holds
    for private in ("secret.key", "people.release.record.json"):
        assert (out / private).stat().st_mode & 0o077 == 0
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    fill(user, FOLDER, out, "Make the release")
    await see(user, "people.release.csv is already in that folder")
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert len(task.releases) == 1
    assert [p.name for p in task.folder.iterdir()] == []  # nothing of the way there is left


@on_pages()
async def test_what_no_release_can_meet_is_refused_in_words_and_leaves_no_file(user: Any, task: Any, tmp_path: Path):
    out = tmp_path / "out"
    task.change(k=500, l=None, effort="fast")
    go(user, "6 Release")
    fill(user, FOLDER, out, "Make the release")
    await see(user, "500")
    await until(lambda: user.notify.messages, "nothing was said")
    assert "120" in user.notify.messages[-1]
    assert list(out.iterdir()) == []
    assert task.releases == []


def test_a_stop_in_the_middle_leaves_no_file_and_the_next_release_is_made(tmp_path: Path):
    out, rng = tmp_path / "out", np.random.default_rng(5)
    table = tmp_path / "wide.csv"
    columns = {f"c{i}": rng.integers(0, 9, 4000) for i in range(3)}
    pl.DataFrame({**columns, "disease": rng.integers(0, 9, 4000)}).write_csv(table)

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        quasi = ["c0", "c1", "c2"]
        task.change(effort=100.0, k=3, l=None, quasi_identifiers=quasi, sensitive=[], insensitive=["disease"])
        go(user, "6 Release")
        fill(user, FOLDER, out, "Make the release")
        await until(lambda: _searching(user), "the search did not begin")
        button(user, "Stop").click()  # of those drawn, the one that is not greyed out
        await see(user, "stopped; nothing was written")
        assert list(out.iterdir()) == []
        assert task.releases == []
        assert not list(task.folder.glob("release-*"))
        task.change(effort="fast", publish="stars")
        button(user, "Make the release").click()
        await see(user, "Verified: it was read back")

    def _searching(user: Any) -> bool:
        return any("search" in e.text or "group" in e.text for e in every(user, "label") if "status" in str(e.props))

    run(walk, tmp_path, first=str(table))


@on_pages()
async def test_a_project_is_saved_and_opened_again_in_another_window(user: Any, bench: Any, task: Any, tmp_path: Path):
    task.change(k=4, l=None)
    go(user, "6 Release")
    fill(user, "Folder of the project", tmp_path / "kept", "Save the project")
    await see(user, "The project is saved.")
    assert tomllib.loads((tmp_path / "kept" / "policy.toml").read_text())["k"] == 4
    bench.first = str(tmp_path / "kept")
    other = await opened(user, bench)
    await see(user, "at least 4 rows")
    assert other is not task
    assert other.asked() == task.asked()
    assert other.project == tmp_path / "kept"
    (tmp_path / "kept" / "policy.toml").write_text('k = 4\nquasi_identifiers = ["age", "plz"]\n')
    fill(user, PATH, tmp_path / "kept", "Open")
    await see(user, "This table lacks 'plz', which the request names (kept/policy.toml: quasi_identifiers)")


@on_pages()
async def test_the_next_month_is_asked_the_same_and_refused_where_it_lacks_a_column(
    user: Any, task: Any, tmp_path: Path
):
    task.change(k=9, l=None, insensitive=["zip"], quasi_identifiers=["age"])
    same = the(user, "switch", "next table")
    same.set_value(True)
    fill(user, PATH, people(tmp_path, 300, "july.csv"), "Open")
    await see(user, "july.csv: 300 rows, 4 columns")
    assert (task.asked()["k"], task.asked()["quasi_identifiers"]) == (9, ["age"])
    pl.read_csv(tmp_path / "july.csv").rename({"age": "years"}).write_csv(tmp_path / "august.csv")
    fill(user, PATH, tmp_path / "august.csv", "Open")
    await see(user, "This table lacks 'age', which the request names")
    assert task.title == "july.csv"
    same = the(user, "switch", "next table")
    same.set_value(False)
    fill(user, PATH, tmp_path / "august.csv", "Open")
    await see(user, "august.csv: 300 rows, 4 columns")
    assert task.asked()["k"] == 5


@on_pages(None)
async def test_a_project_of_arx_gives_roles_models_and_hierarchies(user: Any, bench: Any, tmp_path: Path):
    await user.open("/")
    (task,) = bench.tasks.values()

    fill(user, PATH, arx_project(tmp_path / "study.deid"), "Open")
    await see(user, "Open the table of the ARX project first")
    fill(user, PATH, people(tmp_path), "Open")
    await see(user, "120 rows, 4 columns")
    before = task.asked()
    fill(user, PATH, tmp_path / "study.deid", "Open")
    await see(user, "The open table lacks 'zip & co', 'ill', 'note'")
    assert task.asked() == before
    ARX_TABLE.write_csv(tmp_path / "study.csv")
    fill(user, PATH, tmp_path / "study.csv", "Open")
    await see(user, "24 rows, 5 columns")
    fill(user, PATH, tmp_path / "study.deid", "Open")
    await see(user, "Roles, models and hierarchies are those of the ARX project. Not read:")
    asked = task.asked()
    assert (asked["quasi_identifiers"], asked["sensitive"]) == (["age", "zip & co"], ["ill"])
    assert (asked["k"], asked["distinct_l"], asked["publish"]) == (3, 2, "hierarchy")
    assert Path(asked["hierarchies"]["zip & co"]).read_text() == "101;10*;*\n102;10*;*\n203;20*;*\n"
    task.change(effort="fast")
    go(user, "6 Release")
    button(user, "Make the release").click()
    await see(user, "Verified: it was read back")
    go(user, "7 Intruder")  # the attacks read the classes of the hierarchies that stand in files
    button(user, "Attack the release").click()
    await until(lambda: "attack" in task.releases[-1], f"no attack: {user.notify.messages}")
    await see(user, "without the release")
    (tmp_path / "bent.deid").write_bytes(b"no zip")
    go(user, "1 Open")
    fill(user, PATH, tmp_path / "bent.deid", "Open")
    await see(user, "bent.deid")


@on_pages(None)
async def test_a_table_of_a_database_and_a_query_are_opened(user: Any, bench: Any, tmp_path: Path):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    people(tmp_path)
    place = tmp_path / "held.duckdb"
    with duckdb.connect(place) as held:
        held.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{tmp_path / 'people.csv'}', all_varchar=true)")
        held.execute("CREATE TABLE staff AS SELECT name FROM visits")
    await user.open("/")
    (task,) = bench.tasks.values()

    def named(**fields: str) -> None:
        field(user, PATH).set_value(str(place))
        for label, text in fields.items():
            field(user, {"table": TABLE, "query": "Or a query: SELECT ..."}[label]
                  ).set_value(text)  # fmt: skip
        button(user, "Open").click()

    named()
    await until(lambda: user.notify.messages, "nothing was said")
    assert user.notify.messages[-1].endswith("say which table, or give a query, under 'How it is read'")
    named(table="visits")
    await see(user, "held.duckdb: 120 rows, 4 columns")
    field(user, TABLE).set_value("")
    named(query="SELECT age, zip, disease FROM visits WHERE zip = '01230'")
    await see(user, "held.duckdb: 18 rows, 3 columns")
    assert task.source["query"].startswith("SELECT")


def test_the_next_month_is_added_to_a_series_and_verified_beside_the_first(tmp_path: Path):
    january, february = people(tmp_path), people(tmp_path, 90, "february.csv")
    both = pl.read_csv(february, infer_schema=False)
    both.with_columns(name=pl.col("name").str.replace("Person", "Other")).write_csv(february)
    place = tmp_path / "months"

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.change(k=3, l=None, sensitive=[], insensitive=["disease"], alpha_k=None, effort="fast")
        go(user, "8 Series")
        fill(user, "Folder of the series", tmp_path, "Show the series, or begin one")
        await see(user, "This folder holds other files")
        fill(user, "Folder of the series", place, "Show the series, or begin one")
        await see(user, "Begin a series in this folder")
        button(user, "Begin the series").click()
        await see(user, "0 months, 0 people")
        button(user, "Add people.csv as month 1").click()
        await see(user, "people.csv is month 1")
        await see(user, "1 month, 120 people")
        button(user, "Add people.csv as month 2").click()
        await until(lambda: "are in an earlier part" in user.notify.messages[-1], "twice the same people")
        await user.open(f"/w/{task.name}")  # the same window, loaded anew
        go(user, "6 Release")
        fill(user, "Folder of the project", tmp_path / "kept", "Save the project")
        await see(user, "The project is saved.")

        bench.first = str(tmp_path / "kept")
        task = await opened(user, bench)
        await until(lambda: task.months is not None, "the series is not known again")
        go(user, "1 Open")
        same = the(user, "switch", "next table")
        same.set_value(True)
        fill(user, PATH, february, "Open")
        await see(user, "february.csv: 90 rows, 4 columns")
        go(user, "8 Series")
        button(user, "Add february.csv as month 2").click()
        await see(user, "2 months, 210 people")
        await see(user, "Verified: every month, and all together")
        assert [(m["number"], m["rows"]) for m in task.months["parts"]] == [(1, 120), (2, 90)]
        answer = await user.http_client.get(f"/w/{task.name}/months/2/release")
        assert answer.content == (place / "0002" / "release.csv").read_bytes()
        for number, kind in ((0, "release"), (3, "release"), (1, "private")):
            assert (await user.http_client.get(f"/w/{task.name}/months/{number}/{kind}")).status_code == 404

    run(walk, tmp_path, first=str(january))
    assert shoal.Series(place).verify().holds


@on_pages()
async def test_areas_become_regions_on_a_map_and_the_hierarchy_of_their_column(user: Any, task: Any, tmp_path: Path):
    def square(x: int) -> dict[str, Any]:
        ring = [[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]
        return {"type": "Feature", "properties": {"id": f"0123{x}", "people": 30},
                "geometry": {"type": "Polygon", "coordinates": [ring]}}  # fmt: skip

    areas = tmp_path / "areas.geojson"
    areas.write_text(json.dumps({"type": "FeatureCollection", "features": [square(x) for x in range(7)]}))
    go(user, "9 Places")
    label = "Path of the areas (map or table)"
    fill(user, label, tmp_path / "nowhere", "Merge the areas")
    await see(user, "There is no file of that name.")
    field(user, label).set_value(str(areas))
    fill(user, "Column with the people of an area", "nobody", "Merge the areas")
    await until(lambda: "nobody" in user.notify.messages[-1], "a column that is not there")
    field(user, "Column with the people of an area").set_value("people")
    fill(user, "Least people in a region; more numbers, more levels", "60, 90", "Merge the areas")
    await see(user, "7 areas become 3 regions, and more than 3 cannot exist; the smallest has 60")
    maps = [e.content for e in every(user, "html") if "<iframe" in e.content]
    assert len(maps) == 2
    assert all('sandbox="allow-scripts"' in m for m in maps)
    assert not any("src=" in m or "http://" in m.replace("http://www.w3.org", "") for m in maps)
    button(user, "Use the regions as its hierarchy").click()
    assert task.asked()["publish"] == "hierarchy"
    held = task.settings["hierarchies"]["zip"]
    tree = [line.split(";") for line in Path(held).read_text().splitlines()]
    assert [row[0] for row in tree] == [f"0123{x}" for x in range(7)]
    assert len({row[1] for row in tree}) == 3
    (again,) = (e.content for e in every(user, "code") if e.content.startswith("shoal regions"))
    assert command(*shlex.split(again)[1:], cwd=tmp_path).returncode == 0
    assert (tmp_path / "regions.hierarchy.csv").read_bytes() == Path(held).read_bytes()
    task.change(effort="fast", l=None, k=3)
    go(user, "6 Release")
    button(user, "Make the release").click()
    await see(user, "Verified: it was read back")


def test_tiles_and_regions_stay_on_a_page_that_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    points, areas = tmp_path / "points.csv", tmp_path / "areas.csv"
    draw = np.random.default_rng(0)
    pl.DataFrame({"id": range(60), "lon": draw.random(60).round(3), "lat": draw.random(60).round(3)}).write_csv(points)
    areas.write_text("id,people\na,5\nb,6\nc,7\n")
    (tmp_path / "pairs.csv").write_text("u,v\na,b\nb,c\n")
    least = "Least people in a region; more numbers, more levels"

    async def walk(user: Any, bench: Any) -> None:
        from nicegui.testing import User

        await user.open("/")
        (name,) = bench.tasks
        task = bench.tasks[name]
        await until(lambda: task.source, "no table was opened")
        go(user, "9 Places")
        fill(user, "At least so many points in each", 7, "Draw")
        await see(user, "tiles, the smallest of")
        field(user, "Path of the areas (map or table)").set_value(str(areas))
        field(user, "Path of the pairs of neighbors, for a table").set_value(str(tmp_path / "pairs.csv"))
        field(user, "Column with the people of an area").set_value("people")
        field(user, least).set_value("5, 11")
        before, (merge,) = user.client, button(user, "Merge the areas").elements
        await until(lambda: merge.enabled, "the other work has not ended")
        asked, begin = hold(monkeypatch, "regions")
        button(user, "Merge the areas").click()
        await until(asked.is_set, "it did not begin")
        other = User(user.http_client)
        await other.open(f"/w/{name}")
        before.delete()
        begin.set()
        await see(other, "3 areas become 3 regions")
        await see(other, "tiles, the smallest of")
        assert field(other, "At least so many points in each").value == 7
        assert field(other, least).value == "5, 11"
        await other.open(f"/w/{name}")
        await see(other, "3 areas become 3 regions")
        await see(other, "tiles, the smallest of")

    run(walk, tmp_path, first=str(points))


@on_pages()
async def test_one_layer_of_a_map_with_several_becomes_regions(user: Any, tmp_path: Path):
    shapely, raw = pytest.importorskip("shapely"), pytest.importorskip("pyogrio.raw")
    areas = tmp_path / "areas.gpkg"
    for layer, most in (("districts", 6), ("counties", 4)):
        shapes = np.array([shapely.to_wkb(shapely.box(i, 0, i + 1, 1)) for i in range(most)], object)
        names, people_of = np.array([f"0123{i}" for i in range(most)], object), np.full(most, 30)
        raw.write(
            areas, shapes, [names, people_of], np.array(["id", "people"], object), geometry_type="Polygon",
            crs="EPSG:25832", layer=layer, append=areas.exists(), driver="GPKG",
        )  # fmt: skip
    go(user, "9 Places")
    field(user, "Path of the areas (map or table)").set_value(str(areas))
    field(user, "Column with the people of an area").set_value("people")
    fill(user, "Least people in a region; more numbers, more levels", "60", "Merge the areas")
    await until(lambda: "name the one you want" in " ".join(user.notify.messages), "two layers")
    fill(user, "Layer of the map, if it has several", "counties", "Merge the areas")
    await see(user, "4 areas become 2 regions")
    told = " ".join(user.notify.messages)
    assert "districts" in told
    assert "counties" in told


@pytest.mark.parametrize("publish", ["ranges", "hierarchy", "stars"])
def test_the_rows_of_a_class_stand_beside_the_rows_of_the_table_that_fit_it(publish: str, tmp_path: Path):
    from shoal.workbench.jobs import groups, release

    table, tree = tmp_path / "before.csv", tmp_path / "tree.csv"
    rows = [(20 + 7 * i % 25, f"0{1 + i % 3}", f"2024-0{1 + i % 4}-01") for i in range(24)]
    table.write_text("age,zip,day,ill\n" + "".join(f"{age},{zip},{day},x\n" for age, zip, day in rows))
    tree.write_text("01;west;*\n02;west;*\n03;east;*\n")
    settings: dict[str, Any] = {
        "quasi_identifiers": ["age", "zip", "day"], "insensitive": ["ill"], "k": 3, "publish": publish,
        "effort": "fast", "seed": 1,
    }  # fmt: skip
    if publish == "hierarchy":
        settings["hierarchies"] = {"zip": str(tree), "age": "intervals:5,10", "day": "dates:month,quarter"}
    source = {"path": str(table)}
    out = release(lambda *_: None, source, settings, str(tmp_path / "out"), "after.csv", None)["output"]

    def fits(shown: str, value: str, column: str) -> bool:
        """Whether a value lies in what is published, by its text: all values have the same number of characters."""
        if shown[0] in "{[":
            ends = shown.strip("{}[])").split(", ")
            inside = value in ends if shown[0] == "{" else ends[0] <= value <= ends[-1]
            return inside and not (shown[-1] == ")" and value == ends[-1])
        if column == "age" and "-" in shown:
            return shown[:2] <= value <= shown[-2:]
        quarters = {"west": value < "03", "2024-Q1": value < "2024-04", "2024-Q2": value >= "2024-04"}
        return shown in ("*", value) or quarters.get(shown, column == "day" and value.startswith(shown))

    number, held = 0, 0
    while (one := groups(lambda *_: None, source, out, settings, number))["number"] == number:
        shown = dict(zip(one["columns"], one["rows"][0], strict=True))
        names = ("age", "zip", "day")
        wanted = [r for r in rows if all(fits(shown[n], str(v), n) for n, v in zip(names, r, strict=True))]
        assert sorted(tuple(row[:3]) for row in one["before"]) == sorted((str(a), z, d) for a, z, d in wanted)
        assert (one["fit"], one["classes"]) == (len(wanted), one["classes"])
        held, number = held + one["size"], number + 1
    assert (held, number) == (24, one["classes"])


@on_pages()
async def test_two_windows_do_not_mix(user: Any, bench: Any, task: Any, tmp_path: Path):
    from nicegui.testing import User

    bench.first = str(people(tmp_path, 60, "others.csv"))
    second_user = User(user.http_client)
    second = await opened(second_user, bench)
    second.change(k=17)
    assert (task.title, task.rows, task.settings["k"]) == ("people.csv", 120, 5)
    assert (second.title, second.rows) == ("others.csv", 60)
    assert task.folder != second.folder
    go(second_user, "2 Roles")
    roles(second_user)[1].set_value("insensitive")
    await see(second_user, "others.csv")
    assert task.role("age") == "quasi_identifiers"
    await user.should_not_see("others.csv")
    task.change(effort="fast")
    go(user, "6 Release")
    button(user, "Make the release").click()
    await see(user, "Verified: it was read back")
    assert second.releases == []
    for number, status in ((0, 404), (1, 404)):
        answer = await user.http_client.get(f"/w/{second.name}/files/{number}/release")
        assert answer.status_code == status
    assert (await user.http_client.get(f"/w/{task.name}/files/0/release")).status_code == 200
    report = await user.http_client.get(f"/w/{task.name}/files/0/report")
    assert (report.status_code, report.headers["content-security-policy"]) == (200, "sandbox allow-scripts")
    Path(task.releases[0]["files"]["record"]).unlink()
    assert (await user.http_client.get(f"/w/{task.name}/files/0/record")).status_code == 404
    for kind in ("../secret", "nothing"):
        assert (await user.http_client.get(f"/w/{task.name}/files/0/{kind}")).status_code == 404


@on_pages()
async def test_two_windows_of_one_address_show_the_same_request(user: Any, task: Any):
    from nicegui.testing import User

    def ask(window: Any, k: int) -> None:
        enter(window, "k", k)

    go(user, "6 Release")
    other = User(user.http_client)
    await other.open(f"/w/{task.name}")
    await see(other, "at least 5 rows")
    go(other, "3 Models")
    ask(other, 9)
    await see(other, "at least 9 rows")
    await see(user, "at least 9 rows")
    go(user, "3 Models")
    assert field(user, "k").value == 9
    ask(user, 4)
    await see(other, "at least 4 rows")
    assert field(other, "k").value == 4
    task.change(effort="fast", l=None)
    go(user, "6 Release")  # its release is made while the other window changes what the next is asked
    button(user, "Make the release").click()
    ask(other, 6)
    await see(user, "at least 6 rows")
    await until(lambda: task.releases, "no release was made")
    go(other, "6 Release")
    await see(other, "Verified: it was read back")
    await see(user, "Verified: it was read back")


@on_pages()
async def test_the_person_of_a_row_is_chosen_and_is_removed_whoever_it_was_before(user: Any, task: Any):
    go(user, "2 Roles")
    field(user, "Column of the person").set_value("name")
    await see(user, "the models count persons by name, not rows; name leaves the table")
    assert (task.asked()["person"], task.asked()["identifiers"]) == ("name", [])
    task.give_role("zip", "quasi_identifiers")
    task.change(publish="hierarchy", hierarchies={"zip": "prefixes:4"})
    task.count_by("person", "zip")
    asked = task.asked()
    assert (asked["person"], asked["identifiers"], asked["quasi_identifiers"]) == ("zip", ["name"], ["age"])
    assert "hierarchies" not in asked
    assert task.role("name") == task.role("zip") == "identifiers"
    task.count_by("person", None)
    assert "person" not in task.asked()
    assert task.asked()["identifiers"] == ["name", "zip"]
    task.undo()
    assert task.asked() == asked


@on_pages()
async def test_a_page_that_is_loaded_again_shows_and_stops_what_runs_and_gets_the_result(
    user: Any, task: Any, monkeypatch: pytest.MonkeyPatch
):
    from nicegui.testing import User

    def stops(window: Any) -> list[bool]:
        return [e.enabled for e in every(window, "button") if e.text == "Stop"]

    task.change(effort="fast", l=None, publish="stars")
    go(user, "6 Release")
    before = user.client
    asked, begin = hold(monkeypatch, "release")
    button(user, "Make the release").click()
    await until(asked.is_set, "it did not begin")
    other = User(user.http_client)
    await other.open(f"/w/{task.name}")  # begins with the step that was shown
    await see(other, "This runs already")
    assert stops(other) == [True]
    assert not next(e for e in every(other, "button") if e.text == "Make the release").enabled
    before.delete()
    begin.set()
    await see(other, "Verified: it was read back")
    await until(lambda: other.notify.contains("The release is made and verified."), "nothing was said")
    assert stops(other) == [False]
    task.change(k=4)
    button(other, "Make the release").click()
    await until(lambda: len(task.releases) == 2, "no second release")
    await see(other, "Release 1: k = 5, stars")
    task.change(k=3)
    await other.open(f"/w/{task.name}")
    await see(other, "Request: k = 4, stars.")
    await see(other, "You have changed the request since.")


WRONG = {
    "empty.csv": b"",
    "torn.parquet": b"PAR1 not a parquet file",
    "torn.xlsx": b"no zip",
    "picture.csv": bytes(range(256)) * 4,
}


def test_a_wrong_file_is_refused_in_words_and_the_page_lives_on(tmp_path: Path):
    async def walk(user: Any, bench: Any) -> None:
        await user.open("/")
        (task,) = bench.tasks.values()

        async def named(name: str) -> None:
            fill(user, PATH, tmp_path / name, "Open")

        await until(lambda: user.notify.messages, "nothing was said")
        assert "nowhere.csv" in user.notify.messages[-1]
        await named("nowhere.csv")
        await see(user, "There is no file or folder of that name.")
        for name, held in WRONG.items():
            (tmp_path / name).write_bytes(held)
            said = len(user.notify.messages)
            await named(name)
            await until(lambda said=said: len(user.notify.messages) > said, "nothing was said")
            assert name.split(".")[0] in user.notify.messages[-1]
            assert "defect" not in user.notify.messages[-1]
            assert task.source == {}
        people(tmp_path)
        await named("people.csv")
        await see(user, "120 rows, 4 columns")

    run(walk, tmp_path, first=str(tmp_path / "nowhere.csv"))


NAMES = {
    "people.csv": "people.csv",
    "../../people.csv": "people.csv",
    "C:\\fakepath\\people.csv": "people.csv",
    "/etc/passwd": "passwd",
    "..": "table.csv",
    "": "table.csv",
    ".hidden.csv": "hidden.csv",
    "a\x00b\n.csv": "ab.csv",
    "Zähler 1.csv": "Zähler 1.csv",
}


@on_pages(None)
async def test_a_chosen_file_lies_under_a_plain_name_in_the_windows_own_folder(user: Any, bench: Any):
    from urllib.parse import quote

    for told, kept in NAMES.items():
        known = set(bench.tasks)
        await user.open("/")
        (name,) = set(bench.tasks) - known
        folder = bench.tasks[name].folder
        headers = {"X-File-Name": quote(told)}
        answer = await user.http_client.post(f"/w/{name}/upload", content=b"a,b\n1,2\n", headers=headers)
        own, _, plain = answer.text.partition("/")
        assert (answer.status_code, plain) == (200, kept)
        (file,) = (p for p in folder.rglob("*") if p.is_file())
        assert file == folder / "upload" / own / kept
        assert file.read_bytes() == b"a,b\n1,2\n"
        assert file.stat().st_mode & 0o077 == 0
        again = await user.http_client.post(f"/w/{name}/upload", content=b"c\n3\n", headers=headers)
        assert (folder / "upload" / again.text).read_bytes() == b"c\n3\n"
        assert file.read_bytes() == b"a,b\n1,2\n"  # a file that is open isn't replaced by another of its name
    assert (await user.http_client.post("/w/other/upload", content=b"1")).status_code == 404
