"""Compiled code kept on disk is that of the sources as they are now, those of other modules included.

Compiling is said once, and loading what was compiled before is not.
"""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

import shoal.clock
import shoal.kernels
import shoal.kernels.compiler
import shoal.kernels.own_code
import shoal.threads
from tests.commands import python

INNER = """from shoal.kernels import INNER, njit

@njit(**INNER)
def asked():
    return {}
"""
OUTER = """from shoal.kernels import INNER, njit
from shoal.kernels.room.{} import {}

@njit({})
def whole():
    return {}()
"""


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_changes(tmp_path: Path) -> None:
    """Otherwise the exact program goes on asking what an older version of a model asked, and calls it optimal."""
    room = tmp_path / "shoal" / "kernels" / "room"
    room.mkdir(parents=True)
    (tmp_path / "shoal" / "__init__.py").write_text("")
    shutil.copy(shoal.kernels.__file__, room.parent / "__init__.py")
    for module in (shoal.kernels.compiler, shoal.kernels.own_code):
        shutil.copy(str(module.__file__), room.parent)
    for module in (shoal.clock, shoal.threads):
        shutil.copy(str(module.__file__), tmp_path / "shoal")
    (room / "__init__.py").write_text("")
    (room / "between.py").write_text(OUTER.format("inner", "asked", "**INNER", "asked"))
    (room / "outer.py").write_text(OUTER.format("between", "whole as inside", "cache=True", "inside"))

    def said() -> tuple[str, bool]:
        """What the kernel returns in a fresh process, and whether it came from disk."""
        ask = "from shoal.kernels.room.outer import whole as w; print(w(), sum(w.stats.cache_hits.values()))"
        without = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(tmp_path)}
        out = subprocess.run([sys.executable, "-c", ask], env=without, cwd=tmp_path, capture_output=True, text=True)
        assert not out.returncode, out.stderr
        value, hits = out.stdout.split()
        return value, hits == "1"

    (room / "inner.py").write_text(INNER.format(1))
    assert said() == ("1", False)
    assert said() == ("1", True)
    (room / "inner.py").write_text(INNER.format(2))
    assert said() == ("2", False)
    with (room.parent / "compiler.py").open("a") as compiler:
        compiler.write("# another version\n")
    assert said() == ("2", False)


def test_where_no_folder_takes_compiled_code_it_runs_all_the_same(tmp_path: Path) -> None:
    """As in a container whose files are read-only, for a user without a home folder; and on a disk that fills up."""
    (tmp_path / "one.py").write_text(
        "from shoal.kernels import njit\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n", encoding="utf-8"
    )
    nowhere = "from numba.core import caching\ncaching.CacheImpl._locator_classes = []\n"
    full = (
        "import errno\nfrom numba.core import caching\ndef no(*_): raise OSError(errno.ENOSPC, 'full')\n"
        "caching.IndexDataCacheFile._save_data = no\n"
    )
    for fault in (nowhere, full):
        done = python("-c", fault + "from one import double\nprint(double(3), double(0.5))", cwd=tmp_path)
        assert done.stdout == "6 1.0\n"
        assert done.stderr.count("set NUMBA_CACHE_DIR to a folder of your own") == 1


class Moved:
    """A type as an older version knew it: who reads it looks for a module that is gone."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return import_module, ("shoal.kernels.gone",)


def test_an_index_that_names_types_which_have_moved_is_none(tmp_path: Path) -> None:
    """What an older version left on disk is compiled anew, and stops nobody."""
    kept = shoal.kernels._KeptFiles(str(tmp_path), "kernel", "stamp")
    kept._save_index({Moved(): "old.nbc"})
    key = (("int64",), ("machine",), ("code",))
    assert kept.load(key) is None
    kept.save(key, "int64")
    assert kept.load(key) == "int64"


@pytest.mark.parametrize("step", ["_save_data", "_save_index"])
def test_two_processes_that_keep_code_for_different_types_at_once_never_mix_it(tmp_path: Path, monkeypatch, step: str):
    """Machine code for other types than those it is called with ends a process, or reads what is not there."""
    one, other = (shoal.kernels._KeptFiles(str(tmp_path), "kernel", "stamp") for _ in "ab")
    keys = [((types,), ("machine",), ("code",)) for types in ("int64", "int32")]
    write = getattr(one, step)

    def after_the_other(*given: object) -> None:
        """The other process looked before this one began, and writes all it has before this step of it."""
        with monkeypatch.context() as patched:
            patched.setattr(other, "_load_index", dict)
            other.save(keys[1], "int32")
        write(*given)

    monkeypatch.setattr(one, step, after_the_other)
    one.save(keys[0], "int64")
    found = [one.load(key) for key in keys]
    assert any(found)  # the index written last stays
    assert all(code in (None, key[0][0]) for code, key in zip(found, keys, strict=True))
    monkeypatch.undo()
    one.save(keys[0], "int64")
    other.save(keys[1], "int32")
    assert [one.load(key) for key in keys] == ["int64", "int32"]


def test_a_kernel_that_is_compiled_is_named_and_one_that_is_loaded_is_not(tmp_path):
    code = (
        "import logging, sys\n"
        "logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(name)s %(message)s')\n"
        "import shoal.kernels\n"
        "import one\n"
        "one.double(3)\n"
    )
    (tmp_path / "one.py").write_text(
        "from shoal.kernels import njit\n@njit(cache=True)\ndef double(x):\n    return 2 * x\n", encoding="utf-8"
    )
    said = [python("-c", code, cwd=tmp_path).said for _ in range(2)]
    assert said == ["shoal.compiling compiling double, once per machine\n", ""]


def test_a_kernel_without_counts_of_references_can_neither_make_nor_keep_an_array():
    from shoal.kernels import LEAN, njit

    plain = {name: value for name, value in LEAN.items() if name != "cache"}
    made, cut, summed = (njit(**plain)(f) for f in (lambda a: np.zeros(a.size), lambda a: a[1:], lambda a: a[1:][0]))
    for kernel in (made, cut):
        with pytest.raises(TypingError):
            kernel(np.arange(3.0))
    assert summed(np.arange(3.0)) == 1.0


ALIKE = """from shoal.kernels import INNER, njit
import numpy as np

@njit({options})
def sorted_by(x):
    return np.{how}(x) + np.{how}(x[3:])[0] + np.{how}(x[::-1].copy())[0]
"""
CALLER = """from shoal.kernels import njit
from own_{how} import sorted_by as inner

@njit(cache=True)
def sorted_by(x):
    return inner(x)
"""
COMPILED = """from numba.core.bytecode import FunctionIdentity
numbers, make = [], FunctionIdentity.from_function
def numbered(function):
    made = make(function)
    if function.__name__ == "run_quicksort1":
        numbers.append(made.unique_id)
    return made
FunctionIdentity.from_function = numbered
for _ in range({ahead}):
    next(FunctionIdentity._unique_ids)
import numpy as np, {module}
x = np.array([9, 7, 8, 5, 6, 4] * 9)
print({module}.sorted_by(x).tolist())
print(*numbers)
"""


@pytest.mark.parametrize("parts", [False, True])
def test_code_compiled_by_several_processes_does_not_mix(tmp_path: Path, parts: bool) -> None:
    """Numba numbers its inner functions in each process: sorting and its order may have the same name in two files."""
    for how in ("sort", "argsort"):
        options = "**INNER" if parts else "cache=True"
        (tmp_path / f"own_{how}.py").write_text(ALIKE.format(options=options, how=how))
        (tmp_path / f"by_{how}.py").write_text(CALLER.format(how=how))

    module = "by" if parts else "own"
    paths = os.pathsep.join([str(tmp_path), *sys.path])

    def ran(text: str, kept: str) -> list[str]:
        environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / kept)}
        done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout.splitlines()

    def compiled(how: str, ahead: int, kept: str) -> tuple[str, int]:
        shown, number = ran(COMPILED.format(ahead=ahead, module=f"{module}_{how}"), kept)
        return shown, int(number)

    numbers = [compiled(how, 0, "apart")[1] for how in ("sort", "argsort")]
    sort = compiled("sort", max(numbers) - numbers[0], "together")
    order = compiled("argsort", max(numbers) - numbers[1], "together")
    assert sort[1] == order[1]  # one number, two functions
    for hows, shown in ((("sort", "argsort"), [sort[0], order[0]]), (("argsort", "sort"), [order[0], sort[0]])):
        lines = [f"import {module}_{how}; print({module}_{how}.sorted_by(x).tolist())" for how in hows]
        assert ran("\n".join(["import numpy as np; x = np.array([9, 7, 8, 5, 6, 4] * 9)", *lines]), "together") == shown
