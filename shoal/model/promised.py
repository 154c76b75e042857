"""What a theorem promises of a request before any table is seen, so that a certificate may say it of every table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.model.certificate import Guarantee

NEVER_DEARER = ("auto", "three_phase", "cascade", "improve")  # methods whose answer costs at most the three-phase one
PROVED = Guarantee(factor=1, additive=0, theorem="no valid release costs less: proved for this table")
SOURCE = "Xiao, Yi, Tao 2010, Theorem 5.19"
WITHOUT = [
    "weights",
    "max_level",
    "max_suppressed",
    "global_recoding",
    "person",
    "household",
    "population",
    "population_weights",
    "shards",
    "max_average_risk",
    "minimality",
    "coarsen",
]  # settings under which nothing is promised


def promised(asked: Mapping[str, Any]) -> Guarantee:
    """The promise of a request, a policy as ``Policy.describe`` gives it: it depends on nothing else.

    Stars, one sensitive column with l-diversity by frequency and k at most l: at most l times the fewest suppressed
    tuples, which is at most l d times the fewest stars for d quasi-identifiers (Lemma 2 of the same paper).
    k-anonymity alone: the fewest suppressed tuples, so at most d times the fewest stars.  Other requests: none.
    """
    models = {str(m["model"]): m for m in asked["privacy"]}
    d = len(asked["quasi_identifiers"])
    plain = asked["publish"] == "stars" and asked["method"] in NEVER_DEARER and asked.get("missing") != "apart"
    plain = plain and set(models) <= {"KAnonymity", "LDiversity"} and len(models) == len(asked["privacy"])
    if not plain or not d or any(asked.get(name) for name in WITHOUT):
        return Guarantee()
    k, l = (int(models[n][of]) if n in models else 1 for n, of in (("KAnonymity", "k"), ("LDiversity", "l")))
    if l > 1 and (k > l or len(asked["sensitive"]) != 1):
        return Guarantee()
    if l > 1:
        theorem = f"never dearer than the three-phase algorithm; {SOURCE}: at most {l} times the fewest"
        return Guarantee(factor=l * d, additive=0, theorem=f"{theorem} suppressed tuples, each at most {d} stars")
    theorem = "never dearer than the fewest suppressed tuples: rows of classes under k must leave"
    return Guarantee(factor=d, additive=0, theorem=f"{theorem}; each is at most {d} stars")
