"""One matrix of forged releases: each is refused before it appears, and found by whoever verifies it afterwards.

``FORGED`` has a row for each kind of release and way to forge it, with the statement that is found wrong.  Forged
certificates are in ``test_bent_certificates.py``, forged parts of a series in ``tests/series/test_forged.py``.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines import store as storing
from shoal.errors import InputError, VerificationError
from shoal.publishing.crosswalks.centers import multiset
from tests.data import KINDS, LINE, clusters, released
from tests.kept import holding, kept, verify

Tamper = Callable[[pl.DataFrame], pl.DataFrame]
STORE = "shoal.publishing.crosswalks.crosswalk.store"


def moved(frame: pl.DataFrame) -> pl.DataFrame:
    """The first row goes to the last row's group, with all that is said of it."""
    own = frame.columns[0]
    return pl.concat([frame[:1].select(own).hstack(frame[-1:].drop(own)), frame[1:]])


def dropped(frame: pl.DataFrame) -> pl.DataFrame:
    return frame[1:]


def twice(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame, frame[:1]])


def small(frame: pl.DataFrame) -> pl.DataFrame:
    """One group says that it holds one record."""
    return frame.with_columns(group_count=pl.when(pl.col("group") == 0).then(1).otherwise(pl.col("group_count")))


def grown(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(group_count=pl.col("group_count") + (pl.col("group") == 0))


def one_name(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(group_label=pl.lit("all"))


def foreign(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(value=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("99")).otherwise(
        pl.col("value").cast(pl.String)))  # fmt: skip


def cut_in_two(frame: pl.DataFrame) -> pl.DataFrame:
    """Areas of equal weight change places between the first and the last region, which cuts both in two."""
    first, last = frame["region"].to_list().index("00+2"), 7
    rows = frame.rows()
    rows[first], rows[last] = (rows[first][0], *rows[last][1:]), (rows[last][0], *rows[first][1:])
    return pl.DataFrame(rows, schema=frame.schema, orient="row")


def lighter(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(region_weight=pl.when(pl.col("region") == "00+2").then(5).otherwise("region_weight"))


def heavier(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(region_weight=pl.when(pl.col("region") == "00+2").then(10).otherwise("region_weight"))


def widened(frame: pl.DataFrame) -> pl.DataFrame:
    """A column more, from which anybody could tell who is who."""
    return frame.with_columns(name=pl.int_range(pl.len()))


def recentered(frame: pl.DataFrame) -> pl.DataFrame:
    """The last row says another center than the other rows of its tile."""
    last = pl.int_range(pl.len()) == pl.len() - 1
    return frame.with_columns(y_center=pl.when(last).then(pl.col("y")).otherwise("y_center"))


def off_center(frame: pl.DataFrame) -> pl.DataFrame:
    """All rows of the first tile say the center of the last."""
    first = pl.col("tile") == pl.col("tile").first()
    return frame.with_columns(
        pl.when(first).then(pl.col(n).last()).otherwise(n).alias(n) for n in ("x_center", "y_center")
    )


def left_out(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(region=pl.when(pl.col("area") == "00").then(pl.lit("*")).otherwise("region"))


def stretched(frame: pl.DataFrame) -> pl.DataFrame:
    """One tile without bounds overlaps all others."""
    wide = [pl.when(pl.col("tile") == 2).then(None).otherwise(c).alias(c)
            for c in ("x_low", "x_high", "y_low", "y_high")]  # fmt: skip
    return frame.with_columns(wide)


def fuller(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(records=pl.col("records") + (pl.col("tile") == 2))


def elsewhere(frame: pl.DataFrame) -> pl.DataFrame:
    """The first place goes to a tile that does not hold it."""
    return pl.concat([frame[:1].select("x", "y").hstack(
        frame.filter(pl.col("tile") != frame["tile"][0])[:1].drop("x", "y")), frame[1:]])  # fmt: skip


def put(column: str, row: int, value: Any) -> Tamper:
    """One value of a row changed."""

    def tampered(frame: pl.DataFrame) -> pl.DataFrame:
        values = frame[column].to_list()
        values[row] = value(values[row]) if callable(value) else value
        return frame.with_columns(pl.Series(column, values, dtype=frame.schema[column]))

    return tampered


def lent(frame: pl.DataFrame) -> pl.DataFrame:
    """The fullest cluster gives a record, with its value, to one far away: all sums stay."""
    rows = frame.sort("records", descending=True).to_dicts()
    giving, taking = rows[0], max(rows[1:], key=lambda row: abs(row["x"] - rows[0]["x"]))
    held = {row["cluster"]: Counter(parsed(row["d"])) for row in (giving, taking)}
    value = held[giving["cluster"]].most_common()[-1][0]
    for row, by in ((giving, -1), (taking, 1)):
        held[row["cluster"]][value] += by
        row["records"] += by
        row["d"] = multiset({v: n for v, n in held[row["cluster"]].items() if n})
    return pl.DataFrame(rows, schema=frame.schema).sort("cluster")


def parsed(text: str) -> dict[str, int]:
    return {part.rsplit(" (")[0]: int(part.rsplit(" (")[1][:-1]) for part in text.split("; ")}


def swapped(frame: pl.DataFrame) -> pl.DataFrame:
    """Two clusters change their sensitive values."""
    return frame.with_columns(d=pl.Series([*frame["d"][1:].to_list(), frame["d"][0]]))


CENTERS: list[tuple[Tamper, str]] = [
    (dropped, "one row each"),
    (twice, "one row each"),
    (put("records", 0, 2), "r"),
    (put("records", 0, lambda n: n + 1), "records"),
    (put("d", 0, "flu (9)"), "values of d"),
    (put("d", 1, lambda t: multiset({"flu": sum(parsed(t).values())})), "l of d"),
    (put("d", 1, lambda t: multiset({"plague": 1, "gout": 1, "cold": sum(parsed(t).values()) - 2})), "records by d"),
    (lent, "records by d"),
    (put("x", 1, 10.5), "centers"),
    (put("distance", 1, lambda d: d / 2), "radius"),
    (put("distance", 1, lambda d: d * 1.2), "radius"),
    (lambda f: put("radius", 1, "within 0.5 in x")(put("distance", 1, 0.5)(f)), "records by d"),
    (lambda f: put("radius", 0, "within 9 in x")(put("distance", 0, 8.5)(f)), "cost"),
]  # fmt: skip
ROWS: list[tuple[Tamper, str]] = [
    (put("x", 0, lambda x: x + 0.5), "assignments"),
    (dropped, "records"),
    (lambda f: f.with_columns(cluster=pl.lit(0), x=pl.lit(f["x"][0]), radius=pl.lit(f["radius"][0]),
                              distance=pl.lit(f["distance"][0])), "groups"),
    (put("d", 0, "plague"), "records by d"),
]  # fmt: skip

FORGED: list[tuple[str, Tamper, str]] = [
    *((kind, tamper, "") for kind in ("labels", "intervals")
      for tamper in (moved, dropped, twice, small, grown, one_name, foreign)),
    *(("regions", *forged) for forged in (
        (moved, "areas"), (dropped, "one row each"), (twice, "one row each"), (cut_in_two, "connected"), (lighter, "k"),
        (heavier, "weight people"), (left_out, "left out"))),
    *((kind, *forged) for kind in ("tiles", "tiles across 180 degrees") for forged in (
        (recentered, "tiles"), (off_center, "centers inside"), (stretched, "disjoint"), (fuller, "counts"),
        (elsewhere, "inside"), (dropped, "one row each"))),
    *((kind, *forged) for kind in ("gather", "cellular") for forged in CENTERS),
    *((kind, widened, "columns named") for kind in KINDS),
]  # fmt: skip
RECOMPUTED = {
    **dict.fromkeys(["labels", "intervals"], ("counts", "cost", "bound")),
    "regions": ("connected", "boundary", "weight people"),
    **dict.fromkeys(["tiles", "tiles across 180 degrees"], ("counts",)),
    **dict.fromkeys(["gather", "cellular"], ("records by d", "r", "l of d", "distance", "cost", "centers")),
}


@pytest.mark.parametrize(("kind", "tamper", "check"), FORGED)
def test_a_forged_release_is_refused_and_found(
    kind: str, tamper: Tamper, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, source = released(kind)
    record = kept(made.write(tmp_path / "x.csv"))
    tamper(made.table).write_csv(tmp_path / "x.csv")
    wrong = {f.check for f in verify(tmp_path / "x.csv", record, source).findings if not f.holds}
    assert "file" in wrong
    assert check in wrong if check else wrong - {"file"}, "the hash alone found it"
    genuine = storing.store
    monkeypatch.setattr(STORE, lambda frame, path, *more: genuine(tamper(frame), path, *more))
    (tmp_path / "y.csv").write_text("what was there")
    with pytest.raises(VerificationError, match="nothing was published"):
        made.write(tmp_path / "y.csv")
    assert {p.name: p.read_text() for p in tmp_path.glob("y*")} == {"y.csv": "what was there"}


@pytest.mark.parametrize(("tamper", "check"), ROWS)
def test_forged_assignments_are_refused_and_found(
    tamper: Tamper, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = clusters("gather")
    record = kept(made.write(tmp_path / "c.csv", assignments=tmp_path / "r.csv"))
    tamper(made.assignments).write_csv(tmp_path / "r.csv")
    verdict = verify(tmp_path / "r.csv", record, LINE)
    assert {"file", check} <= {f.check for f in verdict.findings if not f.holds}
    genuine = storing.store

    def bent(frame: pl.DataFrame, path: Path) -> None:
        genuine(frame if "records" in frame.columns else tamper(frame), path)

    monkeypatch.setattr(STORE, bent)
    with pytest.raises(VerificationError, match="nothing was published"):
        made.write(tmp_path / "y.csv", assignments=tmp_path / "yr.csv")
    assert not list(tmp_path.glob("y*")), "neither of both appears"


@pytest.mark.diagonal
@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".parquet", ".xlsx", ".sav", ".dta"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_genuine_release_verifies(kind: str, ending: str, tmp_path: Path) -> None:
    made, source = released(kind)
    out = tmp_path / f"x{ending}"
    record = kept(made.write(out))
    assert json.loads(record.read_text())["kind"] == kind.split()[0]
    for original in (None, source):
        verdict = holding(verify(out, record, original))
        assert verdict.audit is None
    how = {f.check: f.how for f in verdict.findings}
    assert {how[check] for check in RECOMPUTED[kind]} == {"recomputed"}
    assert json.loads(json.dumps(verdict.as_dict()))["holds"]
    page = made.report(tmp_path / "r.html").read_text()
    assert kind != "regions" or "00+2" not in page


@pytest.mark.parametrize("center", ["record", "mean", "medoid"])
@pytest.mark.parametrize("kind", ["gather", "cellular"])
def test_genuine_assignments_verify_with_every_center(kind: str, center: str, tmp_path: Path) -> None:
    made = clusters(kind, center)
    record = kept(made.write(tmp_path / "c.csv", assignments=tmp_path / "r.csv"))
    assert json.loads(record.read_text())["facts"]["left_out"] == 1
    for path, original in itertools.product((tmp_path / "c.csv", tmp_path / "r.csv"), (None, LINE)):
        verdict = holding(verify(path, record, original))
    how = {f.check: f.how for f in verdict.findings}
    assert how["records by d"] == how["r"] == how["l of d"] == how["distance"] == "recomputed"
    assert how["distance asked for"] == "stated"
    assert (how["cost"] == how["centers"] == "recomputed") is (center == "record")
    text = record.read_text() + made.report(tmp_path / "r.html").read_text()
    assert "person-" not in text + str(made.table.to_dict(as_series=False)) + str(made.assignments.to_dicts())


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_that_lacks_a_part_is_refused(kind: str, tmp_path: Path) -> None:
    made, _ = released(kind)
    beside = kept(made.write(tmp_path / "x.csv"))
    record = json.loads(beside.read_text())
    for part in ("facts", "parameters", "certificate"):
        beside.write_text(json.dumps({name: held for name, held in record.items() if name != part}))
        with pytest.raises(InputError):
            verify(tmp_path / "x.csv", beside)
    certificate = tmp_path / "x.certificate.json"
    certificate.write_text(json.dumps(json.loads(certificate.read_text()) | {"kind": "riddles"}))
    with pytest.raises(InputError, match="of a kind"):
        shoal.verify(tmp_path / "x.csv", certificate)


def test_why_areas_are_in_no_region_is_looked_at(tmp_path: Path) -> None:
    """A strip a to d, an island that is too light, and one that has to be kept out by request."""
    areas = pl.DataFrame({"id": list("abcdef"), "people": [3, 3, 3, 3, 1, 9]})
    edges = [(0, 1), (1, 2), (2, 3)]
    pairs = pl.DataFrame([(areas["id"][i], areas["id"][j]) for i, j in edges], schema=["u", "v"], orient="row")

    def looked(asked: dict[str, Any]) -> dict[str, tuple[bool, str]]:
        found = shoal.regions.merge(edges, areas["people"].to_numpy(), 6, seed=1, **asked)
        out = tmp_path / f"{len(asked)}.csv"
        shoal.release(found, areas, weight="people", edges=edges, id="id").write(out)
        verdict = holding(shoal.verify(out, out.with_suffix(".certificate.json"), [areas, pairs]))
        return {f.check: (f.holds, f.how) for f in verdict.findings}

    assert looked({})["why left out"] == (True, "recomputed")
    assert looked({"exclude": np.arange(6) == 5})["why left out"] == (True, "stated")
    merged = {"islands": "join", "coordinates": np.c_[np.arange(6.0), np.zeros(6)], "geographic": False}
    assert "why left out" not in looked(merged)
