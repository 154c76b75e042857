"""Importing shoal and its kernels leaves numba as it was: other code of the process compiles as it would without."""

import re
from pathlib import Path

import shoal.kernels
from tests.commands import python

LOOK = """
import importlib, types
import numba, llvmlite
from numba.core import caching, codegen, compiler, dispatcher, event, registry, targetconfig
from numba.core import types as kinds

# what numba itself writes down while it is used: memos, counters and the registries that its extensions fill
PASSING = {"__warningregistry__", "_memo", "_abc_impl", "__abstractmethods__", "__doc__", "__annotations__"}

def all_of():
    import sys
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in ("numba", "llvmlite") or not isinstance(module, types.ModuleType):
            continue
        for key, value in list(vars(module).items()):
            found[name, key] = value
            if isinstance(value, type) and value.__module__.partition(".")[0] in ("numba", "llvmlite"):
                for inner, of in list(vars(value).items()):
                    found[name, key, inner] = of
    return found

before = all_of()
lists = {place: list(value) for place, value in before.items() if isinstance(value, list)}
import shoal.kernels
"""
CHECK = """
def changed():
    now = all_of()
    return sorted(
        ".".join(place) for place, value in before.items()
        if place[-1] not in PASSING and now.get(place, value) is not value
        or place in lists and lists[place] != now.get(place)
    )
"""


def modules() -> list[str]:
    """Every module of kernels."""
    root = Path(shoal.kernels.__file__).parent
    parts = [p.relative_to(root).with_suffix("").parts for p in sorted(root.rglob("*.py"))]
    return [".".join(("shoal", "kernels", *(part for part in found if part != "__init__"))) for found in parts]


def test_no_attribute_of_numba_is_replaced() -> None:
    """Of no module and no class of numba that is there before: 20,000 attributes, each the same object afterwards."""
    found = modules()
    assert len(found) > 30
    code = f"{LOOK}\nfor name in {found!r}:\n    importlib.import_module(name)\n{CHECK}\nprint(len(before), changed())"
    said = python("-c", code).ok()
    number, _, names = said.stdout.partition(" ")
    assert int(number) > 10_000
    assert names.strip() == "[]"


def test_a_replaced_attribute_is_seen() -> None:
    """The look above is not blind: what the kernels once did is found."""
    code = (
        f"{LOOK}\n{CHECK}\nkinds.Dispatcher.get_call_type = lambda *_: None\n"
        "caching.CacheImpl._locator_classes = []\ntargetconfig.TargetConfig.__eq__ = lambda *_: True\nprint(changed())"
    )
    said = python("-c", code).said
    for name in ("Dispatcher.get_call_type", "CacheImpl._locator_classes", "TargetConfig.__eq__"):
        assert name in said


def test_other_code_compiles_as_without_shoal() -> None:
    """Its functions are numba's own, typed with constants, and kept where numba keeps them."""
    code = (
        "import shoal.kernels.tables.eligible, numba\n"
        "@numba.njit\ndef one(x):\n    return x + 1\n@numba.njit\ndef two():\n    return one(3)\n"
        "two()\nprint(type(one).__name__, type(one).__module__, *one.signatures[0])"
    )
    assert python("-c", code).said.split()[:3] == ["CPUDispatcher", "numba.core.registry", "Literal[int](3)"]


def test_a_kernel_is_typed_without_constants() -> None:
    code = (
        "from shoal.kernels import njit\n"
        "@njit()\ndef one(x, y):\n    return x + y\n"
        "@njit()\ndef two():\n    return one(3, 4) + one(5, 6) + one(y=1, x=2)\n"
        "two()\nprint(one.signatures)"
    )
    assert python("-c", code).said.strip() == "[(int64, int64)]"


def test_kernels_are_made_by_the_decorator_of_the_house() -> None:
    """Numba's own would keep compiled code that calls what has changed since."""
    root = Path(shoal.kernels.__file__).parent
    others = [
        p.name
        for p in sorted(root.rglob("*.py"))
        if p != root / "__init__.py"
        and re.search(r"from numba import .*\b(njit|jit)\b|\bnumba\.n?jit\b", p.read_text("utf-8"))
    ]
    assert others == []
