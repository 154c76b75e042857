"""A refusal names the settings that it concerns, and each front end says them in its own words."""

import ast
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.cli.common import in_flags, refusal
from shoal.errors import InputError, PolicyError, Sentence, within
from shoal.model.settings import OtherModels, OtherSettings
from tests.commands import run
from tests.docs.test_words import texts


@pytest.mark.parametrize(
    ("marked", "python", "typed"),
    [
        ("say ⟨k=5⟩, or ⟨l=3⟩", "say k=5, or l=3", "say --k 5, or --l 3"),
        ("⟨range_step⟩ widens, not ⟨publish='stars'⟩", "range_step widens, not publish='stars'", "--range-step widens, "
         "not --publish stars"),
        ("⟨global_recoding=True⟩ and ⟨bound='none'⟩", "global_recoding=True and bound='none'", "--global-recoding and "
         "--no-bound"),
        ("⟨sensitive=[...]⟩ or ⟨person=⟩", "sensitive=[...] or person=", "--sensitive or --person"),
        ("⟨hierarchies={column: ...}⟩", "hierarchies={column: ...}", "--hierarchy"),
        ("⟨weights['net pay'] = -1⟩: no", "weights['net pay'] = -1: no", "--weight 'net pay=-1': no"),
        ("⟨coordinates=('x', 'y')⟩", "coordinates=('x', 'y')", "--coordinates x,y"),
        ("⟨islands='join'⟩", "islands='join'", "--islands join"),
        ("⟨overwrite=True⟩", "overwrite=True", "--force"),
        ("⟨place=⟩; ⟨counterfeits=⟩", "place=; counterfeits=", "--latitude and --longitude; --no-counterfeits"),
        ("column 'k=5' and max_level", "column 'k=5' and max_level", "column 'k=5' and max_level"),
        ("a ⟨strange one⟩", "a ⟨strange one⟩", "a ⟨strange one⟩"),
    ],
)  # fmt: skip
def test_a_sentence_is_said_in_the_words_of_who_reads_it(marked: str, python: str, typed: str) -> None:
    error = PolicyError(marked)
    assert str(error) == python
    assert f"{error}" == python
    assert in_flags(error.sentence) == typed


def test_a_refusal_carries_its_settings() -> None:
    with pytest.raises(PolicyError, match=r"^max_level counts levels of a hierarchy, and ranges have none") as refused:
        shoal.Policy(quasi_identifiers=["a"], k=2, publish="ranges", max_level={"a": 1})
    assert refused.value.settings == ("max_level", "range_step")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.settings) == (str(refused.value), refused.value.settings)
    with pytest.raises(PolicyError) as inside, within("the second table"):
        raise refused.value
    assert inside.value.settings == ("max_level", "range_step")
    assert str(inside.value).startswith("in the second table, max_level counts")
    assert InputError("nothing here").settings == ()


def test_a_setting_that_is_out_of_range_is_carried() -> None:
    asked = {"max_average_risk": 2, "max_suppressed": 7, "shards": 0, "seed": -1, "weights": {"a": 0}, "star": ""}
    for name, value in asked.items():
        with pytest.raises(PolicyError) as refused:
            shoal.Policy(quasi_identifiers=["a"], k=2, **{name: value})
        assert refused.value.settings[0] == name


def test_every_mark_in_the_code_is_one_of_a_setting_and_stands_in_a_sentence() -> None:
    """A mark that no front end reads would be shown as it stands; marks in docstrings explain themselves."""
    seen = 0
    for path in sorted(Path(shoal.__file__).parent.rglob("*.py")):
        if path.name == "errors.py":
            continue
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                text = "".join(p.value if isinstance(p, ast.Constant) else "x" for p in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                text = node.value
            else:
                continue
            if not set("⟨⟩") & set(text):
                continue
            assert not set("⟨⟩") & set(Sentence(text)), f"{path.name}, line {node.lineno}: {text}"
            seen += "⟨" in text
    assert seen > 100


CALLS = (
    shoal.anonymize, shoal.attack, shoal.audit, shoal.compare, shoal.explore, shoal.release, shoal.verify, shoal.Policy,
    shoal.Series.start, shoal.Series.add, shoal.tables.group, shoal.gathering.gather, shoal.gathering.cellular,
    shoal.regions.merge, shoal.tiles.split, shoal.labels.cover, shoal.intervals.cut,
)  # fmt: skip
KEYWORDS = {name for call in CALLS for name in inspect.signature(call).parameters}
KEYWORDS |= {*OtherSettings.__annotations__, *OtherModels.__annotations__}
KEYWORDS -= {"data"}  # nodes(data=True)


def unmarked(text: str) -> list[str]:
    """Options, keywords with ``=`` and names of settings with an underscore that no mark is around."""
    bare = re.sub("⟨[^⟩]*⟩|'[a-z_]+'", "", text)  # what is in quotes is a value
    given = [m[1] for m in re.finditer(r"\b([a-z_]+)=", bare)]
    named = [word for word in re.findall(r"\b[a-z]+_[a-z_]+\b", bare) if word not in given]
    return re.findall(r"(?<![\w-])--[a-z][a-z-]+", bare) + [word for word in given + named if word in KEYWORDS]


def test_every_setting_of_a_refusal_is_marked() -> None:
    """Below the command line a refusal names settings by marks, or one front end reads the words of another."""
    found = {}
    for path in sorted(Path(shoal.__file__).parent.rglob("*.py")):
        if path.parent.name == "cli":  # what is typed is its own language
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.walk(node.func) if isinstance(node, ast.Call) else ()
            if any(str(getattr(part, "id", getattr(part, "attr", ""))).endswith("Error") for part in called):
                said = [text for part in node.args for _, text in texts(part)]
                found |= {f"{path.name}, {text}": names for text in said if (names := unmarked(text))}
    assert not found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("say ⟨k=5⟩, or leave --force out", ["--force"]),
        ("say k=5, for ⟨l=3⟩", ["k"]),
        ("max_level counts levels; so --- or a--b", ["max_level"]),
        ("⟨max_level⟩ counts levels; keys=5 and an_own_name are of others", []),
    ],
)
def test_a_setting_without_a_mark_is_found(text: str, found: list[str]) -> None:
    assert unmarked(text) == found


def test_the_workbench_names_the_fields_of_its_pages() -> None:
    from shoal.workbench.projects import in_fields

    with pytest.raises(PolicyError) as refused:
        shoal.Policy(quasi_identifiers=["a"], k=2, minimality=0.5)
    assert in_fields(refused.value).endswith("name one with the role sensitive")
    with pytest.raises(PolicyError) as refused:
        shoal.Policy(quasi_identifiers=["a"], k=2, max_suppressed=7)
    assert in_fields(refused.value) == "max_suppressed: 7: a share of the rows, from 0 to 1"


def test_what_a_policy_file_says_is_named_as_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('quasi_identifiers = ["a"]\nk = 2\nmax_level = {a = 1}\n')
    with pytest.raises(PolicyError) as refused:
        shoal.Policy.read(path, publish="ranges")
    assert str(refused.value).startswith(
        "in policy.toml, max_level counts levels of a hierarchy, and ranges have none;"
    )
    assert refusal(refused.value) == (
        "in policy.toml, max_level counts levels of a hierarchy, and ranges have none; range_step widens ranges"
    )
    path.write_text('quasi_identifiers = ["a"]\nk = 2\n[weights]\na = -1\n')
    with pytest.raises(PolicyError) as refused:
        shoal.Policy.read(path)
    assert refusal(refused.value).startswith("in policy.toml, weights.a = -1: a weight is a positive number")
    with pytest.raises(PolicyError) as refused:
        shoal.Policy.read(path, weights={"a": 1}, star="")
    assert refusal(refused.value).startswith("--star '': a suppressed value is written as a text")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("k = 0", "in p.toml, k-anonymity: k is 0, and it has to be a whole number, at least 1"),
        ("kk = 3", "in p.toml, 'kk' is not a setting of a policy; did you mean 'k'?"),
        ("publish = 3", "in p.toml, '3' is not a way to publish; there is 'stars'"),
        ("bound = true", "in p.toml, 'True' is not a choice for bound; there is 'ratio', 'none'"),
        ("missing = 3", "in p.toml, missing = 3: say 'category', 'apart' or 'filled'"),
        ("star = 3", "in p.toml, star = 3: a suppressed value is written as a text that is not empty"),
        ("privacy = [{k = 3}]", "in p.toml, privacy holds a mapping that names no model; write such as {model = "),
        ("privacy = ['k']", "in p.toml, privacy holds 'k', which is not a privacy model such as KAnonymity(5)"),
        ("seed = -1", "in p.toml, seed = -1: a seed is a whole number from 0"),
        ("quasi_identifiers = ['b']", "'p.toml' has a setting a second time (at line 2, column 26)"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"l": None, "person": "b"}])
def test_what_a_policy_file_says_wrong_is_told_with_the_file(
    line: str, said: str, options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(f"quasi_identifiers = ['a']\n{line}\n")
    with pytest.raises(PolicyError) as refused:
        shoal.Policy.read(path, **({"k": 2} if line[0] != "k" else {}), **options)
    assert refusal(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ages", "did you mean 'age'?"),
        ("incme", "did you mean 'income'?"),
        ("income_note", "did you mean 'income'?"),
        ("note", "there is 'age', 'income'"),  # as many letters in common as "zipcode" and "zip", by chance
    ],
)
def test_a_name_is_suggested_only_if_it_is_similar(name: str, said: str) -> None:
    assert str(PolicyError.unknown("column", name, ["age", "income"])).endswith(f"{name!r} is not a column; {said}")


def test_what_an_option_says_wrong_is_not_told_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("quasi_identifiers = ['a']\nk = 2\n")
    with pytest.raises(PolicyError) as refused:
        shoal.Policy.read(path, publish="range")
    assert refusal(refused.value) == "'range' is not a way to publish; did you mean 'ranges'?"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"threads": "x"}, "threads='x': give a whole number from 1 up"),
        ({"threads": 1.5}, "threads=1.5: give a whole number from 1 up"),
        ({"temporary": 3}, "temporary=3: name a folder"),
    ],
)
def test_settings_of_an_engine_are_of_their_kind(setting: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n1\n")
    with pytest.raises(PolicyError, match=re.escape(said)):
        shoal.anonymize(tmp_path / "t.csv", quasi_identifiers=["a"], k=2, engine="duckdb", **setting)


def test_a_reason_of_an_exploration_is_said_in_options(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,ill\n" + "1,x\n2,y\n" * 9)
    done = run("explore", "t.csv", "--quasi", "a", "--sensitive", "ill", "--k", 2, "--distinct-l", 3, cwd=tmp_path)
    assert done.returncode == 3
    assert "distinct_l" not in done.stdout
    again = run("explore", "t.csv", "--quasi", "a", "--sensitive", "ill", "--k", 2, "--entropy-l", 3, cwd=tmp_path)
    assert "ask for --entropy-l 2 at the most" in again.stdout


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: shoal.anonymize(t, ["age", "town"], k=2), "name the columns with quasi_identifiers=\\[...\\]"),
        (lambda t: shoal.anonymize(t, quasi_identifiers="age,town", k=2), "give each by itself: \\['age', 'town'\\]"),
        (
            lambda t: shoal.anonymize(t, qi=["age"], k=2),
            "'qi' is not an argument .*; in shoal this is 'quasi_identifiers'",
        ),
        (lambda t: shoal.anonymize(t, shoal.roles(t)), r"policy is one Roles; pass what it holds, roles.settings\(\)$"),
        (lambda t: shoal.explore(t, shoal.roles(t)), r"policy is one Roles; pass what it holds, roles.settings\(\)$"),
        (
            lambda t: shoal.audit(t, shoal.anonymize(t, quasi_identifiers=["age"], k=2)),
            "policy is one Release; pass what it holds, release.policy$",
        ),
        (
            lambda t: shoal.anonymize(t, t.rename({"age": "policy", "town": "settings"}).to_pandas(), k=2),
            "the policy is one DataFrame; give a mapping from names to values$",
        ),
        (
            lambda t: shoal.attack(t, hierarchies=shoal.roles(t), quasi_identifiers=["age"]),
            "hierarchies is one Roles; give a mapping from names to values$",
        ),
        (lambda t: shoal.anonymize(t, quasi_identifiers=t, k=2), "is one DataFrame; name the columns, as in quasi_ide"),
        (lambda t: shoal.audit(t, k=2), "shoal init and shoal.roles propose them"),
        (lambda t: shoal.compare(t, [t], quasi_identifiers=["age"]), "as in {'ours': release, 'theirs': 'arx.csv'}"),
    ],
)
def test_a_wrong_first_call_is_told_what_to_write(call, words):
    table = pl.DataFrame({"age": [20, 20, 30, 30], "town": ["Ulm", "Ulm", "Bonn", "Bonn"]})
    with pytest.raises(PolicyError, match=words):
        call(table)
