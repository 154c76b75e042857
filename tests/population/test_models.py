"""k-map and delta-presence: what every group covers of the population its rows were drawn from."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.judge.tables.population import Covered, presence
from tests.commands import run
from tests.kept import failing, forge, holding, verify
from tests.oracles.tables import least_total

HIERARCHY = [[str(a), f"{a // 5 * 5}-{a // 5 * 5 + 4}", f"{a // 10 * 10}-{a // 10 * 10 + 9}"] for a in range(20, 40)]
QUASI = ["age", "sex", "zip"]


def people(n: int = 300, seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A population and a sample of it."""
    random = np.random.default_rng(seed)
    population = pl.DataFrame(
        {"age": random.integers(20, 40, n), "sex": random.choice(["f", "m"], n), "zip": random.choice(["a", "b"], n)}
    )
    sample = population.sample(n // 6, seed=seed).with_columns(
        s=pl.Series(random.choice(["x", "y", "z"], n // 6)),
        w=pl.Series(random.choice([2.5, 6.0, 8.25], n // 6)),
    )
    return population, sample


def span(text: str) -> tuple[int, int]:
    """Lowest and highest age that a published text stands for."""
    if text == "*":
        return 0, 99
    low, _, high = text.strip("[]").replace(",", "-").partition("-")
    return int(low), int(high or low)


def fitting(table: pl.DataFrame, population: pl.DataFrame) -> dict[tuple, int]:
    """People that fit each class, counted one by one."""
    out = {}
    for age, sex, place in set(table.select(QUASI).cast(pl.String).fill_null("*").rows()):
        low, high = span(age)
        out[age, sex, place] = sum(
            low <= a <= high and (sex == "*" or s in sex.strip("{}").split(", ")) and (place in ("*", z) or z in place)
            for a, s, z in population.rows()
        )
    return out


@pytest.mark.parametrize("way", ["stars", "ranges", "hierarchy", "global"])
@pytest.mark.parametrize("asked", [{"k_map": 15}, {"k_map": 15, "k": 2, "distinct_l": 2}, {"presence": (0, 0.25)}])
def test_every_class_covers_enough_people(way: str, asked: dict) -> None:
    population, sample = people()
    more = {"publish": way} if way != "global" else {"publish": "hierarchy", "global_recoding": True}
    if more["publish"] == "hierarchy":
        more["hierarchies"] = {"age": HIERARCHY}
    release = shoal.anonymize(
        sample.drop("w"), quasi_identifiers=QUASI, sensitive=["s"], population=population, seed=1, **asked, **more
    )
    found = fitting(release.table, population)
    rows = Counter(release.table.select(QUASI).cast(pl.String).fill_null("*").rows())
    assert release.audit.population["k_map"] == min(found.values())
    assert release.audit.population["presence"][1] == max(n / found[c] for c, n in rows.items())
    risk = sum(n / found[c] for c, n in rows.items()) / sample.height
    assert release.audit.risk["journalist_mean"] == pytest.approx(risk)
    if "k_map" in asked:
        assert min(found.values()) >= 15
        assert release.audit.risk["journalist_max"] == pytest.approx(1 / min(found.values()))
        assert release.privacy()["k_map"] == min(found.values())
    else:
        assert all(n <= 0.25 * found[c] for c, n in rows.items())
    assert release.certificate.lower_bound > 0 or way == "ranges"


def test_certificate_verify_and_flags(tmp_path) -> None:
    population, sample = people()
    population.write_parquet(tmp_path / "all.parquet")
    sample.drop("w").write_csv(tmp_path / "some.csv")
    (tmp_path / "policy.toml").write_text('quasi_identifiers = ["age", "sex", "zip"]\npopulation = "all.parquet"\n')
    flags = [
        "--policy",
        tmp_path / "policy.toml",
        "--sensitive",
        "s",
        "--k-map",
        "12",
        "--json",
        "--internal",
        "--report",
    ]
    out = tmp_path / "out.csv"
    told = run("anonymize", tmp_path / "some.csv", *flags, tmp_path / "r.html", "-o", out).facts
    assert told["privacy"]["k_map"] == told["population"]["k_map"] >= 12
    assert "of the 300 people of the population" in (tmp_path / "r.internal.html").read_text()
    beside = tmp_path / "out.record.json"
    for original in (None, tmp_path / "some.csv"):
        for given_, how in ((None, "stated"), (tmp_path / "all.parquet", "recomputed"), (population, "recomputed")):
            verdict = holding(verify(out, beside, original, population=given_))
            assert [f.how for f in verdict.findings if f.check == "population"] == [how]
    again = shoal.Policy.read(beside)
    assert again.population == str(tmp_path / "all.parquet")
    assert again.privacy == (shoal.KMap(12),)
    assert run("verify", out, "--record", beside, "--population", tmp_path / "all.parquet").returncode == 0
    fewer = population.filter(pl.col("zip") == "a")
    with pytest.raises(InputError, match="no value of the population"):
        verify(out, beside, population=fewer)
    verdict = verify(out, beside, population=pl.concat([population, population]))
    assert failing(verdict) == ["levels", "population"]
    forge(beside, lambda facts: facts["population"].update(k_map=11))
    assert failing(verify(out, beside)) == ["population"]
    flags = ["--quasi", "age,sex,zip", "--population", tmp_path / "all.parquet", "--k-map", "12"]
    _, said, _ = run("audit", out, *flags).ok()
    assert "journalist risk      highest 0.0" in said
    assert run("audit", tmp_path / "some.csv", *flags).returncode == 1


@pytest.mark.parametrize("carried", [True, False])
def test_weights_say_how_many_people_a_row_stands_for(tmp_path, carried: bool) -> None:
    _, sample = people()
    more = {"insensitive": ["w"]} if carried else {}
    asked = {"quasi_identifiers": QUASI, "sensitive": ["s"], "population_weights": "w", "seed": 1}
    release = shoal.anonymize(sample, **asked, k_map=30, **more)
    assert ("w" in release.table.columns) is carried
    if carried:
        sums = release.table.group_by(QUASI).agg(pl.col("w").sum())["w"]
        assert release.audit.population["k_map"] == int(sums.min()) >= 30
        assert release.audit.population["rows"] == int(sample["w"].sum())
    release.write(tmp_path / "out.csv")
    verdict = holding(verify(tmp_path / "out.csv", tmp_path / "out.certificate.json", sample))
    how = [f.how for f in verdict.findings if f.check == "population"]
    assert how == ["recomputed" if carried else "stated"]
    whole = int(sample["w"].sum())
    assert shoal.anonymize(sample, **asked, k_map=whole, effort="fast").audit.classes == 1
    with pytest.raises(InfeasibleError, match=f"largest k_map possible is {whole}"):
        shoal.anonymize(sample, **asked, k_map=whole + 1)
    with pytest.raises(InputError, match="negative weight"):
        shoal.anonymize(sample.with_columns(w=pl.col("w") - 5), **asked, k_map=5)
    with pytest.raises(InputError, match="missing or no number"):
        shoal.anonymize(sample.with_columns(w=pl.lit("many")), **asked, k_map=5)


WEIGHED = st.tuples(st.integers(0, 1), st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0, 2.25]))


@settings(deadline=None, max_examples=40)
@given(cells=st.lists(WEIGHED, min_size=1, max_size=6), k=st.integers(1, 6))
def test_weighted_groups_are_bounded_by_the_heaviest_rows(cells: list, k: int) -> None:
    rows, weights = [c[:2] for c in cells], [c[2] for c in cells]

    def stars(group: list[int]) -> int | None:
        shown = zip(*(rows[i] for i in group), strict=True)
        return None if sum(weights[i] for i in group) < k else len(group) * sum(len({*column}) > 1 for column in shown)

    least = least_total(len(rows), stars)
    sample = pl.DataFrame({"a": [r[0] for r in rows], "b": [r[1] for r in rows], "w": weights})
    asked = {"quasi_identifiers": ["a", "b"], "population_weights": "w", "k_map": k, "seed": 1, "effort": "fast"}
    if least is None:
        with pytest.raises(InfeasibleError):
            shoal.anonymize(sample, **asked)
        return
    found = shoal.anonymize(sample, **asked).certificate
    assert found.lower_bound <= least <= found.cost


def test_a_group_of_heavy_rows_bounds_every_group() -> None:
    sample = pl.DataFrame({"a": range(12), "b": [0] * 12, "w": [2.5] * 12})
    asked = {"quasi_identifiers": ["a", "b"], "population_weights": "w", "seed": 1}
    found = shoal.anonymize(sample, **asked, k_map=10)
    assert (found.certificate.lower_bound, found.certificate.cost, found.audit.k) == (12, 12, 12)
    assert shoal.anonymize(sample.with_columns(a=pl.col("a") // 3), **asked, k_map=10).certificate.lower_bound == 12


def test_what_cannot_be_asked_is_refused() -> None:
    population, sample = people()
    sample = sample.drop("w")
    asked = {"quasi_identifiers": QUASI, "sensitive": ["s"]}
    known = asked | {"population": population}
    with pytest.raises(PolicyError, match="say population=TABLE"):
        shoal.anonymize(sample, **asked, k_map=5)
    with pytest.raises(InputError, match=r"the population has 10 rows and the sample 50"):
        shoal.anonymize(sample, **asked, population=population.head(10), k_map=5)
    with pytest.raises(InputError, match=r"less often than in the sample.*'age'"):
        shoal.anonymize(sample, **asked, population=population.with_columns(pl.col("age") + 1), k_map=5)
    with pytest.raises(InputError, match=r"the population has 10 rows and the sample 50"):
        shoal.audit(sample, **asked, population=population.head(10), k_map=5)
    lacking = population.filter((pl.col("age") != sample["age"][0]) | (pl.col("sex") != sample["sex"][0]))
    with pytest.raises(InputError, match=r"classes have more rows than the population has people"):
        shoal.audit(sample, **asked, population=lacking, k_map=5)
    with pytest.raises(PolicyError, match="'zip'"):
        shoal.anonymize(sample, **asked, population=population.drop("zip"), k_map=5)
    with pytest.raises(InfeasibleError, match="the largest k_map possible is 300"):
        shoal.anonymize(sample, **known, k_map=301)
    with pytest.raises(InfeasibleError, match=r"ask for 0.16\d+ at the least"):
        shoal.anonymize(sample, **known, presence=(0, 0.1))
    with pytest.raises(PolicyError, match="not monotone above low = 0"):
        shoal.anonymize(sample, **known, presence=(0.1, 0.5))
    with pytest.raises(PolicyError, match="counted in rows"):
        shoal.anonymize(sample, quasi_identifiers=QUASI, person="s", population=population, k_map=5)
    with pytest.raises(PolicyError, match="household= counts households"):
        shoal.anonymize(sample, quasi_identifiers=QUASI, household="s", population=population, k_map=5)
    with pytest.raises(PolicyError, match="publish='centers'"):
        shoal.anonymize(sample, **known, k_map=5, publish="centers")
    with pytest.raises(PolicyError, match="give one of them"):
        shoal.anonymize(sample, **known, k_map=5, population_weights="s")
    odd = pl.concat([population, pl.DataFrame({"age": [99], "sex": ["f"], "zip": ["a"]})])
    asked |= {"publish": "hierarchy", "hierarchies": {"age": HIERARCHY}}  # the bound resolves it, or the judge does
    with pytest.raises(InputError, match="the hierarchy of 'age' lacks a value of the population"):
        shoal.anonymize(sample, **asked, population=odd, k_map=5)


def test_one_group_decides_where_the_samples_own_tuples_are_too_few() -> None:
    population = pl.DataFrame({"q": ["a", "b", *["c"] * 8]})
    sample = pl.DataFrame({"q": ["a", "b"]})
    release = shoal.anonymize(sample, quasi_identifiers=["q"], population=population, k_map=10)
    assert release.table["q"].to_list() == ["*", "*"]
    with pytest.raises(InfeasibleError, match="possible is 10"):
        shoal.anonymize(sample, quasi_identifiers=["q"], population=population, k_map=11)


def test_a_union_may_fall_below_the_floor_of_presence() -> None:
    """Two classes of half their people each, joined over people between them."""
    population = pl.DataFrame({"q": [1, 1, 2, 2, 2, 2, 3, 3]})
    model = shoal.DeltaPresence(0.4, 0.6)
    apart, joined = pl.DataFrame({"q": ["1", "3"]}), pl.DataFrame({"q": ["[1, 3]", "[1, 3]"]})
    for table, holds in ((apart, True), (joined, False)):
        found = shoal.audit(table, quasi_identifiers=["q"], population=population, privacy=[model])
        assert found.passes is holds


@settings(max_examples=40)
@given(
    rows=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    held=st.lists(st.integers(1, 5), min_size=3, max_size=3),
    fits=st.lists(st.integers(1, 7), min_size=4, max_size=4),
)
def test_presence_is_the_largest_share_of_any_set_of_classes(rows: list, held: list, fits: list) -> None:
    inside = [np.array([p for p in range(3) if fits[c] >> p & 1]) for c in range(len(rows))]
    pairs = [(np.array([c]), inside[c]) for c in range(len(rows))]
    of = np.array(held)
    found = Covered(np.array(rows), np.array([of[i].sum() for i in inside]), sum(held), False, of, pairs)
    shares = []
    for some in range(1, 2 ** len(rows)):
        chosen = [c for c in range(len(rows)) if some >> c & 1]
        union = sorted({p for c in chosen for p in inside[c]})
        shares.append(sum(rows[c] for c in chosen) / of[union].sum())
    assert presence(found) == pytest.approx(max(shares))


def test_one_group_decides_about_presence_of_ranges() -> None:
    """Two groups whose ranges overlap are each 0.6 of those they cover, and both together 1 of theirs."""
    sample = pl.DataFrame({"a": [19, 34, 18, 25, 18], "b": [2, 10, 2, 2, 2]})
    population = pl.concat([sample, pl.DataFrame({"a": [19, 34], "b": [1, 1]})])
    shown = pl.DataFrame({"a": ["[18, 34]"] * 2 + ["[18, 25]"] * 3, "b": ["[2, 10]"] * 2 + ["2"] * 3})
    asked = {"quasi_identifiers": ["a", "b"], "population": population}
    assert not shoal.audit(shown, **asked, privacy=[shoal.DeltaPresence(0, 0.9)]).passes
    with pytest.raises(InfeasibleError, match=r"no table with presence at most 0\.9 exists; ask for 1 at the least"):
        shoal.anonymize(sample, **asked, k=2, publish="ranges", presence=(0, 0.9))
