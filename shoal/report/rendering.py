"""Templates filled with values: whatever is not markup already is escaped, and a name that is missing is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shoal.model.cards import floored, number


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("shoal.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["number"] = lambda value: value if isinstance(value, Markup) else number(value)
    made.filters["floored"] = floored
    made.filters["anchor"] = anchor
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), **_JSON}
    return made


def anchor(text: str, kind: str = "") -> str:
    """What a section or a word is called as the target of a link."""
    return (kind + "-" if kind else "") + "".join(c if c.isalnum() else "-" for c in text.lower())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


_JSON: dict[str, Any] = {"ensure_ascii": False, "default": _plain}


def as_json(figures: Mapping[str, Any]) -> str:
    """The figures of a page as a file of their own."""
    return json.dumps(figures, indent=1, **_JSON) + "\n"


def rendered(template: str, **values: Any) -> str:
    """A whole page: a template of this room's folder with its values."""
    return _environment().get_template(template).render(values)


def part(template: str, macro: str, *values: Any) -> Markup:
    """A part of a page: what a macro of a template makes of its arguments."""
    module = _environment().get_template(template).module
    made: Markup = getattr(module, macro)(*values)
    return made
