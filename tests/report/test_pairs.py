"""Two columns together: after from the file alone, before only where no difference tells whose value was hidden."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.publishing.tables.figures import disclosed


def released(frame: pl.DataFrame, **asked: Any) -> tuple[shoal.Release, dict[str, Any]]:
    quasi = [c for c in frame.columns if c != "ill"]
    made = shoal.anonymize(frame, **{"quasi_identifiers": quasi, "k": 4, "effort": "fast", "seed": 1} | asked)
    return made, made.figures()


def test_after_is_what_the_file_shows(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    town = rng.choice(["Ulm", "Bonn", "Kiel"], 600)
    frame = pl.DataFrame(
        {
            "town": town,
            "job": np.where(rng.random(600) < 0.7, np.char.add(town, " mill"), "inn"),
            "age": rng.integers(0, 90, 600),
        }
    )
    made, told = released(frame)
    made.write(tmp_path / "r.csv")
    found = pl.read_csv(tmp_path / "r.csv", infer_schema=False)
    first = told["pairs"][0]
    assert set(first["columns"]) == {"town", "job"}  # of three pairs the one with most to say
    assert len(told["pairs"]) == 3
    a, b = first["columns"]
    shown = 0
    for i, own in enumerate(first["labels"][0][:-1]):
        for j, other in enumerate(first["labels"][1][:-1]):
            assert first["after"][i][j] == found.filter((pl.col(a) == own) & (pl.col(b) == other)).height
            n = first["before"][i][j]
            exact = frame.filter((pl.col(a) == own) & (pl.col(b) == other)).height
            assert n is None or (abs(n - exact) <= 1.5 * told["step"] and n % told["step"] == 0 and n)
            shown += n is not None
    assert sum(map(sum, first["after"])) + first["unplaced"] == pytest.approx(600)


def test_a_line_of_which_few_were_changed_is_left_out(tmp_path: Path) -> None:
    """Ages of 44 rows are hidden, of Bonn's only 4: beside the rest of Bonn a count would say what the 4 were."""
    rows = [("Ulm", age) for age in range(20, 60)]
    rows += [("Bonn", age) for age in (30, 31) for _ in range(10)] + [("Bonn", age) for age in range(7770, 7774)]
    rows += [("Kiel", 31)] * 20
    frame = pl.DataFrame(rows, schema=["town", "age"], orient="row")
    made, told = released(frame)
    assert made.facts.changed == {"town": 0, "age": 44}
    assert all(c["before_shown"] for c in told["columns"])
    (found,) = told["pairs"]
    names = dict(zip(found["labels"][0], found["before"], strict=True))
    other = found["labels"][1].index("all other values")
    assert (
        names["Ulm"][other] == 36
    )  # 38: to 40, the nearest multiple of 4, only 38 and more would be, and there are 40 at most
    assert all(n is None for town in ("Bonn", "Kiel") for n in names[town])
    assert [n for n in names["Ulm"] if n is not None] == [36]
    page = made.report(tmp_path / "r.html", internal=True).read_text(encoding="utf-8")
    assert "Two columns together" in page
    assert not re.search(r"\b777[0-3]\b", page.split("How to make")[0])


@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_planted_pairs_stay_out(tmp_path: Path, publish: str) -> None:
    """Three rows with values of their own, in a table where much else is hidden as well."""
    rng = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "zip": rng.integers(1000, 1040, 300).astype(str),
            "age": rng.integers(20, 80, 300),
            "ill": rng.choice(["a", "b"], 300),
        }
    )
    planted = pl.DataFrame(
        {"zip": ["MARKZIP1", "MARKZIP2", "MARKZIP3"], "age": [7771, 7772, 7773], "ill": ["a", "b", "a"]}
    )
    made, told = released(pl.concat([frame, planted]), publish=publish, sensitive=["ill"])
    made.write(tmp_path / "r.csv")
    published = (tmp_path / "r.csv").read_text(encoding="utf-8")
    page = made.report(tmp_path / "r.html", internal=True).read_text(encoding="utf-8")
    assert told["pairs"] or publish == "stars"  # no row may show both its values
    for mark in ("MARKZIP1", "MARKZIP2", "MARKZIP3", "7771", "7772", "7773"):
        assert mark in published or not re.search(rf"\b{mark}\b", page)
    least = told["step"]
    for found in told["pairs"]:
        assert all(n is None or n >= least for line in found["before"] for n in line)


def test_one_column_or_none_has_no_pairs() -> None:
    assert released(pl.DataFrame({"a": [1] * 8}))[1]["pairs"] == []
    assert released(pl.DataFrame({"a": [1] * 8, "b": [2] * 8}))[1]["pairs"] == []


@pytest.mark.parametrize("step", [3, 4, 5, 8])
def test_no_count_says_that_all_or_none_of_the_hidden_values_are_one(step: int) -> None:
    """Whatever is told, several numbers are told so, the least and the most that the release leaves never alone."""
    for surely in range(5 * step):
        for maybe in range(surely + 1, surely + 6 * step):
            said: dict[int | None, list[int]] = {}
            for n in range(surely, maybe + 1):
                said.setdefault(disclosed(n, surely, maybe, step), []).append(n)
            assert all(n is None or (n >= step and n % step == 0) for n in said)
            assert min(map(len, said.values())) >= min(2, maybe - surely + 1), (surely, maybe, said)
            for end in (surely, maybe):
                (held,) = (numbers for numbers in said.values() if end in numbers)
                assert len(held) >= min(step, maybe - surely + 1), (surely, maybe, said)


def test_shown_and_hidden_together_do_not_pin_a_count() -> None:
    """27 rows show u and 21 hide it: 25, the nearest multiple of 5, would say that none of the 21 is u."""
    frame = pl.DataFrame({"a": ["u"] * 27 + [f"v{i}" for i in range(21)], "b": ["1"] * 48})
    _, told = released(frame, k=5)
    (bar,) = (b for b in told["columns"][0]["distribution"] if b["label"] == "u")
    assert (bar["after"], bar["before"]) == (27, 30)


def test_columns_that_were_not_changed_are_said_to_be_as_they_were(tmp_path: Path) -> None:
    """Rounded counts before would read as a change where there is none."""
    rows = [(town, job, age) for town in ("Ulm", "Bonn") for job in ("inn", "mill") for age in range(20, 33)]
    rows += [("Ulm", "inn", age) for age in range(40, 53)]
    frame = pl.DataFrame(rows, schema=["town", "job", "age"], orient="row")
    made = shoal.anonymize(frame, quasi_identifiers=["town", "job", "age"], k=5, effort="fast", seed=1)
    assert made.facts.changed == {"town": 0, "job": 0, "age": 65}
    text = made.report(tmp_path / "r.html", internal=True).read_text(encoding="utf-8").split("<script")[0]
    town = text.split("<h3>town</h3>")[1].split("<h3>")[0]
    assert "before and after are the same" in town
    assert "39" in town
    assert "about" not in town
    assert '<span class="name">hidden' not in town, "nothing of this column was hidden, so it has no bar for that"
    pair = re.split("<h3>(?:town and job|job and town)</h3>", text)[1]
    pair = pair.split("<h3>")[0].split("</section>")[0]
    assert "before and after alike" in pair
    assert pair.count("<table") == 1
