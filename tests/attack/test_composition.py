"""Two releases of the same people, planted; one release beside itself tells nothing."""

import polars as pl

import shoal
from tests.attack.test_attack import QUASI, by_name, people, published


def test_two_releases_are_found() -> None:
    table = people(1500, 4)
    one, two = published(table), published(table, publish="ranges")
    found = by_name(shoal.attack(two, table, earlier=[one]))
    few = found["composition, few people, groups known"]
    assert few.gain
    assert few.risk > 1 / 4
    assert found["composition, above 1/l, groups known"].gain
    same = by_name(shoal.attack(one, table, earlier=[one]))
    assert not [f for name, f in same.items() if name.startswith("composition") and f.gain]


def test_two_classes_meet_in_one_person_by_hand() -> None:
    one = pl.DataFrame({"a": ["*", "*", "3", "3"], "s": list("xyxy")})
    two = pl.DataFrame({"a": ["1", "[2, 3]", "[2, 3]", "[2, 3]"], "s": list("xyxy")})
    table = pl.DataFrame({"a": list("1233"), "s": list("xyxy")})
    found = by_name(shoal.attack(two, table, earlier=[one], quasi_identifiers=["a"], sensitive=["s"], k=2, l=2))
    assert found["composition, few people, groups known"].figure == 2 / 4
    assert found["composition, one value, groups known"].people == 4


def test_without_tables_the_rows_alone_are_set_beside() -> None:
    one = pl.DataFrame({"a": ["1", "1", "2", "2"], "s": list("xyxz")})
    found = by_name(shoal.attack(one, earlier=[one], quasi_identifiers=["a"], sensitive=["s"]))
    assert "composition, rows alone" in found


def sets_of(groups: list[str], table: pl.DataFrame) -> pl.DataFrame:
    """A release in the order of its table: people of one letter are in one class, published as a set."""
    of = {g: sorted({str(a) for a, h in zip(table["a"], groups, strict=True) if h == g}) for g in groups}
    return table.with_columns(pl.Series("a", ["{" + ", ".join(of[g]) + "}" for g in groups]))


def test_three_releases_tell_what_no_two_of_them_do() -> None:
    """Person 1 may have x, y, z; then x, y, w; then x, z, w: each two leave two values, all three leave x."""
    table = pl.DataFrame({"a": list("1234567"), "s": list("xyzywzw")})
    one, two, three = (sets_of(list(g), table) for g in ("aaabbbb", "abbaabb", "abbbbaa"))
    given = {"quasi_identifiers": ["a"], "sensitive": ["s"], "k": 3, "l": 2}
    found = by_name(shoal.attack(three, table, earlier=[one, two], **given))
    for pair in ("release 1", "release 2"):
        assert found[f"composition, one value, groups known, {pair}"].figure == 0
    together = found["composition, one value, groups known, all 3"]
    assert together.figure == 1 / 7
    assert together.risk == 1.0
    assert found["composition, few people, groups known, all 3"].figure >= 1 / 7
    assert found["composition, one value, groups unknown, all 3"].figure == 1 / 7, "everybody's age is another"
    alone = by_name(shoal.attack(three, earlier=[one], **given))
    assert "composition, one value, groups known" not in alone, "nobody is known"


def test_two_sensitive_columns_tell_together_what_neither_does() -> None:
    """Person 1 has flu or gout and 1 or 2 by each column of two releases; as pairs only flu with 1 stands in both."""
    table = pl.DataFrame(
        {"a": list("12345"), "ill": ["flu", "gout", "gout", "cold", "cold"], "pay": ["1", "2", "3", "2", "1"]}
    )
    one = sets_of(list("aabbb"), table)
    two = sets_of(list("abaab"), table)
    given = {"quasi_identifiers": ["a"], "sensitive": ["ill", "pay"], "k": 2, "l": 2}
    found = by_name(shoal.attack(two, table, earlier=[one], **given))
    tied = found["composition, one value, groups known, all sensitive columns at once"]
    ill, pay = (found[f"composition, one value, groups known, {c}"] for c in ("ill", "pay"))
    assert ill.people == pay.people == tied.people == 5
    assert (tied.figure, ill.figure, pay.figure) == (3 / 5, 1 / 5, 0.0), "persons 1, 2 and 5; 2; nobody"
    assert len([n for n in found if n.startswith("composition, few people")]) == 1


def test_a_release_without_the_column_is_left_out() -> None:
    table = pl.DataFrame({"a": list("1234"), "ill": list("xyxy"), "pay": list("uvvu")})
    one = sets_of(list("aabb"), table).drop("pay")
    two = sets_of(list("abab"), table)
    given = {"quasi_identifiers": ["a"], "sensitive": ["ill", "pay"], "k": 2, "l": 2}
    found = shoal.attack(two, table, earlier=[one], **given)
    assert not [f for f in found.findings if "pay" in f.name and f.attack == "composition"]
    none = shoal.attack(two, table, earlier=[one, one.drop("ill")], **given)
    assert any("release 2 has no such column" in n for n in none.notes)


def test_a_register_without_values_tells_what_is_claimed() -> None:
    table = people(1500, 4)
    one, two = published(table), published(table, publish="ranges")
    checked = by_name(shoal.attack(two, table, earlier=[one]))["composition, above 1/l, groups unknown"]
    found = by_name(shoal.attack(two, register=table.select(QUASI), earlier=[one]))
    claimed = found["composition, above 1/l, groups unknown"]
    assert claimed.details["share_of_these_claims_that_is_right"] is None
    assert claimed.risk > 1 / 2
    assert abs(claimed.figure - checked.figure) < 0.05
    assert "composition, above 1/l, groups known" not in found
