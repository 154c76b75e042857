"""A recoding fitted on one table: what comes out of another keeps every promise by itself, or nothing does."""

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import shoal
from tests.data import drawn

TREES = {"age": "intervals:5,10,20,40", "zip": "prefixes:3,2"}


def people(rows: int, seed: int) -> pl.DataFrame:
    zips = ["10115", "10117", "80331", "80333"]
    return drawn(rows, seed, age=(20, 60), zip=zips, ill=["flu", "gout", "none"], y=(0, 2))


def fitted(**more: Any) -> shoal.Recoder:
    asked = {"insensitive": [n for n in ("ill",) if n not in more.get("sensitive", ())], **more}
    return shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES, **asked).fit(people(800, 1))


def test_on_its_own_table_it_is_what_anonymize_publishes():
    table = people(800, 1)
    asked = {"quasi_identifiers": ["age", "zip"], "k": 5, "hierarchies": TREES, "publish": "hierarchy"}
    release = shoal.anonymize(table, global_recoding=True, keep_order=True, **asked)
    recoder = shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES)
    out = recoder.fit_transform(table)
    assert out.cast(pl.String).equals(release.table.cast(pl.String))
    assert recoder.levels_ == release.certificate.details["levels"]
    assert recoder.certificate_.cost == release.certificate.cost


@pytest.mark.parametrize("rows", [12, 60, 400, 3000])
def test_every_group_of_another_table_holds_k_rows_or_nothing_comes_out(rows: int) -> None:
    recoder, came = fitted(), 0
    for seed in range(8):
        table = people(rows, seed + 10)
        own = [(age // 10, code[:3]) for age, code in table.select("age", "zip").rows()]  # classes are nested in these
        try:
            out = recoder.transform(table)
        except shoal.InfeasibleError:
            continue
        came += 1
        assert min(Counter(out.select("age", "zip").rows()).values()) >= 5
        assert out["y"].equals(table["y"])  # a target stays beside its row
        assert len(set(out.select("age", "zip").rows())) >= 2 or len(set(own)) < 2
    assert came or rows < 400


def test_few_or_odd_rows_are_refused_in_one_sentence_without_a_value() -> None:
    recoder = fitted()
    alone = people(500, 3).with_columns(age=pl.Series([777, *people(500, 3)["age"].to_list()[1:]]))
    with pytest.raises(shoal.InfeasibleError, match="1 of 500 rows would be in groups of fewer than k = 5") as said:
        recoder.transform(alone)
    assert "777" not in str(said.value)
    with pytest.raises(shoal.InputError, match="another form"):
        recoder.transform(people(500, 3).with_columns(pl.col("age") + 0.5))
    with pytest.raises(shoal.InputError, match="same columns"):
        recoder.transform(people(500, 3).drop("y"))
    with pytest.raises(shoal.InputError, match="no rows"):
        recoder.transform(people(500, 3).head(0))
    with pytest.raises(shoal.PolicyError, match="not fitted"):
        shoal.Recoder(["age"]).transform(people(10, 1))
    with pytest.raises(shoal.PolicyError, match="own counts"):
        shoal.Recoder(["age"], hierarchies={"age": "intervals"}).fit(people(100, 1))
    with pytest.raises(shoal.PolicyError, match="kk"):
        recoder.set_params(kk=3)


def test_without_a_hierarchy_a_column_is_kept_or_starred_whole() -> None:
    table = pl.DataFrame({"a": [1, 1, 1, 2, 2, 2], "b": [1, 2, 3, 4, 5, 6]})
    recoder = shoal.Recoder(["a", "b"], k=3).fit(table)
    assert recoder.levels_ == {"a": 0, "b": 1}
    assert recoder.transform(table).rows() == [(1, None)] * 3 + [(2, None)] * 3  # a star of a number
    assert recoder.transform(pl.DataFrame({"a": [7, 7, 7], "b": [0, 0, 9]})).rows() == [(7, None)] * 3


def test_a_column_that_singles_out_is_refused_as_anywhere() -> None:
    rows = people(500, 3).with_columns(y=pl.Series([f"row {i}" for i in range(500)]))
    with pytest.raises(shoal.InputError, match="'y'"):
        fitted().transform(rows)


def test_diversity_is_judged_on_each_table() -> None:
    recoder = fitted(sensitive=["ill"], l=2)
    assert recoder.transform(people(12_000, 4)).height == 12_000
    with pytest.raises(shoal.InfeasibleError, match="no table with l = 2 exists"):
        recoder.transform(people(12_000, 4).with_columns(ill=pl.lit("flu")))


def test_frames_and_their_index_come_back() -> None:
    recoder, table = fitted(), people(900, 5)
    frame = table.to_pandas().set_index(pd.Index(np.arange(900)[::-1] + 7000, name="row"))
    out = recoder.transform(frame)
    assert list(out.index) == list(frame.index)
    assert out.index.name == "row"
    assert pl.from_pandas(out).equals(recoder.transform(table))
    again = pickle.loads(pickle.dumps(recoder))
    assert again.transform(table).equals(recoder.transform(table))
    missing = table.with_columns(zip=pl.when(pl.int_range(900) < 300).then(None).otherwise("zip"))
    assert recoder.transform(missing)["zip"].null_count() in (0, 300)


def test_in_a_pipeline() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    table = people(900, 6).drop("ill").to_pandas()
    target = (table["zip"].str[0] == "8").to_numpy()
    recoder = clone(shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES))
    assert recoder.get_params()["k"] == 5
    made = make_pipeline(recoder, OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(max_depth=4))
    made.fit(table, target)
    other = people(900, 7).drop("ill").to_pandas()
    assert made.score(other, (other["zip"].str[0] == "8").to_numpy()) == 1.0
    with pytest.raises(shoal.InfeasibleError, match="no group of k = 5 exists"):
        made.predict(other.head(3))


def test_it_shows_itself_in_a_line_and_gives_the_kind_of_frame_that_a_pipeline_sets() -> None:
    recoder = shoal.Recoder(["age", "zip"], k=5, l=2, sensitive=["ill"], hierarchies=TREES)
    assert repr(recoder) == "<Recoder of age, zip; k = 5; l = 2; not fitted>"
    table = people(800, 1)
    asked = {"k": 5, "hierarchies": TREES, "insensitive": ["ill"]}
    recoder = shoal.Recoder(["age", "zip"], **asked).fit(table)
    assert repr(recoder) == "<Recoder of age, zip; k = 5; levels: age 1, zip 0>"
    plain, frame = recoder.transform(table), table.to_pandas().iloc[::-1]
    assert recoder.set_output(transform="pandas") is recoder
    assert pl.from_pandas(recoder.transform(table)).equals(plain)
    assert list(recoder.transform(frame).index) == list(frame.index)
    recoder.set_output(transform="polars").set_output(transform=None)
    assert recoder.transform(frame).equals(plain.reverse())
    assert isinstance(recoder.set_output(transform="default").transform(frame), pd.DataFrame)
    with pytest.raises(shoal.PolicyError, match="did you mean 'pandas'"):
        recoder.set_output(transform="panda")


def test_a_pipeline_sets_the_output_and_clones_keep_it() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    made = make_pipeline(shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES, insensitive=["ill"]))
    made.set_output(transform="polars")
    assert isinstance(clone(made).fit_transform(people(800, 1).to_pandas()), pl.DataFrame)


def test_it_names_the_columns_that_it_was_fitted_on(tmp_path: Path) -> None:
    table = people(800, 1).with_columns(name=pl.int_range(800).cast(pl.String))
    recoder = shoal.Recoder(["age", "zip"], k=5, hierarchies=TREES, insensitive=["ill"], identifiers=["name"])
    assert not hasattr(recoder, "feature_names_in_")
    assert not hasattr(recoder, "n_features_in_")
    with pytest.raises(shoal.PolicyError, match="not fitted"):
        recoder.get_feature_names_out()
    for frame in (table, table.to_pandas()):
        recoder.fit(frame)
        assert recoder.feature_names_in_.dtype == object
        assert recoder.feature_names_in_.tolist() == list(frame.columns)
        assert recoder.n_features_in_ == len(frame.columns)
        out = [c for c in frame.columns if c != "name"]
        assert recoder.get_feature_names_out(recoder.feature_names_in_).tolist() == out
        assert list(recoder.transform(frame).columns) == out
    with pytest.raises(shoal.InputError, match="not zip, age"):
        recoder.get_feature_names_out(["zip", "age"])
    assert shoal.Recoder.read(recoder.save(tmp_path / "recoder.toml")).feature_names_in_.tolist() == out


def test_the_ways_out_of_a_fold_that_is_too_small_work():
    """What the refusal says: transform all rows and split, fit with coarser hierarchies, or on as few rows."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"age": rng.integers(20, 60, 120), "town": rng.choice(["Ulm", "Bonn"], 120)})
    asked = {"k": 5, "hierarchies": {"age": "intervals:5,10,20", "town": "stars"}}
    fold = frame[100:]
    with pytest.raises(shoal.InfeasibleError, match=r"split what comes out.*coarser hierarchies.*as small as this one"):
        shoal.Recoder(["age", "town"], **asked).fit(frame[:100]).transform(fold)
    assert shoal.Recoder(["age", "town"], **asked).fit_transform(frame)[100:].height == 20
    coarser = {"age": "intervals:40", "town": "stars"}
    shoal.Recoder(["age", "town"], k=5, hierarchies=coarser).fit(frame[:100]).transform(fold)
    shoal.Recoder(["age", "town"], **asked).fit(fold).transform(fold)


def test_a_recoder_of_one_column_shows_its_name():
    assert repr(shoal.Recoder("age")) == "<Recoder of age; k = 5; not fitted>"
