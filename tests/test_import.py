"""The front door is light, and what is listed can be reached."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from shoal.model.shorthands import SHORTHANDS
from tests.commands import python


def test_import_shoal_loads_none_of_the_heavy_libraries():
    code = "import sys, shoal; print([m for m in ('numba', 'polars', 'scipy', 'pandas', 'typer') if m in sys.modules])"
    assert python("-c", code).said.strip() == "[]"


def test_a_release_loads_no_solver_that_it_does_not_run():
    code = (
        "import sys, shoal; "
        "shoal.anonymize('t.csv', quasi_identifiers=['a'], k=2, effort='fast', method='three_phase'); "
        "print([m for m in ('highspy', 'scipy.optimize', 'pandas', 'duckdb', 'pyarrow') if m in sys.modules])"
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "t.csv").write_text("a\n1\n1\n2\n2\n")
        assert python("-c", code.replace("t.csv", f"{folder}/t.csv")).said.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    import shoal

    with pytest.raises(AttributeError, match="nonsense"):
        _ = shoal.nonsense


def test_a_type_checker_sees_the_names_that_are_there():
    import ast

    import shoal

    tree = ast.parse(Path(shoal.__file__).read_text(encoding="utf-8"))
    guarded = next(n for n in tree.body if isinstance(n, ast.If))
    seen = {
        alias.asname: (node.module, alias.name)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = {}
    for name, where in shoal._WHERE.items():
        module, _, attribute = where.partition(":")
        lazy[name] = (module, attribute) if attribute else tuple(module.rsplit(".", 1))
    models = {short.model for short in SHORTHANDS.values()}  # one may be there without a type checker's line
    assert seen.items() <= lazy.items()
    assert lazy.keys() - seen.keys() <= models
