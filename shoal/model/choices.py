"""What may be asked of a release, as plain values: from them a form, a page or another language makes its fields."""

from __future__ import annotations

from typing import Any

from shoal.model.effort import EFFORTS
from shoal.model.rule_books import RULE_BOOKS
from shoal.model.shorthands import SHORTHANDS
from shoal.model.ways import WAYS


def choices() -> dict[str, Any]:
    """The tables of settings that ``Policy`` and the command line read, as plain values.

    "models"   keyword of a policy -> formal "name", "help" in a line, "numbers" (the kind of each, "int" or "float"),
               "speaks" of rows, columns, persons or tuples, and "source"
    "presets"  rule book -> its k, source, reason and what it leaves open
    "publish"  way to publish -> what it shows;  "effort": names of efforts

    Examples:
        >>> choices()["models"]["k"]["name"], choices()["models"]["recursive_cl"]["numbers"]
        ('k-anonymity', ['float', 'int'])
    """
    from shoal.model.privacy import MODELS

    models = {
        name: {
            "name": MODELS[short.model].name,
            "help": short.help,
            "numbers": [kind.__name__ for kind in short.kinds],
            "speaks": MODELS[short.model].speaks,
            "source": MODELS[short.model].source,
        }
        for name, short in SHORTHANDS.items()
    }
    return {
        "models": models,
        "presets": {name: book.as_dict() for name, book in RULE_BOOKS.items()},
        "publish": {name: way.words for name, way in WAYS.items()},
        "effort": list(EFFORTS),
    }
