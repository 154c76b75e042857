"""A setting is one entry: everything that shows or takes it is read from there, and none is forgotten anywhere."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import shoal
from shoal.cli import program
from shoal.cli.options import PUBLISHED, asks
from shoal.model.certificate import promised, recipe
from shoal.model.hierarchy import GENERATED
from shoal.model.policy import PLACE, Policy
from shoal.model.settings import SETTINGS, SHORTHANDS, ModelSettings, PolicySettings, Settings, entry_of
from shoal.publishing.verifying.recheck import _policy
from tests.commands import options

HIERARCHY = {"publish": "hierarchy", "hierarchies": {"age": "intervals:5,10"}}
TRIED: dict[str, tuple[Any, dict[str, Any]]] = {  # a value that is not the default, and what has to go with it
    "quasi_identifiers": (["age", "zip, old"], {}),
    "sensitive": (["ill"], {}),
    "person": ("who", {}),
    "household": ("home", {}),
    "population": ("town.csv", {"k_map": 5}),
    "population_weights": ("w", {"k_map": 5}),
    "hierarchies": ({"age": "intervals:5,10"}, {"publish": "hierarchy"}),
    "max_average_risk": (0.05, {}),
    "identifiers": (["name", "phone"], {}),
    "insensitive": (["note"], {}),
    "strict_roles": (True, {}),
    "coordinates": (["x", "y"], {"publish": "hierarchy"}),
    "areas": ("towns.csv", {"publish": {"zip": "regions"}}),
    "edges": ("pairs.csv", {"publish": {"zip": "regions"}, "areas": "towns.csv"}),
    "region_loss": ("land", {"publish": {"zip": "regions"}, "areas": "towns.csv"}),
    "weights": ({"age": 2.5, "zip": 1.0}, {}),
    "minimality": (0.5, {"sensitive": ["ill"]}),
    "missing": ("apart", {}),
    "max_level": ({"age": 1}, HIERARCHY),
    "range_step": ({"age": 5, "zip": "month"}, {"publish": "ranges"}),
    "dates": ({"age": "%d.%m.%Y"}, {}),
    "decimal": ({"age": ","}, {}),
    "top": ({"age": 90}, {}),
    "bottom": ({"age": 17.5}, {}),
    "global_recoding": (True, {}),
    "coarsen": ("auto", HIERARCHY),
    "max_suppressed": (0.1, {}),
    "keep_order": (True, {}),
    "star": ("?", {}),
    "numeric_stars": ("text", {}),
    "bound": ("none", {}),
    "judge": ("engine", {}),
    "effort": ("fast", {}),
    "shards": (3, {}),
    "seed": (7, {}),
    "publish": ("ranges", {}),
    "method": ("cascade", {}),
    "preset": ("k5", {}),
    "privacy": ([{"model": "KAnonymity", "k": 4}], {}),
    "engine": ("duckdb", {}),
    "memory": ("1GB", {}),
    "threads": (2, {}),
    "temporary": ("spill", {}),
}


def asked_with(name: str) -> dict[str, Any]:
    """A request with the setting and what goes with it."""
    value, more = TRIED[name]
    return {"quasi_identifiers": ["age", "zip"], "k": 2, **more, name: value}


def toml(values: dict[str, Any]) -> str:
    """A policy file; JSON writes texts, numbers and lists as TOML does."""
    plain = [f"{name} = {json.dumps(value)}" for name, value in values.items() if not _tables(value)]
    for name, value in values.items():
        for table in value if isinstance(value, list) else [value] if _tables(value) else []:
            if isinstance(table, dict):
                plain += [f"[[{name}]]" if isinstance(value, list) else f"[{name}]"]
                plain += [f"{json.dumps(key)} = {json.dumps(held)}" for key, held in table.items()]
    return "\n".join(plain)


def _tables(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(x, dict) for x in value))


def typed(values: dict[str, Any]) -> list[str]:
    """The same as options."""
    words: list[str] = []
    for name, value in values.items():
        entry = entry_of(name)
        assert entry is not None
        for text in [f"{c}={v}" for c, v in value.items()] if isinstance(value, dict) else [value]:
            if entry.kind == "switch" or entry.meant is not True:
                words += [entry.option]
            elif isinstance(text, list):
                words += [entry.option, ",".join(f'"{t}"' if "," in t else t for t in text)]
            else:
                words += [entry.option, str(text)]
    return words


def test_every_setting_is_tried() -> None:
    assert set(TRIED) == set(SETTINGS)


def test_a_type_checker_knows_every_keyword_and_no_other() -> None:
    of_models = {*SHORTHANDS, "preset", "privacy"}
    assert set(get_type_hints(ModelSettings)) == of_models
    keywords = {*SHORTHANDS, *SETTINGS}
    assert set(get_type_hints(PolicySettings)) == keywords
    assert set(get_type_hints(Settings)) == keywords - {"engine", "memory", "threads", "temporary"}
    assert {f.name for f in fields(Policy)} - {"source", "written", "certified"} == set(SETTINGS)


@pytest.mark.parametrize("name", TRIED)
def test_keyword_key_and_option_ask_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = asked_with(name)
    policy = Policy(**asked)
    held = getattr(policy, name)
    assert held != SETTINGS[name].default
    Path("policy.toml").write_text(toml(asked))
    read = Policy.read("policy.toml")
    assert (read, getattr(read, name)) == (policy, held)
    if name in PUBLISHED:
        told = options(asks(PUBLISHED, models=True), typed(asked))
        again = Policy.of(None, **told)
        assert str(getattr(again, name)) == str(held)
        assert again == policy


@pytest.mark.parametrize("name", TRIED)
def test_a_certificate_states_it_and_asks_it_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    policy, entry = Policy(**asked_with(name)), SETTINGS[name]
    stated = json.loads(json.dumps(policy.describe()))
    assert (name in stated) is (entry.stated != "never")
    default = Policy(quasi_identifiers=["age"], k=2).describe()
    assert (name in default) is (entry.stated == "always")
    if entry.stated == "never":
        return
    Path("town.csv").write_text("age,zip\n1,2\n")
    Path("towns.csv").touch()
    Path("pairs.csv").touch()
    trees = {n: {"sha256": _digest(t)} for n, t in stated["hierarchies"].items() if t != "tiles"}
    Path("release.certificate.json").write_text(json.dumps({"policy": stated, "hierarchies": trees}))
    again = Policy.of(recipe("release.certificate.json", GENERATED, PLACE, {}))
    assert again.describe() == policy.describe()
    if entry.shown:
        assert getattr(_policy(stated), name) == getattr(policy, name)


def _digest(builder: str) -> str:
    from shoal.model.certificate import digest
    from shoal.model.hierarchy import Hierarchy

    return "0" * 64 if builder == "regions" else digest(Hierarchy.of(builder))  # areas are read, and compared, later


def test_a_setting_takes_the_promise_away_until_it_says_otherwise() -> None:
    plain = Policy(quasi_identifiers=["age", "zip"], k=2)
    assert promised(plain.describe()).factor is not None
    for name in ("seed", "star", "keep_order", "bound", "effort"):
        assert promised(Policy(**asked_with(name)).describe()).factor is not None
    for name in ("person", "max_average_risk", "weights", "max_suppressed", "shards", "global_recoding"):
        assert promised(Policy(**asked_with(name)).describe()).factor is None


@pytest.mark.parametrize("name", [*SETTINGS, *SHORTHANDS])
def test_a_setting_has_words_an_option_a_field_and_a_row(name: str) -> None:
    entry = entry_of(name)
    assert entry is not None
    assert len(entry.help.split()) >= 2
    assert entry.help.endswith(".")
    assert entry.section in ("Columns", "Request", "Release", "Search", "Files")
    options = {option for p in program().commands["anonymize"].params for option in p.opts}
    assert entry.option in options if entry.option else name in ("privacy", "numeric_stars")
    guide = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = [line for line in guide.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1
    assert not entry.option or f"`{entry.option}`" in rows[0]
    listed = shoal.choices()
    field = listed["settings"].get(name) or listed["models"][name]
    assert field["help"] == entry.help
    assert json.loads(json.dumps(field)) == field
