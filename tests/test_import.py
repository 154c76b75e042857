"""The front door is light, and what is listed can be reached.

What a user sees with dir(): the public names, and nothing of the inside.
"""

import ast
import tempfile
from pathlib import Path

import polars as pl
import pytest

import shoal
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


def test_dir_of_the_package_is_the_list_of_its_public_names():
    listed = ast.parse(Path(shoal.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    public = {n.asname or n.name for line in ast.walk(listed) if isinstance(line, ast.ImportFrom) for n in line.names}
    assert {name for name in dir(shoal) if not name.startswith("_")} == {n for n in public if not n.startswith("_")}
    assert not {"clock", "kernels", "Path", "SHORTHANDS", "engines"} & set(dir(shoal))


def test_dir_of_a_release_is_documented_attribute_by_attribute():
    release = shoal.anonymize(pl.DataFrame({"a": [1, 1, 2, 2]}), quasi_identifiers=["a"], k=2)
    names = [name for name in dir(release) if not name.startswith("_")]
    assert {"table", "certificate", "audit", "loss", "write", "report"} <= set(names)
    assert len(names) < 35
    for name in names:
        assert not name.startswith("with_") or callable(getattr(release, name))
        getattr(release, name)  # nothing listed is missing
