"""One judge for every kind of crosswalk: what its certificate file says, asked of what stands on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from shoal.errors import InputError
from shoal.judge.areas import judge_regions
from shoal.judge.crosswalk import Stated, judge_groups
from shoal.judge.finding import Finding
from shoal.judge.tiles import judge_outlines, judge_tile_rows, judge_tile_table, judge_tiles
from shoal.model.certificate import Certificate

KINDS = ("labels", "intervals", "regions", "tiles")


class Sources(NamedTuple):
    """What an answer was made from, as far as it is at hand.

    table  the table grouped: a row per record, value, area or point
    pairs  of areas: neighbors, two names in a row
    """

    table: pl.DataFrame | None = None
    pairs: pl.DataFrame | None = None


def form_of(path: Path) -> str:
    """How a file stores values: "parquet", "excel" or "csv"."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    return "excel" if name.endswith((".xlsx", ".xls", ".xlsb")) else "csv"


def findings(
    record: Mapping[str, Any],
    certificate: Certificate,
    held: Any,
    form: str,
    sources: Sources,
    part: str | None = None,
) -> list[Finding]:
    """What the judge of a kind finds; VerificationError for a file that is no such table.

    held  the frame as read back; of outlines their path;  part  name of a companion of the crosswalk
    """
    stated = Stated(record["parameters"], record["facts"], certificate.cost, certificate.lower_bound, certificate.unit)
    if part is not None:
        judges = {"tiles": judge_tile_rows, "table": judge_tile_table}
        if record["kind"] != "tiles" or part not in (*judges, "outlines"):
            raise InputError(f"the certificate file names a part {part!r} that this version cannot check")
        return judge_outlines(held, stated) if part == "outlines" else judges[part](held, stated, form)
    if record["kind"] == "regions":
        return judge_regions(held, stated, form, sources.table, sources.pairs)
    if record["kind"] == "tiles":
        return judge_tiles(held, stated, form, sources.table)
    return judge_groups(record["kind"], held, stated, form, sources.table)
