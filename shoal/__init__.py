"""shoal publishes tables about people so that each person is one of many, and bounds the loss of information.

``shoal.anonymize`` is the main call. ``shoal.labels``, ``shoal.intervals``, ``shoal.regions``, ``shoal.tiles``,
``shoal.gathering``, and ``shoal.tables`` solve one problem each. ``__init__.pyi`` lists the public names. Each is
imported when it is first used, so ``import shoal`` takes almost no time.
"""

from __future__ import annotations

from pathlib import Path

from shoal.model.settings import SHORTHANDS
from shoal.version import __version__ as __version__


def _listed() -> dict[str, str]:
    """Map each public name to its module, from the imports in ``__init__.pyi`` and the registry of models."""
    models = {short.model: f"shoal.model.privacy.{short.file}" for short in SHORTHANDS.values()}
    lines = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from shoal")]
    return models | {word[3]: word[1] for word in words}


_WHERE = _listed()

__all__ = list(_WHERE)


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    held = vars(import_module(_WHERE[name]))
    value: object = held[name] if name in held else import_module(f"{_WHERE[name]}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_WHERE, *(name for name in globals() if name.startswith("__"))})
