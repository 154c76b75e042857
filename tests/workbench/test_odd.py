"""The pages under what users do unasked: odd files and numbers, a second table in the middle, a page that is gone."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.workbench import jobs, projects
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


def quiet(*_: Any) -> None:
    """In place of the report of a job."""


def said(user: Any, text: str) -> Any:
    """Wait until a message contains a text."""
    return until(lambda: any(text in words for words in user.notify.messages), f"{text!r} was not said")


@pytest.mark.parametrize("given", [1.5, None])
@on_pages()
async def test_a_number_that_is_none_is_refused_and_never_rounded(user: Any, task: Any, given: float | None):
    """k = 1.5 must not become k = 1, which asks for no protection."""

    go(user, "3 Models")
    enter(user, "k", 7)
    assert task.settings["k"] == 7
    enter(user, "k", given)
    await said(user, "k is a whole number")
    assert "It stays 7." in user.notify.messages[-1]
    assert task.settings["k"] == 7
    assert field(user, "k").value == 7
    task.change(t=0.3)
    await user.open(f"/w/{task.name}")
    go(user, "3 Models")
    enter(user, "t", 0.25)
    assert task.settings["t"] == 0.25


def test_a_refusal_is_gone_when_what_was_refused_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from nicegui import ui
    from nicegui.testing.user_interaction import UserInteraction
    from nicegui.testing.user_notify import UserNotify

    shown: list[tuple[str, str]] = []
    scripts: list[str] = []  # each may reach the page after the messages that follow it

    def notify(kept: UserNotify, words: str, classes: str = "", **_: Any) -> None:
        kept.messages.append(words)
        shown.append((words, classes))

    def left() -> list[str]:
        return [words for words, held in shown if held and not any(f".{held} button" in script for script in scripts)]

    async def walk(user: Any, bench: Any) -> None:
        monkeypatch.setattr(ui, "run_javascript", scripts.append)
        monkeypatch.setattr(UserNotify, "__call__", notify)
        await user.open("/")
        (tmp_path / "torn.xlsx").write_bytes(b"no zip")
        people(tmp_path)
        for name, words in (("nowhere.csv", "There is no file"), ("torn.xlsx", "torn.xlsx")):
            fill(user, PATH, tmp_path / name, "Open")
            await said(user, words)
            assert len(left()) == 1, "the second refusal replaces the first"
            assert words in left()[0]
        fill(user, PATH, tmp_path / "people.csv", "Open")
        await see(user, "120 rows, 4 columns")
        assert left() == []
        go(user, "3 Models")
        for given, words in ((1.5, "k is a whole number"), (6, "")):
            field(user, "k").set_value(given)
            UserInteraction(user, {field(user, "k")}, None).trigger("change")
            await said(user, words)
            assert len(left()) == (given == 1.5)
        go(user, "4 Hierarchies")
        (tmp_path / "tree.csv").write_text("".join(f"{20 + i};young;*\n" for i in range(30)))
        for name, told in (("nowhere.csv", "There is no file of that name"), ("tree.csv", "")):
            fill(user, "Path of the file", tmp_path / name, "Read it")
            await (said(user, told) if told else see(user, "Level 1"))
            assert len(left()) == bool(told)

    run(walk, tmp_path)


def test_the_points_of_a_tile_are_a_whole_number(tmp_path: Path):
    table = tmp_path / "places.csv"
    pl.DataFrame({"lon": [i / 7 for i in range(60)], "lat": [i * i / 99 for i in range(60)]}).write_csv(table)

    async def walk(user: Any, bench: Any) -> None:
        await user.open("/")
        await see(user, "60 rows, 2 columns")
        go(user, "9 Places")
        for given in (2.7, None, 0):
            heard = len(user.notify.messages)
            fill(user, "At least so many points in each", given, "Draw")
            await until(lambda heard=heard: len(user.notify.messages) > heard, "nothing was said")
            assert "is a whole number, at least 1" in user.notify.messages[-1]

    run(walk, tmp_path, first=str(table))


def test_no_other_table_is_opened_while_long_work_runs_on_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The result would be listed under the other table, and its script would name it."""
    first, second = people(tmp_path), people(tmp_path, 90, "second.csv")

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.running.append("Make the release")
        fill(user, PATH, second, "Open")
        await said(user, "'Make the release' still runs on people.csv")
        assert task.source["path"] == str(first)
        task.running.clear()
        asked, begin = hold(monkeypatch, "look", long=False)
        button(user, "Open").click()
        await until(asked.is_set, "the table was not looked at")
        task.running.append("Attack the release")  # between the look at the table and its answer
        begin.set()
        await said(user, "'Attack the release' still runs")
        assert task.source["path"] == str(first)
        task.running.clear()
        button(user, "Open").click()
        await see(user, "90 rows, 4 columns")

    run(walk, tmp_path, first=str(first))


def window_of(task: Any) -> Any:
    """The one window of a task."""
    import gc

    from shoal.workbench.window import Window

    (window,) = (held for held in gc.get_objects() if type(held) is Window and held.task is task)
    return window


@on_pages()
async def test_what_came_of_work_whose_page_was_closed_is_said_to_the_next_page(user: Any, task: Any):
    from nicegui.testing import User

    window = window_of(task)
    user.client.delete()
    window.say("no group of k = 121 exists", bad=True)
    other = User(user.http_client)
    await other.open(f"/w/{task.name}")
    await said(other, "no group of k = 121 exists")
    assert not task.unsaid
    third = User(user.http_client)
    await third.open(f"/w/{task.name}")
    await see(third, "120 rows, 4 columns")
    assert third.notify.messages == []  # once


@on_pages()
async def test_a_page_that_is_loaded_again_shows_how_far_the_work_is(user: Any, task: Any):
    task.running.append("Make the release")
    task.reported = ("searching", 0.25)
    await user.open(f"/w/{task.name}")
    go(user, "6 Release")
    await see(user, "searching")
    bar = next(e for e in every(user, "linear_progress") if e.visible)
    assert bar.value == 0.25
    task.reported = ("writing and reading back", None)
    await see(user, "writing and reading back")
    task.running.clear()
    await until(lambda: not bar.visible, "the bar stays")


@on_pages()
async def test_a_table_that_is_read_says_so(user: Any, task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked, begin = hold(monkeypatch, "look", long=False)
    fill(user, PATH, tmp_path / "people.csv", "Open")
    await until(asked.is_set, "the table was not looked at")
    await see(user, "reading the table")
    begin.set()
    await until(lambda: not any("reading the table" in str(getattr(e, "text", "")) for e in user.client.elements
                                .values()), "it still says so")  # fmt: skip


@on_pages(None)
async def test_an_address_of_a_workbench_that_has_ended_says_so(user: Any):
    await user.open("/w/nobody")
    await said(user, "The workbench of this address has ended")


def test_a_column_without_a_value_has_no_classes_and_the_page_says_so(tmp_path: Path):
    table = tmp_path / "gaps.csv"
    pl.DataFrame({"age": ["30", "40"] * 20, "gap": [None] * 40}, schema_overrides={"gap": pl.String}).write_csv(table)

    async def walk(user: Any, bench: Any) -> None:
        await user.open("/")
        (task,) = bench.tasks.values()
        await until(lambda: task.source, "no table was opened")
        task.give_role("gap", "quasi_identifiers")
        await user.open(f"/w/{task.name}")
        go(user, "4 Hierarchies")
        field(user, "Column").set_value("gap")
        fill(user, "How it is made", "prefixes", "Show the tree")
        await said(user, "Every value of gap is missing")

    run(walk, tmp_path, first=str(table))


@pytest.mark.parametrize(("way", "text", "words"), [
    ("order", "0", "at least 1"), ("order", "2.5", "at least 1"), ("bins", "-3", "at least 1"),
    ("frequency", "nan", "above 0 and at most 100"), ("frequency", "-5", "above 0"), ("frequency", "abc", "above 0"),
])  # fmt: skip
@on_pages()
async def test_a_wizard_refuses_a_number_that_makes_no_classes(user: Any, way: str, text: str, words: str):
    go(user, "4 Hierarchies")
    field(user, "How it is made").set_value(way)
    next(e for e in _levels(user)).set_value(text)
    button(user, "Show the tree").click()
    await said(user, words)


def _levels(user: Any) -> Iterator[Any]:
    words = ("Values in a class", "Minimum rows", "Values under this share")
    return (e for e in every(user, "input") if str(e.props.get("label", "")).startswith(words))


@on_pages()
async def test_the_page_of_releases_side_by_side_outlives_a_change_of_all_roles(user: Any, task: Any):
    task.releases.append({"settings": dict(task.asked()), "output": "", "facts": {}})
    for name in ("age", "zip", "disease"):
        task.give_role(name, "insensitive")
    go(user, "5 Explore")
    await see(user, "Side by side")
    assert field(user, "Heat map with").options == ["age", "zip", "disease"]


def test_a_column_that_a_release_lacks_is_refused_by_name(tmp_path: Path):
    table = people(tmp_path)
    pl.read_csv(table, infer_schema=False).drop("name").write_csv(tmp_path / "made.csv")
    with pytest.raises(shoal.InputError, match="the release has no column 'name': it was removed"):
        jobs.heat(quiet, {"path": str(table)}, str(tmp_path / "made.csv"), ["name", "age"])


def test_tables_of_two_months_have_releases_of_two_names(tmp_path: Path):
    names = []
    for month in ("2024-01", "2024-02"):
        folder = tmp_path / month
        folder.mkdir()

        async def walk(user: Any, bench: Any) -> None:
            task = await opened(user, bench)
            task.change(effort="fast", l=None, publish="stars")
            go(user, "6 Release")
            button(user, "Make the release").click()
            await see(user, "Verified: it was read back")
            names.append({Path(file).name for file in task.releases[-1]["files"].values()} - {"secret.key"})

        run(walk, folder, first=str(people(folder, name=f"visits.{month}.csv")))
    assert not names[0] & names[1]
    assert "visits.2024-01.release.csv" in names[0]


@on_pages(None)
async def test_a_page_that_loses_its_server_says_so(user: Any):
    answer = await user.http_client.get("/", follow_redirects=True)
    assert "The workbench does not answer." in answer.text


def test_a_table_of_a_long_name_is_released(tmp_path: Path):
    for letter, many in (("a", 246), ("ä", 123)):
        folder = tmp_path / f"{many}"
        folder.mkdir()
        table, out = people(folder, name=f"{letter * many}.csv"), folder / "out"

        async def walk(user: Any, bench: Any, out: Path = out) -> None:
            task = await opened(user, bench)
            task.change(effort="fast", l=None, publish="stars")
            go(user, "6 Release")
            fill(user, FOLDER, out, "Make the release")
            await until(lambda: task.releases or user.notify.messages, "nothing came of it")
            assert task.releases, user.notify.messages
            files = {kind: Path(file) for kind, file in task.releases[-1]["files"].items()}
            assert all(file.is_file() for file in files.values())
            assert shoal.verify(files["release"], files["certificate"]).holds

        run(walk, folder, first=str(table))


def test_sheets_that_are_not_read_are_named_when_the_file_is_opened(tmp_path: Path):
    writer = pytest.importorskip("xlsxwriter", reason="xlsxwriter is not installed")
    table, frame = tmp_path / "two.xlsx", pl.read_csv(people(tmp_path))
    with writer.Workbook(str(table)) as book:
        frame.write_excel(book, "January")
        frame.head(60).write_excel(book, "February")

    async def walk(user: Any, bench: Any) -> None:
        await opened(user, bench)
        await see(user, "the file has 2 sheets, and this is the first, 'January'; to read 'February', name it with the "
                        "field 'Table of a database' under 'How it is read'")  # fmt: skip

    run(walk, tmp_path, first=str(table))
    assert shoal.roles(table, table="February").notes == ()
    assert "sheets" in str(shoal.roles(table))


def test_numbers_with_a_decimal_comma_and_dates_of_a_country_are_known_as_such(tmp_path: Path):
    table = tmp_path / "swiss.csv"
    rows = [f"{40 + i % 40},{i % 10};{1 + i % 28:02}.{1 + i % 12:02}.2024;gout" for i in range(200)]
    table.write_text("\n".join(["weight;birth_date;disease", *rows]), "utf-8")
    found = {c["name"]: c for c in jobs.look(quiet, {"path": str(table)})["columns"]}
    assert [found[n]["kind"] for n in ("weight", "birth_date", "disease")] == [
        "numbers as text",
        "dates as text",
        "text",
    ]
    assert found["weight"]["widths"] == "5, 10, 20"
    made = jobs.tree(quiet, {"path": str(table)}, "weight", "intervals:5,10,20")
    assert len(made["rows"][0]) == 5


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_field_for_databases_that_is_filled_for_another_file_is_named(tmp_path: Path, name: str):
    pl.read_csv(people(tmp_path)).write_parquet(tmp_path / "people.parquet")
    with pytest.raises(shoal.InputError) as refused:
        jobs.look(quiet, {"path": str(tmp_path / name), "table": "people"})
    assert str(refused.value) == f"{name!r} is one table: empty the field 'Table of a database' under 'How it is read'"


def test_a_query_that_fails_on_a_value_is_refused_without_it(tmp_path: Path, monkeypatch, capfd):
    """DuckDB's own message quotes the value, and a query of the user is no defect of the program."""
    import io

    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    place = tmp_path / "people.duckdb"
    with duckdb.connect(str(place)) as held:
        held.execute("CREATE TABLE people AS SELECT 'Quixotis' AS city")
    asked = [1, "look", {"source": {"path": str(place), "query": "SELECT CAST(city AS INTEGER) AS n FROM people"}}]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(json.dumps(asked) + "\n"))
        patch.setattr(jobs.os, "dup", lambda _: jobs.os.open(tmp_path / "out", jobs.os.O_WRONLY | jobs.os.O_CREAT))
        patch.setattr(jobs.os, "dup2", lambda *_: None)
        jobs._serve()
    last = json.loads((tmp_path / "out").read_text().splitlines()[-1])
    assert last[1] == "refused"
    assert "DuckDB cannot answer the query (ConversionException)" in last[2][0]
    assert "Quixotis" not in str(last)


@on_pages()
async def test_a_hierarchy_of_a_sensitive_column_is_made_where_the_model_needs_it(user: Any, task: Any):
    go(user, "4 Hierarchies")
    assert field(user, "Column").options == ["age", "zip"]
    task.change(l=None, t_hierarchical=0.4, publish="stars", effort="fast")
    assert "say a hierarchy (step Hierarchies)" in task.sentence()
    await user.open(f"/w/{task.name}")
    go(user, "4 Hierarchies")
    assert field(user, "Column").options == ["age", "zip", "disease"]
    field(user, "Column").set_value("disease")
    fill(user, "How it is made", "order", "Use this hierarchy")
    await said(user, "it says which values of disease are close")
    assert list(task.settings["hierarchies"]) == ["disease"]
    assert task.settings["publish"] == "stars"
    go(user, "6 Release")
    button(user, "Make the release").click()
    await until(lambda: task.releases or len(user.notify.messages) > 1, "nothing came of it")
    assert task.releases, user.notify.messages
    go(user, "7 Intruder")
    button(user, "Attack the release").click()
    await until(lambda: "attack" in task.releases[-1] or len(user.notify.messages) > 2, "nothing came of it")
    assert "attack" in task.releases[-1], user.notify.messages


def test_a_blank_at_the_end_of_a_name_is_seen(tmp_path: Path):
    assert projects._listed(["zip", "zip "]) == "zip and 'zip '"
    table = tmp_path / "near.csv"
    table.write_text("zip,zip ,age\n" + "".join(f"0{i % 3},1{i % 4},{20 + i % 9}\n" for i in range(60)), "utf-8")

    async def walk(user: Any, bench: Any) -> None:
        await user.open("/")
        await see(user, "60 rows, 3 columns")
        go(user, "2 Roles")
        await see(user, "'zip '")

    run(walk, tmp_path, first=str(table))


def test_a_fault_of_the_page_is_said_and_logged_without_its_text(tmp_path: Path, caplog):
    from shoal.workbench.server import LOGGERS, WithoutValues

    async def walk(user: Any, bench: Any) -> None:
        from shoal.workbench import window

        def faulty(_window: Any) -> None:
            raise KeyError("Quixotis")

        await opened(user, bench)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(window.STEPS, "Models", faulty)
            go(user, "3 Models")
            await said(user, "KeyError: this is a defect of shoal, please report it")
        assert not any("Quixotis" in words for words in user.notify.messages)

    hidden = WithoutValues()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(hidden)
    try:
        run(walk, tmp_path, first=str(people(tmp_path)))
    finally:
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(hidden)
    assert "KeyError in " in caplog.text
    assert "test_odd.py:" in caplog.text
    assert "Quixotis" not in caplog.text
    caplog.clear()


@on_pages()
async def test_a_file_that_changed_after_it_was_verified_is_not_handed_out(user: Any, task: Any):
    task.change(effort="fast", l=None, publish="stars")
    go(user, "6 Release")
    button(user, "Make the release").click()
    await until(lambda: task.releases, "nothing came of it")
    files = {kind: Path(place) for kind, place in task.releases[0]["files"].items()}
    assert {"release", "certificate", "report", "policy", "secret"} <= set(files)
    for kind, place in files.items():
        answer = await user.http_client.get(f"/w/{task.name}/files/0/{kind}")
        assert (answer.status_code, answer.content) == (200, place.read_bytes())
        place.write_bytes(place.read_bytes() + b"\n")
        answer = await user.http_client.get(f"/w/{task.name}/files/0/{kind}")
        assert (answer.status_code, answer.text[:29]) == (409, "This file has changed since i")


@pytest.mark.parametrize("mode", ["increment", "again"])
def test_three_months_of_people_who_look_like_those_before(tmp_path: Path, mode: str):
    """Two releases of the same people, as if they were others, tell more together than each alone."""
    by = {"increment": "", "again": "name"}[mode]  # nothing tells who a row is, or an id does
    same = {
        "increment": "has the rows of part 1, and without a column of persons they would count as new people; name the "
        "column with the field 'Column by which a person is known again', or if they are others, say so with the "
        "switch 'They are other people, although",
        "again": "under another spelling, such as one with leading zeros; write the people as in the earlier tables, "
        "or if they are other people, say so with the switch 'They are other people, although",
    }[mode]
    made = pl.read_csv(people(tmp_path), infer_schema=False).with_columns(disease=pl.Series(["flu", "gout"] * 60))
    for name, zeros in (("people.csv", "00{}"), ("february.csv", "0{}"), ("march.csv", "0{}")):
        made.with_row_index("i").with_columns(name=pl.format(zeros, "i")).drop("i").write_csv(tmp_path / name)

    async def add(user: Any, name: str, month: int, others: bool) -> None:
        field(user, "Column by which a person is known again").set_value(by)
        switches = [e for e in every(user, "switch") if "other people" in e.text]
        assert [e.value for e in switches] == [False] * (month > 1)  # it counts for one month
        for switch in switches:
            switch.set_value(others)
        button(user, f"Add {name} as month {month}").click()

    async def walk(user: Any, bench: Any) -> None:
        async def named(name: str) -> None:
            go(user, "1 Open")
            kept = the(user, "switch", "next table")
            kept.set_value(True)
            fill(user, PATH, tmp_path / name, "Open")
            await see(user, f"{name}: 120 rows, 4 columns")
            go(user, "8 Series")

        task = await opened(user, bench)
        task.change(
            quasi_identifiers=["age"], sensitive=["disease"], insensitive=[], identifiers=["name", "zip"], k=2, l=2,
            publish="stars", effort="fast",
        )  # fmt: skip
        go(user, "8 Series")
        fill(user, "Folder of the series", tmp_path / "months", "Show the series, or begin one")
        await see(user, "Begin a series in this folder")
        (modes,) = every(user, "radio")
        modes.set_value(mode)
        button(user, "Begin the series").click()
        await see(user, "0 months, 0 people")
        await user.should_not_see("They are other people")
        await add(user, "people.csv", 1, False)
        await see(user, "1 month, 120 people")
        await named("february.csv")
        await add(user, "february.csv", 2, False)
        await said(user, same)
        assert len(task.months["parts"]) == 1
        await user.open(f"/w/{task.name}")
        await add(user, "february.csv", 2, True)
        await see(user, "2 months, 240 people")
        await named("march.csv")
        await add(user, "march.csv", 3, mode == "increment")  # in mode "again", they are those of February
        await see(user, "3 months, 360 people" if mode == "increment" else "3 months, 240 people")
        await see(user, "Verified: every month, and all together")
        release = Path(task.months["parts"][0]["files"]["release"])
        release.write_bytes(release.read_bytes() + b"\n")
        answer = await user.http_client.get(f"/w/{task.name}/months/1/release")
        assert answer.status_code == 409

    run(walk, tmp_path, first=str(tmp_path / "people.csv"))


@on_pages(None)
async def test_what_is_wrong_with_areas_is_said_in_the_words_of_the_page(user: Any, tmp_path: Path):
    areas = tmp_path / "areas.geojson"
    ring = [[0, 0], [1, 0], [1, 1], [0, 0]]
    held = {"id": "a", "population": 9}
    place = {"type": "Feature", "properties": held, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    areas.write_text(json.dumps({"type": "FeatureCollection", "features": [place]}))
    twice = [{**place, "properties": {"name": "a", "zip": n, "population": 9}} for n in "12"]
    (tmp_path / "twice.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": twice}))
    people(tmp_path)
    asked = {"folder": str(tmp_path / "made"), "edges": "", "weight": "population", "layer": "", "stem": "x"}
    for name, k, words in (
        (areas, "nope", "(say which is with the field 'Column that names an area')"),
        (tmp_path / "twice.geojson", "", "name the one that does with the field 'Column that names an area': zip"),
        (tmp_path / "people.csv", "", "pass a map in the field 'Path of the areas' (.geojson"),
    ):
        with pytest.raises(shoal.InputError) as refused:
            jobs.regions(quiet, str(name), name=k, k=[5], **asked)
        assert words in str(refused.value)
        assert "--" not in str(refused.value)
    await user.open("/")
    go(user, "9 Places")
    field(user, "Path of the areas (map or table)").set_value(str(areas))
    for least in ("20000, 5000", "0", "5, 5", "", "5;6", "2.5"):
        heard = len(user.notify.messages)
        fill(user, "Least people in a region; more numbers, more levels", least, "Merge the areas")
        await until(lambda heard=heard: len(user.notify.messages) > heard, f"nothing was said of {least!r}")
        assert "whole numbers that rise" in user.notify.messages[-1]


@pytest.mark.parametrize("path", ["~nobody-here/x", "x" * 5000, "a\0b", " "])
@on_pages()
async def test_a_path_that_no_file_can_have_is_refused_in_words_on_every_page(user: Any, task: Any, path: str):
    pages = (
        ("1 Open", PATH, "Open", "There is no file or folder of that name"),
        ("4 Hierarchies", "Path of the file", "Read it", "There is no file of that name"),
        ("6 Release", FOLDER, "Make the release", "cannot be used"),
        ("6 Release", "Folder of the project", "Save the project", "It could not be saved"),
        ("8 Series", "Folder of the series", "Show the series, or begin one", "This folder cannot be used"),
        ("9 Places", "Path of the areas (map or table)", "Merge the areas", "There is no file of that name"),
    )
    for step, label, press, words in pages if path.strip() else pages[:2]:
        await user.open(f"/w/{task.name}")
        go(user, step)
        heard = len(user.notify.messages)
        fill(user, label, path, press)
        await until(lambda heard=heard: len(user.notify.messages) > heard, f"{step} said nothing")
        assert words in user.notify.messages[-1]


@on_pages()
async def test_a_hierarchy_is_chosen_as_a_file(user: Any, task: Any):
    go(user, "4 Hierarchies")
    rows = "".join(f"0123{i};{'west' if i < 3 else 'east'};*\n" for i in range(7))
    sent = await user.http_client.post(f"/w/{task.name}/upload", content=rows.encode())
    field(user, "Column").set_value("zip")
    (chosen,) = (e for e in every(user, "element") if "file of a hierarchy" in str(e.props.get("aria-label", "")))
    for handler in [*chosen._event_listeners.values()]:  # the page may be drawn again
        await handler_of(handler)({"sent": True, "name": sent.text})
    await see(user, "Level 1")
    button(user, "Use this hierarchy").click()
    await said(user, "values are published as its classes")
    held = Path(task.settings["hierarchies"]["zip"])
    assert held.read_text("utf-8") == rows
    assert held.parent == task.folder / "hierarchies"


@on_pages()
async def test_the_page_lists_the_values_that_a_hierarchy_lacks_and_the_message_does_not(
    user: Any, bench: Any, tmp_path: Path
):
    tree = tmp_path / "tree.csv"
    tree.write_text("".join(f"0123{i};west;*\n" for i in range(4)))
    go(user, "4 Hierarchies")
    field(user, "Column").set_value("zip")
    fill(user, "Path of the file", tree, "Read it")
    await see(user, "Values of zip that the hierarchy lacks: 01234, 01235, 01236")
    assert "does not cover 3 of the column's values" in user.notify.messages[-1]
    assert "01234" not in " ".join(user.notify.messages)


def handler_of(listener: Any) -> Any:
    """What the page calls for an event of the browser, as a function of its arguments."""
    from types import SimpleNamespace

    return lambda given: listener.handler(SimpleNamespace(args=given))


@on_pages(None)
async def test_a_chosen_file_goes_when_it_is_refused_or_another_is_open(user: Any, bench: Any, tmp_path: Path):
    await user.open("/")
    (task,) = bench.tasks.values()

    async def choose(held: bytes) -> None:
        sent = await user.http_client.post(f"/w/{task.name}/upload", content=held)
        chosen = next(e for e in every(user, "element") if "or drop it here" in str(e.props.get("aria-label", "")))
        for handler in [*chosen._event_listeners.values()]:  # the page may be drawn again
            await handler_of(handler)({"sent": True, "name": sent.text})

    def kept() -> list[bytes]:
        return [file.read_bytes() for file in (task.folder / "upload").rglob("*") if file.is_file()]

    first, second = people(tmp_path).read_bytes(), people(tmp_path, 90).read_bytes()
    await choose(first)
    await see(user, "120 rows, 4 columns")
    await choose(b"")
    await said(user, "is empty")
    assert kept() == [first]
    await choose(second)
    await see(user, "90 rows, 4 columns")
    assert kept() == [second]
    fill(user, PATH, people(tmp_path, 70), "Open")
    await see(user, "70 rows, 4 columns")
    assert kept() == []
    assert (tmp_path / "people.csv").is_file()
