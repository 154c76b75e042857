"""Rows with a missing quasi-identifier grouped among themselves, and that counted on the rows that leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.open import open_table
from shoal.engines.table import Counted, Table
from shoal.errors import InfeasibleError, PolicyError, VerificationError
from shoal.judge.tables.privacy import judge
from shoal.model.policy import Policy
from shoal.model.privacy import Requirement
from shoal.model.task import refuse_infeasible
from shoal.problems.tables.apart import part_of
from shoal.publishing.tables.closeness import trees_of

FLAG = "__incomplete__"  # the column that says of a row whether it lacks a quasi-identifier; it never leaves


def flagged(table: Table, policy: Policy) -> Table:
    """The table with a column that says which rows lack a quasi-identifier; PolicyError for another of its name."""
    if policy.missing != "apart":
        return table
    if FLAG in table.columns:
        raise PolicyError(f"the table has a column {FLAG!r}, which missing='apart' needs itself; rename it")
    return table.with_missing(policy.grouped, FLAG)


def parts_of(counted: Counted, policy: Policy, need: Requirement) -> np.ndarray | None:
    """int64[cells]: 1 where a quasi-identifier is missing, 0 elsewhere; None where that is no matter.

    Raises InfeasibleError where one of the two parts does not meet the models by itself.
    """
    if policy.missing != "apart":
        return None
    lacking = np.zeros(counted.histogram.cells, bool)
    for j, column in enumerate(counted.quasi):
        gone = np.array([text is None for text in column.texts()], bool)
        lacking |= gone[counted.histogram.quasi[:, j]]
    for part, words in ((lacking, "with a missing quasi-identifier"), (~lacking, "without one")):
        held = part_of(counted.histogram, np.flatnonzero(part))
        try:
            refuse_infeasible(held, need, lambda j, code: counted.sensitive[j].texts()[code] or "missing")
        except InfeasibleError as error:
            raise InfeasibleError(
                f"the {held.rows:,} rows {words} are grouped apart (missing='apart'), and among them alone: "
                + str(error).replace("the whole table", "that part")
            ) from None
    return lacking.astype(np.int64)


def judged_apart(placed: Any, counted: Counted, policy: Policy) -> tuple[Any, Mapping[str, Any] | None]:
    """The placed table without the column ``FLAG``, and what was counted: rows that lack a value, the smallest classes.

    The columns with missing values are named too: of the others a blank in a file of text is an empty text.

    Every class is judged twice, its rows that lack a value and the others.  VerificationError where a model fails.
    """
    if policy.missing != "apart":
        return placed, None
    table = open_table(placed)
    names = [*policy.grouped, FLAG]
    cells, counts = table.counts([*names, *policy.sensitive, *policy.units])
    audit = judge(
        cells, names, policy.sensitive, policy.privacy, persons=policy.units, counts=counts, trees=trees_of(policy)
    )
    for found in audit.checks:
        if not found.passes:
            raise VerificationError(
                f"among the rows with a missing quasi-identifier, or those without, {found.model} reaches only "
                f"{found.level}; nothing was published. This is a defect of shoal: please report it"
            )
    facts = _facts(cells[FLAG].to_numpy().astype(bool), [cells[n] for n in policy.grouped], counts)
    gone = [name for name, column in zip(policy.grouped, counted.quasi, strict=True) if None in column.texts()]
    return table.without([FLAG]), {**facts, "columns": gone}


def _facts(lacking: np.ndarray, shown: Sequence[Any], counts: np.ndarray) -> dict[str, int]:
    frame = pl.DataFrame([s.alias(f"c{i}") for i, s in enumerate(shown)]).with_columns(
        pl.Series("apart", lacking), pl.Series("rows", counts)
    )
    sizes = frame.group_by(pl.exclude("rows")).agg(pl.col("rows").sum())
    part, size = sizes["apart"].to_numpy(), sizes["rows"].to_numpy()
    return {
        "rows": int(counts[lacking].sum()),
        "smallest": int(size[part].min()) if part.any() else 0,
        "smallest_of_others": int(size[~part].min()) if not part.all() else 0,
    }
