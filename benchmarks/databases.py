"""Tables of servers: a table in, a verified table out, against the server's own group-by and copy of the same table.

python benchmarks/databases.py [--rows 100000] [--servers postgresql,mysql]

The servers are those that the tests start: on a port and in a folder of their own, by an ordinary user.  The floor is
measured in the same run, once before and once after: the server groups by the same columns and copies the table.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
from record import record

sys.path.insert(0, str(Path(__file__).parents[1]))

import shoal
from shoal.experiments.l_diversity import census_like
from tests.servers import PASSWORD, mysql, postgres

QUASI = ["Age", "Gender", "Race", "MaritalStatus"]
SENSITIVE = ["Occupation"]
CARRIED = ["Education", "amount"]
L = 6


def people(rows: int) -> pl.DataFrame:
    """A census-like table with two columns that nothing is done to."""
    columns = census_like(rows, seed=7)
    frame = pl.DataFrame({name: columns[name] for name in [*QUASI, *SENSITIVE, "Education"]})
    return frame.with_columns(amount=pl.arange(0, rows) % 5000)


class Asked:
    """A connection of the benchmark's own to a server."""

    def __init__(self, server: Any) -> None:
        self.kind = server.kind
        given: dict[str, Any] = {"host": "127.0.0.1", "port": server.port, "user": "shoal", "password": PASSWORD}
        if server.kind == "mysql":
            import MySQLdb

            self.own: Any = MySQLdb.connect(**given, database="test", autocommit=True)
        else:
            import psycopg

            self.own = psycopg.connect(**given, dbname="test", autocommit=True)

    def name(self, column: str) -> str:
        """A column with its capitals."""
        return f"`{column}`" if self.kind == "mysql" else f'"{column}"'

    def run(self, sql: str) -> float:
        """Seconds of a statement, its rows fetched."""
        clock = time.perf_counter()
        cursor = self.own.cursor()
        cursor.execute(sql)
        if cursor.description:
            cursor.fetchall()
        cursor.close()
        return time.perf_counter() - clock

    def fill(self, frame: pl.DataFrame) -> None:
        """The table ``people``."""
        kinds = {n: "bigint" if k.is_integer() else "varchar(60)" for n, k in frame.schema.items()}
        columns = ", ".join(f"{self.name(n)} {kind}" for n, kind in kinds.items())
        self.run(f"create table people ({columns})")
        cursor = self.own.cursor()
        marks = ", ".join(["%s"] * frame.width)
        for piece in frame.iter_slices(5000):
            cursor.executemany(f"insert into people values ({marks})", piece.rows())
        cursor.close()

    def floor(self) -> tuple[float, float]:
        """Seconds of the group-by, and of it with the copy."""
        names = ", ".join(map(self.name, [*QUASI, *SENSITIVE]))
        grouped = self.run(f"select {names}, count(*) from people group by {names}")
        copied = self.run("create table copied as select * from people")
        self.run("drop table copied")
        return grouped, grouped + copied


def one_server(kind: str, frame: pl.DataFrame, folder: Path) -> dict[str, Any]:
    """Seconds of one server, and its floor."""
    with (postgres if kind == "postgresql" else mysql)() as server:
        asked = Asked(server)
        asked.fill(frame)
        address = server.address(password=None)
        roles: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": SENSITIVE, "insensitive": CARRIED}
        how: dict[str, Any] = {**roles, "l": L, "seed": 1, "method": "three_phase", "effort": "fast"}
        shoal.anonymize(frame.head(2000), **how)  # compiled before the clock runs
        before = asked.floor()
        clock = time.perf_counter()
        release = shoal.anonymize(address, table="people", **how)
        made = time.perf_counter() - clock
        release.write(address, folder / f"{kind}.json", table="people_release", record=False)
        seconds = time.perf_counter() - clock
        after = asked.floor()
    least = (before[1] + after[1]) / 2
    return {
        "server": kind,
        "rows": frame.height,
        "seconds": seconds,
        "anonymize s": made,
        "group-by s": (before[0] + after[0]) / 2,
        "floor s": least,
        "ratio": seconds / least,
        **{name: round(lap, 2) for name, lap in release.seconds.items()},
    }


def main() -> None:
    """Measure and put on record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--servers", default="postgresql,mysql")
    asked = parser.parse_args()
    os.environ |= {"PGPASSWORD": PASSWORD, "MYSQL_PWD": PASSWORD}
    with tempfile.TemporaryDirectory() as name:
        rows = [one_server(kind, people(asked.rows), Path(name)) for kind in asked.servers.split(",")]
    record(
        f"Tables of servers, {asked.rows:,} rows, two columns carried",
        f"python benchmarks/databases.py --rows {asked.rows} --servers {asked.servers}",
        rows,
        [
            "Four quasi-identifiers, Occupation sensitive, l = 6, three_phase; table to table on one server, the rows "
            "read back and judged. Floor: the server groups by the same columns and copies the table, mean of before "
            "and after. Most of the rest is the plan of the released rows, which is run once to judge it and once to "
            "read it, rows sent one by one, and rows read back.",
        ],
    )


if __name__ == "__main__":
    main()
