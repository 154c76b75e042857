"""What the promise of a release of a table rests on, and which attacks it does not stop, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.model.missing import missing_words
from shoal.report.words import sentence


def assumptions(policy: Mapping[str, Any]) -> list[str]:
    """What the promise rests on."""
    return [
        "The attacker knows that a person is in the table and all of that person's quasi-identifiers ("
        + ", ".join(policy["quasi_identifiers"])
        + "), and nothing about the sensitive columns"
        + (" (" + ", ".join(policy["sensitive"]) + ")" if policy["sensitive"] else "")
        + ".",
        "Columns without a role are published unchanged; whoever chose the roles answers for them.",
        sentence(missing_words(policy["missing"])),
        "A star is a value of its own too: fully starred rows are a group like any other and keep every promise.",
        "Which of several equal rows went into which group was chosen at random.",
        "The rows stand in the order of the input." if policy["keep_order"] else "The rows were shuffled.",
        _who(policy),
        *([_SPAN] if policy["publish"] == "centers" else []),
        *_outside(policy),
    ]


_SPAN = (
    "Distance: from the least to the greatest number or date of a column counts 1, another value of any other column 1 "
    "as well, or as far as its hierarchy says; each times the column's weight."
)


def _outside(policy: Mapping[str, Any]) -> list[str]:
    """What a model of the population rests on."""
    asked = {m["model"] for m in policy["privacy"]}
    out = []
    if "KMap" in asked:
        out.append(
            "k-map counts people of the population: it protects from who does not know that a person is in the table. "
            "From who knows, only k does."
        )
    if asked & {"KMap", "DeltaPresence"}:
        source = "the weights are right" if policy.get("population_weights") else "the population is whole"
        out.append(f"That {source} rests on whoever handed it over.")
    return out


def _who(policy: Mapping[str, Any]) -> str:
    """Whom a row stands for."""
    units = [policy[name] for name in ("person", "household") if policy.get(name)]
    if units:
        return (
            f"k counts the different values of {' and of '.join(units)} in a group, not its rows alone, and what is "
            "asked of sensitive values counts each of them once for a value. Rows of one in several groups can be set "
            "side by side by who knows which they are."
        )
    return "One row is one person. Where a person has several rows, name the column that says so (person)."


def _ends(policy: Mapping[str, Any], exposed: float) -> str:
    """What the ends of ranges and the members of sets tell."""
    steps = policy.get("range_step") or {}
    said = f"{100 * exposed:.1f} % of the groups show a value that only one of their rows holds"
    grid = (
        f" {', '.join(steps)} {'ends' if len(steps) == 1 else 'each ends'} on a grid and shows none." if steps else ""
    )
    return (
        f"Ends of ranges: a range goes from the least to the greatest value of its group, and a set names them all; "
        f"{said}. range_step (--range-step) widens ranges to round ends.{grid}"
    )


def _minimality(policy: Mapping[str, Any]) -> str:
    """What the forming of the groups tells, or why it tells nothing."""
    if policy.get("minimality") is None:
        return (
            "Minimality: that nothing was coarsened without need can itself tell something (Wong, Fu, Wang, Pei 2007)."
        )
    return (
        "Minimality: who knows the method and everybody's quasi-identifiers tells nobody's value with more than "
        f"{policy['minimality']:g}, where before the release any two people may as well have each other's values. Who "
        "knows more about the people, or has a second release of them, may tell more."
    )


def attacks(policy: Mapping[str, Any], exposed: float | None = None) -> list[str]:
    """What such a release cannot promise, by the attack's name.

    exposed  share of the groups that show a value which only one of their rows holds; None where no form shows one
    """
    out = [
        "Composition: two releases about the same people, such as this month's and the next, can be intersected: the "
        "groups that a person has in each may have fewer than k people in common (Ganta, Kasiviswanathan, Smith 2008). "
        "Publish once, publish the same release again, or publish new people alone.",
        _minimality(policy),
        "Background knowledge: an attacker who knows more than the quasi-identifiers learns more; t in the table above "
        "says how far a group's distribution lies from the whole table's.",
        "For statistics rather than rows, publication with noise (differential privacy) promises more.",
    ]
    if policy["publish"] == "centers":
        out.insert(
            2, "Centers: what a group's rows show is the record of one of its people, as it came; whoever knows that "
            "somebody of just these values is in the table has found the group in which that person is."
        )  # fmt: skip
    if policy["publish"] == "hierarchy":
        out.insert(
            2, "Downcoding: minimal recodings along a hierarchy can be partly undone from statistics (Cohen 2022)."
        )
    if exposed is not None:
        out.insert(2, _ends(policy, exposed))
    bare = _unguarded(policy)
    if not policy["sensitive"]:
        out.insert(0, "Homogeneity: no sensitive column was named, so a group may agree on something private.")
    elif bare:
        out.insert(
            0,
            f"Homogeneity: no model was asked for that keeps the values of {', '.join(bare)} apart, so a group may "
            "agree on them (Machanavajjhala et al. 2007); ask for l, entropy l, alpha or t.",
        )
    return out


def _unguarded(policy: Mapping[str, Any]) -> list[str]:
    """Sensitive columns that no model speaks of, or only one that every group meets."""
    weak: list[dict[str, Any]] = [{"model": name} for name in ("KAnonymity", "KMap", "DeltaPresence")]
    weak += [{name: 1} for name in ("l", "alpha", "t")]
    strong = [m for m in policy["privacy"] if not any(w.items() <= m.items() for w in weak)]
    return [c for c in policy["sensitive"] if not any(m.get("column") in (None, c) for m in strong)]
