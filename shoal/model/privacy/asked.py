"""The models a request names: listed, by the keywords that stand for them, and by its rule book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.errors import PolicyError
from shoal.model.privacy import MODELS, KAnonymity, Model, restore
from shoal.model.rule_books import RULE_BOOKS
from shoal.model.shorthands import SHORTHANDS


class Models(tuple[Model, ...]):
    """The models of a policy as they are in force, and the rule book among them.

    By its kind it says that nobody listed them afresh: where a policy is made again with other keywords, each keyword
    takes the place of what it stood for, while beside models that a caller lists it asks for one more.
    """

    preset: str | None = None


def by_shorthand(name: str, value: Any) -> Model:
    """The model that a shorthand such as ``t`` stands for; PolicyError for the wrong number of values."""
    short = SHORTHANDS[name]
    model: Any = MODELS[short.model]
    if len(short.kinds) == 1:
        return model(value, **dict(short.fixed))  # type: ignore[no-any-return]
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != len(short.kinds):
        raise PolicyError(f"{name}={value!r}: give two numbers")
    return model(*value, **dict(short.fixed))  # type: ignore[no-any-return]


def take_models(values: dict[str, Any]) -> Models:
    """Take the shorthands and ``privacy`` out of values and return the models they stand for."""
    listed, preset = values.pop("privacy", ()), values.get("preset")
    if preset is not None and (not isinstance(preset, str) or preset not in RULE_BOOKS):
        raise PolicyError.unknown("preset", str(preset), RULE_BOOKS)
    said = [by_shorthand(name, value) for name in SHORTHANDS if (value := values.pop(name, None)) is not None]
    again = isinstance(listed, Models)
    models = list(listed) if again else _listed(listed)
    if again and listed.preset not in (None, values.get("preset", listed.preset)):
        models.remove(_book(listed.preset))
    book = None if preset is None else _book(preset)
    if book is not None and book not in models:
        models.append(book)
    for model in said:
        former = [i for i, m in enumerate(models) if again and _alike(m, model) and m != book]
        models = [m for i, m in enumerate(models) if i not in former]
        models.insert(min(former, default=len(models)), model)
    held = Models(models)
    held.preset = preset
    return held


def _listed(given: Any) -> list[Model]:
    """Models as a caller lists them: values, mappings as in a policy file, names of rule books."""
    models: list[Model] = []
    for item in [given] if not isinstance(given, Sequence) or isinstance(given, (str, bytes)) else given:
        if isinstance(item, Mapping):
            models.append(restore(dict(item)))
        elif isinstance(item, str) and item in RULE_BOOKS:
            models.append(_book(item))
        elif isinstance(item, Model):
            models.append(item)
        else:
            raise PolicyError(f"privacy holds {item!r}, which is not a privacy model such as KAnonymity(5)")
    return models


def _book(preset: str) -> Model:
    """What a rule book asks of every group."""
    return KAnonymity(RULE_BOOKS[preset].k)


def _alike(one: Model, other: Model) -> bool:
    """Whether one keyword says both: the same model of the same columns, measured the same way."""
    fixed = {name for short in SHORTHANDS.values() if short.model == type(one).__name__ for name, _ in short.fixed}
    return type(one) is type(other) and all(getattr(one, n) == getattr(other, n) for n in ("column", *fixed))
