"""Attacks end to end: both twins, planted leaks, and a table of pure chance."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import vstack

import shoal
from shoal.attacks.reading import read
from tests.commands import run

QUASI, SENSITIVE = ["age", "town", "sex"], ["disease"]
CELLS = [f"{{{a}, {b}, {b + 1}}}" for a in range(1, 7) for b in range(a + 1, 9)]  # more of them than bits in a byte


def people(rows: int = 600, seed: int = 0, chance: bool = False) -> pl.DataFrame:
    """Ages, towns and sexes; a disease that follows the age, or nothing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, rows)
    disease = rng.integers(0, 6, rows)
    if not chance:
        disease = np.where(rng.random(rows) < 0.6, age // 10 - 2, disease)
    return pl.DataFrame(
        {
            "age": age.astype(str),
            "town": rng.choice(["Ulm", "Bonn", "Kiel"], rows, p=[0.6, 0.3, 0.1]),
            "sex": rng.choice(["f", "m"], rows),
            "disease": [f"d{i}" for i in disease],
        }
    )


def leaning() -> pl.DataFrame:
    """Small classes of many diseases, whose shares differ from class to class."""
    rng = np.random.default_rng(5)
    age, town = rng.integers(0, 25, 3000), rng.integers(0, 12, 3000)
    disease = np.where(rng.random(3000) < 0.4, (age + town) % 12, rng.integers(0, 12, 3000))
    return pl.DataFrame({"age": age.astype(str), "town": town.astype(str), "disease": [f"d{d}" for d in disease]})


def published(table: pl.DataFrame, **more: Any) -> shoal.Release:
    """A release of people at k = 4 and l = 2, unless another is asked for."""
    asked = {"quasi_identifiers": QUASI, "sensitive": SENSITIVE, "k": 4, "l": 2, "effort": "fast", "seed": 1}
    return shoal.anonymize(table, **asked | more)


def by_name(found: shoal.Attack) -> dict[str, object]:
    return {f"{f.attack}, {f.name}": f for f in found.findings}


@pytest.fixture(scope="module")
def made() -> tuple[pl.DataFrame, shoal.Release]:
    table = people()
    return table, published(table)


def test_command_and_python_give_the_same_figures(made, tmp_path: Path) -> None:
    table, release = made
    table.write_csv(tmp_path / "people.csv")
    release.write(tmp_path / "release.csv")
    held = shoal.attack(release, table)
    filed = shoal.attack(str(tmp_path / "release.csv"), str(tmp_path / "people.csv"))
    done = run(
        "attack", tmp_path / "release.csv", "--original", tmp_path / "people.csv", "-o", tmp_path / "a.html", "--json"
    )
    said = json.loads(done.stdout)
    assert done.returncode == 0
    assert [f["figure"] for f in said["findings"]] == [f.figure for f in filed.findings]
    assert said["output"].endswith("a.internal.html")
    assert (tmp_path / "a.internal.html").is_file()
    assert not (tmp_path / "a.html").exists()
    assert "Do not publish it" in (tmp_path / "a.internal.html").read_text()
    linked = by_name(held)["linkage, register, exact"]
    assert linked.figure == pytest.approx(by_name(filed)["linkage, register, exact"].figure)
    assert 0 < linked.figure <= linked.risk <= 1 / 4 + 1e-9, "4-anonymity holds"


def test_page_is_public_without_an_original(made, tmp_path: Path) -> None:
    table, release = made
    found = shoal.attack(release, register=table)
    assert found.report(tmp_path / "b.html") == tmp_path / "b.html"
    assert "Do not publish it" not in (tmp_path / "b.html").read_text()
    assert json.loads((tmp_path / "b.json").read_text())["internal"] is False


def test_linkage_of_a_table_released_as_it_is_finds_the_rows() -> None:
    table = pl.DataFrame(
        {"age": [str(i) for i in range(100)], "town": ["Ulm"] * 100, "sex": ["f"] * 100, "disease": ["a", "b"] * 50}
    )
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=3)
    found = shoal.attack(shuffled, table, quasi_identifiers=QUASI, sensitive=SENSITIVE)
    names = by_name(found)
    assert names["linkage, register, exact"].figure == pytest.approx(1.0)
    assert names["inference, disease by class"].risk == 1.0
    assert names["linkage, register, 15 % of its values wrong"].figure < 1.0
    assert found.above(0.5)
    assert not found.passes(0.5)


def test_expected_links_of_a_small_table_by_hand() -> None:
    """Two classes of two rows: everybody is one of two; one class of four: one of four."""
    release = pl.DataFrame({"a": ["1", "1", "*", "*", "*", "*"], "s": list("xyxyzz")})
    table = pl.DataFrame({"a": ["1", "1", "2", "3", "4", "5"], "s": list("xyxyzz")})
    found = by_name(shoal.attack(release, table, quasi_identifiers=["a"], sensitive=["s"]))
    # the register's 1s are linked to the class of 1s (right for both), the others to the four starred rows
    assert found["linkage, register, exact"].figure == pytest.approx((2 / 2 + 4 / 4) / 6)


@pytest.mark.parametrize("recoded", ["20-29", "[20, 29]", "{20, 25, 29}", "[20, 30[", "2*"])
def test_cells_of_other_tools_are_decoded(recoded: str) -> None:
    release = pl.DataFrame({"age": [recoded] * 3 + ["40"] * 2, "s": list("xyzxy")})
    table = pl.DataFrame({"age": ["20", "25", "29", "40", "40"], "s": list("xyzxy")})
    found = by_name(shoal.attack(release, table, quasi_identifiers=["age"], sensitive=["s"]))
    assert found["linkage, register, exact"].figure == pytest.approx((1 + 1) / 5)


@pytest.mark.parametrize("cells", [["[1, 3]", "[4, 9]", "5"], ["{1, 3, 9}", "{2}", "*", "{9, 4}"], ["1"], CELLS])
def test_the_cells_that_cover_a_value_are_those_that_list_it(cells: list[str]) -> None:
    members = {"[1, 3]": "123", "[4, 9]": "456789", "{1, 3, 9}": "139", "{2}": "2", "*": "123456789", "{9, 4}": "49"}
    members |= {cell: cell.strip("{}").replace(", ", "") for cell in CELLS}
    known = pl.DataFrame({"a": list("123456789"), "s": list("xyxyxyxyx")})
    reading = read(pl.DataFrame({"a": cells * 2, "s": ["x"] * 2 * len(cells)}), ["a"], ["s"], [known])
    wanted = np.array([4, 0, -1, 8, 0, 2])
    text = [cells[reading.group[: len(cells)].tolist().index(g)] for g in reading.classes[:, 0].argsort()]
    asked = [reading.domains[0].values[w] if w >= 0 else "none" for w in wanted]
    covers = [[w in members.get(t, t) for w in asked] for t in text]
    assert reading.held(0, wanted).tolist() == covers
    whole = vstack([held for _, held in reading.holding(wanted[:, None])]).toarray()
    assert whole.astype(bool).T[reading.classes[:, 0].argsort()].tolist() == covers


def test_labels_of_a_hierarchy_are_decoded(tmp_path: Path) -> None:
    rows = [["Ulm", "south", "*"], ["Jena", "east", "*"], ["Bonn", "west", "*"], ["Bern", "south", "*"]]
    release = pl.DataFrame({"town": ["south", "south", "Bonn", "Bonn"], "s": list("xyxy")})
    table = pl.DataFrame({"town": ["Ulm", "Bern", "Bonn", "Bonn"], "s": list("xyxy")})
    found = shoal.attack(release, table, quasi_identifiers=["town"], sensitive=["s"], hierarchies={"town": rows})
    assert by_name(found)["linkage, register, exact"].figure == pytest.approx(2 / 4)
    unread = shoal.attack(release, register=pl.DataFrame({"town": ["Ulm", "Jena"]}), quasi_identifiers=["town"])
    assert unread.findings


def test_unshuffled_release_is_found(made) -> None:
    table, release = made
    kept = published(table, keep_order=True)
    name = "files, order against the original"
    assert by_name(shoal.attack(kept, table))[name].gain
    assert by_name(shoal.attack(kept, table))[name].figure == 1.0
    assert not by_name(shoal.attack(release, table))[name].gain


def test_sorted_release_is_found(made) -> None:
    _, release = made
    name = "files, order of the rows"
    assert by_name(shoal.attack(release))[name].risk == 0.0
    given = {"quasi_identifiers": QUASI, "sensitive": SENSITIVE}
    assert by_name(shoal.attack(release.table.sort("disease"), **given))[name].risk == 1.0
    assert by_name(shoal.attack(release.table.sort("age", "town", "sex"), **given))[name].risk == 1.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pure_chance_shows_no_gain(seed: int) -> None:
    table = people(4000, seed, chance=True)
    release = published(table, k=5)
    strangers = people(4000, seed + 100, chance=True)
    found = shoal.attack(release, table, pl.concat([table, strangers]))
    gains = [f for f in found.findings if f.gain]
    gains = [f for f in gains if "minimality" not in f.name]  # which cells a method coarsens is no chance
    assert [f"{f.attack}, {f.name}" for f in gains] == []


def test_strangers_of_a_register_are_who_is_not_in_the_table() -> None:
    from shoal.attacks.attack import without

    release = pl.DataFrame({"a": list("112"), "s": list("xyx")})
    reading = read(release, ["a"], ["s"], [release])
    register = reading.people(pl.DataFrame({"a": list("111222"), "s": list("xxyxxx")}))
    left = without(register, reading.people(release))
    assert sorted(zip(left.codes[:, 0].tolist(), left.sensitive["s"].tolist(), strict=True)) == [(0, 0), (1, 0), (1, 0)]


def test_fail_above_is_an_exit_status(made, tmp_path: Path) -> None:
    table, release = made
    table.write_csv(tmp_path / "people.csv")
    release.write(tmp_path / "release.csv")
    asked = ("attack", tmp_path / "release.csv", "--original", tmp_path / "people.csv", "--fail-above")
    assert run(*asked, "0.05").returncode == 1
    assert run(*asked, "1").returncode == 0
    assert run(*asked, "7").returncode == 2


def test_refusals(made) -> None:
    _, release = made
    with pytest.raises(shoal.PolicyError, match="quasi_identifiers"):
        shoal.attack(release.table)
    with pytest.raises(shoal.PolicyError, match="earlier"):
        shoal.attack(release, earlier="january.csv")
    with pytest.raises(shoal.InputError, match="no rows"):
        shoal.attack(release.table.head(0), quasi_identifiers=QUASI)
    with pytest.raises(shoal.ShoalError, match="the register"):
        shoal.attack(release, register=release.table.drop("age"))
