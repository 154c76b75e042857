"""The front door is light, and what is listed can be reached."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from shoal.model.settings import SHORTHANDS
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


def test_every_name_that_a_type_checker_sees_is_there_and_the_other_way_round():
    import ast
    from importlib import import_module
    from pathlib import Path
    from types import ModuleType

    import shoal

    lines = ast.parse(Path(shoal.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    seen = {n.names[0].asname: (n.module, n.names[0].name) for n in lines if isinstance(n, ast.ImportFrom)}
    assert len(seen) > 40
    for name, (module, there) in seen.items():
        value = getattr(shoal, name)
        here = (
            import_module(f"{module}.{there}") if isinstance(value, ModuleType) else vars(import_module(module))[there]
        )
        assert value is here
    models = {short.model for short in SHORTHANDS.values()}  # one may be there without a type checker's line
    assert set(shoal.__all__) - models <= set(seen) <= set(shoal.__all__)
