"""Loss measures against their formulas, written out row by row, and the paper's own table."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.model import loss
from shoal.model.histogram import Histogram, Partition
from shoal.model.loss import View, measures
from shoal.model.recoding import ColumnRecoding, Levels, Ranges, Recoding, Sets
from shoal.model.recoding.levels import FORBIDDEN

# Table 1 of Xiao, Yi, Tao 2010, columns Age, Gender, Education and Disease; groups as in its Table 3.
AGE = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]  # < 30, [30, 50) as one value each here
GENDER = [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
EDUCATION = [0, 0, 1, 1, 0, 0, 0, 0, 2, 2]
DISEASE = [0, 0, 1, 2, 2, 1, 2, 1, 1, 2]


def by_row(histogram: Histogram, group_of_row: np.ndarray, row_cell: np.ndarray) -> Partition:
    return Partition.of(row_cell, group_of_row, np.ones(row_cell.size, int))


def tree_of(size: int) -> ColumnRecoding:
    """Values, pairs, all: a hierarchy of height two."""
    return Levels.tree(np.stack([np.arange(size), np.arange(size) // 2, np.zeros(size, int)]))


FORMS = {
    "stars": Levels.stars,
    "levels": tree_of,
    "set": Sets.of,
    "range": lambda size: Ranges.of(np.arange(size) ** 2.0),
}


def published(form: str, size: int, present: set[int]) -> frozenset[int]:
    """The values that a group's published value may stand for."""
    if form == "set":
        return frozenset(present)
    if form == "range":
        return frozenset(range(min(present), max(present) + 1))
    if len(present) == 1:
        return frozenset(present)
    if form == "levels" and len({c // 2 for c in present}) == 1:
        return frozenset(c for c in range(size) if c // 2 == min(present) // 2)
    return frozenset(range(size))


@settings(deadline=None, max_examples=150)
@given(data=st.data(), forms=st.lists(st.sampled_from(list(FORMS)), min_size=1, max_size=3), s=st.integers(0, 2))
def test_every_measure_is_its_formula(data, forms, s):
    n = data.draw(st.integers(1, 9))
    rows = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * (len(forms) + s)), min_size=n, max_size=n)))
    label = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    d, k = len(forms), 2
    histogram = Histogram.from_rows(rows[:, :d], rows[:, d:])
    cells = {tuple(q) + tuple(v): i for i, (q, v) in enumerate(zip(histogram.quasi, histogram.sensitive, strict=True))}
    partition = by_row(histogram, label, np.array([cells[tuple(r)] for r in rows]))
    sizes = histogram.quasi_sizes
    columns = tuple(FORMS[f](size) for f, size in zip(forms, sizes, strict=True))
    found = measures(histogram, partition, Recoding(columns), k)

    out = []  # per row: what each column may stand for
    for i in range(n):
        mine = rows[label == label[i]]
        out.append(tuple(published(f, sizes[j], set(mine[:, j].tolist())) for j, f in enumerate(forms)))
    cell_values = [(i, j) for i in range(n) for j in range(d)]
    assert found["suppressed_tuples"] == sum(any(len(v) > 1 for v in o) for o in out)

    def is_star(i: int, j: int) -> bool:
        present = set(rows[label == label[i], j].tolist())
        coarse = {c // 2 for c in present} if forms[j] == "levels" else present
        if forms[j] == "set":
            return len(present) == sizes[j] > 1
        return forms[j] in ("stars", "levels") and len(present) > 1 and len(coarse) > 1

    assert found["stars"] == sum(is_star(i, j) for i, j in cell_values)

    def penalty(i: int, j: int) -> float:
        v = out[i][j]
        if forms[j] == "range":
            return (max(v) ** 2 - min(v) ** 2) / max((sizes[j] - 1) ** 2, 1)
        return (len(v) - 1) / max(sizes[j] - 1, 1)

    assert math.isclose(found["ncp"], sum(penalty(i, j) for i, j in cell_values) / (n * d), abs_tol=1e-12)

    def height(i: int, j: int) -> float:
        if len(set(rows[label == label[i], j].tolist())) == 1:
            return 0.0
        return 1.0 if is_star(i, j) or forms[j] in ("set", "range") else 0.5

    assert math.isclose(found["precision"], 1 - sum(height(i, j) for i, j in cell_values) / (n * d), abs_tol=1e-12)

    classes = Counter(
        tuple((v, height(i, j) if f == "levels" else 0) for j, (v, f) in enumerate(zip(o, forms, strict=True)))
        for i, o in enumerate(out)
    )
    assert found["discernibility"] == sum(c * c for c in classes.values())
    assert found["largest_class"] == max(classes.values())
    assert found["class_excess"] == sum(c * (c - k) for c in classes.values())
    assert math.isclose(found["average_class_size"], n / len(classes))
    assert math.isclose(found["normalized_class_size"], n / len(classes) / k)

    def surprise(i: int, j: int) -> float:
        inside = sum(int((rows[:, j] == c).sum()) for c in out[i][j])
        return math.log2(inside / int((rows[:, j] == rows[i, j]).sum()))

    entropy = sum(surprise(i, j) for i, j in cell_values) / (n * d)
    assert math.isclose(found["non_uniform_entropy"], entropy, abs_tol=1e-12)

    divergence = 0.0
    for cell, c in Counter(map(tuple, rows.tolist())).items():
        spread = sum(
            1 / math.prod(len(v) for v in o)
            for r, o in zip(rows, out, strict=True)
            if tuple(r[d:]) == cell[d:] and all(cell[j] in o[j] for j in range(d))
        )
        divergence += c / n * math.log(c / spread)
    assert math.isclose(found["kl_divergence"], divergence, abs_tol=1e-12)
    boxes = loss._Boxes(View(histogram, partition, Recoding(columns)))
    if all(f in ("stars", "levels") for f in forms):
        assert np.allclose(boxes.by_patterns(), boxes.by_bits(), atol=1e-15)


def test_table_three_of_the_paper_has_eight_stars_and_four_suppressed_tuples():
    quasi = np.array([AGE, GENDER, EDUCATION]).T
    # The first group's four rows differ in gender and education: two stars each.
    label = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    histogram = Histogram.from_rows(quasi, np.array(DISEASE))
    cells = {(*q, *v): i for i, (q, v) in enumerate(zip(histogram.quasi, histogram.sensitive, strict=True))}
    row_cell = np.array([cells[(*q, v)] for q, v in zip(quasi, DISEASE, strict=True)])
    found = measures(histogram, by_row(histogram, label, row_cell), Recoding.stars(histogram))
    assert found["stars"] == 8
    assert found["suppressed_tuples"] == 4
    assert found["discernibility"] == 16 + 16 + 4


def test_groups_published_alike_are_one_class():
    histogram = Histogram.from_rows(np.array([[0], [1], [0], [1]]))
    partition = Partition(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.ones(4, int))
    for column in (Levels.stars(2), Sets.of(2), Ranges.of(np.arange(2))):
        found = measures(histogram, partition, Recoding((column,)))
        assert found["discernibility"] == 16
        assert found["average_class_size"] == 4


def test_publishing_the_table_itself_loses_nothing():
    rng = np.random.default_rng(0)
    histogram = Histogram.from_rows(rng.integers(0, 4, (200, 3)), rng.integers(0, 5, 200))
    of_type, _ = histogram.types
    partition = Partition.of(np.arange(histogram.cells), of_type, histogram.count)
    found = measures(histogram, partition, Recoding.stars(histogram))
    assert found["stars"] == found["suppressed_tuples"] == 0
    assert found["ncp"] == found["non_uniform_entropy"] == 0
    assert found["precision"] == 1
    assert found["kl_divergence"] == pytest.approx(0, abs=1e-12)


def test_weights_change_only_the_weighted_penalty():
    histogram = Histogram.from_rows(np.array([[0, 0], [1, 1]]))
    partition = Partition(np.array([0, 1]), np.zeros(2, int), np.ones(2, int))
    columns = (Levels.stars(2, weight=3.0), Levels.stars(2, weight=0.0))
    found = measures(histogram, partition, Recoding(columns))
    assert found["ncp"] == 1
    assert found["weighted_ncp"] == 1.5


def test_an_empty_table_has_no_loss():
    histogram = Histogram.from_rows(np.zeros((0, 2), int))
    partition = Partition.of(np.zeros(0), np.zeros(0), np.zeros(0))
    found = measures(histogram, partition, Recoding.stars(histogram))
    assert found["stars"] == found["kl_divergence"] == found["largest_class"] == 0


def test_many_boxes_and_cells_pass_the_block_sizes():
    rng = np.random.default_rng(1)
    histogram = Histogram.from_rows(rng.integers(0, 30, (30_000, 3)), np.zeros(30_000, int))
    cells = np.arange(histogram.cells)
    partition = Partition.of(cells, cells // 2, histogram.count)
    boxes = loss._Boxes(View(histogram, partition, Recoding(tuple(tree_of(30) for _ in range(3)))))
    assert np.diff(boxes.begin).max() > 2048
    assert histogram.cells > 1 << 14
    assert np.allclose(boxes.by_patterns(), boxes.by_bits(), atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_sets_have_one_number_exactly_when_they_are_equal(seed):
    """Sets of many sizes over few values, so that most are met again and many differ in one value."""
    rng = np.random.default_rng(seed)
    size, groups = 6, 300
    held = [sorted(rng.choice(size, rng.integers(1, size + 1), replace=False).tolist()) for _ in range(groups)]
    group = np.repeat(np.arange(groups), [len(h) for h in held])
    shown = SimpleNamespace(present=(group, np.concatenate([np.array(h) for h in held])), groups=groups)
    numbers = Sets.of(size).numbers(shown).tolist()
    assert len(set(zip(map(tuple, held), numbers, strict=True))) == len(set(map(tuple, held))) == len(set(numbers))


def test_the_ends_of_recodings() -> None:
    """Sets of few values, classes that are written down as leaves, and the number of a tree's nodes."""
    assert [Sets.of(size).step for size in (1, 2, 3, 5)] == [1.0, 1.0, 0.5, 0.25]
    node = np.array([[0, 1], [0, 0]])
    assert Levels.tree(node, leaves=np.array([[2, 1], [3, 3]])).pure.tolist() == [0.5, 0.0]
    assert Levels.tree(node).pure.tolist() == [0.0, 0.0]
    parent, loss, of = Levels.stars(3).nodes()  # one root, and none above it
    assert (parent.tolist(), loss.tolist(), of.tolist()) == ([3, 3, 3, 3], [0.0, 0.0, 0.0, 1.0], [0, 1, 2])
    parent, loss, _ = Levels.tree(np.array([[0, 1, 2], [0, 0, 1]])).nodes()  # two, so one is added that nobody may show
    assert parent.tolist() == [3, 3, 4, 5, 5, 5]
    assert loss[-1] >= FORBIDDEN
