"""What a user sees with dir(): the public names, and nothing of the inside."""

from __future__ import annotations

import ast
from pathlib import Path

import polars as pl

import shoal


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
