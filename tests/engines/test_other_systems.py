"""Windows and macOS as far as Linux can play them: names that are missing, files that are held, capitals, line ends."""

import errno
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines import atomic
from shoal.engines import atomic as system
from shoal.engines.atomic import check_outputs
from shoal.engines.source import parts_of
from shoal.errors import InputError, PolicyError
from shoal.paths import RECORD, TABLE, is_remote, is_server
from tests.commands import python

MISSING = ("getuid", "geteuid", "getgid", "getegid", "chown", "fork", "O_DIRECTORY", "getpgid", "killpg")
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "syslog")
FRAME = pl.DataFrame({"age": [31, 31, 45, 45, 60, 60] * 3, "ill": ["flu", "gout", "flu"] * 6})
ASKED: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "k": 3, "effort": "fast"}


def held(path: str | Path) -> bool:
    """Whether this process has a file open or mapped, or anything inside a folder."""
    real = os.path.realpath(path)
    opened = [
        os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{n}")
    ]
    mapped = [line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if line.count("/")]
    return any(name.strip() == real or name.startswith(real + os.sep) for name in (*opened, *mapped))


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Windows lacks is gone, and in this folder what it refuses is refused; returns the renames made."""
    if not sys.platform.startswith("linux"):
        pytest.skip("plays Windows with Linux's list of open files")
    honest = {name: getattr(os, name) for name in ("open", "replace", "rename", "unlink")}
    renamed: list[str] = []

    def refuse(*paths: Any) -> None:
        for path in paths:
            if Path(path).is_relative_to(tmp_path) and held(path):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def opened(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if os.path.isdir(path) and Path(path).is_relative_to(tmp_path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return honest["open"](path, flags, *more, **named)

    def replaced(one: Any, other: Any, **named: Any) -> None:
        if os.path.isdir(other) or (os.path.exists(other) and not os.stat(other).st_mode & 0o200):
            raise PermissionError(errno.EACCES, "Permission denied", str(other))
        refuse(one, other)
        renamed.append(Path(other).name)
        honest["replace"](one, other, **named)

    def moved(one: Any, other: Any, **named: Any) -> None:
        if os.path.exists(other):
            raise FileExistsError(errno.EEXIST, "File exists", str(other))
        refuse(one)
        honest["rename"](one, other, **named)

    def gone(path: Any, **named: Any) -> None:
        refuse(path)
        if not os.lstat(path).st_mode & 0o200:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        honest["unlink"](path, **named)

    def killed(_process: int, _number: int) -> None:
        raise AssertionError("on Windows this would have been Ctrl-C")

    for name in MISSING:
        monkeypatch.delattr(os, name, raising=False)
    for name, made in (("open", opened), ("replace", replaced), ("rename", moved), ("unlink", gone), ("kill", killed)):
        monkeypatch.setattr(os, name, made)
    monkeypatch.setattr(shutil, "_use_fd_functions", False, raising=False)
    if hasattr(shutil, "_rmtree_impl"):  # Python 3.13 and newer choose when they begin
        monkeypatch.setattr(shutil, "_rmtree_impl", shutil._rmtree_unsafe)
    monkeypatch.setattr(system, "on_windows", lambda: True)
    monkeypatch.setattr(system, "_exchanged", lambda _one, _other: False)
    monkeypatch.setattr(system, "WAITS", (0.0, 0.0))
    return renamed


@pytest.mark.diagonal
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".xlsx"])
@pytest.mark.parametrize("from_file", [False, True], ids=["frame", "file"])
def test_a_release_is_written_replaced_and_verified(
    tmp_path: Path, windows: list[str], ending: str, from_file: bool
) -> None:
    """No file is open or mapped when it gets its name, and none of what only others have is asked for."""
    data: Any = FRAME
    if from_file:
        data = tmp_path / "people.parquet"
        FRAME.write_parquet(data)
    target = tmp_path / f"r{ending}"
    for _ in range(2):
        release = shoal.anonymize(data, **ASKED)
        release.write(target)
        assert shoal.verify(target, tmp_path / "r.certificate.json").holds
    assert windows == [f"r{ending}", "r.certificate.json", "r.record.json"] * 2
    assert not list(tmp_path.glob(".shoal*"))


def test_a_folder_of_parts_is_written_and_replaced(tmp_path: Path, windows: list[str]) -> None:
    (tmp_path / "in").mkdir()
    FRAME[:9].write_parquet(tmp_path / "in" / "a.parquet")
    FRAME[9:].write_parquet(tmp_path / "in" / "b.parquet")
    for _ in range(2):
        shoal.anonymize(tmp_path / "in", **ASKED).write(tmp_path / "out")
        assert shoal.verify(tmp_path / "out", tmp_path / "out.certificate.json").holds
    assert "out.certificate.json" in windows
    assert not list(tmp_path.glob(".shoal*"))


def test_the_play_refuses_what_windows_refuses(tmp_path: Path, windows: list[str]) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    with (tmp_path / "b").open(), pytest.raises(PermissionError):
        os.replace(tmp_path / "a", tmp_path / "b")
    os.replace(tmp_path / "a", tmp_path / "b")
    assert windows == ["b"]


@pytest.mark.parametrize("how", ["open", "read-only"])
def test_a_locked_target_is_one_sentence_and_stays(tmp_path: Path, windows: list[str], how: str) -> None:
    target = tmp_path / "r.csv"
    target.write_text("old")
    if how == "read-only":
        target.chmod(0o444)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    handle = target.open() if how == "open" else None
    with pytest.raises(
        OSError, match=r"^\[Errno 13\] Permission denied: 'r.csv' could not be written, .* close it there"
    ) as said:
        shoal.anonymize(FRAME, **ASKED).write(target)
    if handle is not None:
        handle.close()
    assert "\n" not in str(said.value)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert windows == []


def test_a_target_that_a_scanner_holds_for_a_moment_is_tried_again(
    tmp_path: Path, windows: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")
    handle = target.open()
    monkeypatch.setattr(time, "sleep", lambda _seconds: handle.close())
    atomic.publish_text(target, "new")
    assert target.read_text() == "new"


def test_a_locked_second_file_takes_the_first_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On any system: whatever keeps the certificate from its name, the table is the old one again."""
    for name in ("r.csv", "r.certificate.json"):
        (tmp_path / name).write_text("old")
    honest = os.replace

    def locked(one: Any, other: Any) -> None:
        if Path(other).name == "r.certificate.json":
            raise PermissionError(errno.EACCES, "Permission denied", str(one), None, str(other))
        honest(one, other)

    monkeypatch.setattr(os, "replace", locked)
    with pytest.raises(OSError, match=r"'r.certificate.json' could not be written, and is as it was") as said:
        shoal.anonymize(FRAME, **ASKED).write(tmp_path / "r.csv")
    assert ".shoal" not in str(said.value)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"r.csv": "old", "r.certificate.json": "old"}


@pytest.mark.parametrize("at", [1, 2, 3])
def test_folders_that_are_exchanged_in_steps_are_put_back(
    tmp_path: Path, windows: list[str], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").write_text("old")
    honest, calls = os.rename, 0

    def fails(one: Any, other: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise PermissionError(errno.EACCES, "Permission denied", str(one))
        honest(one, other)

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(OSError, match="'out' could not be written"):
        atomic.publish_together([atomic.Piece(target, lambda p: (p / "new").write_text("new"), folder=True)])
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert [p.name for p in target.iterdir()] == ["old"]


def test_what_others_left_is_cleared_by_its_age_where_no_process_can_be_asked(
    tmp_path: Path, windows: list[str]
) -> None:
    """Signal 0 asks on Linux and macOS, and ends the process on Windows."""
    names = [f".shoal-{process}-{atomic._host()}-x{i}.part.csv" for i, process in enumerate((os.getpid(), 1, 1))]
    for name in names:
        (tmp_path / name).write_text("")
    os.utime(tmp_path / names[0], (1, 1))
    os.utime(tmp_path / names[1], (1, 1))
    (tmp_path / f".shoal-1-{atomic._host()}-folder.part").mkdir()
    os.utime(tmp_path / f".shoal-1-{atomic._host()}-folder.part", (1, 1))
    atomic.clear_stale(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {names[0], names[2]}


def test_commands_run_where_those_names_never_were(tmp_path: Path) -> None:
    """In a process that has lost them before anything is imported: a release, its report and its verification."""
    FRAME.write_csv(tmp_path / "people.csv")
    head = (
        f"import os, sys, signal\nfor name in {MISSING!r}:\n    getattr(os, name, None) is None or delattr(os, name)\n"
        f"sys.modules.update(dict.fromkeys({MODULES!r}))\n"
        "keep = ('SIGINT', 'SIGTERM', 'SIGABRT', 'SIGFPE', 'SIGILL', 'SIGSEGV')\n"
        "for name in [n for n in dir(signal) if n.startswith('SIG') and n[3] != '_' and n not in keep]:\n"
        "    delattr(signal, name)\n"
        "from shoal.cli import main\nsys.argv[0] = 'shoal'\nmain()\n"
    )
    for words in (
        ["anonymize", "people.csv", "--quasi", "age", "--sensitive", "ill", "--k", "3", "-o", "r.csv"],
        ["report", "r.csv"],
        ["verify", "r.csv", "r.certificate.json"],
        ["init", "people.csv"],
    ):
        python("-c", head, *words, cwd=tmp_path).ok()
    assert (tmp_path / "r.record.json").exists()


def test_a_name_that_differs_in_capitals_alone_is_one_file(tmp_path: Path) -> None:
    """macOS and Windows would write the second over the first, composed letters or not."""
    for one, two in (("r.json", "R.JSON"), ("é.json", "e\u0301.json")):
        with pytest.raises(PolicyError, match="two outputs"):
            check_outputs([(tmp_path / one, RECORD), (tmp_path / two, RECORD)])
    assert check_outputs([(tmp_path / "a.csv", TABLE), (tmp_path / "b.json", RECORD)]) == 0


def test_a_part_of_two_names_is_read_once(tmp_path: Path) -> None:
    """Where capitals are the same, two names have one number; here a second link plays that."""
    FRAME.write_csv(tmp_path / "a.csv")
    os.link(tmp_path / "a.csv", tmp_path / "A.csv")
    with pytest.raises(InputError, match="named twice"):
        parts_of([tmp_path / "a.csv", tmp_path / "A.csv"])


def test_an_output_that_is_the_input_by_another_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in which capitals are the same, played: every look at a name finds the one that is there."""
    FRAME.write_csv(tmp_path / "people.csv")
    honest = os.stat

    def blind(path: Any, **named: Any) -> os.stat_result:
        try:
            return honest(path, **named)
        except FileNotFoundError:
            return honest(Path(path).with_name(Path(path).name.lower()), **named)

    monkeypatch.setattr(os, "stat", blind)
    with pytest.raises(InputError, match="is a file that is read"):
        check_outputs([(tmp_path / "People.CSV", TABLE)], [tmp_path / "people.csv"])


DRIVE = "C:\\data\\people.csv"


@pytest.mark.parametrize(
    "name", [DRIVE, "C:/data/people.csv", "c:people.csv", "C://data/people.csv", "\\\\host\\share\\p.csv"]
)
def test_a_drive_is_no_scheme(name: str) -> None:
    assert not is_remote(name)
    assert not is_server(name)
    with pytest.raises(InputError, match="no file"):
        shoal.audit(name, quasi_identifiers=["age"])


@pytest.mark.skipif(os.name == "nt", reason="a file of this very name")
def test_options_that_name_a_column_and_a_file_take_a_drive(tmp_path: Path) -> None:
    """Backslashes are letters here, so the file has this very name."""
    FRAME.write_csv(tmp_path / DRIVE)
    (tmp_path / "C:\\age.csv").write_text("31,30s,*\n45,40s,*\n60,60s,*\n")
    python(
        *("-m", "shoal", "anonymize", DRIVE, "--quasi", "age", "--k", "3", "--insensitive", "ill"),
        *("--hierarchy", "age=C:\\age.csv", "--publish", "hierarchy", "-o", "C:\\r.csv"),
        cwd=tmp_path,
    ).ok()
    assert {p.name for p in tmp_path.iterdir()} >= {"C:\\r.csv", "C:\\r.certificate.json", "C:\\r.record.json"}
    assert python("-m", "shoal", "verify", "C:\\r.csv", cwd=tmp_path).returncode == 0


def test_parts_on_several_drives_have_no_folder_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drives(_paths: Any) -> str:
        raise ValueError("Paths don't have the same drive")

    FRAME.write_csv(tmp_path / "a.csv")
    FRAME.write_csv(tmp_path / "b.csv")
    monkeypatch.setattr(os.path, "commonpath", drives)
    assert [s.name for s in parts_of([tmp_path / "a.csv", tmp_path / "b.csv"]).sources] == ["a.csv", "b.csv"]


def test_line_ends_of_windows_change_nothing(tmp_path: Path) -> None:
    """Table, policy and hierarchy as an editor of Windows saves them."""
    asked = 'quasi_identifiers = ["age"]\nsensitive = ["ill"]\npublish = "hierarchy"\nk = 3\n'
    lines = "31,30s,*\n45,40s,*\n60,60s,*\n"
    found = []
    for name, end in (("unix", "\n"), ("windows", "\r\n")):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in (("p.toml", asked), ("age.csv", lines), ("people.csv", FRAME.write_csv())):
            (folder / file).write_bytes(text.replace("\n", end).encode())
        policy = shoal.Policy.read(folder / "p.toml", hierarchies={"age": folder / "age.csv"})
        release = shoal.anonymize(folder / "people.csv", policy)
        found.append(release.table.sort(release.table.columns))
        assert release.table["ill"].unique().sort().to_list() == ["flu", "gout"]
    assert found[0].equals(found[1])


def test_a_terminal_without_greek_letters_holds_no_sentence_up(tmp_path: Path) -> None:
    """A console of Windows writes in its code page, in which most signs are missing."""
    FRAME.write_csv(tmp_path / "людей.csv")
    code = (
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'cp1252')\n"
        "sys.stderr = io.TextIOWrapper(sys.stderr.buffer, 'cp1252')\n"
        "from shoal.cli import main\nsys.argv[0] = 'shoal'\nmain()\n"
    )
    said = python("-c", code, "anonymize", "людей.csv", "--quasi", "wo λ", "--k", "3", "-o", "r.csv", cwd=tmp_path)
    assert said.returncode == 2
    assert "UnicodeEncodeError" not in said.said + said.stderr
    assert "\\u03bb" in said.stderr


def test_ending_is_heard_where_the_system_has_a_signal_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    monkeypatch.setattr(signal, "signal", lambda number, _handler: heard.append(int(number)))
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_DFL)
    system.on_termination(lambda _number, _frame: None)
    assert heard == [signal.SIGTERM, signal.SIGHUP]
    heard.clear()
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_IGN)  # as nohup starts a command
    system.on_termination(lambda _number, _frame: None)
    assert heard == [signal.SIGTERM]
    heard.clear()
    monkeypatch.delattr(signal, "SIGTERM")
    monkeypatch.delattr(signal, "SIGHUP")
    system.on_termination(lambda _number, _frame: None)
    assert heard == []
