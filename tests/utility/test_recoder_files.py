"""A recoder as a file, a budget of starred rows, values never seen, several tables; at the command line too."""

import json
import random
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import shoal
from tests.commands import run
from tests.utility.test_recoder import TREES, people

ZIPS = [[z, z[:3] + "**", z[:2] + "***", "*"] for z in ("10115", "10117", "80331", "80333")]


def rows_tree(path: Path, rows: list[list[str]]) -> Path:
    path.write_text("\n".join(";".join(row) for row in rows) + "\n")
    return path


def by_rows(tmp_path: Path, **more: Any) -> shoal.Recoder:
    ages = [[str(a), f"{a // 10 * 10}-{a // 10 * 10 + 9}", "*"] for a in range(20, 60)]
    trees = {"age": rows_tree(tmp_path / "age.csv", ages), "zip": rows_tree(tmp_path / "zip.csv", ZIPS)}
    asked = {"insensitive": ["ill"], "k": 5, "hierarchies": trees, **more}
    recoder = shoal.Recoder(["age", "zip"], **asked).fit(people(800, 1))
    recoder.levels_ = {"age": 1, "zip": 1}
    return recoder


def test_saved_and_read_it_gives_the_same(tmp_path: Path) -> None:
    other = people(900, 5)
    for number, trees in enumerate(
        (
            TREES,
            {"age": shoal.Hierarchy.intervals([[30, 45], [45]]), "zip": shoal.Hierarchy.prefixes([3, 2], fill="")},
            {"age": "intervals:10", "zip": shoal.Hierarchy.from_rows([row[:-1] for row in ZIPS])},
            None,
        )
    ):
        asked = {"k": 5, "insensitive": ["ill"], "max_suppressed": 0.2, "max_level": {}, "hierarchies": trees}
        recoder = shoal.Recoder(["age", "zip"], **asked).fit(people(800, 1))
        path = recoder.save(tmp_path / f"r{number}.toml")
        again = shoal.Recoder.read(path)
        assert again.levels_ == recoder.levels_
        assert again.columns_ == recoder.columns_
        assert again.transform(other).equals(recoder.transform(other))
        again.save(tmp_path / f"again{number}.toml")
        assert shoal.Recoder.read(tmp_path / f"again{number}.toml").transform(other).equals(recoder.transform(other))


def test_a_saved_recoder_holds_no_row_and_needs_none_of_the_files_it_came_from(tmp_path: Path) -> None:
    recoder = by_rows(tmp_path)
    (tmp_path / "out").mkdir()
    path, own = recoder.save(tmp_path / "out" / "recoder.toml"), recoder.transform(people(900, 5))
    (tmp_path / "age.csv").unlink()
    (tmp_path / "zip.csv").unlink()
    assert shoal.Recoder.read(path).transform(people(900, 5)).equals(own)
    assert sorted(p.name for p in path.parent.iterdir()) == ["recoder.age.csv", "recoder.toml", "recoder.zip.csv"]
    assert not {"flu", "gout"} & set(path.read_text().split('"'))
    with pytest.raises(shoal.PolicyError, match="exists already"):
        recoder.save(path, overwrite=False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("recoder = 1", "recoder = 2", "format 1"),
        ("recoder = 1", "recoder = 1\nkk = 3", "kk"),
        ("age = 1", "age = 9", "no level of 'age'"),
        ("recoder = 1", "recoder : 1", "not TOML"),
    ],
)
def test_a_file_that_is_no_recoder_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = by_rows(tmp_path).save(tmp_path / "recoder.toml")
    text = path.read_text()
    assert tomllib.loads(text)["levels"] == {"age": 1, "zip": 1}
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(shoal.PolicyError, match=said):
        shoal.Recoder.read(path)
    with pytest.raises(shoal.PolicyError, match="no recoder"):
        shoal.Recoder.read(tmp_path / "none.toml")


def test_rows_in_small_groups_are_starred_within_the_budget(tmp_path: Path) -> None:
    few = people(400, 3).with_columns(age=pl.when(pl.int_range(400) < 2).then(55).otherwise(pl.col("age").clip(20, 49)))
    few = few.with_columns(zip=pl.when(pl.int_range(400) < 2).then(pl.lit("80331")).otherwise("zip"))
    with pytest.raises(shoal.InfeasibleError, match=r"2 of 400 rows .* max_suppressed=0\.\d+ would pass") as refused:
        by_rows(tmp_path).transform(few)
    need = float(str(refused.value).split("max_suppressed=")[1].split()[0])
    with pytest.raises(shoal.InfeasibleError, match="may be starred whole"):
        by_rows(tmp_path, max_suppressed=need - 0.0025).transform(few)
    recoder = by_rows(tmp_path, max_suppressed=need)
    out = recoder.transform(few)
    groups = Counter(out.select("age", "zip").rows())
    assert min(groups.values()) >= 5
    assert out["age"][:2].to_list() == out["zip"][:2].to_list() == ["*", "*"]
    assert groups["*", "*"] <= need * 400


def test_the_level_named_in_a_refusal_passes(tmp_path: Path) -> None:
    few = people(400, 3).with_columns(age=pl.when(pl.int_range(400) < 3).then(55).otherwise(pl.col("age").clip(20, 49)))
    recoder = by_rows(tmp_path)
    with pytest.raises(shoal.InfeasibleError, match=r"level \d of '\w+' would pass") as refused:
        recoder.transform(few)
    level, name = str(refused.value).split("level ")[1].split(" would")[0].split(" of ")
    path = recoder.save(tmp_path / "recoder.toml")
    text = path.read_text()
    key = name.strip("'")
    path.write_text(text.replace(f"{key} = {recoder.levels_[key]}", f"{key} = {level}", 1))
    out = shoal.Recoder.read(path).transform(few)
    assert min(Counter(out.select("age", "zip").rows()).values()) >= 5


def test_values_never_seen_take_the_nearest_class_or_are_starred(tmp_path: Path) -> None:
    recoder = by_rows(tmp_path, max_suppressed=0.05)
    table = people(1000, 7)
    at = pl.int_range(1000)
    odd = table.with_columns(
        age=pl.when(at < 3).then(63).otherwise("age"),  # nearest number: 59
        zip=pl.when(at == 5).then(pl.lit(" 10115")).when((at >= 10) & (at < 20)).then(pl.lit("Ulm")).otherwise("zip"),
    )
    release = recoder.apply(odd, keep_order=True)
    out = release.table
    assert out["age"][:3].to_list() == ["50-59"] * 3
    assert out["zip"][5] == "101**"
    assert out[10:20].select("age", "zip").rows() == [("*", "*")] * 10
    assert set(out["zip"]) <= {"101**", "803**", "*"}
    notes = " ".join(release.facts.notes)
    assert "3 rows of 'age' hold values that the hierarchy lacks" in notes
    assert "10 rows of 'zip' hold values that no class of its hierarchy is near" in notes
    assert "Ulm" not in notes
    with pytest.raises(shoal.InfeasibleError, match="10 of 1,000 rows"):
        by_rows(tmp_path).apply(odd)


def test_a_new_value_of_a_column_published_as_it_is_never_stands_for_another(tmp_path: Path) -> None:
    tree = rows_tree(tmp_path / "n.csv", [[str(n), "low" if n < 5 else "high", "*"] for n in range(10)])
    table = pl.DataFrame({"n": [n for n in range(10) for _ in range(20)]})
    recoder = shoal.Recoder(["n"], k=5, hierarchies={"n": tree}, max_suppressed=0.2).fit(table)
    assert recoder.levels_ == {"n": 0}
    out = recoder.transform(pl.concat([table, pl.DataFrame({"n": [11] * 6})]))
    assert out["n"].to_list()[-6:] == [None] * 6
    assert set(out["n"].to_list()) == {*range(10), None}


def test_several_tables_each_meet_the_models(tmp_path: Path) -> None:
    tables = [people(rows, seed) for rows, seed in ((1500, 1), (90, 2), (400, 3))]
    alone = shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES, insensitive=["ill"]).fit(tables[0])
    with pytest.raises(shoal.InfeasibleError):
        alone.transform(tables[1])
    both = shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES, insensitive=["ill"]).fit(tables)
    for table in tables:
        assert min(Counter(both.transform(table).select("age", "zip").rows()).values()) >= 5
    for name, level in both.levels_.items():
        if not level:
            continue
        lower = shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES, insensitive=["ill"]).fit(tables[0])
        lower.levels_ = {**both.levels_, name: level - 1}
        with pytest.raises(shoal.InfeasibleError):
            [lower.transform(table) for table in tables]


@pytest.mark.slow
def test_several_tables_that_may_star_rows_find_levels_where_there_are_any() -> None:
    """Against all levels: at the highest that one of two tables needs, one may miss the models, as too few rows are
    left over to be starred together, or all are starred."""
    found, above = 0, 0
    for seed in range(3, 12):
        tables = [drawn_alike(seed), drawn_alike(1000 + seed)]
        trees = {"age": "intervals:5,10,20", "zip": "prefixes:1"}
        asked = {"sensitive": ["ill"], "k": 3, "l": 2, "hierarchies": trees, "max_suppressed": 0.1, "effort": "fast"}
        try:
            alone = [shoal.Recoder(["age", "zip"], **asked).fit(table) for table in tables]
        except shoal.InfeasibleError:
            continue
        every = {(age, area) for age in range(5) for area in range(3) if meet(alone[0], tables, age, area)}
        try:
            both = shoal.Recoder(["age", "zip"], **asked).fit(tables)
        except shoal.InfeasibleError:
            assert not every
            continue
        age, area = both.levels_["age"], both.levels_["zip"]
        assert (age, area) in every
        assert every.isdisjoint({(age - 1, area), (age, area - 1)})
        highest = tuple(max(one.levels_[name] for one in alone) for name in ("age", "zip"))
        found, above = found + 1, above + (highest not in every)
    assert found > 2
    assert above > 1


def meet(recoder: shoal.Recoder, tables: list[pl.DataFrame], age: int, area: int) -> bool:
    """Whether all tables meet the models at these levels."""
    recoder.levels_ = {"age": age, "zip": area}
    try:
        return all(recoder.apply(table).audit.passes for table in tables)
    except shoal.InfeasibleError:
        return False


def drawn_alike(seed: int) -> pl.DataFrame:
    rng = random.Random(seed)
    rows = [(rng.choice(AGES), rng.choice(("11", "12", "21", "22", "31")), rng.choice("aaabbbcd")) for _ in range(30)]
    return pl.DataFrame(rows, schema=["age", "zip", "ill"], orient="row")


AGES = (31, 33, 36, 38, 52, 57)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_is_applied_is_a_release_like_any_other(tmp_path: Path, form: str) -> None:
    recoder = by_rows(tmp_path, max_suppressed=0.02)
    other = people(900, 5)
    release = recoder.apply(other)
    assert release.audit.k >= 5
    release.write(tmp_path / f"out.{form}")
    verdict = shoal.verify(tmp_path / f"out.{form}", original=other)
    assert verdict.holds, str(verdict)
    assert json.loads((tmp_path / "out.certificate.json").read_text())["smallest_group"] >= 5
    frame = recoder.apply(other.to_pandas(), keep_order=True).table
    assert isinstance(frame, pd.DataFrame)
    assert pl.from_pandas(frame).equals(recoder.transform(other))


def test_after_counts_what_two_applications_tell(tmp_path: Path) -> None:
    recoder = by_rows(tmp_path)
    first = recoder.apply(people(900, 5))
    again = recoder.apply(people(900, 5), after=[first])
    assert again.composition[0].sensitive is None


def test_fit_and_apply_at_the_command_line(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    people(800, 1).write_csv(one)
    people(900, 5).write_csv(two)
    made = run(
        "fit", one, "-o", tmp_path / "recoder.toml", "--quasi", "age,zip", "--k", 5, "--hierarchy",
        "age=intervals:5,10,20,40", "--hierarchy", "zip=prefixes:3,2", "--insensitive", "ill", "--json",
    )  # fmt: skip
    assert made.facts["levels"] == shoal.Recoder.read(tmp_path / "recoder.toml").levels_
    done = run("apply", tmp_path / "recoder.toml", two, "-o", tmp_path / "out.csv", "--json")
    assert done.facts["smallest_group"] >= 5
    own = shoal.Recoder.read(tmp_path / "recoder.toml").transform(two)
    shown = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert Counter(shown.rows()) == Counter(own.cast(pl.String).rows())
    assert shoal.verify(tmp_path / "out.csv", original=two).holds
    assert run("apply", tmp_path / "recoder.toml", two, "-o", tmp_path / "out.csv").returncode == 4
    few = people(7, 2)
    few.write_csv(two)
    run("apply", tmp_path / "recoder.toml", two, "-o", tmp_path / "few.csv").refused(3, "of 7 rows")
    assert not (tmp_path / "few.csv").exists()


def test_many_tables_never_show_a_small_group() -> None:
    rng = np.random.default_rng(4)
    recoder = shoal.Recoder(["age", "zip"], k=4, l=2, sensitive=["ill"], hierarchies=TREES, max_suppressed=0.3).fit(
        people(500, 1)
    )
    came = 0
    for seed in range(12):
        table = people(int(rng.integers(60, 600)), seed + 50)
        try:
            out = recoder.transform(table)
        except shoal.InfeasibleError:
            continue
        came += 1
        for _, group in out.group_by("age", "zip"):
            held = Counter(group["ill"].to_list())
            assert group.height >= 4
            assert 2 * max(held.values()) <= group.height
    assert came >= 4


def test_identifiers_are_left_out_where_a_table_has_them(tmp_path: Path) -> None:
    named = people(800, 1).with_columns(name=pl.Series([f"P{i}" for i in range(800)]))
    recoder = shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES, identifiers=["name"], insensitive=["ill"]).fit(
        named
    )
    assert "name" not in recoder.columns_
    for other in (people(900, 5), people(900, 5).with_columns(name=pl.Series([f"Q{i}" for i in range(900)]))):
        out = recoder.transform(other)
        assert out.columns == recoder.columns_
    assert recoder.fit([named, named]).transform(named).columns == recoder.columns_
