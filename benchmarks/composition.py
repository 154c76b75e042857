"""Two releases of overlapping people set against each other: Adult and census, a month later, and by one recoding.

python benchmarks/composition.py adult 2
python benchmarks/composition.py adult 3
python benchmarks/composition.py census 5
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

import shoal
from shoal.judge.composition import Composition, ReleaseOfPeople, compose

DATA = Path(__file__).parents[2] / "shared/data"
K = 5


def load(name: str) -> tuple[pl.DataFrame, list[str], str, dict[str, str]]:
    """The table, its quasi-identifiers, its sensitive column, hierarchies."""
    if name == "adult":
        quasi = ["sex", "age", "race", "marital-status", "education"]
        table = pl.read_csv(DATA / "adult/adult.csv", infer_schema=False).select(*quasi, "occupation")
        return table, quasi, "occupation", {q: str(DATA / f"adult/hierarchies/adult_hierarchy_{q}.csv") for q in quasi}
    quasi = ["Gender", "Age", "Race", "MaritalStatus", "Education"]
    table = pl.read_csv(DATA / "census_income/census_income.csv.gz", infer_schema=False)
    table = table.filter((pl.col("Age").cast(int) >= 16) & (pl.col("Occupation") != "0")).select(*quasi, "Occupation")
    return table, quasi, "Occupation", {"Age": "intervals:5,10,20,40"}


def main(name: str, l: int) -> None:
    """Measure and record."""
    table, quasi, sensitive, trees = load(name)
    table = table.with_row_index("person")
    n = table.height
    order = np.random.default_rng(0).permutation(n)
    new = int(n / 1.1 * 0.1)
    old = n - new
    first = table[np.sort(order[:old])]
    later = table[np.sort(np.concatenate([order[int(old * 0.05) : old], order[old:]]))]
    asked = {"quasi_identifiers": quasi, "sensitive": [sensitive], "l": l, "effort": "fast", "keep_order": True}
    rows: list[dict[str, Any]] = []

    def made(whose: pl.DataFrame, **more: Any) -> tuple[ReleaseOfPeople, float]:
        release = shoal.anonymize(whose.drop("person"), **{**asked, "k": K, "seed": 1, **more}, numeric_stars="text")
        tree = trees if more.get("publish") == "hierarchy" else {}
        return ReleaseOfPeople(release.table, quasi, tree, whose), release.loss["ncp"]

    def applied(recoder: shoal.Recoder, whose: pl.DataFrame) -> tuple[ReleaseOfPeople, float]:
        release = recoder.apply(whose.drop("person"), keep_order=True)
        return ReleaseOfPeople(release.table, quasi, trees, whose), release.loss["ncp"]

    def add(what: str, one: tuple[ReleaseOfPeople, float], two: tuple[ReleaseOfPeople, float]) -> None:
        clock = time.perf_counter()
        found: Composition = compose([one[0], two[0]], sensitive=sensitive, k=K, l=l, person="person")
        assert found.known is not None
        assert found.unknown is not None
        share = found.people / 100
        rows.append(
            {
                "second release": what,
                "in both": found.people,
                "NCP": two[1],
                f"fewer than {K} in both groups, %": found.known.fewer_than_k / share,  # type: ignore[operator]
                "one value left, %": found.known.one_value / share,  # type: ignore[operator]
                f"above 1/{l}, groups known, %": found.known.above / share,  # type: ignore[operator]
                f"above 1/{l}, register, %": found.unknown.above / share,  # type: ignore[operator]
                "right of these": found.unknown.right if found.unknown.right is not None else "",
                "seconds": time.perf_counter() - clock,
            }
        )

    whole = made(table)
    add("the same", whole, whole)
    add("other seed", whole, made(table, seed=2))
    add("k 7", whole, made(table, k=7))
    add("a month later", made(first), made(later))
    by = {"publish": "hierarchy", "hierarchies": trees}
    add("a month later, hierarchy", made(first, **by), made(later, **by))
    for budget in (0.0, 0.05):
        recoder = shoal.Recoder(
            quasi, sensitive=[sensitive], k=K, l=l, hierarchies=trees, effort="fast", seed=1, max_suppressed=budget
        ).fit(first.drop("person"))
        add(
            f"a month later, Recoder, at most {100 * budget:g} % starred",
            applied(recoder, first),
            applied(recoder, later),
        )
    record(
        f"Composition: {name}, l = {l}",
        f"python benchmarks/composition.py {name} {l}",
        rows,
        [f"{n:,} rows, k = {K}; a month: 10 % new, 5 % gone; the machine ran other jobs as well."],
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
