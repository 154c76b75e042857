"""How much memory a search takes, said before it begins, and which engine had too little of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from shoal.errors import InputError

LOG = logging.getLogger("shoal")
CELL = 1_000  # bytes of a cell while it is searched, measured with 4 to 9 quasi-identifiers
ITSELF = 400 * 10**6  # bytes of Python, its packages and the compiled loops
WORTH_SAYING = 10**9  # bytes of a search from which on they are said

DRIVER = (
    "Spark's driver has too little memory for this table: it is 1 GB unless you say more. Before Python starts, set "
    "PYSPARK_SUBMIT_ARGS='--driver-memory 6g pyspark-shell', or give spark.driver.memory to the session that you make"
)
DUCKDB = "DuckDB has too little memory for this table; give it more with memory=..."


def words(cells: int) -> str:
    """What a search over so many cells takes, in a clause."""
    return (
        f"the search over {cells:,} cells takes about {_gb(cells * CELL)} of memory ({CELL // 1000} KB a cell), beside "
        f"{_gb(ITSELF)} of Python and what the engine holds"
    )


def refuse_too_many(cells: int, progress: Callable[[str, float | None], None], free: int | None = None) -> None:
    """Say before a search what it takes, and refuse with InputError one that takes more than there is.

    cells  number of distinct tuples of quasi-identifiers and sensitive values
    free   bytes that can be had; found out when None, and where nothing tells, nothing is refused
    """
    free = available() if free is None else free
    if free is not None and cells * CELL > free:
        raise InputError(
            f"{words(cells)}; {_gb(free)} are free. Make quasi-identifiers coarser first, name fewer, or use a "
            "machine with more memory"
        )
    if cells * CELL >= WORTH_SAYING:
        LOG.warning("%s", words(cells))
        progress(words(cells).removeprefix("the "), None)


def available(root: Path = Path("/")) -> int | None:
    """Bytes that this process can still have, swap included; None where the system does not tell."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        held = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
        free = held["MemAvailable"] + held.get("SwapFree", 0)
    except (OSError, ValueError, KeyError, IndexError):
        return None
    try:  # of a container
        group = root / "sys/fs/cgroup"
        limit, used = ((group / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current"))
        cache = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        return min(free, int(limit) - int(used) + int(cache.get("inactive_file", 0)))
    except (OSError, ValueError):  # "max" is no limit
        return free


def too_little(error: BaseException) -> str:
    """What to say where an engine failed for want of memory; empty for any other failure."""
    said = f"{type(error).__name__}: {error}"
    if "Java heap space" in said or "OutOfMemoryError" in said or "GC overhead limit" in said:
        return DRIVER
    return DUCKDB if "Out of Memory" in said or "OutOfMemory" in said else ""


def _gb(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
