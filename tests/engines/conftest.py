"""One Spark session for all tests of a process: starting one takes longer than most of them."""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",  # tables of some hundred rows are done before their code is compiled
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session where Spark can run, by default on one thread.

    SHOAL_TEST_SPARK names another master: "local-cluster[2,1,1024]" has executors that are processes of their own, and
    "sc://host:port" is a Connect server.
    """
    pytest.importorskip("pyspark", reason="Spark frames need the package pyspark")
    master = os.environ.get("SHOAL_TEST_SPARK", "local[1]")
    if master.startswith("sc://"):
        pytest.importorskip("grpc", reason="Spark Connect needs the package grpcio")
    elif not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, and there is none")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
