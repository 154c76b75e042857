"""The certificate of a search: the best bound there is, and the three-phase algorithm's promise."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.partition import Partition
from shoal.model.task import Grouping, Task
from shoal.problems.tables.papers.three_phase import residues
from shoal.problems.tables.search.bounds import ARGUMENTS, Bounds, lower_bounds


@dataclass
class Told:
    """What a search did: neighborhoods tried, rounds, and why it stopped ("steps" or "seconds")."""

    steps: int = 0
    rounds: int = 0
    stopped: str = "steps"


def certify(
    task: Task,
    partition: Partition,
    method: str,
    bounds: Bounds | None = None,
    search: Told | None = None,
    proof: dict[str, Any] | None = None,
) -> Grouping:
    """The grouping with its certificate: the best bound, with all others in the details."""
    if bounds is None:
        bounds = lower_bounds(task)
    cost = task.recoding.cost(task.histogram, partition)
    name, value = bounds.best
    details: dict[str, Any] = {"bounds": dict(bounds.values), "bound_seconds": round(bounds.seconds, 3)}
    if search is not None:
        details["search"] = asdict(search)
    if proof is not None:
        details["proof"] = proof
    certificate = Certificate(
        cost=cost,
        lower_bound=tight(value, cost, task.recoding.unit, name),
        unit=task.recoding.unit,
        guarantee=promise(task),
        bound=f"{name}: {ARGUMENTS[name]}" if name in ARGUMENTS else "none",
        details=details,
    )
    return Grouping(partition, certificate, method)


def promise(task: Task) -> Guarantee:
    """The three-phase algorithm's promise, in stars; it holds for whatever is not dearer."""
    if task.recoding.unit != "stars":
        return Guarantee()
    facts: dict[str, Any] = residues(task)[1]
    told: Guarantee = facts["guarantee"]
    if told.factor is None:
        return Guarantee()
    d = len(task.recoding.columns)
    return Guarantee(
        factor=told.factor * d,
        additive=(told.additive or 0) * d,
        theorem=f"never dearer than the three-phase algorithm; {told.theorem}, a tuple being at most {d} stars",
    )
