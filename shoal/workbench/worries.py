"""Privacy models by the worry that each answers, in plain words with the formal name beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import shoal


class Worry(NamedTuple):
    """A worry, what it is called, an example, and the keywords of the models that answer it, the usual one first."""

    words: str
    formal: str
    example: str
    models: tuple[str, ...]


WORRIES = (
    Worry(
        "Someone finds a person's row", "identity disclosure",
        "A neighbor knows the age and the zip code, and only one row fits.", ("k",),
    ),
    Worry(
        "Everyone in the group has the same value", "attribute disclosure",
        "Five rows fit the neighbor, and all five have the same disease.",
        ("l", "distinct_l", "entropy_l", "recursive_cl", "alpha_k"),
    ),
    Worry(
        "A group tells more than the whole table", "attribute disclosure, by distribution",
        "One in ten has the disease in the table, nine in ten in the neighbor's group.",
        ("t", "t_ordered", "t_hierarchical", "beta", "beta_basic", "delta"),
    ),
    Worry(
        "Several sensitive columns tell on one another", "multiple sensitive attributes",
        "Who knows the diagnosis can tell the treatment.", ("simultaneous_l",),
    ),
    Worry(
        "Someone learns that a person is in the table", "membership disclosure",
        "Being in the register of a clinic says enough. Needs a table of the population.", ("presence", "k_map"),
    ),
)  # fmt: skip

STARTS: Mapping[str, tuple[float, ...]] = {  # numbers a model begins with where it is switched on
    "k": (5,), "l": (2,), "distinct_l": (2,), "entropy_l": (2.0,), "recursive_cl": (3.0, 2), "alpha_k": (0.5, 5),
    "t": (0.2,), "t_ordered": (0.2,), "t_hierarchical": (0.2,), "beta": (1.0,), "beta_basic": (1.0,), "delta": (1.0,),
    "simultaneous_l": (2,), "k_map": (5,), "presence": (0.0, 0.2),
}  # fmt: skip


PARTS: Mapping[str, tuple[str, ...]] = {  # what each number of a model with two is
    "recursive_cl": ("c", "l"), "alpha_k": ("alpha", "k"), "presence": ("least share", "greatest share"),
}  # fmt: skip


def worries() -> tuple[Worry, ...]:
    """All worries; a model of the package that none names stands under one of its own."""
    named = {model for worry in WORRIES for model in worry.models}
    rest = tuple(model for model in shoal.choices()["models"] if model not in named)
    return WORRIES if not rest else (*WORRIES, Worry("Other models", "", "", rest))


def start(model: str) -> Any:
    """The number, or numbers, that a model begins with."""
    kinds = shoal.choices()["models"][model]["numbers"]
    given = STARTS.get(model, (1,) * len(kinds))
    numbers = [int(x) if kind == "int" else float(x) for x, kind in zip(given, kinds, strict=True)]
    return numbers[0] if len(numbers) == 1 else numbers
