"""The public call at the default effort on generated tables, recodings by models: how near the answers are proved.

python benchmarks/default.py          every recoding, about four minutes
python benchmarks/default.py ranges   one of them, nothing is recorded
"""

from __future__ import annotations

import sys
import time
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from record import record

import shoal

SIZES = (400, 4000)
LARGE = 100_000  # of the first two models
MODELS: dict[str, dict[str, Any]] = {
    "k = 5": {"k": 5},
    "k = 5, l = 2": {"k": 5, "l": 2},
    "k = 5, l = 3": {"k": 5, "l": 3},
    "k = 5, distinct l = 3": {"k": 5, "distinct_l": 3},
    "k = 5, entropy l = 2": {"k": 5, "entropy_l": 2},
    "k = 5, t = 0.3": {"k": 5, "t": 0.3},
}
PUBLISH = ("ranges", "stars")
# Shares of the diseases that just meet a request, which is then hard to serve.
TIGHT: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {
    "k = 5, l = 3, most 0.325": ((0.325, 0.3, 0.225, 0.15), {"k": 5, "l": 3}),
    "k = 5, l = 2, most 0.49": ((0.49, 0.3, 0.11, 0.1), {"k": 5, "l": 2}),
    "k = 5, entropy l = 1.8, most 0.8": ((0.8, 0.1, 0.05, 0.05), {"k": 5, "entropy_l": 1.8}),
    "alpha = 0.82, k = 5, most 0.8": ((0.8, 0.1, 0.05, 0.05), {"alpha_k": (0.82, 5)}),
}
TIGHT_SIZE = 20_000
# Shares that groups of a few sizes alone meet: 21 rows of 26, 46 of 57.
EDGE: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {
    "alpha = 0.8077, k = 5, 0.807": ((0.807, 0.193, 0.0, 0.0), {"alpha_k": (0.8077, 5)}),
    "k = 5, recursive c = 4.2, l = 2, 0.807": ((0.807, 0.065, 0.064, 0.064), {"k": 5, "recursive_cl": (4.2, 2)}),
}
EDGE_SIZE = 1_000


def people(
    n: int, shares: tuple[float, ...] = (0.3, 0.28, 0.22, 0.2), seed: int = 3, exact: bool = False
) -> pl.DataFrame:
    """Generated records: ages around 45, six zip codes, eight levels of education, four diseases of these shares.

    exact  whether the diseases have just these shares, or are drawn by them
    """
    rng = np.random.default_rng(seed)
    diseases = ["none", "flu", "gout", "asthma"]
    zips = ["01234", "01235", "02000", "02001", "03100", "04567"]
    return pl.DataFrame({
        "age": np.clip(rng.normal(45, 16, n).astype(int), 18, 90),
        "sex": rng.choice(["m", "f"], n),
        "zip": rng.choice(zips, n, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]),
        "education": rng.integers(1, 9, n),
        "disease": rng.permutation(np.repeat(diseases, np.rint(np.multiply(shares, n)).astype(int)))
        if exact else rng.choice(diseases, n, p=list(shares)),
    })  # fmt: skip


def measured(n: int, publish: str, case: str) -> dict[str, Any]:
    """One release, with what it took."""
    shares, asked = (TIGHT | EDGE)[case] if case in TIGHT | EDGE else ((), MODELS[case])
    table = people(n, shares, exact=case in EDGE) if shares else people(n)
    held = {"insensitive": ["disease"]} if [*asked] == ["k"] else {"sensitive": ["disease"]}
    began, cpu = time.perf_counter(), time.process_time()
    found = shoal.anonymize(
        table, quasi_identifiers=["age", "sex", "zip", "education"], publish=publish, seed=1, **held, **asked
    ).certificate
    return {"published": publish, "rows": n, "request": case, "loss": float(found.cost), "unit": found.unit,
            "at least": float(found.lower_bound), "ratio": round(float(found.ratio), 3),
            "seconds": round(time.perf_counter() - began, 1),
            "cpu seconds": round(time.process_time() - cpu, 1)}  # fmt: skip


if __name__ == "__main__":
    wanted = sys.argv[1:] or PUBLISH
    for publish in PUBLISH:
        shoal.anonymize(people(60), quasi_identifiers=["age", "sex"], sensitive=["disease"], k=2, l=2, publish=publish)
    rows = []
    large = product(wanted, (LARGE,), list(MODELS)[:2])
    tight = product(wanted, (TIGHT_SIZE,), TIGHT)
    edge = product(wanted, (EDGE_SIZE,), EDGE)
    for publish, n, case in (*product(wanted, SIZES, MODELS), *large, *tight, *edge):
        rows.append(measured(n, publish, case))
        print(rows[-1], flush=True)
    if len(wanted) == len(PUBLISH):
        record("The default effort", "python benchmarks/default.py", rows, ["Generated tables; seconds without start."])
