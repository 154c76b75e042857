"""Releases set against each other: by hand, and against all assignments that agree with them."""

import itertools
import re
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import shoal
from shoal.errors import InputError
from shoal.judge.composition import Composition, Learned, ReleaseOfPeople, compose
from shoal.judge.fitting import fitted, fitted_places


def release(original: pl.DataFrame, groups: list[int]) -> ReleaseOfPeople:
    """Ages of every group as a set, the disease as it is, row by row."""
    ages = original["age"].cast(pl.String).to_list()
    texts = []
    for g in groups:
        held = sorted({a for a, h in zip(ages, groups, strict=True) if h == g}, key=int)
        texts.append(held[0] if len(held) == 1 else "{" + ", ".join(held) + "}")
    return ReleaseOfPeople(original.with_columns(pl.Series("age", texts)).drop("id"), ["age"], {}, original)


def people(ages: list[int], values: str) -> pl.DataFrame:
    return pl.DataFrame({"id": list(range(len(ages))), "age": ages, "disease": list(values)})


TABLE = people([20, 21, 30, 31], "abca")
ONE, TWO = release(TABLE, [0, 0, 1, 1]), release(TABLE, [0, 1, 1, 0])  # a b | c a and a a | b c


def composed(*releases: ReleaseOfPeople, **more: Any) -> tuple[Composition, Learned]:
    """Releases at k = l = 2, and what is learned by whoever knows the groups."""
    found = compose(releases, **{"sensitive": "disease", "k": 2, "l": 2, "person": "id", **more})
    assert found.known is not None
    return found, found.known


def test_two_groups_that_have_one_value_in_common_tell_it() -> None:
    found, known = composed(ONE, TWO)
    assert found.people == 4
    assert found.placed == ("order", "order")
    assert known.fewer_than_k == 4  # every pair of groups holds one person
    assert known.one_value == 4  # a; b; c; a
    assert known.above == 4
    assert known.right == 1.0
    assert known.alone == 2  # "a a" is not diverse by itself
    assert known.truth == pytest.approx(1.0, abs=1e-3)
    assert found.unknown is not None
    assert found.unknown.one_value == 4  # ages are all different, so the register tells the groups


def test_a_release_beside_itself_tells_nothing_more() -> None:
    one = release(people([20, 21, 30, 31], "abab"), [0, 0, 1, 1])
    found, known = composed(one, one)
    for learned in (known, found.unknown):
        assert learned is not None
        assert (learned.one_value, learned.above, learned.contradicted) == (0, 0, 0)
        assert learned.truth == learned.truth_alone == pytest.approx(0.5)
    assert known.fewer_than_k == 0


def test_only_the_adversary_who_knows_the_groups_can_be_asked_for() -> None:
    given = (ONE, TWO, release(TABLE, [0, 1, 0, 1]))
    both, known = composed(*given)
    assert both.unknown is not None
    alone, same = composed(*given, known_alone=True)
    assert (same, alone.unknown) == (known, None)


def test_only_people_in_both_count() -> None:
    table = people([20, 21, 30, 31, 40, 41], "ababab")
    found, known = composed(release(table[:4], [0, 0, 1, 1]), release(table[2:], [0, 0, 1, 1]))
    assert found.people == 2
    assert found.rows == (4, 4)
    assert known.fewer_than_k == 0


def test_without_a_sensitive_column_groups_alone_are_counted() -> None:
    found, known = composed(ONE, TWO, sensitive=None, l=None)
    assert known.fewer_than_k == 4
    assert known.one_value is None
    assert found.unknown is None


def test_rows_in_another_order_are_matched() -> None:
    found, known = composed(ONE, ReleaseOfPeople(TWO.table[[2, 0, 3, 1]], ["age"], {}, TABLE))
    assert found.placed == ("order", "matched")
    assert known.one_value == composed(ONE, TWO)[1].one_value


def test_a_person_in_two_rows_is_refused() -> None:
    table = people([20, 21], "ab")
    odd = table.with_columns(id=pl.lit(1))
    with pytest.raises(InputError, match="two rows of one original"):
        composed(release(table, [0, 0]), release(odd, [0, 0]))


def test_originals_of_different_length_need_a_person() -> None:
    with pytest.raises(InputError, match="name the column"):
        composed(ONE, release(TABLE[:2], [0, 0]), person=None)


def assignments(values: list[str], groupings: list[list[int]]) -> list[tuple[str, ...]]:
    """All ways to give everybody a value such that every group of every release has its values."""
    shown = [{g: Counter(v for v, h in zip(values, gs, strict=True) if h == g) for g in gs} for gs in groupings]
    return [
        way
        for way in set(itertools.permutations(values))
        if all(
            Counter(v for v, h in zip(way, gs, strict=True) if h == g) == held
            for gs, by in zip(groupings, shown, strict=True)
            for g, held in by.items()
        )
    ]


def with_a_group(n: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 2), min_size=n, max_size=n)


@given(
    st.integers(3, 7).flatmap(
        lambda n: st.tuples(
            st.lists(st.sampled_from("abc"), min_size=n, max_size=n), with_a_group(n), with_a_group(n), with_a_group(n)
        )
    ),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_groups_known_against_all_assignments(
    drawn: tuple[list[str], list[int], list[int], list[int]], three: bool
) -> None:
    values, *groupings = drawn
    groupings = groupings if three else groupings[:2]
    n = len(values)
    table = people(list(range(20, 20 + n)), "".join(values))
    found = compose([release(table, g) for g in groupings], sensitive="disease", k=2, l=1.5, person="id")
    learned = found.known
    assert learned is not None
    ways = assignments(values, groupings)
    share = [Counter(way[i] for way in ways) for i in range(n)]
    pairs = Counter(zip(*groupings, strict=True))
    assert learned.fewer_than_k == sum(c for c in pairs.values() if c < 2)
    common = [
        set.intersection(*({v for v, h in zip(values, gs, strict=True) if h == gs[i]} for gs in groupings))
        for i in range(n)
    ]
    assert learned.one_value == sum(len(c) == 1 for c in common)
    told = sum(len(s) == 1 for s in share)
    assert learned.one_value <= told  # what one value in common tells, all assignments agree on
    assert learned.contradicted == 0
    exact = float(np.mean([share[i][values[i]] / len(ways) for i in range(n)]))
    assert learned.truth <= exact + 0.12  # people are few; the fitting is for many
    if len(ways) > 1 or not three:  # where one assignment alone is left, whole people tell what fractions do not
        assert learned.truth == pytest.approx(exact, abs=0.12)


@given(
    st.integers(3, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.sampled_from("abc"), min_size=n, max_size=n),
            st.lists(st.integers(20, 22), min_size=n, max_size=n),
            with_a_group(n),
            with_a_group(n),
        )
    )
)
@settings(max_examples=100, deadline=None)
def test_groups_unknown_against_all_placements(drawn: tuple[list[str], list[int], list[int], list[int]]) -> None:
    values, ages, *groupings = drawn
    n = len(values)
    table = people(ages, "".join(values))
    shown = [release(table, g) for g in groupings]
    found = compose(shown, sensitive="disease", k=2, l=1.5, person="id")
    learned = found.unknown
    assert learned is not None
    covers = [[set(t.strip("{}").split(", ")) for t in r.table["age"].to_list()] for r in shown]
    ways: Counter[tuple[str, ...]] = Counter()
    fits = [
        Counter(
            tuple(values[j] for j in way)
            for way in itertools.permutations(range(n))
            if all(str(ages[i]) in cover[j] for i, j in enumerate(way))
        )
        for cover in covers
    ]
    for way, often in fits[0].items():
        ways[way] += often * fits[1][way]
    whole = ways.total()
    share = [Counter({v: sum(c for w, c in ways.items() if w[i] == v) for v in "abc"}) for i in range(n)]
    told = sum(sum(c > 0 for c in s.values()) == 1 for s in share)
    assert learned.one_value is not None
    assert learned.one_value <= told
    assert learned.contradicted == 0
    exact = float(np.mean([share[i][values[i]] / whole for i in range(n)]))
    assert learned.truth == pytest.approx(exact, abs=0.16)  # 0.15 apart for two and two of two ages


def test_many_people_have_the_posterior_of_all_assignments() -> None:
    """The fitting's posterior is the limit of the exact one: with three of everybody it is nearer than with one."""
    values, one, two = list("aabbc"), [0, 0, 0, 1, 1], [0, 1, 1, 0, 1]
    gaps = []
    for times in (1, 2):
        vs, g1, g2 = values * times, one * times, two * times
        table = people(list(range(20, 20 + len(vs))), "".join(vs))
        found = compose([release(table, g1), release(table, g2)], sensitive="disease", k=2, l=2, person="id")
        ways = assignments(vs, [g1, g2])
        exact = float(np.mean([sum(w[i] == vs[i] for w in ways) / len(ways) for i in range(len(vs))]))
        assert found.known is not None
        assert found.known.truth is not None
        gaps.append(abs(found.known.truth - exact))
    assert gaps[1] < gaps[0] or gaps[0] < 1e-3


def test_of_a_release_without_an_original_everybody_whom_it_covers_is_assumed() -> None:
    asked = {"sensitive": "disease", "k": 2, "l": 2}
    found = compose([ReleaseOfPeople(ONE.table, ["age"]), TWO], **asked)
    assert found.placed == ("assumed", "unasked")
    assert found.people == 4
    assert found.known is None
    assert found.unknown is not None
    assert found.unknown.one_value == 4  # ages differ, so that the register tells the groups
    nobody = ReleaseOfPeople(ONE.table.with_columns(age=pl.lit("90")), ["age"])
    assert compose([nobody, TWO], **asked).people == 0
    # a column that the table lacks covers anybody
    more = ReleaseOfPeople(ONE.table.with_columns(town=pl.Series(["x", "x", "y", "y"])), ["age", "town"])
    assert compose([more, TWO], **asked).people == 4


def test_without_any_original_rows_are_set_side_by_side() -> None:
    found = compose([ReleaseOfPeople(shown.table, ["age"]) for shown in (ONE, TWO)], sensitive="disease", k=2, l=2)
    assert found.placed == ("none", "none")
    assert (found.known, found.unknown) == (None, None)
    alone = found.rows_alone
    assert alone is not None
    # {20, 31} shows a, a: {20, 21} shows a, b and {30, 31} c, a, so a in both; {21, 30} shows b, c: b, or c
    assert (alone.rows, alone.may_tell, alone.tell) == (4, 4, 2)
    assert found.share == 0.5
    assert "2 tell one value of disease, 4 may" in found.sentence


def test_ranges_stars_and_labels_meet_where_a_value_lies_in_both() -> None:
    def shown(ages: list[str], values: str) -> ReleaseOfPeople:
        return ReleaseOfPeople(pl.DataFrame({"age": ages, "disease": list(values)}), ["age"])

    one = shown(["[20, 29]", "[20, 29]", "[40, 49]", "*"], "abcd")
    two = shown(["[25, 35]", "[25, 35]", "[50, 59]", "[50, 59]"], "axdy")
    found = compose([one, two], sensitive="disease").rows_alone
    assert found is not None
    # [25, 35] meets [20, 29] (a in common) and the star (nothing); [50, 59] the star alone (d)
    assert (found.rows, found.may_tell, found.tell) == (4, 4, 4)
    apart = compose([one, shown(["[60, 69]", "[60, 69]"], "xy")], sensitive="disease").rows_alone
    assert apart is not None
    assert (apart.rows, apart.may_tell, apart.tell) == (2, 0, 0)  # the star meets all, and has no value in common


def changed(age: pl.Series | pl.Expr) -> ReleaseOfPeople:
    """The first release with other ages, beside its original."""
    return ReleaseOfPeople(ONE.table.with_columns(age.alias("age")), ["age"], {}, TABLE)


def test_people_whom_no_group_covers_are_counted_and_left_out() -> None:
    found, known = composed(changed(pl.Series(["21", "21", *ONE.table["age"][2:]])), TWO)
    assert (found.people, found.unplaced) == (4, 1)  # nobody is 21 twice, so one row is of somebody else
    assert known.fewer_than_k == 3
    assert composed(ONE, TWO)[0].unplaced == 0


def test_who_is_in_two_of_three_releases_counts() -> None:
    found, known = composed(ONE, TWO, release(TABLE[:2], [0, 0]))
    assert (found.people, found.unplaced) == (4, 0)
    assert known.fewer_than_k == known.one_value == 4


def test_a_set_covers_by_the_values_that_the_original_has() -> None:
    found, known = composed(changed(pl.col("age").replace("{20, 21}", "{20, 21, 99}")), TWO)
    assert found.placed == ("order", "order")
    assert known == composed(ONE, TWO)[1]


def test_everybody_is_looked_for_by_the_originals_that_have_most_columns() -> None:
    town = TABLE.with_columns(town=pl.Series(["x", "x", "y", "y"]))
    wide = ReleaseOfPeople(town.drop("id"), ["age", "town"], {}, town)
    bare = ReleaseOfPeople(
        pl.DataFrame({"age": ["20", "30"], "town": ["x", "x"], "disease": ["a", "c"]}), ["age", "town"]
    )
    found = compose([bare, wide, ONE], sensitive="disease", k=2, person="id")
    assert found.placed == ("assumed", "unasked", "unasked")
    assert found.people == 4  # all stand in the two others
    assert compose([bare, wide], sensitive="disease", k=2, person="id").people == 1  # who is 30 lives in y


def test_ranges_meet_from_either_side_and_not_beyond_their_ends() -> None:
    def shown(age: str) -> ReleaseOfPeople:
        return ReleaseOfPeople(pl.DataFrame({"age": [age], "disease": ["a"]}), ["age"])

    meetings = {("[20, 29]", "[25, 35]"): 1, ("[20, 50]", "[25, 35]"): 1, ("[20, 29]", "[30, 39]"): 0}
    for (one, two), rows in meetings.items():
        for first, second in ((one, two), (two, one)):
            found = compose([shown(first), shown(second)], sensitive="disease").rows_alone
            assert found is not None
            assert found.rows == rows, (first, second)


# Three people; two can stand in the first group alone, the third in either.  The groups hold four and two rows, so
# that three rows are of somebody else.  Of the rows that are not the first two's, half are in each group.
FACE = csr_matrix(np.array([[1.0, 0.0], [1.0, 1.0]]))
PEOPLE = np.array([2, 1])


def test_rows_of_somebody_else_share_the_groups() -> None:
    stood = fitted_places(PEOPLE, FACE, np.array([4, 2])).toarray()
    assert stood == pytest.approx(np.array([[2, 0], [0.5, 0.5]]), abs=1e-3)


def test_rows_of_somebody_else_share_the_values() -> None:
    there = [np.array([True, True])]
    posterior = fitted(PEOPLE, [FACE], there, [np.array([[4, 0], [0, 2]])])
    assert posterior == pytest.approx(np.array([[1, 0], [0.5, 0.5]]), abs=1e-3)
    # the same beside a release in which each kind has a group of its own, of as many rows as people: nobody else's
    own = csr_matrix(np.eye(2))
    both = fitted(PEOPLE, [FACE, own], there * 2, [np.array([[4, 0], [0, 2]]), np.array([[1, 1], [1, 0]])])
    assert both == pytest.approx(np.array([[1, 0], [1, 0]]), abs=1e-3)


def test_a_sentence_on_two_releases_says_who_is_left_with_what() -> None:
    frame = pl.DataFrame({"age": [20, 21, 22, 23] * 5, "ill": ["a", "b", "c", "b", "a"] * 4})
    asked = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "k": 4, "l": 2, "effort": "fast", "seed": 1}
    first = shoal.anonymize(frame, **asked)
    (found,) = shoal.anonymize(frame, **asked, after=first, force_composition=True).composition
    told = r"someone who has a register is left with one value of ill for \d+ of them, and with one likelier than 1/2"
    assert re.match(rf"20 people may be in several of the releases; .*{told} for \d+$", found.sentence)
