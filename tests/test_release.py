"""A release is written whole and verified, or not at all; and what was written can be checked again."""

import contextlib
import datetime as dt
import json
import pickle
import resource
import shutil
import signal
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.errors import CertificateError, InputError, PolicyError, VerificationError
from shoal.judge.file import seal
from shoal.judge.tables.large import count_release
from shoal.publishing.tables.statement import blanks
from tests.commands import python, started
from tests.kept import forge, holding, kept, verify

ROOT = Path(__file__).parents[1]
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["zip", "age"], "sensitive": ["d"], "insensitive": ["note"], "k": 2,
    "effort": "fast", "seed": 3,
}  # fmt: skip
LINES = [
    "name,zip,age,d,note",
    "Ann,01234,20,flu,n1",
    "Bob,01234,20,cold,n2",
    "Cid,01234,31,flu,n3",
    "Dee,01235,32,hiv,n4",
    "Eve,,31,cold,n5",
    "Fay,,31,flu,n6",
    "",
]


Files = tuple[Path, Path, Path]  # a table, its release and the certificate


def source(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("\n".join(LINES))
    return path


def written(folder: Path, name: str = "r.csv", **more: Any) -> Files:
    path = source(folder)
    release = shoal.anonymize(path, identifiers=["name"], **(ASKED | more))
    return path, folder / name, release.write(folder / name)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of one release, for whoever changes a copy."""
    folder = tmp_path_factory.mktemp("once")
    written(folder)
    return folder


@pytest.fixture
def copied(once: Path, tmp_path: Path) -> Files:
    shutil.copytree(once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "people.csv", tmp_path / "r.csv", tmp_path / "r.certificate.json"


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet"])
def test_names_with_quotes_are_read_back(tmp_path: Path, name: str) -> None:
    ages = pl.DataFrame({'a "b"': [1, 1, 1, 2, 2, 2], "<i>\n,": ["x"] * 6, '""': ["flu", "gout"] * 3})
    release = shoal.anonymize(ages, quasi_identifiers=ages.columns[:2], sensitive=['""'], k=3, seed=1)
    assert verify(tmp_path / name, release.write(tmp_path / name), ages).holds


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.tsv", "r.parquet", "r.xlsx", "r.sav", "r.dta"])
@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_what_was_written_holds(tmp_path: Path, name: str, publish: str) -> None:
    original, path, record = written(tmp_path, name, publish=publish)
    before = original.read_bytes()
    for verdict in (verify(path, record), verify(path, record, original)):
        assert verdict.holds, [f for f in verdict.findings if not f[1]]
    assert original.read_bytes() == before
    names = ["people.csv", path.name, record.name, kept(record).name]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)


def typed() -> pl.DataFrame:
    n = 8
    half = [0, 0, 0, 0, 1, 2, 3, 4]
    return pl.DataFrame(
        {
            "i": half,
            "f": [i + 0.5 for i in half],
            "whole": [float(i) for i in half],
            "b": [i > 0 for i in half],
            "date": [dt.date(2020, 1, 1 + i) for i in half],
            "at": [dt.datetime(2020, 1, 1, 1, 2, 3, 500_000 * (i % 2)) for i in half],
            "zone": [dt.datetime(2020, 1, 1 + i, tzinfo=dt.UTC) for i in half],
            "time": [dt.time(1, i) for i in half],
            "span": [dt.timedelta(hours=i) for i in half],
            "dec": [Decimal(f"{i}.50") for i in half],
            "gap": [None, None, 1, 1, None, 2, 3, 4],
            "s": ["p", "q"] * (n // 2),
            "carried": [dt.datetime(2021, 5, 1, i) for i in range(n)],
            "number": [i / 3 for i in range(n)],
        }
    )


@pytest.mark.diagonal
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".xlsx", ".sav", ".dta"])
@pytest.mark.parametrize("column", typed().columns[:11])
def test_every_type_can_be_published_and_verified_in_every_format(tmp_path: Path, column: str, ending: str) -> None:
    frame = typed()
    original = tmp_path / "typed.parquet"
    frame.write_parquet(original)
    others = [c for c in pl.read_parquet(original).columns if c not in (column, "s")]
    asked = {"quasi_identifiers": [column], "sensitive": ["s"], "insensitive": others}
    release = shoal.anonymize(original, **asked, k=2, effort="fast", seed=0)
    path = tmp_path / f"r{ending}"
    record = kept(release.write(path))
    holding(verify(path, record, original))
    if ending == ".csv" and column not in ("gap", "b", "at"):
        assert path.read_text().count("*") == release.loss["stars"] == 4


def test_an_empty_text_and_a_missing_one(tmp_path: Path) -> None:
    frame = pl.DataFrame({"zip": ["", "", None, None, "x", "x"], "age": ["1"] * 6, "d": ["p", "q"] * 3})
    release = shoal.anonymize(frame, **(ASKED | {"insensitive": []}))
    record = kept(release.write(tmp_path / "r.parquet"))
    assert verify(tmp_path / "r.parquet", record, frame).holds
    for name in ("t.csv", "t.xlsx"):
        with pytest.raises(shoal.InputError, match="only Parquet can distinguish"):
            release.write(tmp_path / name)
    carried = frame.with_columns(zip=pl.lit("x"), note=pl.Series(["", None, "a", "a", "a", "a"]))
    release = shoal.anonymize(carried, **(ASKED | {"insensitive": ["note"]}))
    assert shoal.verify(tmp_path / "s.csv", release.write(tmp_path / "s.csv")).holds, "there quotes tell them apart"
    with pytest.raises(shoal.InputError, match=r"'note' .* which a sheet cannot distinguish"):
        release.write(tmp_path / "u.xlsx")


def test_a_cell_of_ten_megabytes(tmp_path: Path) -> None:
    long = "ab,\n" * 2_500_000
    frame = pl.DataFrame({"zip": [long, long, "x", "y"], "age": ["1"] * 4, "d": ["p", "q"] * 2, "note": [long] * 4})
    path = tmp_path / "r.csv"
    record = kept(shoal.anonymize(frame, **ASKED).write(path))
    assert verify(path, record).holds
    back = shoal.anonymize(path, **(ASKED | {"star": "#"})).table
    assert sorted(back["zip"].str.len_chars()) == [1, 1, len(long), len(long)]


def first_kept_zip(text: str) -> str:
    return text.replace("01234", "01299", 1)


TAMPERED: dict[str, Callable[[str], str]] = {
    "a byte": lambda t: t.replace("flu", "flv", 1),
    "a star filled in": lambda t: t.replace("*", "01235", 1),
    "a value starred": lambda t: t.replace("01234", "*", 1),
    "a value changed": first_kept_zip,
    "a row dropped": lambda t: "\n".join(t.splitlines()[:-1]) + "\n",
    "a row doubled": lambda t: t + t.splitlines()[-1] + "\n",
    "a carried value": lambda t: t.replace("n1", "n9"),
    "a blank at the end": lambda t: t + "\n",
    "line ends": lambda t: t.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("with_original", [False, True])
@pytest.mark.parametrize("how", TAMPERED)
def test_a_tampered_release_is_caught(copied: Files, how: str, with_original: bool) -> None:
    original, path, record = copied
    path.write_text(TAMPERED[how](path.read_text()))
    verdict = verify(path, record, original if with_original else None)
    assert not verdict.holds
    assert not {name: holds for name, holds, *_ in verdict.findings}["file"]


@pytest.mark.parametrize("how", ["a byte", "a star filled in", "a value changed", "a row dropped", "a carried value"])
def test_with_the_original_a_forged_certificate_does_not_help(copied: Files, how: str) -> None:
    original, path, record = copied
    path.write_text(TAMPERED[how](path.read_text()))
    facts = json.loads(record.read_text())
    verdict = verify(path, record)
    from shoal.judge.tables.large import hash_of

    facts["release"] |= {"sha256": hash_of(path), "rows": verdict.audit.rows}
    facts |= {"groups": verdict.audit.classes, "smallest_group": verdict.audit.smallest_class}
    facts["privacy"]["k"] = verdict.audit.k
    facts["seal"] = seal(facts)
    record.write_text(json.dumps(facts))
    assert not verify(path, record, original).holds


EDITS: dict[str, Callable[[dict], Any]] = {
    "cost": lambda r: r["certificate"].update(cost=r["certificate"]["cost"] + 1),
    "ratio": lambda r: r["certificate"].update(ratio=1.0001),
    "ratio_step": lambda r: r["certificate"].update(ratio_at_most=1.5),
    "theorem": lambda r: r["certificate"]["guarantee"].update(theorem="none"),
    "k": lambda r: r["policy"]["privacy"][0].update(k=1),
    "level": lambda r: r["privacy"].update(k=7),
    "stars": lambda r: r["stars"].update(zip=0),
    "loss": lambda r: r["loss"].update(stars=0),
    "weighted": lambda r: r["loss"].update(weighted_ncp=0.0),
    "seed": lambda r: r["policy"].update(seed=None),
    "hash": lambda r: r["release"].update(sha256="0" * 64),
    "rows": lambda r: r["release"].update(rows=5),
    "groups": lambda r: r.update(groups=9),
    "no seal": lambda r: r.pop("seal"),
}
PUBLIC = [edit for edit in EDITS if edit != "seed"]  # a certificate has none
OF_RECORD = EDITS | {"bound": lambda r: r["certificate"].update(lower_bound=r["certificate"]["lower_bound"] - 1)}
CONTRADICTIONS = ["level", "ratio", "stars", "loss", "weighted", "hash", "rows", "groups"]


def refused(path: Path, paper: Path, content: dict[str, Any]) -> bool:
    """Whether a bent certificate or record does not verify."""
    paper.write_text(json.dumps(content))
    try:
        return not verify(path, paper).holds
    except (InputError, CertificateError):
        return True


@pytest.mark.parametrize(
    ("paper", "edit", "sealed"),
    [
        *(("c", edit, False) for edit in PUBLIC),
        *(("r", edit, False) for edit in OF_RECORD),
        *((paper, edit, True) for edit in CONTRADICTIONS for paper in "cr"),
    ],
)
def test_an_edited_certificate_or_record_is_caught(copied: Files, paper: str, edit: str, sealed: bool) -> None:
    """To seal a contradiction again does not help."""
    _, path, certificate = copied
    bent = certificate if paper == "c" else kept(certificate)
    facts = json.loads(bent.read_text())
    OF_RECORD[edit](facts)
    assert refused(path, bent, facts | ({"seal": seal(facts)} if sealed else {}))


@pytest.mark.parametrize("extra", [{"attempts": []}, {"method": "auto"}, {"exposed": {}}, {"seconds": {}}])
def test_a_certificate_that_says_more_than_its_release_is_refused(copied: Files, extra: dict[str, Any]) -> None:
    _, path, certificate = copied
    facts = json.loads(certificate.read_text()) | extra
    certificate.write_text(json.dumps({**facts, "seal": seal(facts)}))
    with pytest.raises(InputError, match="which no certificate of a table has"):
        verify(path, certificate)


def test_certificate_and_record_are_not_taken_for_each_other(tmp_path: Path, copied: Files) -> None:
    _, path, certificate = copied
    with pytest.raises(InputError, match="a certificate is wanted"):
        shoal.verify(path, kept(certificate))
    with pytest.raises(InputError, match="a record is wanted"):
        shoal.verify(path, certificate, record=certificate)
    other = tmp_path / "other"
    other.mkdir()
    written(other, k=3)
    foreign = kept(other / "r.certificate.json")
    assert not shoal.verify(path, certificate, record=foreign).holds
    assert kept(certificate).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"release": 1, "policy": 1, "certificate": 1, "stars": 1}',
        "[" * 100_000,
        '{"release": 1, "release": 2}',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a":' * 60 + "1" + "}" * 60,
        '{"a": "\\ud800"}',
        '{"problem": "labels", "certificate": {"cost": 1, "lower_bound": 1}}',
    ],
)
def test_what_is_no_certificate_is_refused(copied: Files, text: str) -> None:
    _, path, certificate = copied
    record = kept(certificate).read_text()
    certificate.write_text(text)
    with pytest.raises(InputError, match="certificate"):
        shoal.verify(path, certificate)
    certificate.write_text(record)
    with pytest.raises(InputError, match="certificate"):
        shoal.verify(path, certificate)


@pytest.mark.parametrize("key", ["release", "policy", "certificate", "stars", "changed", "loss", "groups", "privacy"])
@pytest.mark.parametrize("value", [None, 99, "x", [1]])
def test_a_malformed_certificate_is_refused_or_fails(copied: Files, key: str, value: Any) -> None:
    _, path, certificate = copied
    for paper in (certificate, kept(certificate)):
        genuine = paper.read_text()
        paper.write_text(json.dumps(json.loads(genuine) | {key: value}))
        with contextlib.suppress(shoal.ShoalError):
            assert not verify(path, paper).holds
        paper.write_text(genuine)


def test_a_bound_above_the_cost_is_no_record(copied: Files) -> None:
    _, path, record = copied
    record = kept(record)
    facts = json.loads(record.read_text())
    facts["certificate"]["lower_bound"] = facts["certificate"]["cost"] + 1
    record.write_text(json.dumps(facts))
    with pytest.raises(CertificateError, match="outside"):
        verify(path, record)


def test_a_release_without_a_column_fails(copied: Files) -> None:
    _, path, record = copied
    pl.read_csv(path, infer_schema=False).drop("zip").write_csv(path)
    with pytest.raises(VerificationError, match="zip"):
        verify(path, record)


def test_an_identifier_put_back_is_caught(copied: Files) -> None:
    _, path, record = copied
    pl.read_csv(path, infer_schema=False).with_columns(name=pl.lit("Ann")).write_csv(path)
    assert ("identifiers", False) in [(name, holds) for name, holds, *_ in verify(path, record).findings]


def test_nothing_is_published_where_the_bytes_break_the_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = shoal.anonymize(source(tmp_path), identifiers=["name"], **ASKED)
    target = tmp_path / "r.csv"
    target.write_text("an older release")
    from shoal.publishing.tables import writing as files

    honest = files.store

    def spoil(frame: pl.DataFrame, path: Path, *more: Any) -> None:
        honest(frame, path, *more)
        path.write_text(path.read_text().replace("*", "01235", 1))

    monkeypatch.setattr(files, "store", spoil)
    with pytest.raises(VerificationError, match="stars in the file"):
        release.write(target)
    assert target.read_text() == "an older release"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.csv", "r.csv"]


LARGE = """
import sys
from shoal.cli import main
for name in ("r.csv", "r.csv.gz", "r.parquet", "r.xlsx", "r.sav", "r.dta"):
    sys.argv = ["shoal", "anonymize", "big.csv", "--quasi", "a", "--insensitive", "b", "--k", "2", "-o", name,
                "--certificate", f"{name}.json", "--json"]
    try:
        main()
    except SystemExit as left:
        print(left.code)
"""


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    lines = "".join(f"{i % 5},{i * 7919 % 1000003}\n" for i in range(30_000))
    (tmp_path / "big.csv").write_text("a,b\n" + lines)
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # noqa: E731 - largest file, bytes
    _, out, err = python("-c", LARGE, cwd=tmp_path, preexec_fn=small)
    said = out.splitlines()
    assert [json.loads(line)["status"] for line in said[::2]] == [2] * 6, err
    assert said[1::2] == ["2"] * 6
    assert all("could not be written, and is as it was" in line for line in err.splitlines() if line), err
    assert "Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["big.csv"]


WAITING = """
import sys, time
from shoal.engines import store as files
honest = files.store
def slow(*given):
    honest(*given)
    print("written", flush=True)
    time.sleep(3600)
files.store = slow
from shoal.cli import main
from tests.kept import kept, verify
sys.argv = ["shoal", "anonymize", "people.csv", "--quasi", "zip,age", "--k", "2", "-o", "r.csv", "--force",
    "--insensitive", "name,d,note", "--effort", "fast"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "term", "kill-9"])
def test_an_interrupted_write_leaves_no_half_release(tmp_path: Path, number: signal.Signals) -> None:
    before = source(tmp_path).read_bytes()
    (tmp_path / "r.csv").write_text("an older release")
    process = started("-c", WAITING, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate()
    assert (tmp_path / "r.csv").read_text() == "an older release"
    assert (tmp_path / "people.csv").read_bytes() == before
    left = sorted(p.name for p in tmp_path.iterdir() if p.name not in ("people.csv", "r.csv"))
    if number == signal.SIGKILL:
        assert [name[:7] for name in left] == [".shoal-"]
    else:
        assert left == []
        assert process.returncode in (130, 143)
        assert "no file is half written" in err


@pytest.mark.parametrize("kind", ["polars", "pandas", "duckdb"])
def test_releases_are_pickled_with_their_rows(kind, tmp_path):
    import duckdb

    frame = pl.DataFrame({"age": [20, 21, 22, 30, 31, 32] * 3, "d": list("abcabc") * 3})
    data = {"polars": frame, "pandas": frame.to_pandas(), "duckdb": duckdb.connect().from_arrow(frame.to_arrow())}[kind]
    made = shoal.anonymize(data, quasi_identifiers=["age"], sensitive=["d"], k=3, effort="fast")
    again = pickle.loads(pickle.dumps(made))
    assert type(again.table) is type(made.table)
    assert again.audit.as_dict() == made.audit.as_dict()
    proof = kept(again.write(tmp_path / "r.csv"))
    assert verify(tmp_path / "r.csv", proof, frame).holds


def test_values_at_the_ends_of_their_types_are_published_reported_and_decoded(tmp_path: Path) -> None:
    days = [dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 6
    table = pl.DataFrame({"day": days, "size": [10**25, 10**25 + 1] * 6, "z": ["p", "q", "r"] * 4})
    for publish in ("stars", "ranges"):
        release = shoal.anonymize(table, quasi_identifiers=["day", "size", "z"], k=3, publish=publish, seed=1)
        assert release.report(tmp_path / "report.html").stat().st_size > 10_000
        drawn = release.sample(seed=1)
        assert drawn.height == release.numeric().height == 12
        assert drawn["size"].cast(pl.Float64).is_between(9e24, 2e25).all()


INF = float("inf")
EDGES: dict[str, tuple[list[float], bool]] = {  # numbers, and whether their distances are those of floats
    "too far apart": ([-1.7e308, 1.7e308, 0.0, 1.0], False),
    "all far": ([1.7e308, 1.6e308, 1.5e308, 1.0], True),
    "ends": ([-1.7976931348623157e308, 1.7976931348623157e308], False),
    "denormal": ([1e-322, 2e-322, 5e-324, 0.0], False),
    "denormal among others": ([1e-310, 1.0, 2.0, 3.0], True),
    "infinite": ([INF, -INF, 1.0, 2.0], False),
    "zeros": ([-0.0, 0.0, 1.0, 2.0], True),
    "beyond 2^53": ([2.0**53, 2.0**53 + 2, 2.0**63, 2.0**64], True),
    "integers": ([2**63 - 1, -(2**63), 0, 5], False),
    "at the limit": ([-1e150, 1e150, 1e-150, 0.0], True),
}
WAYS: dict[str, dict[str, Any]] = {
    "stars": {}, "ranges": {"publish": "ranges"}, "centers": {"publish": "centers"},
    "labels": {"publish": "hierarchy", "hierarchies": {"v": "labels"}},
    "cut": {"publish": "hierarchy", "hierarchies": {"v": "intervals"}},
    "built": {"publish": "hierarchy", "hierarchies": {"v": "intervals:1,10"}},
    "step": {"publish": "ranges", "range_step": {"v": 0.5}}, "top": {"publish": "ranges", "top": {"v": 2.5}},
    "mean risk": {"publish": "ranges", "max_average_risk": 0.2, "l": 2},
}  # fmt: skip


def _tried(data: Any, asked: dict[str, Any]) -> tuple[Any, str]:
    try:
        return shoal.anonymize(data, **asked, seed=1), ""
    except PolicyError as error:
        return None, str(error)


@pytest.mark.diagonal
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("edge", EDGES)
def test_numbers_at_the_edges_are_published_and_verified_or_refused_by_name(
    edge: str, way: str, tmp_path: Path
) -> None:
    """Without a warning; warnings are errors."""
    numbers, measured = EDGES[edge]
    frame = pl.DataFrame({"v": [numbers[i % len(numbers)] for i in range(24)], "z": ["p", "p", "q", "q"] * 6})
    frame = frame.with_columns(ill=pl.Series([*"abcd"] * 6))
    frame.write_csv(tmp_path / "t.csv")
    for data in (frame, tmp_path / "t.csv"):
        asked: dict[str, Any] = {"quasi_identifiers": ["v", "z"], "sensitive": ["ill"], "k": 3, "effort": "fast"}
        release, refused = _tried(data, asked | WAYS[way])
        if release is None:
            assert "'v'" in refused
            assert way in ("cut", "built", "step", "top")
            assert not measured or way in ("built", "step") or edge == "zeros"  # -0.0 and 0.0 are two texts of one
            continue
        record = release.write(tmp_path / "r.parquet")
        assert shoal.verify(tmp_path / "r.parquet", record, data).holds
        for internal in (False, True):
            release.report(tmp_path / "page.html", internal=internal)
        if isinstance(data, pl.DataFrame) and way in ("ranges", "centers"):
            told = [note for note in release.facts.notes if "too close together for floating point" in note]
            assert bool(told) is not measured
            assert not told or "column 'v'" in told[0]
        if way != "centers":
            shoal.decode(tmp_path / "r.parquet").sample(1)


@pytest.mark.parametrize("publish", ["stars", "ranges", "hierarchy"])
def test_stars_are_counted_as_they_stand_in_the_file(tmp_path: Path, publish: str) -> None:
    """A set of all values of a column is published as a star."""
    towns = ["Alm", "Bree", "Coll"] * 3
    table = pl.DataFrame({"town": towns, "age": [1, 2, 3] * 3, "work": ["a", "a", "b"] * 3})
    tree = {"town": [[town, "valley", "*"] for town in sorted(set(towns))]} if publish == "hierarchy" else {}
    release = shoal.anonymize(
        table, quasi_identifiers=table.columns, k=9, publish=publish, hierarchies=tree, effort="fast", seed=1
    )
    path = tmp_path / "r.csv"
    record = kept(release.write(path))
    assert path.read_text().count("*") == release.loss["stars"] == sum(release.facts.stars.values()) > 0
    assert verify(path, record, table, hierarchies=tree).holds
    forge(record, lambda facts: facts["loss"].update(stars=facts["loss"]["stars"] - 1))
    verdict = verify(path, record)
    assert {f.check for f in verdict.findings if not f.holds} >= ({"certificate"} if publish != "hierarchy" else set())
    assert not verify(path, record, table, hierarchies=tree).holds


def test_a_missing_value_may_hide_a_star_in_a_column_of_numbers_alone(tmp_path):
    """A text that is missing in the file is missing in the table: stars of texts are written as stars."""
    towns, sizes = ["a"] * 3 + [None] * 3, [1] * 6
    frame = pl.DataFrame({"age": [30, 30, 30, 41, 52, 63], "size": sizes, "town": towns})
    asked = {"quasi_identifiers": frame.columns, "k": 3, "publish": "stars", "numeric_stars": "null"}
    release = shoal.anonymize(frame, **asked, effort="fast", seed=1)
    release.write(tmp_path / "r.parquet")
    held = count_release(tmp_path / "r.parquet", frame.columns)
    assert held.cells["town"].null_count() == held.cells["age"].null_count() == 1
    assert blanks(release, held) == ["age"]
