"""What a reader must know first: warnings, worst first, and a verdict in one line with its reasons in figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.report.words import ALL_BUT, percent_up, share

SINGLED = 0.05  # share of the rows singled out by carried columns from which a release is called weak
HIGH, COMMON = 0.2, 0.5  # risk to be found and share of a value up to which a release is called strong


def warnings(figures: Mapping[str, Any]) -> list[str]:
    """Sentences about what the release gives away in spite of its promises, the worst first."""
    release, audit = figures["release"], figures["audit"]
    rows = release["rows"]
    carried = release["carried"]
    found: list[tuple[float, str]] = []
    if carried["together"]:
        number = len(carried["columns"])
        columns = f"{number:,} columns" if number > 1 else f"The column {carried['columns'][0]!r}"
        part = carried["together"] / max(rows, 1)
        text = (
            f"{columns} carried along untouched single{'' if number > 1 else 's'} out {carried['together']:,} of "
            f"{rows:,} rows ({share(part, 1)}). Whoever knows these values finds these people in spite of the groups."
        )
        found.append((1 + part, text))
    for column, levels in audit["sensitive"].items():
        most = levels["alpha"]
        if most is None or most < ALL_BUT:
            continue
        who = "Whoever is known to be in it is known to have it."
        text = f"In some group all rows share a value of {column}. {who}"
        if most < 1:
            text = (
                f"In some group up to {percent_up(most)} % of the rows share a value of {column}. Whoever is known to "
                "be in it very probably has it."
            )
        found.append((most, text))
    return [text for _, text in sorted(found, key=lambda pair: -pair[0])]


def verdict(figures: Mapping[str, Any]) -> str:
    """Weak, fair or strong, with the figures that say so."""
    release, audit = figures["release"], figures["audit"]
    rows = release["rows"]
    if not rows:
        return "Verdict: the table is empty."
    failed = [c["model"] for c in audit["checks"] if not c["passes"]]
    if failed:
        return f"Verdict: not to be published. {failed[0]} does not hold."
    singled = release["carried"]["together"] / rows
    risk = audit["risk"]["prosecutor_max"]
    shares = {name: levels["alpha"] or 0.0 for name, levels in audit["sensitive"].items()}
    worst = max(shares, key=shares.__getitem__, default=None)
    most = 0.0 if worst is None else shares[worst]
    reasons = [f"the highest risk to be found by the recoded columns is {risk:.3g}"]
    if worst is not None:
        reasons.append(f"at most {percent_up(most) if most < 1 else '100'} % of a group share a value of {worst}")
    if singled:
        reasons.append(f"carried columns single out {share(singled, 1)} of the rows")
    if singled > SINGLED or most >= ALL_BUT or risk > COMMON:
        word = "weak"
    elif not singled and risk <= HIGH and most <= COMMON and (shares or not audit["sensitive"]):
        word = "strong"
    else:
        word = "fair"
    return f"Verdict: {word}. {'; '.join(reasons).capitalize()[:1]}{'; '.join(reasons)[1:]}."
