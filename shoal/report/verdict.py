"""What a reader must know first: warnings, worst first, and a verdict in one line with its reasons in figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.report.words import ALL_BUT, percent_up, share

SINGLED = 0.05  # share of the rows singled out by carried columns from which a release is called weak
HIGH, COMMON = 0.2, 0.5  # risk to be found and share of a value up to which a release is called strong


def warnings(figures: Mapping[str, Any]) -> list[str]:
    """Sentences about what the release gives away in spite of its promises, the worst first.

    Columns kept unchanged that single people out; a group that shares a value; a group far from the whole table.
    """
    release, audit = figures["release"], figures["audit"]
    rows = release["rows"]
    carried = release["carried"]
    found: list[tuple[float, str]] = []
    if carried["together"]:
        number = len(carried["columns"])
        columns = f"{number:,} columns" if number > 1 else f"The column {carried['columns'][0]!r}"
        part = carried["together"] / max(rows, 1)
        text = (
            f"{columns} kept unchanged single{'' if number > 1 else 's'} out {carried['together']:,} of "
            f"{rows:,} rows ({share(part, 1)}). Whoever knows these values finds these people in spite of the groups."
        )
        found.append((1 + part, text))
    found += [(most, text) for most, text in (*_shared(audit["sensitive"]), *_far(audit["sensitive"]))]
    return [text for _, text in sorted(found, key=lambda pair: -pair[0])]


def _shared(sensitive: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    """A group that all but shares a value discloses it, (how bad, sentence): all rows, then all but all."""
    shares = {name: levels["alpha"] for name, levels in sensitive.items() if (levels["alpha"] or 0.0) >= ALL_BUT}
    whole = [name for name, most in shares.items() if most >= 1]
    if whole:
        yield 1.0, f"In some group all rows share a value of {_or(whole)}. Whoever is known to be in it has that value."
    rest = sorted((name for name in shares if name not in whole), key=lambda name: -shares[name])
    if rest:
        shown = [f"{percent_up(shares[name])} % of the rows share a value of {name}" for name in rest]
        text = f"In some group {_or(shown)}. Whoever is known to be in it very probably has that value."
        yield shares[rest[0]], text


def _far(sensitive: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    """Groups whose values are distributed all but entirely otherwise than the table's: little is protected then."""
    far = {name: t for name, levels in sensitive.items() if (t := levels.get("t_equal") or 0.0) >= ALL_BUT}
    if far:
        worst = sorted(far, key=lambda name: -far[name])
        shown = [f"{name} (t = {far[name]:.3f})" for name in worst]
        yield (
            far[worst[0]] - 1,  # after what discloses a value
            f"In some group the values of {_or(shown)} are hardly those of the whole table. Whoever is known to be in "
            "it is known to have one of few values.",
        )


def _or(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, the first few of many."""
    if len(names) > most:
        return f"{', '.join(names[:most])} or of {len(names) - most} more columns"
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def risk_word(risk: float) -> str:
    """What the highest risk to be found says where nothing else is known: weak, fair or strong."""
    return "weak" if risk > COMMON else "fair" if risk > HIGH else "strong"


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
    far = max((levels.get("t_equal") or 0.0 for levels in audit["sensitive"].values()), default=0.0)
    reasons = [f"the highest risk to be found by the recoded columns is {risk:.3g}"]
    if worst is not None:
        reasons.append(f"up to {percent_up(most) if most < 1 else '100'} % of a group share a value of {worst}")
    if worst is None:
        reasons.append("no sensitive column was named")
    if singled:
        reasons.append(f"columns kept unchanged single out {share(singled, 1)} of the rows")
    word = risk_word(risk)
    if singled > SINGLED or most >= ALL_BUT:
        word = "weak"
    elif word == "strong" and (singled or most > COMMON or far >= ALL_BUT):
        word = "fair"
    return f"Verdict: {word}. T{'; '.join(reasons)[1:]}."
