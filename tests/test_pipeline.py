"""Every release keeps its promises: what was asked holds, what was not suppressed is unchanged, nobody is lost."""

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError, VerificationError
from shoal.model.histogram import Partition
from shoal.model.task import Grouping
from shoal.pipeline import prepare
from shoal.problems.tables import group
from tests.oracles.models import classes, meets

Q = ["a", "b", "c"]
ROLES: dict[str, Any] = {
    "quasi_identifiers": Q, "sensitive": ["s"], "identifiers": ["name"], "insensitive": ["row"],
}  # fmt: skip
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", "01", "1", "", None]),
        st.sampled_from([1, 2, 2**60 + 1, None]),
        st.sampled_from([1.5, float("nan"), None, -0.0, 0.0]),
        st.sampled_from(["p", "q", "r", None]),
    ),
    min_size=1,
    max_size=14,
)
MODELS = st.sampled_from(
    [
        {"k": 2},
        {"k": 3, "l": 2},
        {"distinct_l": 2},
        {"k": 3, "distinct_l": 3},
        {"l": 2, "distinct_l": 3, "method": "three_phase"},
        {"entropy_l": 1.7},
        {"recursive_cl": (2.0, 2)},
        {"recursive_cl": (0.9, 2)},
        {"alpha_k": (0.5, 2)},
        {"alpha_k": (1 / 3, 2)},
        {"k": 2, "publish": "ranges"},
    ]
)


def table(rows: list[tuple]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.Int64, "c": pl.Float64, "s": pl.String}, orient="row")
    return frame.with_columns(name=pl.lit("secret name"), row=pl.int_range(pl.len()))


def released(rows: list[tuple], asked: dict[str, Any], seed: int | None = None) -> shoal.Release:
    try:
        return shoal.anonymize(table(rows), **ROLES, effort="fast", seed=seed, numeric_stars="null", **asked)
    except InfeasibleError:
        assume(False)
        raise


def same(before: Any, after: Any) -> bool:
    missing = [v is None or v != v for v in (before, after)]
    return all(missing) or (not any(missing) and before == after)


@settings(deadline=None, max_examples=60)
@given(ROWS, MODELS, st.one_of(st.none(), st.integers(0, 2**40)))
def test_a_release_keeps_its_promises(rows: list[tuple], asked: dict[str, Any], seed: int | None) -> None:
    release = released(rows, asked, seed)
    out = release.table
    assert out.columns == ["a", "b", "c", "s", "row"]
    assert out.height == len(rows)
    assert Counter(out["s"].to_list()) == Counter(row[3] for row in rows)
    for *quasi, s, row in out.iter_rows():
        assert s == rows[row][3]
        if asked.get("publish") != "ranges":
            for value, before in zip(quasi, rows[row][:3], strict=True):
                assert same(before, value) or value == "*" or value is None
    found = release.audit
    assert found.passes
    groups = classes([tuple("nan" if v != v else v for v in r) for r in out.fill_nan(None).rows()], [0, 1, 2])
    assert min(map(len, groups)) == found.k
    assert len(groups) == found.classes == release.facts.groups
    codes = sorted({row[3] for row in rows}, key=str)
    table_of = [(codes.index(row[3]),) for row in rows]
    for model in release.policy.privacy:
        for held in groups:
            own = [(codes.index(row[3]),) for row in held]
            assert meets(type(model).__name__, vars(model), own, table_of), model


@settings(deadline=None, max_examples=25)
@given(ROWS, st.sampled_from([{"k": 2}, {"k": 3, "l": 2}]), st.integers(0, 99))
def test_one_seed_gives_one_release_on_every_kind_of_frame(rows: list[tuple], asked: dict[str, Any], seed: int) -> None:
    frame = table(rows)
    settings_ = {**ROLES, "effort": "fast", "seed": seed, **asked, "secret": b"sixteen bytes or more"}
    try:
        expected = shoal.anonymize(frame, **settings_).table.fill_nan(None)
    except InfeasibleError:
        assume(False)
    kinds = {
        "pandas": (frame.to_pandas(use_pyarrow_extension_array=True), lambda t: pl.from_pandas(t)),
        "pyarrow": (frame.to_arrow(), lambda t: pl.from_arrow(t)),
        "lazy": (frame.lazy(), lambda t: t.collect()),
    }
    for kind, (given_, back) in kinds.items():
        got = shoal.anonymize(given_, **settings_).table
        assert type(got) is type(given_), kind
        assert back(got).fill_nan(None).rows() == expected.rows(), kind


PANDAS = {
    "object": pd.Series(["x", "x", "y", None], dtype=object),
    "string": pd.Series(["x", "x", "y", None], dtype="string"),
    "str": pd.Series(["x", "x", "y", "z"]),
    "Int16": pd.Series([1, 1, None, 3], dtype="Int16"),
    "boolean": pd.Series([True, True, None, False], dtype="boolean"),
    "float32": pd.Series([1, 1, np.nan, 3], dtype="float32"),
    "datetime": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-01", "2021-01-01", None])),
    "zoned": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-01", "2021-01-01", None])).dt.tz_localize("UTC"),
    "dates": pd.Series([dt.date(2020, 1, 1)] * 2 + [dt.date(2021, 1, 1), None], dtype=object),
    "decimals": pd.Series([Decimal("1.5"), Decimal("1.5"), Decimal("2.5"), None], dtype=object),
    "category": pd.Series(pd.Categorical(["x", "x", "y", "z"], categories=["unused", "x", "y", "z"])),
    "numbers": pd.Series(pd.Categorical([1, 1, 2, 3])),
    "arrow": pd.Series(["x", "x", "y", None], dtype=pd.ArrowDtype(pa.string())),
}


@pytest.mark.parametrize("kind", PANDAS)
def test_pandas_columns_keep_their_type(kind: str) -> None:
    column = PANDAS[kind]
    frame = pd.DataFrame({"a": column.set_axis([7, 7, 8, 9]), "v": pd.Series([1, 2, 3, 4], index=[7, 7, 8, 9]).values})
    before = frame.copy(deep=True)
    out = shoal.anonymize(frame, quasi_identifiers=["a"], insensitive=["v"], k=2, effort="fast", seed=0).table
    pd.testing.assert_frame_equal(frame, before)
    if isinstance(column.dtype, pd.CategoricalDtype):
        assert isinstance(out["a"].dtype, pd.CategoricalDtype)
        assert set(out["a"].cat.categories) <= {column[0], "*"}
    else:
        assert out["a"].dtype == column.dtype
    assert list(out.index) == [0, 1, 2, 3]
    for value, row in zip(out["a"], out["v"], strict=True):
        if row <= 2:
            assert value == column[0]
        else:
            assert pd.isna(value) or value == "*"


@pytest.mark.parametrize(("k", "hidden"), [(2, 2), (4, 4)])
def test_the_type_of_pandas_booleans_does_not_tell_whether_a_hidden_one_was_missing(k: int, hidden: int) -> None:
    known, missing = pd.DataFrame({"a": [True, True, True, False]}), pd.DataFrame({"a": [True, True, True, None]})
    assert known["a"].dtype != missing["a"].dtype
    asked: dict[str, Any] = {"quasi_identifiers": ["a"], "k": k, "secret": b"32 bytes that nobody else knows."}
    out = [shoal.anonymize(table, **asked).table for table in (known, missing)]
    assert out[0]["a"].isna().sum() == hidden
    pd.testing.assert_frame_equal(*out)


def test_the_type_of_pandas_integers_does_not_tell_whether_one_was_missing_if_all_are_hidden() -> None:
    asked: dict[str, Any] = {"quasi_identifiers": ["a"], "k": 4, "secret": b"32 bytes that nobody else knows."}
    known, missing = (shoal.anonymize(pd.DataFrame({"a": [1, 1, 1, last]}), **asked).table for last in (2, None))
    assert known["a"].isna().all()
    pd.testing.assert_frame_equal(known, missing)


def test_pandas_integers_stay_exact_where_some_are_suppressed() -> None:
    frame = pd.DataFrame({"a": [2**60 + 1, 2**60 + 1, 3, 4]})
    out = shoal.anonymize(frame, quasi_identifiers=["a"], k=2, effort="fast").table
    assert sorted(v for v in out["a"].tolist() if v is not pd.NA) == [2**60 + 1, 2**60 + 1]


ARROW = {
    "dictionary": pa.array(["x", "x", "y", "z"]).dictionary_encode(),
    "large": pa.array(["x", "x", "y", "z"], pa.large_string()),
    "int8": pa.array([1, 1, 2, None], pa.int8()),
    "uint64": pa.array([2**64 - 1, 2**64 - 1, 2, None], pa.uint64()),
    "date": pa.array([dt.date(2020, 1, 1)] * 2 + [dt.date(2021, 1, 1), None]),
    "zoned": pa.array([0, 0, 1, None], pa.timestamp("ms", "UTC")),
    "bool": pa.array([True, True, False, None]),
    "decimal": pa.array([Decimal("1.50"), Decimal("1.50"), Decimal("2.50"), None], pa.decimal128(9, 2)),
}


POLARS = {
    "category": pl.Series(["x", "x", "y", "z"], dtype=pl.Categorical),
    "enum": pl.Series(["x", "x", "y", "z"], dtype=pl.Enum(["unused", "z", "y", "x"])),
    "int128": pl.Series([2**100, 2**100, 2**101, None], dtype=pl.Int128),
    "u64": pl.Series([2**64 - 1, 2**64 - 1, 2**64 - 2, None], dtype=pl.UInt64),
    "duration": pl.Series([dt.timedelta(1), dt.timedelta(1), dt.timedelta(2), None]),
    "time": pl.Series([dt.time(1), dt.time(1), dt.time(2), None]),
    "null": pl.Series([None] * 4),
}


@pytest.mark.parametrize("kind", [*ARROW, *POLARS])
def test_columns_of_arrow_and_polars_keep_their_type(kind: str) -> None:
    column = ARROW.get(kind, POLARS.get(kind))
    given_ = pa.table({"a": column}) if kind in ARROW else column.alias("a").to_frame()
    out = shoal.anonymize(given_, quasi_identifiers=["a"], k=2, effort="fast").table
    assert type(out) is type(given_)
    held, first = (out.schema.field("a").type if kind in ARROW else out["a"].dtype), pl.Series(column)[0]
    if kind == "dictionary":
        assert held.value_type == pa.string()
        assert set(out["a"].combine_chunks().dictionary.to_pylist()) == {"x", "*"}
    elif kind != "null":
        assert held == column.type if kind in ARROW else held.base_type() == column.dtype.base_type()
    if kind == "enum":
        assert held.categories.to_list() == ["x", "*"]
    if kind != "null":
        assert list(pl.Series(out["a"])).count(first) == 2


def test_wide_integers_are_not_taken_for_one_another() -> None:
    wide = pl.Series("a", [2**100] * 2 + [2**101] * 2 + [5, 5], dtype=pl.Int128)
    out = shoal.anonymize(wide.to_frame(), quasi_identifiers=["a"], k=2, effort="fast").table
    assert sorted(out["a"].to_list()) == sorted(wide.to_list())


def go(frame: Any, **asked: Any) -> Any:
    asked = {"quasi_identifiers": ["a"], "k": 2, "effort": "fast", "seed": 1} | asked
    names = getattr(frame, "column_names", None) or list(getattr(frame, "columns", ()))
    told = [asked.get(role, ()) for role in ("quasi_identifiers", "sensitive", "identifiers")]
    roles = [n for given in told if isinstance(given, (list, tuple)) for n in given]
    known = {"insensitive": [n for n in dict.fromkeys(names) if isinstance(n, str) and n not in roles]}
    return shoal.anonymize(frame, **(known | asked)).table


@pytest.mark.parametrize("publish", ["stars", "centers"])
def test_an_empty_table(publish: str, tmp_path: Path) -> None:
    empty: list[Any] = [pl.DataFrame(schema={"a": pl.Int64, "s": pl.String}), pd.DataFrame({"a": [], "s": []}),
                        pa.table({"a": [], "s": []})]  # fmt: skip
    for number, text in enumerate(("a,s\n", "a,s")):
        empty.append(tmp_path / f"{number}.csv")
        empty[-1].write_text(text)
    for table in empty:
        with pytest.raises(InputError, match="no rows, so there is nothing to publish"):
            go(table, sensitive=["s"], l=3, publish=publish)


def test_small_and_extreme_tables() -> None:
    assert go(pl.DataFrame({"a": [1]}), k=1).rows() == [(1,)]
    with pytest.raises(InfeasibleError, match="the table has 1 row, so no group of k = 2 exists"):
        go(pl.DataFrame({"a": [1]}), k=2)
    assert go(pl.DataFrame({"a": ["x"] * 5})).rows() == [("x",)] * 5
    assert go(pl.DataFrame({"a": list("vwxyz")})).rows() == [("*",)] * 5
    assert go(pl.DataFrame({"a": ["x", "x"], "s": ["p", "p"]}), sensitive=["s"], l=1).height == 2
    assert go(pl.DataFrame({"a": ["👩‍👩‍👧", "👩‍👩‍👧", "e\u0301"] + ["é"] * 2}), k=1).height == 5
    wide = pl.DataFrame({f"q{i}": [0, 0, i % 2, 1] for i in range(200)})
    assert go(wide, quasi_identifiers=wide.columns).width == 200


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"k": 9}, InfeasibleError, "largest k possible is 4"),
        ({"k": 1, "sensitive": ["s"], "l": 9}, InfeasibleError, "largest l possible is 2"),
        ({"sensitive": ["s"], "distinct_l": 9}, InfeasibleError, "largest possible is 3"),
        ({"quasi_identifiers": ["a", "a"]}, PolicyError, "twice"),
        ({"sensitive": ["a"]}, PolicyError, "both"),
        ({"identifiers": ["a"]}, PolicyError, "both"),
        ({"quasi_identifiers": ["aa"]}, PolicyError, "did you mean 'a'"),
        ({"sensitive": ["ss"]}, PolicyError, "did you mean 's'"),
        ({"identifiers": ["nam"]}, PolicyError, "not a column"),
        ({"quasi_identifiers": []}, PolicyError, "no quasi-identifier"),
        ({"quasi_identifiers": 3}, PolicyError, "list of column names"),
        ({"k": 0}, PolicyError, "at least 1"),
        ({"k": 2.5}, PolicyError, "whole number"),
        ({"k": True}, PolicyError, "whole number"),
        ({"seed": -1}, PolicyError, "seed"),
        ({"l": 2}, PolicyError, "sensitive"),
        ({"methud": "x"}, PolicyError, "did you mean 'method'"),
        ({"max_composition": 0.5}, PolicyError, "max_composition=0.5 has no effect without after=...; say that too"),
        ({"force_composition": True}, PolicyError, "force_composition=True has no effect without after=...; say that"),
        ({"region_loss": "land"}, PolicyError, "region_loss has no effect if no column is published as regions"),
        ({"publish": "centers", "max_level": {"a": 0}}, PolicyError, "max_level counts levels .*'centers' has none"),
        ({"method": "three_fase"}, PolicyError, "did you mean 'three_phase'"),
        ({"star": ""}, PolicyError, "star"),
        ({"weights": 3}, PolicyError, "mapping"),
        ({"method": ["a"]}, PolicyError, "method"),
        ({"preset": ["a"]}, PolicyError, "preset"),
        ({"effort": [3]}, PolicyError, "effort"),
    ],
)
def test_bad_requests_are_refused(asked: dict[str, Any], error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        go(pl.DataFrame({"a": ["x", "x", "y", "y"], "s": ["p", "p", "q", "r"]}), **asked)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pl.DataFrame({"a": ["*", "x"]}), "star="),
        (pl.DataFrame({"a": [["x"], ["x"]]}), "cannot be grouped; make one text of each list, .* identifiers="),
        (pl.DataFrame({"a": [{"b": 1}, {"b": 1}]}), r"cannot be grouped; make a column of each field, .*unnest\(\)"),
        (pd.DataFrame({"a": pd.period_range("2020-01", periods=2, freq="M")}), r"grouped; .*dt.to_timestamp\(\)"),
        (pd.DataFrame([[1, 1]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])), r"'_'.join"),
        (pd.DataFrame([[1, 2]] * 2, columns=["a", "a"]), "more than once"),
        (pa.table([pa.array([1]), pa.array([1])], names=["a", "a"]), "more than once"),
        (pd.DataFrame({"a": [1, 1], 0: [1, 1]}), "not text"),
        (pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}), "mixes kinds"),
        ({"a": [1]}, "type dict is not known"),
        ("nowhere.csv", "no file"),
    ],
)
def test_bad_data_are_refused(data: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        go(data)


def test_an_audit_names_what_another_tool_calls_its_settings() -> None:
    for name, here in (("key_vars", "quasi_identifiers"), ("hhId", "household"), ("k_anonymity", "k")):
        with pytest.raises(PolicyError, match=f"'{name}' is not an argument of audit; in shoal this is '{here}'"):
            shoal.audit(pl.DataFrame({"a": [1, 1]}), **{name: "a"})  # type: ignore[arg-type]


def test_numbers_from_numpy_will_do() -> None:
    release = shoal.anonymize(pl.DataFrame({"a": [1, 1]}), quasi_identifiers=["a"], k=np.int64(2), seed=np.int64(3))
    assert release.policy.describe()["seed"] == 3


def test_the_seed_does_not_give_the_row_order_away() -> None:
    frame = pl.DataFrame({"a": ["x"] * 40}).with_row_index("row")
    first, again = (go(frame, seed=1)["row"].to_list() for _ in range(2))
    assert first != again
    assert first != list(range(40))
    first, again = (go(frame, seed=1, secret=b"s" * 16)["row"].to_list() for _ in range(2))
    assert first == again != list(range(40))
    assert first != go(frame, seed=2, secret=b"s" * 16)["row"].to_list(), "two releases could be laid side by side"
    for secret in (b"s" * 15, "s" * 16, 7):
        with pytest.raises(PolicyError, match="secret"):
            go(frame, secret=secret)


def test_without_a_seed_rows_are_placed_afresh() -> None:
    frame = pl.DataFrame({"a": ["x"] * 60}).with_row_index("row")
    assert go(frame, seed=None)["row"].to_list() != go(frame, seed=None)["row"].to_list()


def drawn_table() -> pl.DataFrame:
    """A table on which searches of other seeds end in other partitions."""
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(0, most, 300) for name, most in (("a", 9), ("b", 7), ("c", 5))}
    return pl.DataFrame(columns).with_row_index("row")


def test_the_seed_that_was_drawn_is_on_record(tmp_path: Path) -> None:
    asked = {"quasi_identifiers": Q, "insensitive": ["row"], "k": 5, "publish": "ranges"}
    first, other = (shoal.anonymize(drawn_table(), **asked) for _ in range(2))
    assert first.policy.seed is not None
    assert first.policy.seed != other.policy.seed
    again = shoal.anonymize(drawn_table(), first.policy)
    assert again.certificate.cost == first.certificate.cost
    assert again.table["row"].to_list() != first.table["row"].to_list(), "the seed on record places no row"
    beside = first.write(tmp_path / "release.csv")
    found = shoal.prove(tmp_path / "release.csv", beside, drawn_table(), effort="same").findings
    assert [f.how for f in found if f.check == "repeated"] == ["recomputed"]


def test_one_secret_gives_one_release_without_a_seed_too() -> None:
    asked = {"quasi_identifiers": Q, "insensitive": ["row"], "k": 5, "publish": "ranges", "secret": b"s" * 16}
    first, again = (shoal.anonymize(drawn_table(), **asked).table for _ in range(2))
    assert first.equals(again)


def test_one_secret_does_not_lay_two_searches_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in seconds may end elsewhere: its rows must not stand in the order of the first."""
    frame = pl.DataFrame({"a": [1, 2, 3, 4] * 10}).with_row_index("row")
    orders = []
    for pairs in ([0, 0, 1, 1], [0, 1, 1, 0]):

        def ended(histogram: Any, *_: Any, pairs: list[int] = pairs, **more: Any) -> Grouping:
            found = group(histogram, *_, **more)
            paired = Partition.of(np.arange(4), np.array(pairs), histogram.count)
            return replace(found, partition=paired, certificate=replace(found.certificate, lower_bound=0.0))

        monkeypatch.setattr("shoal.problems.tables.group", ended)
        asked = {"quasi_identifiers": ["a"], "insensitive": ["row"], "k": 5, "publish": "ranges", "seed": 1}
        made = prepare(frame, secret=b"s" * 16, **asked).table
        orders.append(made["row"].to_list())
    assert orders[0] != orders[1]


def test_the_order_is_kept_only_on_request() -> None:
    frame = pl.DataFrame({"a": ["x"] * 60}).with_row_index("row")
    assert go(frame, keep_order=True)["row"].to_list() == list(range(60))


def wrong_solver(breach: str) -> Any:
    """An algorithm whose partition loses a row, or leaves groups too small or too uniform."""
    from shoal.problems.tables.three_phase import three_phase

    def solve(task: Any) -> Grouping:
        cells, count = np.arange(task.histogram.cells), task.histogram.count.copy()
        group = {"k": cells, "l": task.histogram.sensitive[:, 0], "rows": np.zeros_like(cells)}[breach]
        if breach == "rows":
            count[0] += 1
        return Grouping(Partition.of(cells, group, count), three_phase(task).certificate, "wrong")

    return solve


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("breach", ["k", "l", "rows"])
def test_a_wrong_solver_is_caught(monkeypatch: pytest.MonkeyPatch, breach: str, asked: bool) -> None:
    """By the question put to every group, and where that is wrong as well (not asked) by the judge."""
    monkeypatch.setattr("shoal.problems.tables.constraints.algorithm", lambda *_: wrong_solver(breach))
    if not asked:
        monkeypatch.setattr("shoal.problems.tables.constraints.groups_that_meet", lambda *_: np.ones(1, bool))
    frame = pl.DataFrame({"a": [1, 2, 1, 2], "b": [1, 1, 2, 2], "s": ["p", "p", "q", "q"]})
    says = "places 5 rows" if breach == "rows" else "does not meet the models" if asked else "nothing was published"
    with pytest.raises(shoal.ShoalError, match=says) as found:
        go(frame, quasi_identifiers=["a", "b"], sensitive=["s"], l=2)
    assert breach == "rows" or isinstance(found.value, VerificationError)


def test_a_scarce_value_is_not_lent_where_it_is_needed() -> None:
    rows = [("x", 1, 1.5, "p"), *[("x", 1, 1.5, "q")] * 3, ("x", 1, None, "p"), ("x", 1, None, "r"), ("x", 2, 1.5, "q")]
    assert shoal.anonymize(table(rows), **ROLES, distinct_l=2, effort="fast", seed=1).audit.passes


def test_a_star_and_the_lowest_number_are_two_classes() -> None:
    made = shoal.anonymize(pl.DataFrame({"a": [1, 1, 2, 3]}), quasi_identifiers=["a"], k=2)
    assert sorted(map(str, made.table["a"])) == ["1", "1", "None", "None"]
    assert made.facts.groups == 2
    alike = shoal.anonymize(pl.DataFrame({"a": [None, None, 1, 2, 5, 5]}), quasi_identifiers=["a"], k=2)
    assert sorted(map(str, alike.table["a"])) == ["5", "5", *["None"] * 4]
    assert alike.facts.groups == 2  # a star and a missing number look alike in a frame


@pytest.mark.parametrize("publish", [None, "stars", "ranges"])
def test_a_hierarchy_without_effect_is_noted(publish: str | None) -> None:
    table = pl.DataFrame({"a": ["11", "12", "21", "22"] * 3, "s": ["x", "y", "z"] * 4})
    asked = {"quasi_identifiers": ["a"], "sensitive": ["s"], "k": 3, "hierarchies": {"a": "prefixes:1"}}
    made = shoal.anonymize(table, **asked, **({} if publish is None else {"publish": publish}))
    words = f"the hierarchy of 'a' has no effect, because values are published as {publish or 'stars'}"
    assert words in made.facts.notes


def test_stars_of_centers_without_effect_are_noted() -> None:
    table = pl.DataFrame({"a": ["p", "q", "r", "s"] * 3, "s": ["x", "y", "z"] * 4})
    asked = {"quasi_identifiers": ["a"], "sensitive": ["s"], "k": 3, "publish": "centers"}
    idle = {"star": "hidden", "numeric_stars": "text", "max_suppressed": 0.1}
    made = shoal.anonymize(table, **asked, **idle)
    assert made.facts.notes == tuple(f"{name} has no effect, because centers have no stars" for name in idle)
    assert not shoal.anonymize(table, **asked).facts.notes
    starred = table.with_columns(pl.col("a").replace("p", "*"))
    assert not shoal.anonymize(starred, **asked, star="hidden").facts.notes
