"""Global recoding with rows starred whole, against every choice of levels and every set of groups."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, Requirement
from shoal.model.recoding import Levels, Recoding
from shoal.problems.tables import group
from tests.kept import failing, forge, holding, kept, verify
from tests.tables.checks import all_eligible, cheapest, columns_of, tables


@settings(deadline=None, max_examples=80)
@given(
    histogram=tables(d=2, s=1, most=10),
    form=st.sampled_from(["stars", "tree"]),
    k=st.integers(1, 4),
    l=st.integers(1, 2),
    u=st.integers(1, 2),
    share=st.sampled_from([0.2, 0.4, 0.6, 1.0]),
    ceiling=st.sampled_from([1, 9]),
)
def test_the_cheapest_levels_and_block(histogram, form, k, l, u, share, ceiling):
    need = Requirement(k, (l,), (u,))
    plain = columns_of(form, histogram.quasi_sizes)
    columns = [replace(c, weight=1.0 + j, ceiling=min(ceiling, c.ceiling)) for j, c in enumerate(plain.columns)]
    recoding = Recoding(tuple(columns), "ncp")
    spare = int(share * histogram.rows + 1e-9)
    least = cheapest(histogram, need, recoding, spare)
    try:
        found = group(histogram, need, "global_recoding", recoding=recoding, seed=0, max_suppressed=share)
    except InfeasibleError:
        assert least is None or l > 1 or u > 1  # which groups fill a block of values is searched, not proved
        return
    if not spare:
        return
    facts = found.certificate.details
    scale = histogram.rows * len(columns)
    assert least is not None
    assert facts["uniform_cost"] * scale >= least - 1e-9
    assert facts["uniform_bound"] * scale <= least + 1e-9
    if l == u == 1 or facts["uniform_optimal"]:
        assert facts["uniform_cost"] * scale == pytest.approx(least)
        assert facts["proved"] == "optimal among full-domain recodings"
    assert all_eligible(histogram, need, found.partition)
    assert facts["suppressed_rows"] == (found.partition.sizes[-1] if found.starred else 0) <= spare
    shown = recoding.at_levels(histogram, found.partition, facts["levels"], found.starred)
    total = float((recoding.losses(histogram, found.partition, shown).sum(axis=1) * found.partition.sizes).sum())
    assert total == pytest.approx(facts["uniform_cost"] * scale)


@pytest.mark.parametrize("seed", range(10))
def test_the_cheapest_levels_of_a_larger_lattice(seed):
    """Sizes alone: small groups are starred whole, and one or two more where the block would be too small."""
    rng = np.random.default_rng(seed)
    quasi = np.stack([rng.integers(0, 8, 50) * rng.integers(0, 2, 50) for _ in range(4)], axis=1)
    histogram = Histogram.from_rows(quasi)
    node = np.stack([np.arange(8), np.arange(8) // 2, np.arange(8) // 4, np.zeros(8, int)])
    plain = [Levels.tree(node[:, :size], weight=1 + j % 2) for j, size in enumerate(histogram.quasi_sizes)]
    recoding = Recoding(tuple(plain), "ncp")
    least = float("inf")
    for levels in product(range(4), repeat=4):
        groups = {}
        for row in quasi.tolist():
            groups.setdefault(tuple(int(node[h][v]) for h, v in zip(levels, row, strict=True)), []).append(row)
        price = [
            sum(c.weight * c.loss[h][v] for r in g for c, h, v in zip(plain, levels, r, strict=True))
            for g in groups.values()
        ]
        size = [len(g) for g in groups.values()]
        large = [i for i, n in enumerate(size) if n >= 3]
        for more in [(), *combinations(large, 1), *combinations(large, 2)]:
            kept = set(large) - set(more)
            out = 50 - sum(size[i] for i in kept)
            if out <= 10 and out not in (1, 2):
                least = min(least, sum(price[i] for i in kept) + out * sum(c.weight for c in plain))
    found = group(histogram, KAnonymity(3), "global_recoding", recoding=recoding, seed=0, max_suppressed=0.2)
    facts = found.certificate.details
    assert facts["uniform_optimal"]
    assert facts["uniform_cost"] * 200 == pytest.approx(least)
    assert facts["nodes_looked_at"] < 256


def people():
    """Forty people in towns of ten, and three who live alone: without stars they coarsen everybody."""
    town = [t for t in ("Ayr", "Bath", "Cork", "Deal") for _ in range(10)] + ["Eton", "Fife", "Goole"]
    return pl.DataFrame({"town": town, "age": [30 + i % 2 for i in range(40)] + [30, 31, 30]})


def settings_of(**more):
    trees = {"town": [["Ayr", "north", "*"], ["Bath", "south", "*"], ["Cork", "north", "*"], ["Deal", "south", "*"],
                      ["Eton", "west", "*"], ["Fife", "west", "*"], ["Goole", "west", "*"]]}  # fmt: skip
    return {
        "quasi_identifiers": ["town", "age"],
        "k": 3,
        "publish": "hierarchy",
        "hierarchies": trees,
        "global_recoding": True,
    } | more


def test_a_release_with_rows_starred_whole_is_verified(tmp_path):
    people().write_csv(tmp_path / "people.csv")
    without = shoal.anonymize(people(), **settings_of())
    release = shoal.anonymize(str(tmp_path / "people.csv"), **settings_of(max_suppressed=0.07))
    assert release.certificate.details["suppressed_rows"] == 3
    assert release.certificate.cost < without.certificate.cost
    assert release.table.filter(pl.col("town") == "*").height == 3
    assert release.audit.k >= 3
    assert release.certificate.cost == pytest.approx(release.facts.cost["ncp"])
    certificate = kept(release.write(tmp_path / "out.csv"))
    for original in (None, str(tmp_path / "people.csv")):
        verdict = holding(verify(tmp_path / "out.csv", certificate, original, hierarchies=settings_of()["hierarchies"]))
    assert any(f.check == "suppressed rows" and f.found.startswith("3 rows") for f in verdict.findings)
    again = shoal.Policy.read(certificate, hierarchies=settings_of()["hierarchies"])
    assert again.max_suppressed == 0.07


def test_levels_that_star_rows_whole_count():
    """The highest level of every column, beside the block that the search stars."""
    pairs = pl.DataFrame({"a": ["x", "y"] * 3, "b": ["u", "v", "v", "u", "w", "w"]})
    asked = {"quasi_identifiers": ["a", "b"], "k": 6, "global_recoding": True}
    with pytest.raises(InfeasibleError, match=r"stars 6 of 6 rows whole, and max_suppressed=0\.5 allows 3"):
        shoal.anonymize(pairs, max_suppressed=0.5, **asked)
    assert shoal.anonymize(pairs, max_suppressed=1.0, **asked).certificate.details["suppressed_rows"] == 6


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_missing_text_beside_a_star_is_no_row_starred_whole(ending, tmp_path):
    gaps = pl.DataFrame({"a": ["p", "q", "r", "r"], "b": [None, None, "u", "v"]})
    release = shoal.anonymize(gaps, quasi_identifiers=["a", "b"], k=2, max_suppressed=0.5)
    assert (release.certificate.cost, release.certificate.details["suppressed_rows"]) == (4, 0)
    beside = kept(release.write(tmp_path / f"r{ending}"))
    holding(verify(tmp_path / f"r{ending}", beside))


@pytest.mark.diagonal
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("publish", ["stars", "ranges", "hierarchy", "centers"])
def test_other_recodings_keep_the_budget(publish, ending, tmp_path):
    """They star rows whole where that loses least, and are held to the share that was allowed."""
    alone = pl.DataFrame({"town": ["Hull", "Iona", None], "age": [80, 95, 12]}, schema_overrides={"age": pl.Int64})
    table = pl.concat([people().head(40), alone])
    asked = {"quasi_identifiers": ["town", "age"], "k": 3, "publish": publish, "seed": 1}
    if publish == "hierarchy":
        asked["hierarchies"] = {"town": "prefixes:1"}
    release = shoal.anonymize(table, max_suppressed=0.08, **asked)
    facts = release.certificate.details
    starred = release.table.select(pl.all().cast(pl.String)).filter((pl.col("town") == "*") & pl.col("age").is_null())
    held = {"stars": 3, "hierarchy": 3, "ranges": 0, "centers": 0}[publish]
    assert facts["max_suppressed_rows"] == 3
    assert facts["suppressed_rows"] == held
    if publish == "stars":
        assert starred.height == held
    beside = kept(release.write(tmp_path / f"r{ending}"))
    for original in (None, table):
        verdict = holding(verify(tmp_path / f"r{ending}", beside, original, hierarchies=asked.get("hierarchies")))
    if held:
        with pytest.raises(InfeasibleError, match=r"stars 3 of 43 rows whole, and max_suppressed=0\.05 allows 2"):
            shoal.anonymize(table, max_suppressed=0.05, **asked)
        forge(beside, lambda facts: facts["certificate"]["details"].update(suppressed_rows=1))
        verdict = verify(tmp_path / f"r{ending}", beside)
        assert failing(verdict) == ["suppressed rows"]
