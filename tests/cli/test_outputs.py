"""What every command may write, and where: one table of commands, one table of harm.

Outputs that were given no name: no two tables of one folder share one.
"""

import errno
import json
import os
import stat
import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

import shoal
from shoal.errors import ExistsError, InputError, PolicyError
from tests.commands import run


class Line(NamedTuple):
    """A command that works without outputs, its outputs (flag, a good name), and the files it reads."""

    words: list[str]
    outputs: list[tuple[str, str]]
    read: list[str]


LINES = {
    "anonymize": Line(
        ["anonymize", "t.csv", "--policy", "p.toml", "--effort", "fast"],
        [("-o", "r.csv"), ("--certificate", "c.json"), ("--report", "r.html")],
        ["t.csv", "p.toml", "h.csv"],
    ),
    "labels": Line(
        ["labels", "t.csv", "--label", "q", "--k", "2", "--names", "n.txt"],
        [("-o", "x.csv"), ("--certificate", "c.json"), ("--hierarchy", "tree.csv"), ("--picture", "p.svg")],
        ["t.csv", "n.txt"],
    ),
    "intervals": Line(
        ["intervals", "t.csv", "--value", "x", "--k", "2", "--names", "n.txt"],
        [("-o", "x.csv"), ("--certificate", "c.json"), ("--hierarchy", "tree.csv"), ("--picture", "p.svg")],
        ["t.csv", "n.txt"],
    ),
    "regions": Line(
        ["regions", "t.csv", "e.csv", "--weight", "w", "--k", "2", "--id", "q"],
        [("-o", "x.csv"), ("--dissolved", "d.geojson"), ("--map", "m.html"), ("--png", "m.png"),
         ("--certificate", "c.json")],
        ["t.csv", "e.csv"],
    ),
    "tiles": Line(
        ["tiles", "t.csv", "--x", "x", "--y", "y", "--k", "2"],
        [("-o", "x.csv"), ("--tiles", "t.geojson"), ("--table", "out.csv"), ("--map", "m.html"),
         ("--certificate", "c.json")],
        ["t.csv"],
    ),
    "gather": Line(
        ["gather", "t.csv", "--columns", "q,x", "--r", "2", "--hierarchy", "q=h.csv"],
        [("-o", "x.csv"), ("--assignments", "a.csv"), ("--plot", "p.png"), ("--choices", "c.png"),
         ("--certificate", "c.json")],
        ["t.csv", "h.csv"],
    ),
    "cellular": Line(
        ["cellular", "t.csv", "--columns", "q,x", "--r", "2", "--hierarchy", "q=h.csv"],
        [("-o", "x.csv"), ("--assignments", "a.csv"), ("--plot", "p.png"), ("--choices", "c.png"),
         ("--certificate", "c.json")],
        ["t.csv", "h.csv"],
    ),
    "explore": Line(
        ["explore", "t.csv", "--policy", "p.toml", "--k", "2"], [("-o", "e.html")], ["t.csv", "p.toml"]
    ),
    "compare": Line(
        ["compare", "t.csv", "r0.csv", "--quasi", "q", "--sensitive", "s"], [("-o", "c.html")], ["t.csv", "r0.csv"]
    ),
    "init": Line(["init", "t.csv"], [("-o", "new.toml")], ["t.csv"]),
}  # fmt: skip
WORKING = {"anonymize", "labels", "intervals", "explore", "compare", "init"}  # what they write is looked at too
EVERY = [(name, flag, good) for name, line in LINES.items() for flag, good in line.outputs]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [(f"a{i % 4}", i % 6, i % 5, 2, "pq"[i % 2]) for i in range(24)]
    pl.DataFrame(rows, schema=["q", "x", "y", "w", "s"], orient="row").write_csv("t.csv")
    (tmp_path / "r0.csv").write_bytes((tmp_path / "t.csv").read_bytes())
    (tmp_path / "h.csv").write_text("".join(f"a{i};{'low' if i < 2 else 'high'};any\n" for i in range(4)))
    (tmp_path / "e.csv").write_text("u,v\na0,a1\na1,a2\na2,a3\n")
    (tmp_path / "n.txt").write_text("".join(f"group {i}\n" for i in range(24)))
    (tmp_path / "p.toml").write_text(
        'quasi_identifiers = ["q"]\nsensitive = ["s"]\nk = 2\npublish = "hierarchy"\nhierarchies = {q = "h.csv"}\n'
    )
    return tmp_path


def bad_places(folder: Path, good: str) -> list[tuple[str, str]]:
    """(place, what is said) for everything that is no new or regular file with a known ending."""
    ending = "".join(Path(good).suffixes)
    os.mkfifo(folder / f"pipe{ending}")
    (folder / f"folder{ending}").mkdir()
    (folder / f"null{ending}").symlink_to("/dev/null")
    return [
        ("/dev/null", "is a device"),
        (f"null{ending}", "is a device"),
        (f"pipe{ending}", "is a pipe"),
        (f"folder{ending}", "is a folder"),
        (f"nowhere/{good}", "make it first"),
        ("x.docx", "is written as"),
        ("x.zip", "is written as"),
        ("x", "is written as"),
    ]


def state(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and not p.is_symlink()}


@pytest.mark.parametrize(("name", "flag", "good"), EVERY)
def test_no_output_does_harm(folder: Path, name: str, flag: str, good: str) -> None:
    line = LINES[name]
    ending = "".join(Path(good).suffixes)
    for place, says in bad_places(folder, good):
        before = state(folder)
        run(*line.words, flag, place).refused(2, says)
        assert state(folder) == before
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    for source in line.read:
        link, hard = folder / f"link{ending}", folder / f"hard{ending}"
        for place in (link, hard):
            place.unlink(missing_ok=True)
        link.symlink_to(folder / source)
        os.link(folder / source, hard)
        for place in (link, hard, folder / source) if Path(source).suffix == ending else (link, hard):
            before = state(folder)
            run(*line.words, flag, str(place), "--force").refused(2, "is a file that is read")
            assert state(folder) == before
    (folder / good).write_text("there already")
    before = state(folder)
    run(*line.words, flag, good).refused(4, "say --force")
    assert state(folder) == before


def test_a_file_beside_another_output_is_named_as_such(folder: Path) -> None:
    words = ("--report", "page.html", "--certificate", "page.json")
    status, _, err = run("labels", "names.csv", "--label", "name", "--count", "n", "--k", "3", "-o", "o.csv", *words)
    assert status == 2
    assert "'page.json', which is written next to 'page.html', is named for two outputs" in err


@pytest.mark.parametrize("name", [n for n, line in LINES.items() if len(line.outputs) > 1])
def test_no_two_outputs_are_one_file(folder: Path, name: str) -> None:
    line = LINES[name]
    for i, (flag, good) in enumerate(line.outputs):
        for other, name_too in line.outputs[:i]:
            if Path(good).suffix == Path(name_too).suffix:
                status, _, err = run(*line.words, flag, "same" + Path(good).suffix, other, f"./same{Path(good).suffix}")
                assert (status, "named for two outputs" in err) == (2, True), err
    assert not list(folder.glob("same*"))


@pytest.mark.parametrize("name", sorted(WORKING))
def test_force_replaces_and_a_private_table_stays_private(folder: Path, name: str) -> None:
    line = LINES[name]
    wanted = [word for pair in line.outputs for word in pair]
    places = [good for _, good in line.outputs]
    places += [good.replace(".html", ".json") for good in places if good.endswith(".html")]
    for good in places:
        (folder / good).write_text("there already")
        (folder / good).chmod(0o640)
    umask = os.umask(0o022)
    try:
        run(*line.words, *wanted, "--force").ok()
        for good in places:
            internal = name in ("compare", "explore", "init")  # figures of the original: for their owner alone
            assert stat.S_IMODE((folder / good).stat().st_mode) == (0o600 if internal else 0o640), good
            assert (folder / good).read_text() != "there already"
            (folder / good).unlink()
        for record in folder.glob("*.record.json"):
            assert stat.S_IMODE(record.stat().st_mode) == 0o600
            record.unlink()
        (folder / "t.csv").chmod(0o600)
        run(*line.words, *wanted).ok()
        for good in places:
            assert stat.S_IMODE((folder / good).stat().st_mode) == 0o600, good
    finally:
        os.umask(umask)


def test_python_replaces_unless_told_not_to(folder: Path) -> None:
    release = shoal.anonymize("t.csv", quasi_identifiers=["q"], insensitive=["x", "y", "w", "s"], k=2, effort="fast")
    release.write("r.csv")
    release.write("r.csv")
    release.report("r.html")
    for found in (shoal.explore("t.csv", quasi_identifiers=["q"], k=2), shoal.compare("t.csv", {"r": release},
                  quasi_identifiers=["q"])):  # fmt: skip
        with pytest.raises(PolicyError, match="exists already"):
            found.report("r.html", overwrite=False)
    with pytest.raises(PolicyError, match="exists already"):
        release.write("r.csv", overwrite=False)
    with pytest.raises(PolicyError, match="exists already"):
        release.report("r.html", overwrite=False)
    for place in ("t.csv", "x.docx", "/dev/null"):
        with pytest.raises(InputError):
            release.write(place)
        with pytest.raises(InputError):
            release.report(place)


def test_a_page_takes_no_file_of_its_name_that_is_not_its_own(folder: Path) -> None:
    release = shoal.anonymize("t.csv", quasi_identifiers=["q"], insensitive=["x", "y", "w", "s"], k=2, effort="fast")
    release.write("r.csv", "r.json")
    held = Path("r.json").read_bytes()
    for overwrite in (True, False):
        with pytest.raises(PolicyError, match=r"'r.json', which is written next to 'r.html', exists already, and"):
            release.report("r.html", overwrite=overwrite)
    run("report", "r.csv", "r.json", "-o", "r.html", "--force").refused(2, "'r.json'")
    assert Path("r.json").read_bytes() == held
    assert shoal.verify("r.csv", "r.json").holds
    release.report("page.html")
    release.report("page.html")


def test_a_demo_is_replaced_by_a_demo_only(folder: Path) -> None:
    (folder / "people.csv").write_text("mine\n")
    run("demo", "-o", ".").refused(4, "say --force")
    assert (folder / "people.csv").read_text() == "mine\n"


def test_reproduce_replaces_nothing(folder: Path) -> None:
    (folder / "names.png").write_text("mine")
    run("reproduce", "names", "-o", ".").refused(4, "say --force")
    (folder / "file").write_text("")
    run("reproduce", "names", "-o", "file").refused(2, "is no folder")


def test_a_column_without_a_role_is_refused_in_flags(folder: Path) -> None:
    table = pl.read_csv("t.csv").with_columns(contact=pl.Series([f"zq{i}@zq.org" for i in range(24)]))
    table.write_csv("m.csv")
    words = ["anonymize", "m.csv", "--quasi", "q", "--sensitive", "s", "--k", "2", "--effort", "fast", "--json"]
    status, out, err = run(*words)
    said = json.loads(out)["error"]["message"]
    assert status == 2
    assert "'contact': 24 of 24 values looked at have the form of e-mail addresses" in said
    for flag in ("--identifiers", "--quasi", "--sensitive", "--insensitive"):
        assert flag in said
    assert "zq" not in out + err
    assert "=[" not in said
    facts = run(*words, "--insensitive", "contact").facts
    assert facts["carried"]["insensitive"] == ["contact"]
    assert (facts["carried"]["alone"]["contact"], facts["carried"]["together"]) == (24, 24)
    assert "single out 24 of 24 rows" in facts["warnings"][0]
    record = json.loads(Path(facts["certificate_file"]).read_text())
    assert record["policy"]["insensitive"] == ["contact"]
    assert record["carried"]["together"] == 24


def test_a_value_of_few_rows_is_not_named(folder: Path) -> None:
    (folder / "few.csv").write_text("q,s\n" + "a,zqgout\n" * 4 + "a,b\na,c\na,d\n")
    words = ["anonymize", "few.csv", "--quasi", "q", "--sensitive", "s", "--l", "2"]
    status, _, err = run(*words, "--k", "5")
    assert (status, "has one value that is 57.1 %" in err, "zq" in err) == (3, True, False)
    run(*words, "--k", "4").refused(3, "zqgout")


def test_excel_is_refused_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.problems.tables.group", lambda *_, **__: pytest.fail("work was done"))
    (folder / "long.csv").write_text("q,s\n" + f"a,{'x' * 40_000}\n" * 24)
    (folder / "case.csv").write_text("q,s,S\n" + "a,b,c\n" * 24)
    for table, says in (("long.csv", "32,767"), ("case.csv", "takes the columns")):
        run("anonymize", table, "--quasi", "q", "--sensitive", "s", "--k", "2", "-o", "r.xlsx").refused(2, says)


def test_a_picture_nothing_can_draw_is_refused_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    before = state(folder)
    run(*LINES["tiles"].words, "-o", "x.csv", "--map", "m.png").refused(2, "pip install 'shoal[plot]'")
    assert state(folder) == before


def test_a_report_that_finds_no_room_does_not_deny_the_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = shoal.anonymize("t.csv", quasi_identifiers=["q"], insensitive=["x", "y", "w", "s"], k=2, effort="fast")
    release.write("r.csv")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left") as told:
        release.report("r.html")
    assert sorted(p.name for p in folder.glob("r.*")) == ["r.certificate.json", "r.csv", "r.record.json"]
    assert "for 'r.html', which is as it was" in str(told.value)


def test_a_page_that_finds_no_room_leaves_what_was_written_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release is there, and whoever reads of a full disk alone would look for no file."""

    def full(*_: object, **__: object) -> None:
        raise OSError(f"no space left for 'r.html' in {str(folder)!r}")

    monkeypatch.setattr(shoal.Release, "report", full)
    monkeypatch.setattr(shoal.Crosswalk, "report", full)
    for name, page in ("anonymize", "shoal report"), ("tiles", "run again with --force"):
        run(*LINES[name].words, "-o", f"{name}.csv", "--report", "r.html").refused(2, page)
        assert (folder / f"{name}.csv").exists()


FRAME = pl.DataFrame({"age": [30, 31, 30, 31] * 5, "town": ["Ulm", "Bonn"] * 10, "ill": ["a", "b", "c", "d"] * 5})


def test_two_kinds_of_one_table_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("visits.csv")
    FRAME.write_excel("visits.xlsx")
    FRAME.write_parquet("visits.parquet")
    written: list[str] = []
    for table in ("visits.csv", "visits.xlsx", "visits.parquet"):
        done = run("init", table, "--json").ok()
        written.append(done.facts["output"])
        asked = ("--quasi", "age,town", "--sensitive", "ill", "--k", 5, "--effort", "fast", "--json")
        done = run("anonymize", table, *asked).ok()
        written += [done.facts[name] for name in ("output", "certificate_file", "record_file")]
        done = run("report", done.facts["output"], "--json").ok()
        written.append(done.facts["report"])
    assert len({name.lower() for name in written}) == len(written) == 15
    assert written[:2] == ["visits.policy.toml", "visits.release.csv"], "a CSV's are as short as can be"
    assert "visits.xlsx.release.certificate.json" in written


@pytest.mark.parametrize("first", ["o", "o.csv", "o.csv.gz", "o.tsv", "o.parquet", "o.xlsx", "o.sav", "crosswalk.csv"])
def test_no_output_takes_the_certificate_of_another(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one's has its whole name, and each is found again."""
    monkeypatch.chdir(tmp_path)
    FRAME.write_parquet("visits.parquet")
    asked = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "effort": "fast"}
    made = {name: shoal.anonymize(FRAME, **asked, k=k) for k, name in ((5, "first"), (10, "second"))}
    engine = {"engine": "duckdb"} if first == "o" else {}
    made["first"] = shoal.anonymize("visits.parquet", **asked, k=5, **engine)
    if first == "crosswalk.csv":
        sizes, first = pl.DataFrame({"a": ["x", "y", "z"], "b": [3, 4, 5]}), "o.csv"
        made["first"] = shoal.release(shoal.labels.cover(sizes["b"], 5), sizes, label="a", count="b")
    made["first"].write(first)
    papers = [Path("o.certificate.json"), Path("o.record.json")]
    before = [paper.read_bytes() for paper in papers]
    words = ["anonymize", "visits.parquet", "--quasi", "age,town", "--sensitive", "ill", "--k", 5, "--effort", "fast"]
    for second in {"o.csv", "o.CSV", "o.txt", "o.pq", "o.dta"} - {first}:
        made["second"].write(second)
        own = [Path(f"{second}.certificate.json"), Path(f"{second}.record.json")]
        assert all(paper.is_file() for paper in own)
        assert shoal.verify(second, original=FRAME).holds
        run(*words, "-o", second).refused(4, "exists already")
        run(*words, "-o", second, "--force").ok()
        run("verify", second, "--original", "visits.parquet").ok()
        run("report", second, "--force").ok()
        for paper in (Path(second), *own):
            paper.unlink()
        run("labels", "visits.parquet", "--label", "ill", "--k", 5, "-o", second, "--force").ok()
        run("verify", second, "--original", "visits.parquet").ok()
        for paper in (Path(second), *own):
            paper.unlink()
        assert [paper.read_bytes() for paper in papers] == before
    assert shoal.verify(first).holds


def test_a_folder_does_not_take_the_certificate_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its whole name is that of the file without the ending."""
    monkeypatch.chdir(tmp_path)
    FRAME.write_parquet("visits.parquet")
    asked = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "k": 5, "effort": "fast"}
    shoal.anonymize(FRAME, asked).write("o.csv")
    parts = shoal.anonymize("visits.parquet", asked, engine="duckdb")
    with pytest.raises(ExistsError, match=r"is the certificate of 'o.csv', and would be that of 'o' too"):
        parts.write("o")
    parts.write("o", "other.json")
    Path("o.certificate.json").unlink()
    with pytest.raises(ExistsError, match=r"'o.record.json' is the record of 'o.csv'"):
        parts.write("o")


def test_a_wrong_original_is_told_apart_from_a_wrong_release(tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": [20, 20, 30, 30], "ill": ["flu", "gout"] * 2})
    for name, table in (("t.csv", frame), ("more.csv", pl.concat([frame, frame[:1]]))):
        table.write_csv(tmp_path / name)
    asked = (
        "anonymize",
        tmp_path / "t.csv",
        "--quasi",
        "age",
        "--sensitive",
        "ill",
        "--k",
        2,
        "-o",
        tmp_path / "r.csv",
    )
    run(*asked, "--effort", "fast").ok()
    note = "--original names the table as it was when the release was made"
    assert note in run("verify", tmp_path / "r.csv", "--original", tmp_path / "more.csv").stdout
    assert note not in run("verify", tmp_path / "r.csv", "--original", tmp_path / "t.csv").ok().stdout
    (tmp_path / "r.csv").write_text((tmp_path / "r.csv").read_text().replace("flu", "gout"))
    assert note not in run("verify", tmp_path / "r.csv", "--original", tmp_path / "t.csv").stdout
