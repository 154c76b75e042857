"""Every engine keeps to the protocol: mypy says which method of which one is missing or of another type."""

from shoal.engines import duck, spark
from shoal.engines.duck import DUCKDB
from shoal.engines.frames import FrameTable
from shoal.engines.lazy import Dialect, LazyTable
from shoal.engines.spark import SPARK
from shoal.engines.table import EngineModule, Table

tables: list[type[Table]] = [FrameTable, LazyTable]
homes: list[EngineModule] = [duck, spark]
dialects: list[Dialect] = [DUCKDB, SPARK]
