"""A second release: audit beside an earlier one, anonymize told of one; files and frames, command and Python."""

import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import shoal
from shoal.errors import InputError, PolicyError, VerificationError
from tests.commands import run

QUASI = ["age", "town"]
SETTINGS = {"quasi_identifiers": QUASI, "sensitive": ["flu"], "k": 3, "l": 2, "effort": "fast", "seed": 1}


def month(start: int, n: int = 60) -> pl.DataFrame:
    """People start..start+n, alike from month to month; ages and towns follow from their number."""
    at = range(start, start + n)
    return pl.DataFrame(
        {
            "id": list(at),
            "age": [20 + i * 7 % 23 for i in at],
            "town": ["abcd"[i * 5 % 11 % 4] for i in at],
            "flu": ["pqrs"[i * 3 % 7 % 4] for i in at],
        }
    )


@pytest.fixture
def months(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    month(0).write_csv(one)
    month(6).write_csv(two)
    shoal.anonymize(one, **SETTINGS, identifiers=["id"], publish="ranges").write(tmp_path / "one.release.csv")
    return one, two


def test_frames_and_files_and_the_command_give_one_answer(months: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = months
    release = shoal.anonymize(two, **SETTINGS, identifiers=["id"], publish="ranges")
    release.write(tmp_path / "two.release.csv")
    how = {"quasi_identifiers": QUASI, "sensitive": ["flu"], "k": 3, "l": 2, "person": "id"}
    by_files = shoal.audit(
        tmp_path / "two.release.csv", **how, earlier=tmp_path / "one.release.csv", original=two, earlier_originals=one
    )
    by_frames = shoal.audit(
        pl.read_csv(tmp_path / "two.release.csv"),
        **how,
        earlier=[pd.read_csv(tmp_path / "one.release.csv")],
        original=pd.read_csv(two),
        earlier_originals=[pl.read_csv(one)],
    )
    assert by_files.composition == by_frames.composition
    (told,) = by_files.composition
    assert told.people == 54
    assert (told.sensitive, told.k, told.l) == ("flu", 3, 2)
    assert told.known is not None
    done = run(
        "audit", tmp_path / "two.release.csv", "--quasi", "age,town", "--sensitive", "flu", "--k", 3, "--l", 2,
        "--person", "id", "--with", tmp_path / "one.release.csv", "--original", two, "--with-original", one, "--json",
    )  # fmt: skip
    assert done.facts["composition"] == json.loads(json.dumps([told.as_dict()]))


@pytest.mark.parametrize(("asked", "k", "l"), [({"k": 4, "l": 5}, 4, 5), ({"k": 4}, 4, None), ({}, None, None)])
def test_composition_is_counted_for_what_is_asked_else_for_what_is_reached(
    months: tuple[Path, Path], tmp_path: Path, asked: dict[str, int], k: int | None, l: int | None
) -> None:
    release = tmp_path / "one.release.csv"
    found = shoal.audit(
        release, quasi_identifiers=QUASI, sensitive=["flu"], person="id", earlier=release, original=months[0],
        earlier_originals=months[0], **asked,
    )  # fmt: skip
    reached = found.sensitive["flu"].l
    assert reached is not None
    assert reached not in (4, 5)
    assert [(told.k, told.l) for told in found.composition] == [(k or found.k, l or reached)]


@pytest.mark.parametrize("ending", [".parquet", ".xlsx", ".tsv", ".csv.gz"])
def test_an_earlier_release_is_read_in_every_format(months: tuple[Path, Path], tmp_path: Path, ending: str) -> None:
    """A certificate states the separator of a CSV, also beside a file that is none."""
    one, two = months
    with_semicolons = tmp_path / "semicolons.csv"
    pl.read_csv(one).write_csv(with_semicolons, separator=";")
    how = {**SETTINGS, "identifiers": ["id"], "publish": "ranges"}
    old = tmp_path / f"old{ending}"
    shoal.anonymize(with_semicolons, **how).write(old)
    audited = {"quasi_identifiers": QUASI, "sensitive": ["flu"], "person": "id", "k": 3, "l": 2}
    (found,) = shoal.audit(old, **audited, earlier=old, original=one, earlier_originals=one).composition
    assert found.people == 60
    assert shoal.anonymize(two, **how, after=old, force_composition=True).composition


def test_an_audit_without_an_earlier_release_says_nothing_of_composition(months: tuple[Path, Path]) -> None:
    found = shoal.audit(months[0], quasi_identifiers=QUASI)
    assert found.composition == ()
    assert "composition" not in found.as_dict()
    with pytest.raises(PolicyError, match="earlier"):
        shoal.audit(months[0], quasi_identifiers=QUASI, original=months[1])


def test_another_number_of_rows_asks_for_the_earlier_original(tmp_path: Path) -> None:
    one, two = month(0, 40), month(6)
    old = shoal.anonymize(one.drop("id"), **SETTINGS)
    new = shoal.anonymize(two.drop("id"), **SETTINGS)
    with pytest.raises(InputError, match="earlier_originals"):
        shoal.audit(new.table, quasi_identifiers=QUASI, sensitive=["flu"], earlier=old, original=two, person="id")


def test_after_counts_and_refuses_and_can_be_forced(months: tuple[Path, Path], tmp_path: Path) -> None:
    two = months[1]
    how = {**SETTINGS, "identifiers": ["id"], "publish": "ranges", "after": tmp_path / "one.release.csv"}
    with pytest.raises(VerificationError, match="nothing was published"):
        shoal.anonymize(two, **how)
    release = shoal.anonymize(two, **how, force_composition=True)
    (told,) = release.composition
    assert told.placed == ("assumed", "unasked")
    assert told.share > 0.01
    assert shoal.anonymize(two, **how, max_composition=1.0).composition[0].people == told.people
    with pytest.raises(PolicyError, match="max_composition"):
        shoal.anonymize(two, **how, max_composition=7)


def test_the_same_release_again_is_no_composition(months: tuple[Path, Path], tmp_path: Path) -> None:
    how = {**SETTINGS, "identifiers": ["id"], "publish": "ranges"}
    again = shoal.anonymize(months[0], **how, after=[tmp_path / "one.release.csv"])
    assert again.composition[0].share == 0
    assert shoal.anonymize(month(0).drop("id"), **SETTINGS, after=again, max_composition=1).composition


def test_the_command_refuses_with_the_flag_that_forces(months: tuple[Path, Path], tmp_path: Path) -> None:
    two, old = months[1], tmp_path / "one.release.csv"
    certificate, out = tmp_path / "one.release.certificate.json", tmp_path / "new.csv"
    said = ["anonymize", two, "--policy", certificate, "-o", out, "--after", old]
    done = run(*said).refused(1, "--force-composition")
    assert not out.exists()
    done = run(*said, "--force-composition").ok()
    assert "together with the earlier releases" in done.stderr
    assert out.exists()


def test_a_policy_that_is_a_certificate_asks_before_a_second_release(months: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, out = tmp_path / "one.release.certificate.json", tmp_path / "n.csv"
    said = ["anonymize", months[1], "--policy", certificate, "-o", out]
    done = run(*said).refused(1, "together with the earlier releases")
    assert not out.exists()
    done = run(*said, "--force-composition").ok()
    assert "--after one.release.csv" in done.said
    assert run("anonymize", months[0], "--policy", certificate, "-o", tmp_path / "same.csv").returncode == 0
    (tmp_path / "one.release.csv").unlink()  # nothing is left to set the new release against
    done = run("anonymize", months[1], "--policy", certificate, "-o", tmp_path / "m.csv").ok()
    assert "--after RELEASE" in done.said


def test_a_certificate_whose_name_is_a_pattern_asks_too(months: tuple[Path, Path], tmp_path: Path) -> None:
    shoal.anonymize(months[0], **SETTINGS, identifiers=["id"], publish="ranges").write(tmp_path / "one[1].csv")
    said = ["anonymize", months[1], "--policy", tmp_path / "one[1].certificate.json", "-o", tmp_path / "n.csv"]
    run(*said).refused(1, "together with the earlier releases")
    assert not (tmp_path / "n.csv").exists()
    assert "add --after 'one[1].csv'" in run(*said, "--force-composition").ok().said


def test_a_series_stands_for_all_its_parts(tmp_path: Path) -> None:
    asked = {**SETTINGS, "publish": "ranges"}
    policy = shoal.Policy(**{n: v for n, v in asked.items() if n != "seed"})
    series = shoal.Series.start(tmp_path / "s", policy, mode="again")
    with pytest.raises(InputError, match="no part"):
        shoal.anonymize(month(6), **asked, identifiers=["id"], after=tmp_path / "s")
    for start in (0, 3):
        series.add(month(start), person="id")
    with pytest.raises(VerificationError, match="nothing was published"):
        shoal.anonymize(month(6), **asked, identifiers=["id"], after=tmp_path / "s")
    how = {**asked, "identifiers": ["id"], "force_composition": True}
    by_folder = shoal.anonymize(month(6), **how, after=tmp_path / "s").composition
    parts = [tmp_path / "s" / f"000{i}" / "release.csv" for i in (1, 2)]
    assert [c.rows for c in by_folder] == [c.rows for c in shoal.anonymize(month(6), **how, after=parts).composition]
    assert len(by_folder[0].rows) == 3
    month(6).write_csv(tmp_path / "m.csv")
    (tmp_path / "p.toml").write_text(
        'quasi_identifiers = ["age", "town"]\nsensitive = ["flu"]\nidentifiers = ["id"]\n'
        'k = 3\nl = 2\npublish = "ranges"\n'
    )
    done = run("anonymize", tmp_path / "m.csv", "--policy", tmp_path / "p.toml", "--after", tmp_path / "s")
    assert done.returncode == 1, done.said


def test_no_value_of_the_table_stands_in_a_refusal(months: tuple[Path, Path], tmp_path: Path) -> None:
    how = {**SETTINGS, "identifiers": ["id"], "publish": "ranges", "after": tmp_path / "one.release.csv"}
    with pytest.raises(VerificationError) as refused:
        shoal.anonymize(months[1].rename(tmp_path / "three.csv"), **how)
    for row in month(6).rows():
        assert f" {row[1]}, {row[2]}" not in str(refused.value)


def test_a_policy_that_is_a_series_asks_before_another_release(tmp_path: Path) -> None:
    policy = shoal.Policy(**{n: v for n, v in SETTINGS.items() if n != "seed"}, publish="ranges")
    series = shoal.Series.start(tmp_path / "s", policy, mode="again")
    month(6).write_csv(tmp_path / "m.csv")
    said = ["anonymize", tmp_path / "m.csv", "--policy", tmp_path / "s" / "series.json", "--identifiers", "id", "-o"]
    assert run(*said, tmp_path / "none.csv").returncode == 0  # no part yet
    series.add(month(0), person="id")
    done = run(*said, tmp_path / "n.csv").refused(1, "together with the earlier releases")
    done = run(*said, tmp_path / "n.csv", "--force-composition").ok()
    assert "add --after s." in done.said
