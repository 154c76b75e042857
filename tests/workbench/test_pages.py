"""The pages without a browser: what a click changes, what is refused in words, and that two windows do not mix."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from tests.engines.test_arx import TABLE as ARX_TABLE
from tests.engines.test_arx import project as arx_project
from tests.workbench.simulated import go, run, see, until

pytest.importorskip("nicegui", reason="nicegui is not installed: pip install 'shoal[workbench]'")


def people(folder: Path, rows: int = 120, name: str = "people.csv") -> Path:
    """A table of people, one row for each."""
    place = folder / name
    pl.DataFrame(
        {
            "name": [f"Person{i}" for i in range(rows)],
            "age": [20 + i % 30 for i in range(rows)],
            "zip": [f"0123{i % 7}" for i in range(rows)],
            "disease": [("flu", "gout", "asthma")[i % 3] for i in range(rows)],
        }
    ).write_csv(place)
    return place


def button(user: Any, text: str) -> Any:
    """The buttons that say a text."""
    from nicegui import ui

    return user.find(kind=ui.button, content=text)


def field(user: Any, label: str) -> Any:
    """The one field with a label."""
    from nicegui import ui

    kinds = (ui.input, ui.number, ui.select)
    found = [e for kind in kinds for e in _all(user, kind) if str(e.props.get("label", "")) == label]
    assert len(found) == 1, (label, [e.props.get("label") for kind in kinds for e in _all(user, kind)])
    return found[0]


def _all(user: Any, kind: type) -> list[Any]:
    try:
        return sorted(user.find(kind=kind).elements, key=lambda e: e.id)
    except AssertionError:
        return []


def roles(user: Any) -> list[Any]:
    """The choices of roles, in the table's order."""
    from nicegui import ui

    return [e for e in _all(user, ui.toggle) if "quasi_identifiers" in e.options]


async def opened(user: Any, bench: Any) -> Any:
    """The task of a new window, its table open and its rows read."""
    known = set(bench.tasks)
    await user.open("/")
    (name,) = set(bench.tasks) - known
    await until(lambda: bench.tasks[name].source, "no table was opened")
    await see(user, "rows, 4 columns")
    return bench.tasks[name]


def test_a_role_changes_by_a_click_and_the_line_on_top_says_so(tmp_path: Path):
    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        assert [task.role(c) for c in ("name", "age")] == ["identifiers", "quasi_identifiers"]
        await see(user, "name leaves the table")
        go(user, "2 Roles")
        await see(user, "quasi-identifiers together")
        roles(user)[1].set_value("insensitive")
        await see(user, "of zip, so that")
        assert task.role("age") == "insensitive"
        button(user, "Undo").click()
        await see(user, "of age and zip, so that")
        button(user, "Redo").click()
        await see(user, "of zip, so that")
        assert task.role("age") == "insensitive"
        assert task.sentence() == next(e.text for e in user.find("of zip, so that").elements)

    run(walk, tmp_path, first=str(people(tmp_path)))


def test_a_model_is_asked_for_by_its_switch_and_its_number(tmp_path: Path):
    from nicegui import ui

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        go(user, "3 Models")
        (entropy,) = (e for e in _all(user, ui.switch) if "entropy" in e.text.lower())
        entropy.set_value(True)
        assert task.settings["entropy_l"] == 2.0
        assert any("entropy" in model.name for model in shoal.Policy.of(task.asked()).privacy)
        number = field(user, "k")
        number.set_value(9)
        user.find(kind=ui.number, content="k").trigger("change")
        await see(user, "at least 9 rows")
        assert task.asked()["k"] == 9
        entropy.set_value(False)
        assert "entropy_l" not in task.settings

    run(walk, tmp_path, first=str(people(tmp_path)))


def test_a_hierarchy_is_made_by_the_wizard_changed_by_hand_and_saved_as_arx_reads_it(tmp_path: Path):
    from nicegui import ui

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        go(user, "4 Hierarchies")
        field(user, "Column").set_value("zip")
        field(user, "Wizard").set_value("order")
        button(user, "Show the tree").click()
        await see(user, "01230 to 01232")
        await see(user, "of the rows")
        for value in ("01230", "01233"):
            (mark,) = (e for e in _all(user, ui.checkbox) if e.text == value)
            mark.set_value(True)
        field(user, "Move what is marked to the class (a new name makes a new one)").set_value("west")
        button(user, "Move").click()
        await see(user, "west")
        button(user, "Use this hierarchy").click()
        await until(lambda: "zip" in task.settings.get("hierarchies", {}), "the hierarchy is not used")
        saved = Path(task.settings["hierarchies"]["zip"]).read_text().splitlines()
        assert "01230;west;*" in saved
        assert "01233;west;*" in saved
        assert len(saved) == 7
        assert task.asked()["publish"] == "hierarchy"
        assert shoal.Hierarchy.of(task.settings["hierarchies"]["zip"]) is not None

    run(walk, tmp_path, first=str(people(tmp_path)))


def test_a_grid_is_tried_and_a_point_taken_is_what_is_asked_also_beside_alpha(tmp_path: Path):
    from nicegui import ui

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.change(alpha_k=[0.6, 7], l=None)
        go(user, "5 Explore")
        field(user, "k, separated by commas").set_value("2, 4")
        field(user, "l, separated by commas (1 asks nothing)").set_value("1")
        button(user, "Try the grid").click()
        await until(lambda: len(task.points) == 2 and task.points[0].get("frontier") is not None, "no points")
        await until(lambda: any(p["frontier"] for p in task.points), "the grid did not end")
        assert [p["k"] for p in task.points] == [2, 4]
        assert task.points[0]["risk"] > 1 / 7  # a class of fewer than 7 rows: k alone rules
        (table,) = user.find(marker="points", kind=ui.table).elements
        user.find(marker="points").trigger("take", 0)
        assert table.rows[0]["k"] == 2
        await see(user, "Taken: k = 2, l = 1")
        assert task.asked()["alpha_k"] == [0.6, 2]
        assert task.asked()["k"] == 2

    run(walk, tmp_path, first=str(people(tmp_path)))


def test_a_release_is_made_into_a_folder_verified_and_not_over_another(tmp_path: Path):
    out = tmp_path / "out"

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.change(effort="fast")
        go(user, "6 Release")
        field(user, "Folder to keep it in (empty: download the files below)").set_value(str(out))
        button(user, "Make the release").click()
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
        field(user, "Folder to keep it in (empty: download the files below)").set_value(str(out))
        button(user, "Make the release").click()
        await see(user, "people.release.csv is already in that folder")
        assert {p.name: p.read_bytes() for p in out.iterdir()} == before
        assert len(task.releases) == 1
        assert [p.name for p in task.folder.iterdir()] == []  # nothing of the way there is left

    run(walk, tmp_path, first=str(people(tmp_path)))


def test_what_no_release_can_meet_is_refused_in_words_and_leaves_no_file(tmp_path: Path):
    out = tmp_path / "out"

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.change(k=500, l=None, effort="fast")
        go(user, "6 Release")
        field(user, "Folder to keep it in (empty: download the files below)").set_value(str(out))
        button(user, "Make the release").click()
        await see(user, "500")
        await until(lambda: user.notify.messages, "nothing was said")
        assert "120" in user.notify.messages[-1]
        assert list(out.iterdir()) == []
        assert task.releases == []

    run(walk, tmp_path, first=str(people(tmp_path)))


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
        field(user, "Folder to keep it in (empty: download the files below)").set_value(str(out))
        button(user, "Make the release").click()
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
        from nicegui import ui

        return any("search" in e.text or "group" in e.text for e in _all(user, ui.label) if "status" in str(e.props))

    run(walk, tmp_path, first=str(table))


def test_a_project_is_saved_and_opened_again_in_another_window(tmp_path: Path):
    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.change(k=4, l=None)
        go(user, "6 Release")
        field(user, "Folder of the project").set_value(str(tmp_path / "kept"))
        button(user, "Save the project").click()
        await see(user, "The project is saved.")
        assert tomllib.loads((tmp_path / "kept" / "policy.toml").read_text())["k"] == 4
        bench.first = str(tmp_path / "kept")
        other = await opened(user, bench)
        await see(user, "at least 4 rows")
        assert other is not task
        assert other.asked() == task.asked()
        assert other.project == tmp_path / "kept"

    run(walk, tmp_path, first=str(people(tmp_path)))


def test_the_next_month_is_asked_the_same_and_refused_where_it_lacks_a_column(tmp_path: Path):
    from nicegui import ui

    def named(user: Any, place: Path) -> None:
        field(user, "Path of a table, or of a project's folder").set_value(str(place))
        button(user, "Open").click()

    async def walk(user: Any, bench: Any) -> None:
        task = await opened(user, bench)
        task.change(k=9, l=None, insensitive=["zip"], quasi_identifiers=["age"])
        (same,) = (e for e in _all(user, ui.switch) if "next table" in e.text)
        same.set_value(True)
        named(user, people(tmp_path, 300, "july.csv"))
        await see(user, "july.csv: 300 rows, 4 columns")
        assert (task.asked()["k"], task.asked()["quasi_identifiers"]) == (9, ["age"])
        pl.read_csv(tmp_path / "july.csv").rename({"age": "years"}).write_csv(tmp_path / "august.csv")
        named(user, tmp_path / "august.csv")
        await see(user, "This table lacks 'age', which the request names")
        assert task.title == "july.csv"
        (same,) = (e for e in _all(user, ui.switch) if "next table" in e.text)
        same.set_value(False)
        named(user, tmp_path / "august.csv")
        await see(user, "august.csv: 300 rows, 4 columns")
        assert task.asked()["k"] == 5

    run(walk, tmp_path, first=str(people(tmp_path)))


def test_a_project_of_arx_gives_roles_models_and_hierarchies(tmp_path: Path):
    async def walk(user: Any, bench: Any) -> None:
        await user.open("/")
        (task,) = bench.tasks.values()

        def named(place: Path) -> None:
            field(user, "Path of a table, or of a project's folder").set_value(str(place))
            button(user, "Open").click()

        named(arx_project(tmp_path / "study.deid"))
        await see(user, "Open the table of the ARX project first")
        named(people(tmp_path))
        await see(user, "120 rows, 4 columns")
        before = task.asked()
        named(tmp_path / "study.deid")
        await see(user, "The open table lacks 'zip & co', 'ill', 'note'")
        assert task.asked() == before
        ARX_TABLE.write_csv(tmp_path / "study.csv")
        named(tmp_path / "study.csv")
        await see(user, "24 rows, 5 columns")
        named(tmp_path / "study.deid")
        await see(user, "Roles, models and hierarchies are those of the ARX project. Not read:")
        asked = task.asked()
        assert (asked["quasi_identifiers"], asked["sensitive"]) == (["age", "zip & co"], ["ill"])
        assert (asked["k"], asked["distinct_l"], asked["publish"]) == (3, 2, "hierarchy")
        assert Path(asked["hierarchies"]["zip & co"]).read_text() == "101;10*;*\n102;10*;*\n203;20*;*\n"
        task.change(effort="fast")
        go(user, "6 Release")
        button(user, "Make the release").click()
        await see(user, "Verified: it was read back")
        (tmp_path / "bent.deid").write_bytes(b"no zip")
        go(user, "1 Open")
        named(tmp_path / "bent.deid")
        await see(user, "bent.deid")

    run(walk, tmp_path)


def test_two_windows_do_not_mix(tmp_path: Path):
    async def walk(user: Any, bench: Any) -> None:
        from nicegui.testing import User

        first = await opened(user, bench)
        bench.first = str(people(tmp_path, 60, "others.csv"))
        second_user = User(user.http_client)
        second = await opened(second_user, bench)
        second.change(k=17)
        assert (first.title, first.rows, first.settings["k"]) == ("people.csv", 120, 5)
        assert (second.title, second.rows) == ("others.csv", 60)
        assert first.folder != second.folder
        go(second_user, "2 Roles")
        roles(second_user)[1].set_value("insensitive")
        await see(second_user, "others.csv")
        assert first.role("age") == "quasi_identifiers"
        await user.should_not_see("others.csv")
        first.change(effort="fast")
        go(user, "6 Release")
        button(user, "Make the release").click()
        await see(user, "Verified: it was read back")
        assert second.releases == []
        for number, status in ((0, 404), (1, 404)):
            answer = await user.http_client.get(f"/w/{second.name}/files/{number}/release")
            assert answer.status_code == status
        assert (await user.http_client.get(f"/w/{first.name}/files/0/release")).status_code == 200
        for kind in ("../secret", "nothing"):
            assert (await user.http_client.get(f"/w/{first.name}/files/0/{kind}")).status_code == 404

    run(walk, tmp_path, first=str(people(tmp_path)))


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
            field(user, "Path of a table, or of a project's folder").set_value(str(tmp_path / name))
            button(user, "Open").click()

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


def test_a_chosen_file_lies_under_a_plain_name_in_the_windows_own_folder(tmp_path: Path):
    from urllib.parse import quote

    async def walk(user: Any, bench: Any) -> None:
        for told, kept in NAMES.items():
            known = set(bench.tasks)
            await user.open("/")
            (name,) = set(bench.tasks) - known
            folder = bench.tasks[name].folder
            headers = {"X-File-Name": quote(told)}
            answer = await user.http_client.post(f"/w/{name}/upload", content=b"a,b\n1,2\n", headers=headers)
            assert (answer.status_code, answer.text) == (200, kept)
            files = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
            assert files == [f"upload/{kept}"]
            assert (folder / "upload" / kept).read_bytes() == b"a,b\n1,2\n"
            assert (folder / "upload" / kept).stat().st_mode & 0o077 == 0
        assert (await user.http_client.post("/w/other/upload", content=b"1")).status_code == 404

    run(walk, tmp_path)
