"""A report made later, from a release and its certificate: what it can know agrees with the report made at once."""

import random
from pathlib import Path

import polars as pl
import pytest

import shoal
from tests.commands import run

DRAWN = random.Random(3)
FRAME = pl.DataFrame(
    {
        "age": [20 + DRAWN.randrange(30) for _ in range(200)],
        "town": [DRAWN.choice(["Ulm", "Bonn", "Kiel"]) for _ in range(200)],
        "ill": [("flu", "gout", "asthma")[i % 3] for i in range(200)],
        "note": ["a", "b"] * 100,
    }
)
ASKED = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "k": 4, "l": 2, "effort": "fast", "seed": 1}
WAYS = {
    "stars": {},
    "ranges": {},
    "hierarchy": {"hierarchies": {"age": "intervals:5,10", "town": "stars"}},
    "centers": {},
}
AGREE = ("policy", "hierarchies", "least", "at_risk", "made_by")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("publish", WAYS)
def test_what_it_says_is_what_the_report_said(tmp_path, publish, ending):
    release = shoal.anonymize(FRAME, publish=publish, **ASKED, **WAYS[publish])
    path = tmp_path / f"r{ending}"
    beside = release.write(path)
    then, found = release.public_figures(), shoal.written(path, beside)
    now = found.figures()
    assert set(now) - set(then) == {"checked"}
    assert set(then) <= set(now)
    for name in AGREE:
        assert now[name] == then[name], name
    for name in ("classes", "smallest_class", "risk", "sensitive", "sizes", "checks"):
        assert now["audit"][name] == then["audit"][name]
    for old, new in zip(then["columns"], now["columns"], strict=True):
        for name in ("name", "after", "changed", "weight", "ceiling"):
            assert old[name] == new[name], name
        assert all(b["before"] is None for b in new["distribution"])
        if publish in ("stars", "ranges"):
            assert [(b["label"], b["after"]) for b in old["distribution"]] == [
                (b["label"], b["after"]) for b in new["distribution"]
            ]
    assert then["written"].items() <= now["written"].items()
    assert now["release"]["certificate"] == then["release"]["certificate"]
    text = found.report(tmp_path / "later.html").read_text(encoding="utf-8")
    assert "made later, from the release and its certificate alone" in text
    assert now["written"]["sha256"] in text
    assert "Counts before" not in text
    assert ">None<" not in text.split("<script")[0]


def test_a_release_that_does_not_hold_and_other_answers_have_none(tmp_path):
    release = shoal.anonymize(FRAME, **ASKED)
    beside = release.write(tmp_path / "r.csv")
    lines = (tmp_path / "r.csv").read_text().splitlines()
    (tmp_path / "r.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(shoal.VerificationError, match="does not hold"):
        shoal.written(tmp_path / "r.csv", beside).report(tmp_path / "later.html")
    sizes = pl.DataFrame({"n": ["a", "b", "c"], "c": [3, 4, 9]})
    made = shoal.release(shoal.labels.cover(sizes["c"], 5), sizes, label="n", count="c")
    made.write(tmp_path / "l.csv")
    with pytest.raises(shoal.InputError, match="of any other answer when it is written"):
        shoal.written(tmp_path / "l.csv", tmp_path / "l.certificate.json").report(tmp_path / "later.html")
    assert not Path(tmp_path / "later.html").exists()


def test_the_command(tmp_path):
    shoal.anonymize(FRAME, **ASKED).write(tmp_path / "r.csv")
    words = ["report", "r.csv", "r.certificate.json"]
    assert run(*words, cwd=tmp_path).returncode == 0
    assert (tmp_path / "r.report.html").is_file()
    run(*words, cwd=tmp_path).refused(4, "say --force")  # what is there is not replaced
