"""Without the original but with the hierarchies: classes that stand in a release are theirs, and lose what is said."""

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.judge.recodings.levels import GENERATED
from shoal.judge.tables.large import hash_of
from tests.kept import holding, kept, resealed, verify

WORK = [
    ["clerk", "paid"],
    ["smith", "paid"],
    ["nurse", "public"],
    ["judge", "public"],
    ["mayor", "public"],
    ["none", "unpaid"],
]
MIXED = [
    ["a", "a"],
    ["b", "a"],
    ["c", "c"],
    ["d", "e"],
    ["f", "e"],
]  # a is a value and a class, c is both and one value


def drawn(seed: int, tree: list[list[str]]) -> pl.DataFrame:
    rng = random.Random(seed)
    rows = [(rng.choice(tree)[0], rng.choice("fm"), rng.choice("xyz")) for _ in range(60)]
    return pl.DataFrame(rows, schema=["work", "sex", "d"], orient="row")


def made(folder: Path, seed: int, tree: list[list[str]], ending: str, **more: Any) -> tuple[Path, Path]:
    frame = drawn(seed, tree)
    asked: dict[str, Any] = {
        "k": 4,
        "publish": "hierarchy",
        "hierarchies": {"work": tree},
        "effort": "fast",
        "seed": seed,
    }
    out = folder / f"r{ending}"
    release = shoal.anonymize(frame, quasi_identifiers=["work", "sex"], sensitive=["d"], **(asked | more))
    return out, release.write(out)


def bent(out: Path, record: Path, old: str, new: str) -> None:
    """Every ``old`` of the column made ``new``, and the certificate sealed again."""
    frame = pl.read_csv(out).with_columns(pl.col("work").replace(old, new))
    frame.write_csv(out)
    for paper in (record, kept(record)):
        about = json.loads(paper.read_text())["release"]
        resealed(paper, release=about | {"sha256": hash_of(out), "bytes": out.stat().st_size})


def wrong(out: Path, record: Path, tree: Any) -> set[str]:
    verdict = verify(out, record, hierarchies={"work": tree})
    assert verdict.holds == all(f.holds for f in verdict.findings)
    return {f.check for f in verdict.findings if not f.holds}


@pytest.mark.diagonal
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx", ".sav", ".dta"])
@pytest.mark.parametrize(
    "more", [{}, {"global_recoding": True}, {"coarsen": "auto"}, {"star": "#"}, {"weights": {"work": 3.0}}]
)
@pytest.mark.parametrize("tree", [WORK, MIXED])
def test_a_genuine_release_has_its_classes(
    tmp_path: Path, tree: list[list[str]], more: dict[str, Any], ending: str
) -> None:
    for seed in range(4):
        out, record = made(tmp_path, seed, tree, ending, **more)
        verdict = holding(verify(out, record, hierarchies={"work": tree}))
        assert {"cells", "loss"} <= {f.check for f in verdict.findings if f.how == "recomputed"}
        verdict = holding(verify(out, kept(record), hierarchies={"work": tree}))
        assert {"classes of work", "loss of the classes"} <= {f.check for f in verdict.findings}


@pytest.mark.parametrize("tree", [WORK, MIXED])
def test_beside_the_original_the_loss_is_counted_by_leaves(tmp_path: Path, tree: list[list[str]]) -> None:
    out, record = made(tmp_path, 1, tree, ".csv", k=9)
    assert set(pl.read_csv(out)["work"]) & {row[1] for row in tree}, "no class is shown"
    verdict = holding(verify(out, kept(record), drawn(1, tree), hierarchies={"work": tree}))
    assert {"loss, ncp", "cost"} <= {f.check for f in verdict.findings}


@pytest.mark.parametrize(
    ("new", "seen"),
    [
        ("unpaid", {"loss"}),  # a class of another branch, with fewer values under it
        ("mayor", {"cells", "loss"}),  # a value where a class was
        ("nobody", {"loss"}),  # what the hierarchy does not hold may stand for anything
    ],
)
def test_a_class_made_another_is_seen(tmp_path: Path, new: str, seen: set[str]) -> None:
    out, record = made(tmp_path, 1, WORK, ".csv", k=9)
    assert "public" in pl.read_csv(out)["work"]
    assert not wrong(out, record, WORK)
    bent(out, record, "public", new)
    assert verify(out, record).holds  # without the hierarchy nothing tells
    assert wrong(out, record, WORK) == seen
    assert wrong(out, kept(record), WORK) & {"classes of work", "loss of the classes"}


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("a .. c and 1 more", "abc"),
        ("a, d", "ad"),
        ("a .. c and 1 more (group 2)", "abc"),
        ("b (group 3)", "b"),  # a group of one value, where another has its name
        ("a, d (group 2)", "ad"),
        ("a, d (group x)", None),
        ("x (group 2)", None),
        ("d (group 1)", None),  # is a value itself
        ("a, d (group 1)", "ad1"),  # the values a and d, or a and "d (group 1)"
        ("c, d (group 1) (group 2)", "c1"),
        ("a .. x and 1 more", None),
        ("a", None),
        ('"" .. b and 1 more', "abé"),  # the empty text, shown in quotes
        ('a .. "missing" and 4 more', "abcd1M"),
        ('"", "missing"', "éM"),
        ('"missing"', "M"),
        ("missing", None),  # is a value itself
        ('"" (group 2)', "é"),
    ],
)
def test_names_of_groups_of_labels_are_read_back(name: str, held: str | None) -> None:
    texts = [*"abcd", "", "d (group 1)", "missing", None]
    values = SimpleNamespace(texts=texts, by_text={text: i for i, text in enumerate(texts) if text is not None})
    found = GENERATED["labels"](name, values)
    short = {"": "é", "d (group 1)": "1", "missing": "M"}
    assert "".join(short.get(texts[i], texts[i]) for i in found) == (held or "")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx"])
@pytest.mark.parametrize("missing", ["category", "filled"])
@pytest.mark.parametrize(
    "values", [["", "a", " "], ["missing", "a", "b"], ["missing", None, "a"], ["missing", "", '""']]
)
def test_labels_that_quote_a_value_verify(tmp_path: Path, values: list[str], missing: str, ending: str) -> None:
    frame = pl.DataFrame({"work": values * 4, "d": list("xyzz") * 3})
    asked: dict[str, Any] = {"quasi_identifiers": ["work"], "sensitive": ["d"], "k": 6, "star": "#", "effort": "fast"}
    release = shoal.anonymize(frame, publish="hierarchy", hierarchies={"work": "labels"}, missing=missing, **asked)
    assert any('"' in text for text in release.table["work"].drop_nulls()) or None in values
    record = release.write(tmp_path / f"r{ending}")
    holding(verify(tmp_path / f"r{ending}", record, frame, hierarchies={"work": "labels"}))


def test_classes_that_are_built_lose_by_the_values_under_them(tmp_path: Path) -> None:
    frame = drawn(1, [[f"{a}{b}{c}"] for a in "01" for b in "012" for c in "01"])
    tree = shoal.Hierarchy.prefixes([2, 1], "")
    asked: dict[str, Any] = {"quasi_identifiers": ["work", "sex"], "sensitive": ["d"], "effort": "fast", "seed": 1}
    release = shoal.anonymize(frame, k=9, publish="hierarchy", hierarchies={"work": tree}, **asked)
    record = release.write(tmp_path / "r.csv")
    assert {len(text) for text in release.table["work"] if text != "*"} & {1, 2}, "no class is shown"
    verdict = holding(verify(tmp_path / "r.csv", kept(record), frame, hierarchies={"work": tree}))
    assert {"loss, ncp", "cost"} <= {f.check for f in verdict.findings}
