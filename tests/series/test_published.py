"""Mode again in every way to publish: each part verifies, whatever moves between its classes."""

import random

import polars as pl
import pytest

import shoal
from tests.kept import holding

WAYS = {
    "stars": {"publish": "stars"},
    "ranges": {"publish": "ranges"},
    "hierarchy": {"publish": "hierarchy", "hierarchies": {"age": "intervals:5,10,20"}},
}


@pytest.mark.diagonal
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("counterfeits", [True, False])
def test_every_part_verifies(way, counterfeits, tmp_path):
    rng = random.Random(7)
    people = {f"p{i}": (rng.randint(20, 60), rng.choice(["A", "B", "C", None]), rng.choice("xyz")) for i in range(90)}
    policy = shoal.Policy(quasi_identifiers=["age", "town"], sensitive="ill", k=3, l=2, effort="fast", **WAYS[way])
    series = shoal.Series.start(tmp_path / "s", policy, mode="again", counterfeits=counterfeits)
    for month in range(4):
        for name in rng.sample(sorted(people), 8):
            del people[name]
        for name in rng.sample(sorted(people), 4):
            people[name] = (rng.randint(20, 60), *people[name][1:])
        for i in range(12):
            people[f"m{month}-{i}"] = (rng.randint(20, 60), rng.choice(["A", "B", "C"]), rng.choice("xyz"))
        rows = [(name, *row) for name, row in people.items()]
        part = series.add(pl.DataFrame(rows, schema=["id", "age", "town", "ill"], orient="row"), person="id")
        assert part.rows + part.held_back == len(people) + part.made_up
        assert not (part.made_up and not counterfeits)
    holding(series.verify())
