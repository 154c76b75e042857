"""What ``shoal regions`` prints: figures for machines, lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.model.cards import several

if TYPE_CHECKING:
    from shoal.engines.apart import Apart
    from shoal.engines.geography import Geography
    from shoal.problems.regions import Nested, Regions


def screen(nest: Nested, light: list[dict[str, Any]], rows: list[dict[str, Any]], placed: bool) -> list[str]:
    """What the merging came to, below its title.

    light, rows  components apart from all others, and other groups of the areas, as ``comparing`` gives them
    placed       whether it is known where the areas lie
    """
    found = nest.levels[0]
    most, unit = found.squares, found.k[0] ** 2
    squares = f"Sum of squares {most / unit:,.1f} k², none below {found.squares_bound / unit:,.1f} k²."
    return [squares, *_above(nest), *_obeyed(found), *_apart(light, placed), *_compared(rows)]


def _above(nest: Nested) -> list[str]:
    """A line for each level above the first."""
    lines = []
    for level, most in zip(nest.levels[1:], nest.most[1:], strict=True):
        out = f"; {len(level.left_out):,} areas in none" if len(level.left_out) else ""
        lines.append(
            f"Of these, {several(level.regions, 'region')} of at least {level.k[0]:,}: heaviest {level.largest:,}, at "
            f"most {level.upper_bound:,} of these regions, {most:,} of the areas{out}."
        )
    return lines


def figures(nest: Nested, given: Geography, degrees: bool, stands: Apart) -> dict[str, Any]:
    """The answer in figures."""
    from shoal.publishing.crosswalks.area_levels import facts_of

    found = nest.levels[0]
    above = zip(nest.levels[1:], facts_of(nest), strict=True)
    return {
        "areas": len(given.ids),
        "neighbors": len(given.edges),
        "drawing": {**given.facts, **stands.facts},
        "said": list(given.said),
        "coordinates": "geographic" if degrees else "projected",
        "regions": found.regions,
        "regions_at_most": found.upper_bound,
        "smallest": int(found.weights.reshape(found.regions, -1)[:, 0].min()),
        "largest": found.largest,
        "largest_at_least": found.largest_bound,
        "squares": found.squares,
        "squares_at_least": found.squares_bound,
        "excess": found.excess,
        "left_out": [given.ids[i] for i in found.left_out],
        "joined": [[given.ids[a], given.ids[b]] for a, b in found.joined.tolist()],
        "cost": found.cost,
        "certificate": found.certificate.as_dict(),
        "method": found.method,
        "levels": [{"k": list(level.k), **facts} for level, facts in above],
    }


def _obeyed(found: Regions) -> list[str]:
    """What exclusions, maxima and soft boundaries came to."""
    facts = found.certificate.details
    said = {
        "excluded": "{} excluded",
        "water": "{} of water, which connects no others",
        "water_attached": "of the water, {} in a region beside it",
        "left_out_by_maxima": "{} in no region, for none can take more under the maxima",
        "above_a_maximum_alone": "{} above a maximum alone, left as found",
        "variance_inside": "{:.1%} of the variance of the columns to be alike in is inside regions",
        "regions_across_soft_boundaries": "{} across soft boundaries",
    }
    silent = ("excluded", "left_out_by_maxima", "above_a_maximum_alone")  # where there are none
    known = {name: facts[name] for name in said if facts.get(name) is not None}
    counted = {
        name: value if name == "variance_inside" else several(value, "region" if name.startswith("regions") else "area")
        for name, value in known.items()
    }
    return [said[name].format(value) for name, value in counted.items() if known[name] or name not in silent]


def _apart(light: list[dict[str, Any]], placed: bool) -> list[str]:
    """The light components for people."""
    empty = sum(len(part["areas"]) for part in light if not _weighs(part))
    light = [part for part in light if _weighs(part)]
    lines = [f"In no region, apart from all others: {several(empty, 'empty area')}"] if empty else []
    if not light:
        return lines
    lines.append(f"Too light to be a region, {several(len(light), 'set')} of areas apart from all others:")
    for part in light[:12]:
        areas = part["areas"]
        shown = ", ".join(areas[:6]) + (f" and {len(areas) - 6} more" if len(areas) > 6 else "")
        weight = part["weight"]
        said = f"{weight:,}" if isinstance(weight, int) else " / ".join(f"{w:,}" for w in weight)
        lines.append(f"  {shown}: {said}, {part['outcome']}")
    if len(light) > 12:
        lines.append(f"  and {len(light) - 12} more (--json lists all)")
    if any(part["outcome"] == "left out" for part in light):
        where = "" if placed else ", once columns of longitude and latitude, or --shapes, say where areas lie"
        lines.append(f"  (--islands join makes each a neighbor of the nearest{where})")
    return lines


def _weighs(part: dict[str, Any]) -> bool:
    weight = part["weight"]
    return bool(weight if isinstance(weight, int) else any(weight))


def _compared(rows: list[dict[str, Any]]) -> list[str]:
    """The comparison as lines of text."""
    if not rows:
        return []
    heads = {
        "groups": "groups by", "number": "number", "largest": "largest", "smallest": "smallest", "below_k": "below k",
        "not_connected": "in pieces", "areas_changed": "areas changed", "areas_left_out": "left out",
    }  # fmt: skip
    cells = [list(heads.values())]
    cells += [[row[h] if isinstance(row[h], str) else f"{row[h]:,}" for h in heads] for row in rows]
    wide = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    lines = []
    for first, *rest in cells:
        padded = [cell.rjust(w) for cell, w in zip(rest, wide[1:], strict=True)]
        lines += ["  ".join([first.ljust(wide[0]), *padded])]
    return ["", *lines, ""]
