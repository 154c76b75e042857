"""What was asked: read once, refused with a way out, and told to the certificate as plain values."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import shoal
from shoal.errors import PolicyError
from shoal.model.certificate import recipe
from shoal.model.histogram import Histogram
from shoal.model.policy import Policy
from shoal.model.privacy import MODELS, Requirement, describe, requirement, restore
from shoal.model.rule_books import RULE_BOOKS

FULL = """
quasi_identifiers = ["zip", "age"]
sensitive = "d"
identifiers = ["name"]
k = 3
l = 2
entropy_l = 1.5
recursive_cl = [2.0, 2]
t = 0.25
beta = 1.5
delta = 0.7
simultaneous_l = 2
alpha_k = [0.5, 4]
publish = "hierarchy"
effort = 2.5
seed = 7
hierarchies = { zip = "zip.csv" }
weights = { zip = 2 }
max_level = { zip = 1 }
privacy = [{ model = "DistinctLDiversity", l = 2, column = "d" }]
"""


def test_a_file_says_what_keyword_arguments_say(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(FULL)
    read = Policy.read(path)
    said = Policy.of(
        quasi_identifiers=["zip", "age"],
        sensitive=["d"],
        identifiers=["name"],
        k=3,
        l=2,
        entropy_l=1.5,
        recursive_cl=(2.0, 2),
        t=0.25,
        beta=1.5,
        delta=0.7,
        simultaneous_l=2,
        alpha_k=(0.5, 4),
        publish="hierarchy",
        effort=2.5,
        seed=7,
        hierarchies={"zip": str(tmp_path / "zip.csv")},
        weights={"zip": 2},
        max_level={"zip": 1},
        privacy=[shoal.DistinctLDiversity(2, "d")],
    )
    assert read == said
    assert json.loads(json.dumps(read.describe())) == read.describe()
    assert Policy.read(path, k=9, seed=1).seed == 1


def test_arguments_override_a_policy() -> None:
    base = Policy.of(quasi_identifiers=["a"], k=3)
    assert Policy.of(base, k=7).privacy == (shoal.KAnonymity(7),)
    assert Policy.of(base, seed=None) == base
    assert Policy.of(Policy.of(base, seed=7), seed=None).seed == 7  # none given is none to put in its place
    for k in (1, 2):  # whatever a rule book or its absence asks of every group, another k takes the former's place
        assert Policy.of(Policy.of(base, k=k), k=7).privacy == (shoal.KAnonymity(7),)


K, L, T = shoal.KAnonymity, shoal.LDiversity, shoal.TCloseness


@pytest.mark.parametrize("again", [replace, Policy.of])
@pytest.mark.parametrize(
    ("asked", "change", "left"),
    [
        ({"k": 5, "l": 3}, {"k": 3}, (K(3), L(3))),
        ({"k": 5, "l": 3}, {"l": 2}, (K(5), L(2))),
        ({"k": 5}, {"l": 2}, (K(5), L(2))),
        ({"k": 5}, {"publish": "ranges"}, (K(5),)),
        ({"k": 5, "t": 0.2, "t_ordered": 0.1}, {"t_ordered": 0.3}, (K(5), T(0.2), T(0.3, distance="ordered"))),
        ({"l": 3, "privacy": [L(4, "d"), K(5)]}, {"l": 2}, (L(4, "d"), K(5), L(2))),
        ({"privacy": [K(11)], "k": 5, "l": 2}, {"k": 7}, (K(7), L(2))),
        ({"k": 5, "l": 3}, {"privacy": [K(2)]}, (K(2),)),
        ({"k": 5, "l": 3}, {"privacy": K(2), "k": 4}, (K(2), K(4))),
        ({"preset": "k5", "l": 2}, {"l": 3}, (K(5), L(3))),
        ({"preset": "k5", "k": 3}, {"k": 7}, (K(5), K(7))),
        ({"preset": "k5"}, {"k": 7}, (K(5), K(7))),
        ({"preset": "k5", "l": 2}, {"preset": "k11"}, (L(2), K(11))),
        ({"preset": "k5"}, {"privacy": [L(2)]}, (L(2), K(5))),
    ],
)
def test_changing_a_keyword_changes_that_keyword(again: Any, asked: Any, change: Any, left: Any) -> None:
    roles: dict[str, Any] = {"quasi_identifiers": ["a"], "sensitive": ["d"]}
    changed = again(Policy(**roles, **asked), **change)
    assert changed.privacy == left
    assert pickle.loads(pickle.dumps(changed)) == changed == replace(changed)
    book = () if changed.preset is None else (K(RULE_BOOKS[changed.preset].k),)
    kept = again(pickle.loads(pickle.dumps(changed)), preset="k20").privacy
    assert kept == (*(m for m in left if m not in book), K(20))


def test_models_of_a_certificate_give_way_as_those_of_a_policy_do(tmp_path: Path) -> None:
    asked = {"quasi_identifiers": ["a"], "sensitive": ["d"], "k": 3, "l": 2, "seed": 1}
    frame = pl.DataFrame({"a": [i % 3 for i in range(90)], "d": [i % 2 for i in range(90)]})
    beside = shoal.anonymize(frame, **asked).write(tmp_path / "out.csv")
    assert Policy.read(beside, k=7).privacy == (K(7), L(2))


def test_equal_policies_have_one_hash() -> None:
    """Beside mappings, which have none, and tables, which equality passes over."""
    asked: Any = {"quasi_identifiers": ["a"], "sensitive": ["d"], "k": 2, "t_hierarchical": 0.3, "weights": {"a": 2}}
    asked |= {"hierarchies": {"d": [["x", "*"], ["y", "*"]]}, "population": pl.DataFrame({"a": [1]})}
    one, other = Policy(**asked), Policy(**asked)
    assert hash(one) == hash(other)
    assert {one: 1}[other] == 1
    assert len({one, other, replace(one, k=3)}) == 2


@pytest.mark.parametrize("preset", RULE_BOOKS)
def test_presets(preset: str) -> None:
    assert Policy.of(quasi_identifiers=["a"], preset=preset).privacy == (shoal.KAnonymity(RULE_BOOKS[preset].k),)


@pytest.mark.parametrize(
    ("preset", "k"), [("k3", 3), ("k5", 5), ("k11", 11), ("k20", 20), ("cms-11", 11), ("ema-0.09", 12)]
)
def test_a_rule_book_stands_in_the_certificate(preset: str, k: int, tmp_path: Path) -> None:
    asked = {"quasi_identifiers": ["a"], "preset": preset, "seed": 1}
    release = shoal.anonymize(pl.DataFrame({"a": [i % 3 for i in range(90)]}), **asked)
    beside = release.write(tmp_path / "out.csv")
    said = json.loads(beside.read_text())["rule_book"]
    assert (said["name"], said["k"]) == (preset, k)
    assert said["source"]
    assert said["does_not_cover"]
    assert shoal.verify(tmp_path / "out.csv", beside).holds
    again = Policy.read(beside)
    assert (again.preset, again.privacy) == (preset, (shoal.KAnonymity(k),))
    assert Policy.of(again, k=2).privacy == (shoal.KAnonymity(k), shoal.KAnonymity(2))
    assert replace(again, preset=None, k=2).privacy == (shoal.KAnonymity(2),)


@pytest.mark.parametrize(
    ("text", "said"),
    [("k = ", "not TOML"), ("\x00", "not TOML"), ("k = 1\nk = 2", "has a setting a second time")],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(PolicyError, match=said):
        Policy.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="shoal init"):
        Policy.read(tmp_path / "no.toml")


MODELS_MADE = [
    shoal.KAnonymity(5),
    shoal.LDiversity(3),
    shoal.LDiversity(3, "d"),
    shoal.DistinctLDiversity(2),
    shoal.EntropyLDiversity(2.5),
    shoal.RecursiveLDiversity(1.5, 2),
    shoal.AlphaKAnonymity(0.4, 3),
    shoal.TCloseness(0.2, "ordered"),
    shoal.BetaLikeness(1.5),
    shoal.BetaLikeness(1.5, enhanced=False, column="d"),
    shoal.DeltaDisclosure(0.7),
    shoal.SimultaneousLDiversity(3),
]


@pytest.mark.parametrize("model", MODELS_MADE, ids=lambda m: type(m).__name__)
def test_models_survive_json_and_state_their_case(model: Any) -> None:
    assert restore(json.loads(json.dumps(describe(model)))) == model
    assert model.name
    assert model.monotone.startswith("monotone")
    assert model.source
    assert type(model).__name__ in MODELS


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"model": "KAnonimity", "k": 2}, "did you mean 'KAnonymity'"),
        ({"model": "KAnonymity", "kk": 2}, "did you mean 'k'"),
        ({"model": "RecursiveLDiversity", "l": 2}, "needs"),
        ({"model": "AlphaKAnonymity", "alpha": 1.5, "k": 2}, "share"),
        ({"model": "TCloseness", "t": float("nan")}, "distance"),
        ({"model": "TCloseness", "t": 0.1, "distance": "equals"}, "did you mean 'equal'"),
        ({"model": "EntropyLDiversity", "l": float("inf")}, "number"),
        ({}, "not a privacy model"),
    ],
)
def test_bad_models_are_refused(data: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        restore(data)


def test_what_is_enforced_for_each_model() -> None:
    def need(*models: Any, sensitive: tuple[str, ...] = ("s", "u")) -> Requirement:
        return requirement(models, sensitive)

    assert need(shoal.KAnonymity(4), shoal.LDiversity(3)) == Requirement(4, (3, 3), (1, 1))
    assert need(shoal.LDiversity(3, "u")) == Requirement(1, (1, 3), (1, 1))
    assert need(shoal.AlphaKAnonymity(1 / 3, 6, "s")) == Requirement(6, (3, 1), (1, 1))
    assert need(shoal.AlphaKAnonymity(0.5, 2, "s")) == Requirement(2, (2, 1), (1, 1))
    assert need(shoal.SimultaneousLDiversity(2), sensitive=("s",)) == Requirement(1, (1,), (2,))
    for model in (
        shoal.EntropyLDiversity(2.2, "s"),
        shoal.AlphaKAnonymity(0.4, 2, "s"),
        shoal.TCloseness(0.1, column="s"),
    ):
        bound = requirement([model], ("s", "u"), Histogram.from_rows(np.zeros(9), np.arange(18).reshape(9, 2) % 5))
        assert [rule.model for rule in bound.rules] == [model]
        assert bound.sensitive_columns == (0,)
    for model, says in [
        (shoal.DeltaDisclosure(1.0, "ignored"), "not monotone"),
        (shoal.LDiversity(2, "x"), "sensitive column"),
    ]:
        with pytest.raises(PolicyError, match=says):
            need(model)
    with pytest.raises(PolicyError, match="sensitive"):
        need(shoal.LDiversity(2), sensitive=())


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("keyVars", "quasi_identifiers"),
        ("suppression_limit", "max_suppressed"),
        ("maxOutliers", "max_suppressed"),
        ("supp_level", "max_suppressed"),
        ("quasi_ident", "quasi_identifiers"),
        ("sens_att", "sensitive"),
        ("ident", "identifiers"),
        ("attribute weight", "weights"),
        ("top_coding", "top"),
        ("k_anonymity", "k"),
        ("beta_likeness", "beta"),
        ("DeltaPresence", "presence"),
        ("seconds", "effort"),
        ("time_limit", "effort"),
        ("random_state", "seed"),
    ],
)
def test_a_setting_of_another_tool_is_told_by_its_name_here(name: str, here: str) -> None:
    with pytest.raises(PolicyError, match=f"'{name}' is not a setting of a policy; in shoal this is '{here}'$"):
        Policy.of(**{name: ["age"]})


def test_a_policy_takes_the_keywords_of_the_main_call() -> None:
    asked = {"quasi_identifiers": ["zip", "age"], "sensitive": "d", "k": 3, "l": 2, "preset": "k5"}
    made = Policy(**asked)
    assert made == Policy.of(asked)
    assert made.privacy == (shoal.KAnonymity(5), shoal.KAnonymity(3), shoal.LDiversity(2))
    assert pickle.loads(pickle.dumps(made)) == made == replace(made)
    with pytest.raises(PolicyError, match="did you mean 'quasi_identifiers'"):
        Policy(quasi_identifers=["zip"], k=3)  # type: ignore[call-arg]
    with pytest.raises(PolicyError, match="'K' is not a setting of a policy; did you mean 'k'"):
        Policy(**{"quasi_identifiers": ["zip"], "K": 3})
    with pytest.raises(PolicyError, match="no quasi-identifier is named"):
        Policy(k=3)


def test_a_recipe_whose_population_is_not_at_hand_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has to be handed over again, as the table has."""
    monkeypatch.chdir(tmp_path)
    policy = {"quasi_identifiers": ["a"], "k": 2, "population": "people.csv"}
    Path("r.json").write_text(json.dumps({"policy": policy, "hierarchies": {}}))
    assert "population" not in recipe("r.json", (), "", {})
    Path("people.csv").write_text("a\nx\n")
    assert recipe("r.json", (), "", {})["population"].endswith("people.csv")


@pytest.mark.parametrize(
    ("rows", "level"),
    [([(0, 0)], 1), ([(0, 0), (1, 1)], 2), ([(0, 0), (1, 1), (2, 2)], 3), ([(0, 0), (1, 1), (1, 2)], 2)],
)
def test_the_level_of_simultaneous_diversity(rows: list[tuple[int, int]], level: int) -> None:
    """Rows that differ pairwise in every column, as many as each of them finds."""
    assert shoal.SimultaneousLDiversity(3).level(np.array(rows), np.array(rows)) == level


def test_what_was_checked_stays() -> None:
    """A mapping of the caller's that changes later changes no policy; kinds of numpy become plain values."""
    weights, levels, trees = {"a": np.float32(2)}, {"a": 1}, {"a": [["x", "*"]]}
    asked: Any = {"quasi_identifiers": ["a"], "k": np.int64(2), "publish": "hierarchy", "effort": np.int64(3)}
    asked |= {"weights": weights, "max_level": levels, "hierarchies": trees, "shards": np.int64(2)}
    policy = Policy(**asked, max_suppressed=np.float32(0.5), max_average_risk=np.float32(0.5))
    weights["a"], levels["a"] = np.float32(-1), -1
    assert (policy.weights, policy.max_level) == ({"a": 2}, {"a": 1})
    with pytest.raises(TypeError, match="is frozen"):
        policy.weights["a"] = -1
    assert pickle.loads(pickle.dumps(policy)) == policy
    told = json.loads(json.dumps(policy.describe()))
    assert (told["effort"], told["shards"], told["max_suppressed"], told["max_average_risk"]) == (3, 2, 0.5, 0.5)
    for weight in (0, 1e308, 1e-320, float("nan")):
        with pytest.raises(PolicyError, match="only how weights compare counts"):
            Policy(quasi_identifiers=["a"], k=2, weights={"a": weight})
    with pytest.raises(PolicyError, match="say coarsen='auto'"):
        Policy(quasi_identifiers=["a"], k=2, coarsen=np.array([1, 2]))


def test_rule_books_speak_to_both_doors() -> None:
    for name, book in RULE_BOOKS.items():  # what they leave is printed at the command line as well
        assert "=" not in book.leaves + book.why + book.source, name


@pytest.mark.parametrize("kind", [np.array, pl.Series, pd.Index, pd.Series, tuple])
def test_columns_are_named_by_any_sequence(kind: Any):
    """As in quasi_identifiers=frame.columns.drop("ill")."""
    made = Policy.of(quasi_identifiers=kind(["age", "zip"]), sensitive=kind(["ill"]), k=2)
    assert (made.quasi_identifiers, made.sensitive) == (("age", "zip"), ("ill",))


@pytest.mark.parametrize("name", [0, ("a", "age")])
def test_a_column_name_that_is_no_text_has_a_way_out(name: Any):
    with pytest.raises(PolicyError, match=r"is text; rename the columns, in pandas with df\.columns"):
        Policy.of(quasi_identifiers=[name], k=2)
