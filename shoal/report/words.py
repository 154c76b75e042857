"""A release in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.model.privacy import MODELS


def promise(release: Mapping[str, Any], audit: Mapping[str, Any]) -> str:
    """The guarantee in one sentence."""
    if not release["rows"]:
        return "The table is empty; there is nobody to protect."
    k = audit["smallest_class"]
    text = f"Everyone in this release looks exactly like at least {k - 1:,} others on the quasi-identifiers"
    shares = [
        f"no value of {column} is held by more than {100 * found['alpha']:.1f} % of any group"
        for column, found in audit["sensitive"].items()
        if found["alpha"] is not None and found["alpha"] < 1
    ]
    shares += [
        f"some group agrees on {column}, so who is known to be in it is known to have that value"
        for column, found in audit["sensitive"].items()
        if found["alpha"] is not None and found["alpha"] >= 1
    ]
    return text + ("; " + ", and ".join(shares) if shares else "") + "."


def model_words(check: Mapping[str, Any]) -> str:
    """One model asked for, in words."""
    return next(
        (m(**check["asked"]).words() for m in MODELS.values() if m.name == check["model"]),
        str(check["asked"]),
    )


def certificate_words(release: Mapping[str, Any]) -> str:
    """The certificate in words: what was paid, what nobody can avoid, what follows."""
    c = release["certificate"]
    unit = {"ncp": "mean loss per cell (NCP)"}.get(c["unit"], c["unit"])

    def shown(value: float) -> str:
        return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"

    text = f"This release costs {shown(c['cost'])} {unit}. "
    if c["optimal"]:
        return text + "No release that keeps the same promises costs less: the lower bound equals the cost."
    if c["ratio"] is None:
        text += "No lower bound above zero is known for this table."
    else:
        text += (
            f"Every release that keeps the same promises costs at least {shown(c['lower_bound'])}, "
            f"so this one costs at most {c['ratio']:.4g} times the least possible."
        )
    factor, additive = c["guarantee"]["factor"], c["guarantee"]["additive"]
    if factor is not None:
        more = f" plus {additive:g}" if additive else ""
        text += f" Before seeing the table, the method promised at most {factor:g} times the least{more}."
    return text


def assumptions(policy: Mapping[str, Any]) -> list[str]:
    """What the promise rests on."""
    return [
        "The attacker knows that a person is in the table and all of that person's quasi-identifiers ("
        + ", ".join(policy["quasi_identifiers"])
        + "), and nothing about the sensitive columns"
        + (" (" + ", ".join(policy["sensitive"]) + ")" if policy["sensitive"] else "")
        + ".",
        "Columns without a role are carried along unchanged; whoever chose the roles answers for them.",
        "A missing value is a value of its own. It is never a wildcard that would make rows alike that are not.",
        "A star is a value of its own too: fully starred rows are a group like any other and keep every promise.",
        "Which of several equal rows went into which group was chosen at random.",
        "The rows stand in the order of the input." if policy["keep_order"] else "The rows were shuffled.",
        "One row is one person. Where a person has several rows, count them before you rely on k.",
    ]


def attacks(policy: Mapping[str, Any]) -> list[str]:
    """What such a release cannot promise, by the attack's name."""
    out = [
        "Composition: two releases about the same people, made apart, can be intersected (Ganta, Kasiviswanathan, "
        "Smith 2008). Publish once, or publish the same release again.",
        "Minimality: that nothing was coarsened without need can itself tell something (Wong, Fu, Wang, Pei 2007).",
        "Background knowledge: an attacker who knows more than the quasi-identifiers learns more; t in the table above "
        "says how far a group's distribution lies from the whole table's.",
        "For statistics rather than rows, publication with noise (differential privacy) promises more.",
    ]
    if policy["publish"] == "hierarchy":
        out.insert(
            2, "Downcoding: minimal recodings along a hierarchy can be partly undone from statistics (Cohen 2022)."
        )
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
    weak: list[dict[str, Any]] = [
        {"model": "KAnonymity"},
        {"l": 1},
        {"l": 1.0},
        {"alpha": 1},
        {"alpha": 1.0},
        {"t": 1},
        {"t": 1.0},
    ]
    strong = [m for m in policy["privacy"] if not any(w.items() <= m.items() for w in weak)]
    return [c for c in policy["sensitive"] if not any(m.get("column") in (None, c) for m in strong)]
