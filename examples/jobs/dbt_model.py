"""A Python model of dbt: save it as models/visits_released.py.  dbt writes the table that it returns."""

import os

import shoal


def model(dbt, session):
    dbt.config(materialized="table", packages=["shoal"])
    visits = dbt.ref("visits").df()  # dbt-duckdb; other adapters: to_pandas() or toPandas()
    release = shoal.anonymize(
        visits, quasi_identifiers=["age", "zip"], sensitive=["illness"], k=5, l=2, effort="fast",
        secret=os.environ["SHOAL_SECRET"].encode(),
    )  # fmt: skip
    return release.table
