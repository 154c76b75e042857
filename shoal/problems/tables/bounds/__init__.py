"""Lower bounds on the loss of every eligible partition, and the certificates that state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Partition
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds.bounds import ARGUMENTS, Bounds, lower_bounds
from shoal.problems.tables.losses import steps_bound
from shoal.problems.tables.three_phase import residue, residues

ARGUMENT = "at least {rows} rows share their group with different rows, each at its cheapest: {why}"


def refuse_ceiling(task: Task, partition: Partition, method: str, starred: bool = False) -> None:
    """Raise PolicyError if a group would be published above a column's highest allowed level.

    starred  the last group is a block of completely starred rows, to which ceilings do not apply
    """
    if not any(c.held for c in task.recoding.columns):
        return
    published = task.recoding.publish(task.histogram, partition)
    for j, column in enumerate(task.recoding.columns):
        above = column.above(published.first[:, j])
        above[above.size - starred :] = False
        if above.any():
            raise PolicyError(
                f"{method} would publish {int(partition.sizes[above].sum())} rows of {task.histogram.quasi_names[j]!r} "
                f"above {column.limit}; raise its ⟨max_level⟩, or use a method that keeps it, for example 'cascade'"
            )


def certified(
    task: Task,
    partition: Partition,
    method: str,
    guarantee: Guarantee | None = None,
    details: Mapping[str, Any] | None = None,
    starred: bool = False,
) -> Grouping:
    """A grouping with its loss and the best bound that the effort allows, in the recoding's unit.

    The bound is one of ``lower_bounds``, or that on suppressed tuples, converted to the recoding's unit.
    """
    refuse_ceiling(task, partition, method, starred)
    facts: dict[str, Any] = {"bound": 0, "argument": "no rows"}
    if task.histogram.cells:
        facts = residue(task.histogram, task.requirement)[1]
    cost = task.recoding.cost(task.histogram, partition)
    argument = ARGUMENT.format(rows=facts["bound"], why=facts["argument"])
    lower = steps_bound(task, facts["bound"])
    seconds = task.effort.seconds
    known = Bounds()
    if not starred:  # these bounds assume the ceilings, and a starred block exceeds them
        known = lower_bounds(task, until=None if seconds is None else task.started + seconds)
    if known.best[1] > lower:
        lower, argument = known.best[1], f"{known.best[0]}: {ARGUMENTS[known.best[0]]}"
    return Grouping(
        partition,
        Certificate(
            cost=cost,
            lower_bound=tight(lower, cost, task.recoding.unit, argument),
            unit=task.recoding.unit,
            guarantee=guarantee or Guarantee(),
            bound=argument,
            details={"fewest_suppressed": facts["bound"], "bounds": dict(known.values), **(details or {})},
        ),
        method,
        starred=starred,
    )


@dataclass
class SearchReport:
    """What a search did: steps, rounds, and what ended it ("steps" or "seconds")."""

    steps: int = 0
    rounds: int = 0
    stopped: str = "steps"


def certify(
    task: Task,
    partition: Partition,
    method: str,
    bounds: Bounds | None = None,
    search: SearchReport | None = None,
    proof: dict[str, Any] | None = None,
) -> Grouping:
    """The grouping with its certificate: the best bound, and all other bounds in the details."""
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
    """The three-phase algorithm's promise, in stars; it holds for every partition that costs no more."""
    if task.recoding.unit != "stars":
        return Guarantee()
    facts: dict[str, Any] = residues(task)[1]
    tuples: Guarantee = facts["guarantee"]
    if tuples.factor is None:
        return Guarantee()
    d = len(task.recoding.columns)
    return Guarantee(
        factor=tuples.factor * d,
        additive=(tuples.additive or 0) * d,
        theorem=f"never costs more than the three-phase algorithm; {tuples.theorem}, a tuple being at most {d} stars",
    )
