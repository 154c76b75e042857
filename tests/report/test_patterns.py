"""What was changed together, loss by column and by group, risks by threshold: recounted from the release file."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.model.members import Members
from shoal.problems.tables.bounds.bounds import ARGUMENTS
from shoal.problems.tables.constraints import ARGUMENT, PROGRAM
from shoal.publishing.decode import DecodedColumn
from shoal.publishing.tables.figures import possible, shares_of
from shoal.report.page import release_page
from shoal.report.words import BOUNDS, share, theorem_words

RNG = np.random.default_rng(5)
FRAME = pl.DataFrame(
    {"age": RNG.integers(20, 60, 300), "town": RNG.choice(["Ulm", "Bonn", "Kiel"], 300),
     "job": RNG.choice(list("abcd"), 300)}
)  # fmt: skip
NAMES = FRAME.columns


def told(tmp_path: Path, publish: str) -> tuple[dict, pl.DataFrame]:
    """The figures of a report, and the release read again as text."""
    release = shoal.anonymize(FRAME, quasi_identifiers=NAMES, k=3, publish=publish, effort="fast", seed=1)
    release.write(tmp_path / "r.csv", overwrite=True)
    return release.figures(), pl.read_csv(tmp_path / "r.csv", infer_schema=False)


def loss_of(text: str, column: str) -> float:
    """NCP of a published text by its definition, from the original's domain."""
    domain = FRAME[column]
    if text == "*":
        return 1.0
    if text[0] == "[":
        low, high = map(int, text[1:-1].split(", "))
        return (high - low) / (domain.max() - domain.min())
    return (len(text.split(", ")) - 1) / (domain.n_unique() - 1) if text[0] == "{" else 0.0


@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_the_figures_are_those_of_the_release_file(tmp_path, publish):
    figures, found = told(tmp_path, publish)
    rows = list(found.select(NAMES).iter_rows())
    patterns = Counter(
        (tuple(n for n, v in zip(NAMES, row, strict=True) if v == "*"),
         tuple(n for n, v in zip(NAMES, row, strict=True) if v[0] in "[{"))
        for row in rows
    )  # fmt: skip
    lines = figures["together"]["combinations"]
    assert lines
    for line in lines:
        assert line["rows"] == patterns[tuple(line["hidden"]), tuple(line["coarser"])] >= 3
    assert figures["together"]["others"] == len(rows) - sum(line["rows"] for line in lines)
    table = release_page(figures).split("<caption>What was changed in the same rows")[1].split("</table>")[0]
    assert ("coarser together" in table) == (publish == "ranges")
    assert "hidden together" in table
    assert all((", ".join(line["hidden"]) or "none") in table for line in lines)
    lost = [[loss_of(v, n) for n, v in zip(NAMES, row, strict=True)] for row in rows]
    for column, mean in zip(figures["columns"], np.mean(lost, axis=0), strict=True):
        assert column["loss"] == pytest.approx(mean)
    means = np.mean(lost, axis=1)
    for b in figures["by_loss"]:
        inside = (means > b["above"] + 1e-9) & (means <= b["most"] + 1e-9) if b["most"] else means < 1e-9
        assert b["rows"] == inside.sum()
        assert b["groups"] == len({row for row, held in zip(rows, inside, strict=True) if held})
    sizes = found.group_by(NAMES).len()["len"]
    for r in figures["at_risk"]:
        assert r["rows"] == pytest.approx(sizes.filter(1 / sizes > r["above"] + 1e-9).sum() / 300)


def test_combinations_on_few_rows_are_not_named():
    from shoal.publishing.tables.figures import together

    release = shoal.anonymize(FRAME, quasi_identifiers=NAMES, k=3, effort="fast", seed=1)
    every = together(release._placement.expected, 1)
    most = max(line["rows"] for line in every["combinations"])
    assert [line["rows"] for line in together(release._placement.expected, most)["combinations"]] == [most]
    assert together(release._placement.expected, most + 1) == {"combinations": [], "others": 300}


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_names_are_spread_as_one_cell_at_a_time_would_be(seed):
    """A column with one cell that is more than a list of names takes the slow way; its other cells must agree."""
    rng = np.random.default_rng(seed)
    known = tuple("abcdefg")
    cells = [Members(named=frozenset(rng.choice(known, rng.integers(1, 5), replace=False).tolist())) for _ in range(30)]
    cells += [Members(everything=True), Members(named=frozenset([None, "a"]))]
    at, bins = np.full(len(known), np.nan), [("b", "b", None), ("a", "a", None), ("missing", None, None)]
    quick = DecodedColumn(cells, [None] * 32, np.arange(32), known, None, at)
    slow = DecodedColumn([*cells, Members(pattern="x.*")], [None] * 33, np.arange(33), known, None, at)
    assert np.allclose(shares_of(quick, bins), shares_of(slow, bins)[:-1])
    for a, b in zip(possible(quick, bins), possible(slow, bins), strict=True):
        assert (a == b[:-1]).all()


def test_every_bound_has_a_sentence_and_nothing_but_nothing_is_0_percent():
    for said in (*ARGUMENTS, *ARGUMENTS.values(), ARGUMENT, PROGRAM, ARGUMENT.partition(":")[0]):
        assert theorem_words(said), said
    assert set(BOUNDS) <= {*ARGUMENTS, "population"}
    assert [share(n, 10_000) for n in (0, 1, 10, 5000)] == ["0.0 %", "under 0.1 %", "0.1 %", "50.0 %"]
