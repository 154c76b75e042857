"""Lower bounds on the loss of any eligible partition."""

from __future__ import annotations

from shoal.model.certificate import Certificate
from shoal.model.partition import Partition
from shoal.model.task import Grouping, Task
from shoal.problems.tables.three_phase import residue


def certify(task: Task, partition: Partition, method: str) -> Grouping:
    """The grouping with its certificate."""
    from shoal.problems.tables.cascade import promise

    cost = task.recoding.cost(task.histogram, partition)
    bound = residue(task.histogram, task.requirement)[1]["bound"] if task.recoding.unit == "stars" else 0.0
    certificate = Certificate(
        cost=cost, lower_bound=min(bound, cost), unit=task.recoding.unit, guarantee=promise(task), bound="tuples"
    )
    return Grouping(partition, certificate, method)
