"""The bars of a column, against members counted one by one."""

from fnmatch import fnmatchcase

import numpy as np
import pytest

from shoal.model.hierarchy import Hierarchy
from shoal.model.members import known_values, meanings, places, ruler_of
from shoal.publishing.decode import DecodedColumn
from shoal.publishing.tables.figures import bins_of, places_in, possible, shares_of


def column(texts: list[str | None], publish: str = "ranges") -> DecodedColumn:
    cells = meanings(texts, publish)
    known = known_values(cells)
    ruler = ruler_of(known)
    return DecodedColumn(cells, texts, np.arange(len(texts)), known, ruler, places(known, ruler))


def test_whole_numbers_are_spread_as_if_each_member_were_counted():
    rng = np.random.default_rng(1)
    low, wide = rng.integers(-40, 60, 200), rng.integers(0, 50, 200)
    texts = [*sorted({f"[{a}, {a + w}]" if w else str(a) for a, w in zip(low, wide, strict=True)}), "*", None]
    found = column(texts)
    bins = bins_of(found, np.ones(len(texts)), 1)
    shares, (surely, maybe) = shares_of(found, bins), possible(found, bins)
    for i, text in enumerate(texts):
        if text == "*":
            assert not shares[i].any()
            assert maybe[i].all()
        elif text is None:
            assert shares[i].tolist() == [0.0] * len(bins) + [1.0]
            assert surely[i].tolist() == [False] * len(bins) + [True]
        else:
            members = [x for x in range(-200, 200) if str(x) in found.cells[i]]
            inside = [sum(a <= x < b for x in members) for _, a, b in bins]
            assert shares[i, :-1] == pytest.approx(np.array(inside) / len(members))
            assert maybe[i, :-1].tolist() == [n > 0 for n in inside]
            assert surely[i, :-1].tolist() == [n == len(members) for n in inside]


@pytest.mark.parametrize("texts", [["[1.5, 2.5]", "[2, 9.25]", "3.5"], ["[2000-01-01, 2001-05-05]", "1999-12-31"], []])
def test_a_value_lies_in_the_first_bin_that_holds_it(texts: list[str | None]):
    found = column(texts)
    bins = bins_of(found, np.ones(len(texts)), 1)
    values = [None, "x", "-5", "2", "3", "1.5", "1.49", "9.25", "1999-12-31", "2000-06-30", "2030-01-01", "nan", "inf"]
    at = places(values, found.ruler)
    alone = [next((j for j, (_, a, b) in enumerate(bins) if a <= x < b), len(bins)) for x in at]
    assert places_in(values, bins, found).tolist() == alone


def test_a_name_lies_in_its_own_bin():
    found = column(["a", "{a, b}", "*", None])
    bins = bins_of(found, np.full(4, 2.0), 1)
    assert [b[1] for b in bins] == ["a", None, "b"]
    assert places_in(["b", None, "c", "a"], bins, found).tolist() == [2, 1, 3, 0]


def test_single_numbers_and_sets_with_a_missing_value():
    found = column(["[1.5, 2.5]", "3.5", "{2, 2.25, missing}"])
    bins = bins_of(found, np.ones(3), 1)
    at = int(places_in(["3.5"], bins, found)[0])
    assert shares_of(found, bins)[1].tolist() == [float(j == at) for j in range(len(bins) + 1)]
    assert possible(found, bins)[1][2, -1]


def test_a_prefix_may_be_in_the_bins_of_the_names_that_begin_so():
    texts = ["abcd", "ab**", "x***", "q***", "****"]
    cells = meanings(texts, "hierarchy", Hierarchy.prefixes([2, 1]))
    found = DecodedColumn(cells, texts, np.arange(len(texts)), known_values(cells), None, None)
    names = ["abcd", "abxy", "xyz1"]
    surely, maybe = possible(found, [(f"bin {i}", name, None) for i, name in enumerate(names)])
    for i, text in enumerate(texts):
        fits = [fnmatchcase(name, text.replace("*", "?")) for name in names]
        assert maybe[i, :-1].tolist() == fits
    assert maybe[:, -1].all()  # a pattern may fit what no bin names
    assert not surely[:, :-1].any()
