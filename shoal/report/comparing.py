"""The page of a comparison: releases of one table side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.report.parts import listed, meanings, table, whole


def page(found: Mapping[str, Any], head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The whole page.

    found       ``Comparison.as_dict()``
    head, rows  its main figures, a row for each release
    """
    kept = [i for i in range(len(head)) if any(row[i] is not None for row in rows)]
    lines = [[head[i], *("–" if row[i] is None else row[i] for row in rows)] for i in kept[1:]]
    readings = [f"{name.replace(chr(95), chr(32))}: {said}" for name, said in found["readings"].items()]
    lead = (
        f"{len(rows) - 1} {'release' if len(rows) == 2 else 'releases'} of a table of {found['rows']:,} rows, each "
        "judged and used in the same way, beside the original. Of k and l more is better, of losses, errors and "
        "distances less."
    )
    sections = [
        ("Side by side", table(("", *(row[0] for row in rows)), lines, 1, "Releases of one table")),
        *([("What to look at", listed(found["notes"]))] if found["notes"] else []),
        ("How stars and missing values were read", listed(readings)),
        ("What the figures mean", meanings([(head[i], MEANINGS[head[i]]) for i in kept if head[i] in MEANINGS])),
    ]
    return whole(
        "Releases compared", ", ".join(str(row[0]) for row in rows[1:]), "Releases of one table", lead, sections, found
    )


MEANINGS = {
    "k": "rows of the smallest group of rows alike",
    "k by wildcards": "the same where a star or a missing value may be anything",
    "l": "one over the largest share of a sensitive value in a group",
    "simultaneous l": "rows that differ in every sensitive column and among which every row lies in its group",
    "k-map": "people of the population that the group which fits fewest fits",
    "presence": "the largest share of a group in the people that it fits",
    "loss (NCP)": "mean loss of a published value: 0 is the value itself, 1 is nothing left",
    "share of values hidden": "cells of which nothing is left",
    "query error, median": "counts of random ranges from the release against those from the original, half are nearer",
    "query error, p90": "the same, nine of ten are nearer",
    "distance of marginals": "how far each column's distribution moved, 0 not at all, 1 entirely",
    "change of correlations": "mean change of the correlations between numbers",
    "accuracy": "of a classifier that learned from the release, on rows of the original",
    "AUC": "the same by rank: 0.5 is a coin, 1 is perfect",
}
