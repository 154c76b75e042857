"""How answers are displayed: numbers and proofs as text, one line for ``repr``, and a card in a notebook."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from html import escape
from typing import Any, ClassVar

from shoal.errors import one_line

PLAIN = 1e15  # floats from here on are shown with an exponent, because not every integer has its own float


def card(title: str, lines: Iterable[str]) -> str:
    """A heading and lines. A line "name: rest" becomes a row of two cells."""
    rows = []
    for line in lines:
        name, colon, rest = line.partition(": ")
        rows.append(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(rest)}</td></tr>'
            if colon
            else f'<tr><td colspan="2" style="text-align:left">{escape(line)}</td></tr>'
        )
    return f'<table><caption style="text-align:left">{escape(title)}</caption><tbody>{"".join(rows)}</tbody></table>'


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A heading over a table with names in its first row and first column."""
    top = "".join(f'<th scope="col" style="text-align:left">{escape(h)}</th>' for h in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(number(v))}</td>' for v in row) + "</tr>" for row in rows
    )
    return (
        f'<table><caption style="text-align:left">{escape(title)}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def number(value: Any) -> str:
    """A value as text: integers with thousands separators, floats with four digits, and from 1,000 on with at most one
    decimal, so that halves stay."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}".removesuffix(".0") if 1000 <= abs(value) < PLAIN else f"{value:,.4g}"
    return str(value)


def json_value(value: Any) -> Any:
    """A plain value for a type that JSON doesn't have: a number for a NumPy scalar, otherwise text."""
    return value.item() if hasattr(value, "item") else str(value)


PLAIN_JSON: dict[str, Any] = {"ensure_ascii": False, "default": json_value}  # keyword arguments of ``json.dumps``


def floored(value: float) -> str:
    """A lower bound as text, formatted as by ``number`` and rounded down, so that it is never above the proved one."""
    if isinstance(value, int):
        return f"{value:,}"
    if 1000 <= value < PLAIN:
        return f"{Decimal(value).quantize(Decimal('0.1'), ROUND_FLOOR):,}".removesuffix(".0")
    return f"{float(Context(prec=4, rounding=ROUND_FLOOR).create_decimal_from_float(value)):,.4g}"


def in_one_line(lines: Sequence[str], most: int = 2) -> str:
    """The line that ``repr`` shows: the title and the first facts. ``print`` shows all facts."""
    return one_line(f"<{'; '.join(lines[: most + 1])}>")


class Shown(ABC):
    """Base of answers that display themselves: ``repr`` as a line, ``print`` as several, a notebook as a card.

    No display contains a record, an array, or a coordinate. ``repr`` has the title and the first ``IN_A_LINE`` facts.
    """

    __slots__ = ()
    IN_A_LINE: ClassVar[int] = 2

    @abstractmethod
    def _lines(self) -> list[str]:
        """The title, then lines "name: rest"."""

    def __repr__(self) -> str:
        return in_one_line(self._lines(), self.IN_A_LINE)

    def __str__(self) -> str:
        return "\n".join(map(one_line, self._lines()))

    def _repr_html_(self) -> str:
        title, *lines = self._lines()
        return card(title, lines)


def proof_lines(certificate: Any, method: str = "") -> list[str]:
    """Lines for cost and bound, with their ratio; also the method if the problem has several."""
    low, ratio = certificate.lower_bound, certificate.ratio
    if certificate.optimal:
        proved = "no answer costs less"
    else:
        proved = f"no answer below {floored(low)}" + (
            "" if ratio is None else f"; this one is at most {times(float(ratio))}"
        )
    lines = [f"cost: {number(certificate.cost)} {certificate.unit}", f"proved: {proved}"]
    return [*lines, f"method: {method}"] if method else lines


def sizes_line(what: str, sizes: Sequence[int], asked: str) -> str:
    """The smallest and the largest group size, with the request."""
    return f"{what}: {number(int(min(sizes)))} to {number(int(max(sizes)))}, {asked}" if len(sizes) else f"{what}: none"


def several(count: int, what: str) -> str:
    """ "1 row", "2 rows"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def times(ratio: float) -> str:
    """The ratio as text: "1.024 times the least", rounded up so that it stays valid.

    A ratio that exceeds 1 only by rounding counts as the least.
    """
    if ratio <= 1 + 1e-9:
        return "the least, up to rounding"
    return f"{math.ceil(ratio * 1000 - 1e-9) / 1000:.7g} times the least"


def certificate_lines(certificate: Mapping[str, Any]) -> list[str]:
    """The lines "name: rest" that a certificate displays."""
    low = certificate["lower_bound"]
    return [
        f"cost: {number(certificate['cost'])} {certificate['unit']}",
        f"proved least: {number(low) if certificate['optimal'] else floored(low)} {certificate['unit']}",
        f"that is {_apart(certificate)}",
        f"why no release loses less: {certificate['bound'] or 'nothing proved'}",
        f"promise of the method: {certificate['guarantee']['theorem']}",
    ]


def _apart(certificate: Mapping[str, Any]) -> str:
    if certificate["optimal"]:
        return "the least: no valid answer costs less"
    return f"at most: {'not known' if certificate['ratio'] is None else times(certificate['ratio'])}"


def audit_rows(audit: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The names and values that an audit displays."""
    rows: list[tuple[str, Any]] = [
        ("rows", audit["rows"]),
        ("groups of rows alike", audit["classes"]),
        ("smallest group", audit["smallest_class"]),
        ("people alone", audit["uniques"]),
        ("highest risk to be found", audit["risk"]["prosecutor_max"]),
        ("mean risk to be found", audit["risk"]["marketer"]),
    ]
    rows += [(f"largest share of a value of {name} in a group", v["alpha"]) for name, v in audit["sensitive"].items()]
    for c in audit["checks"]:
        asked = ", ".join(f"{name} = {number(value)}" for name, value in dict(c["asked"]).items())
        level = "" if c["level"] is None else f"; the table reaches {number(c['level'])}"
        what = c["model"] + (f" of {c['column']}" if c["column"] else "") + (f", {asked}" if asked else "")
        rows.append((what, ("holds" if c["passes"] else "does not hold") + level))
    return rows
