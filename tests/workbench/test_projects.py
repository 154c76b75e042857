"""A project keeps the request and the hierarchies, no row and no value of a query; a release is handed over whole."""

import stat
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.workbench import jobs, projects
from shoal.workbench.jobs import look
from shoal.workbench.projects import WorkSession

PEOPLE = pl.DataFrame(
    {
        "name": ["Zebedee", "Yolanda", "Xaver", "Wilma", "Ulrich", "Tilda"] * 5,
        "age": [34, 35, 61, 62, 47, 48] * 5,
        "disease": ["flu", "gout", "flu", "burn", "gout", "flu"] * 5,
    }
)


def opened(folder: Path, **reading: str) -> WorkSession:
    """A task with a table in a folder."""
    table = folder / "people.csv"
    PEOPLE.write_csv(table)
    private = folder / "private"
    private.mkdir()
    task = WorkSession(private)
    source = {"path": str(table), **reading}
    task.opened(source, look(lambda *_: None, source={"path": str(table)}))
    return task


def test_a_project_comes_back_as_it_was_left(tmp_path: Path):
    task = opened(tmp_path)
    tree = task.folder / "tree.csv"
    tree.write_text("".join(f"{age};{'young' if age < 40 else 'old'};*\n" for age in (34, 35, 61, 62, 47, 48)))
    task.series = "/of/months"
    task.change(publish="hierarchy", hierarchies={"age": str(tree)}, k=3, range_step={}, l=None, alpha_k=[0.5, 3])
    assert projects.save_project(task, tmp_path / "kept", "Models") == ""
    source, settings, left = projects.read_project(tmp_path / "kept")
    assert source == {"path": task.source["path"]}
    assert left == {"step": "Models", "series": "/of/months"}
    copied = settings["hierarchies"]["age"]
    assert Path(copied).read_text() == tree.read_text()
    assert tmp_path / "kept" in Path(copied).parents
    assert {**settings, "hierarchies": None} == {**task.settings, "hierarchies": None}
    assert shoal.Policy.read(tmp_path / "kept" / "policy.toml").privacy == shoal.Policy.of(task.asked()).privacy


def test_a_project_holds_no_value_of_the_table_and_only_its_owner_reads_it(tmp_path: Path):
    task = opened(tmp_path, separator=",")
    projects.save_project(task, tmp_path / "kept", "Open")
    files = [p for p in (tmp_path / "kept").rglob("*") if p.is_file()]
    assert {p.name for p in files} == {"policy.toml", "project.toml"}
    for file in files:
        held = file.read_text()
        for column in ("name", "disease"):
            assert not any(str(value) in held for value in PEOPLE[column])
        assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT name, age FROM visits", False),
        ("SELECT age5, name_2 FROM data JOIN b USING (id)", False),
        ("SELECT * FROM data WHERE name = 'Zebedee'", True),
        ('SELECT * FROM data WHERE name = "Zebedee"', True),
        ("SELECT * FROM data WHERE age > 61", True),
        ("SELECT * FROM data WHERE smoker IS TRUE", True),
        ("SELECT * FROM data WHERE name = $$Zebedee$$", True),
    ],
)
def test_a_query_that_names_values_is_asked_for_again(tmp_path: Path, query: str, told: bool):
    task = opened(tmp_path, query=query)
    said = projects.save_project(task, tmp_path / "kept", "Open")
    held = (tmp_path / "kept" / "project.toml").read_text()
    assert (said == projects.LEFT_OUT) is told
    assert (query in held) is not told
    assert "Zebedee" not in held
    if told:
        with pytest.raises(shoal.InputError, match="the project does not keep it"):
            projects.read_project(tmp_path / "kept")
    assert projects.read_project(tmp_path / "kept", query)[0]["query"] == query


@pytest.mark.parametrize(
    ("file", "text"),
    [("project.toml", "table = ["), ("policy.toml", "k = "), ("project.toml", 'step = "Open"'), ("project.toml", None)],
)
def test_what_is_no_project_is_refused_in_words(tmp_path: Path, file: str, text: str | None):
    projects.save_project(opened(tmp_path), tmp_path / "kept", "Open")
    place = tmp_path / "kept" / file
    if text is None:
        place.unlink()
    else:
        place.write_text(text)
    with pytest.raises(shoal.InputError, match="'kept'"):
        projects.read_project(tmp_path / "kept")


def test_a_project_whose_table_is_gone_says_so(tmp_path: Path):
    projects.save_project(opened(tmp_path), tmp_path / "kept", "Open")
    (tmp_path / "people.csv").unlink()
    with pytest.raises(shoal.InputError, match=r"'people\.csv', is not where it was: open the table, then the project"):
        projects.read_project(tmp_path / "kept")
    opened_first = {"path": str(tmp_path / "moved.csv"), "separator": ";", "stamp": [1, 2, 3]}
    assert projects.read_project(tmp_path / "kept", opened=opened_first)[0] == {
        "path": opened_first["path"], "separator": ";",
    }  # fmt: skip


def test_a_project_of_a_chosen_file_is_opened_with_the_file_chosen_again(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a file of this name that lies here by chance isn't the table
    task = opened(tmp_path)
    chosen = task.folder / "people.csv"
    chosen.write_bytes((tmp_path / "people.csv").read_bytes())
    task.source["path"] = str(chosen)
    assert projects.save_project(task, tmp_path / "kept", "Open") == projects.NOT_KEPT
    assert str(task.folder) not in (tmp_path / "kept" / "project.toml").read_text()
    with pytest.raises(shoal.InputError, match=r"'people\.csv', is not where it was"):
        projects.read_project(tmp_path / "kept")
    source, settings, _ = projects.read_project(tmp_path / "kept", opened=task.source)
    assert (source, settings) == ({"path": str(chosen)}, task.settings)


def test_a_file_that_changes_is_read_again_and_its_release_is_refused_before(tmp_path: Path):
    task = opened(tmp_path)
    table = Path(task.source["path"])
    PEOPLE.head(12).with_columns(city=pl.lit("Ulm")).write_csv(table)
    ways: dict[str, dict[str, Any]] = {
        "rows": {"offset": 0, "limit": 5},
        "release": {"settings": task.asked(), "folder": str(tmp_path / "out"), "name": "a.csv", "secret": None},
        "add_month": {"folder": str(tmp_path / "series"), "person": None},
        "explore": {"settings": task.asked(), "grid": {"k": [2], "l": [1], "publish": ["stars"]}},
    }
    for job, more in ways.items():
        with pytest.raises(shoal.InputError, match=r"'people\.csv' has changed or moved since you opened it"):
            jobs.JOBS[job](lambda *_: None, source=task.source, **more)
    assert not (tmp_path / "out").exists()
    again = look(lambda *_: None, source={"path": str(table)})
    assert (again["rows"], again["columns"][-1]["name"]) == (12, "city")
    table.unlink()
    with pytest.raises(shoal.InputError, match="has changed or moved"):
        jobs.rows(lambda *_: None, source={"path": str(table), "stamp": again["stamp"]}, offset=0, limit=5)


def _made(folder: Path) -> Path:
    made = folder / "made"
    (made / "trees").mkdir(parents=True)
    for name in ("a.csv", "trees/1.csv", "secret.key"):
        (made / name).write_text(f"new {name}")
    return made


def test_all_files_are_handed_over_and_a_secret_that_is_there_stays(tmp_path: Path):
    place = tmp_path / "place"
    place.mkdir()
    (place / "secret.key").write_text("old")
    projects.handed_over(_made(tmp_path), place, "secret.key")
    held = {str(p.relative_to(place)): p.read_text() for p in place.rglob("*") if p.is_file()}
    assert held == {"a.csv": "new a.csv", "trees/1.csv": "new trees/1.csv", "secret.key": "old"}


def test_a_file_that_is_there_is_not_replaced_and_nothing_is_put_beside_it(tmp_path: Path):
    place = tmp_path / "place"
    (place / "trees").mkdir(parents=True)
    (place / "trees" / "1.csv").write_text("mine")
    with pytest.raises(FileExistsError, match=r"trees/1\.csv"):
        projects.handed_over(_made(tmp_path), place, "secret.key")
    assert [p.name for p in place.rglob("*") if p.is_file()] == ["1.csv"]
    assert (place / "trees" / "1.csv").read_text() == "mine"


@pytest.mark.parametrize("fails", ["copy", "replace"])
def test_a_fault_half_way_leaves_nothing(tmp_path: Path, monkeypatch, fails: str):
    place = tmp_path / "place"
    place.mkdir()
    asked = 0
    owner, name = (projects.shutil, "copyfileobj") if fails == "copy" else (Path, "replace")
    real = getattr(owner, name)

    def faulty(*given: object) -> object:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise OSError(28, "No space left on device")
        return real(*given)

    monkeypatch.setattr(owner, name, faulty)
    with pytest.raises(OSError, match="No space"):
        projects.handed_over(_made(tmp_path), place, "secret.key")
    assert [p for p in place.rglob("*") if p.is_file()] == []


def test_what_is_copied_is_ours_alone_before_it_has_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever opens a file at once, or puts one of his own under its name before, reads nothing of the secret."""
    made, place, seen = _made(tmp_path), tmp_path / "shared", list[int]()
    place.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("theirs")
    (place / ".secret.key.part").symlink_to(elsewhere)
    copied = projects.copied

    def watched(source: Path, target: Path) -> None:
        copied(source, target)
        seen.append(stat.S_IMODE(target.stat().st_mode))

    monkeypatch.setattr(projects, "copied", watched)
    projects.handed_over(made, place, "kept")
    assert set(seen) == {0o600}
    assert elsewhere.read_text() == "theirs"
    projects.write_text(place / "policy.toml", "k = 5")
    assert stat.S_IMODE((place / "policy.toml").stat().st_mode) == 0o600


def test_a_notation_comes_and_goes_with_the_role_and_its_class_shows_the_rows_that_fit(tmp_path: Path):
    days = [date(2024, 1, 1) + timedelta(7 * i) for i in range(40)]
    table = pl.DataFrame(
        {
            "Aufnahme": [d.strftime("%d.%m.%Y") for d in days],
            "Größe": [f"1,{50 + 7 * i % 41}" for i in range(40)],
            "Befund": ["Grippe", "Gicht"] * 20,
        }
    )
    table.write_csv(tmp_path / "t.csv", separator=";")
    source, task = {"path": str(tmp_path / "t.csv")}, WorkSession(tmp_path)
    task.opened(source, look(lambda *_: None, source=source))
    for column in ("Aufnahme", "Größe"):
        task.give_role(column, "insensitive")
        task.give_role("Befund", "sensitive")
    assert not task.settings.get("dates")
    assert not task.settings.get("decimal")
    task.give_role("Größe", "sensitive")
    assert task.settings["decimal"] == {"Größe": ","}
    for column in ("Größe", "Aufnahme"):
        task.give_role(column, "quasi_identifiers")
    assert (task.settings["dates"], task.settings["decimal"]) == ({"Aufnahme": "%d.%m.%Y"}, {"Größe": ","})
    tree = jobs.tree(lambda *_: None, source, "Aufnahme", "dates:month,year")
    assert tree["rows"][0] == ["01.01.2024", "2024-01", "2024", "*"]
    assert jobs.tree(lambda *_: None, source, "Größe", "intervals:0.1")["rows"][0][:2] == ["1,50", "[1.5, 1.6)"]
    settings = {**task.asked(), "k": 4, "publish": "ranges", "effort": "fast"}
    settings.pop("l", None)
    settings.pop("alpha_k", None)
    made = jobs.release(lambda *_: None, source, settings, str(tmp_path / "out"), "r.csv", None)
    seen = 0
    for number in range(100):
        one = jobs.groups(lambda *_: None, source, made["output"], settings, number)
        if one["number"] < number:
            break
        low, high = (_day(text) for text in one["rows"][0][one["columns"].index("Aufnahme")].strip("[]").split(", "))
        inside = [row[one["before_columns"].index("Aufnahme")] for row in one["before"]]
        assert all(low <= _day(text) <= high for text in inside)
        assert one["size"] <= one["fit"] < 40
        seen += one["size"]
    assert seen == 40


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%d.%m.%Y")
