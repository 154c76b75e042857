"""Two releases of the same people, planted; one release beside itself tells nothing."""

from __future__ import annotations

import polars as pl

import shoal
from tests.attack.test_attack import QUASI, SENSITIVE, by_name, people


def test_two_releases_are_found() -> None:
    table = people(1500, 4)
    given = {"quasi_identifiers": QUASI, "sensitive": SENSITIVE, "l": 2, "effort": "fast", "seed": 1}
    one = shoal.anonymize(table, k=4, **given)
    two = shoal.anonymize(table, k=4, publish="ranges", **given)
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
