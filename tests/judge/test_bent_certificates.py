"""A bent certificate is refused in words or judged; it never makes a false statement one that was recomputed."""

import csv
import hashlib
import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli.common import refusal
from shoal.engines.atomic import check_folder
from shoal.engines.features import codes_of
from shoal.errors import CertificateError, InputError, PolicyError, VerificationError
from shoal.judge.finding import Finding
from shoal.judge.places.tiles import judge_outlines
from shoal.judge.tables.large import ReleaseContents, ReleaseRequirement, digest_of, judge_held, read_manifest
from shoal.judge.tables.privacy import fewest
from shoal.model.certificate import FIXED, Certificate
from shoal.model.metric import Metric, Number
from shoal.problems.catalogue import crosswalk_problems
from shoal.utility.explore import judged
from tests.amount import ALL, thinned
from tests.commands import run, told
from tests.data import KINDS, clusters, released
from tests.fuzz.certificates import bent, each_entry
from tests.kept import failing, forge, kept, prove, put, resealed, verify, write_sealed
from tests.series.common import people as small_people
from tests.series.common import policy as small_policy

LINES = "age,zip,d,note\n" + "".join(f"{20 + i % 7},{1230 + i % 3},{'xyz'[i % 3]},n{i % 2}\n" for i in range(24))
TREE = [["1230", "123"], ["1231", "123"], ["1232", "12x"]]


@cache
def files(publish: str) -> dict[str, bytes]:
    """A table, its release, certificate and record."""
    more: dict[str, Any] = {"hierarchies": {"zip": TREE}} if publish == "hierarchy" else {}
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "t.csv").write_text(LINES)
        asked: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["d"], "k": 3, "l": 2, "seed": 1}
        release = shoal.anonymize(Path(place) / "t.csv", **asked, publish=publish, effort="fast", **more)
        release.write(Path(place) / "r.csv")
        return {path.name: path.read_bytes() for path in Path(place).iterdir()}


def made(folder: Path, publish: str = "stars") -> tuple[Path, Path, Path, dict[str, Any]]:
    """The files in a folder: the table, the release, its record, and the hierarchies that verify asks for."""
    for name, content in files(publish).items():
        (folder / name).write_bytes(content)
    trees = {"zip": TREE} if publish == "hierarchy" else {}
    return folder / "t.csv", folder / "r.csv", folder / "r.record.json", trees


@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges", "centers"])
def test_only_refusals_and_verdicts_come_back(tmp_path: Path, publish: str) -> None:
    source, out, record, trees = made(tmp_path, publish)
    genuine = json.loads(record.read_text())
    truth = {f.check: f for f in verify(out, record, source, hierarchies=trees).findings}
    passed = 0
    for seed in range(thinned(150)):
        record.write_bytes(bent(genuine, random.Random(f"{publish} {seed}")))
        try:
            with_original = seed % 2
            verdict = verify(
                out, record, source if with_original else None, hierarchies=trees if with_original else None
            )
        except (InputError, CertificateError, VerificationError):
            continue
        json.dumps(verdict.as_dict(), allow_nan=False)
        if not verdict.holds:
            continue
        passed += 1
        facts = json.loads(record.read_text())
        for f in verdict.findings:
            if f.how == "recomputed" and f.check in ("cost", "loss, ncp", "loss, stars"):
                numbers = [re.findall(r"[\d.]+", x.found) for x in (f, truth[f.check])]  # another unit may cost as much
                assert numbers[0] == numbers[1]
        assert facts["stars"] == genuine["stars"]
        assert facts["changed"] == genuine["changed"]
        assert facts["release"]["sha256"] == genuine["release"]["sha256"]
        if with_original and publish != "centers":
            assert facts["loss"]["ncp"] == pytest.approx(genuine["loss"]["ncp"])
            assert facts["certificate"]["cost"] == pytest.approx(genuine["certificate"]["cost"])
    assert passed < 75


def test_a_certificate_without_one_of_its_settings_is_refused(tmp_path: Path) -> None:
    _, out, _, _ = made(tmp_path)
    paper = tmp_path / "r.certificate.json"
    genuine = json.loads(paper.read_text())
    for name in genuine["policy"]:
        resealed(paper, policy={n: held for n, held in genuine["policy"].items() if n != name})
        with pytest.raises(InputError):
            shoal.verify(out, paper)


FORGED: dict[str, Any] = {
    "ncp": lambda r: r["loss"].update(ncp=0),
    "cost": lambda r: r["certificate"].update(cost=0, lower_bound=0, ratio=1.0, optimal=True),
    "unit": lambda r: r["certificate"].update(unit="bananas"),
    "level": lambda r: r["privacy"].update(l=9),
    "a level gone": lambda r: r["privacy"].pop("l"),
    "changed": lambda r: r["changed"].update(age=r["changed"]["age"] + 1),
    "suppressed tuples": lambda r: r["loss"].update(suppressed_tuples=0),
    "optimal": lambda r: r["certificate"].update(optimal=not r["certificate"]["optimal"]),
    "identifier": lambda r: r["policy"].update(identifiers=["note"]),
    "another column": lambda r: r["policy"].update(identifiers=["name"]),
    "a role gone": lambda r: (
        r["policy"].update(sensitive=[], privacy=[{"model": "KAnonymity", "k": 3}]),
        r["privacy"].pop("l"),
    ),
    "stars of the table": lambda r: r["loss"].update(stars=r["loss"]["stars"] + (1 if r["loss"]["stars"] < 2 else -1)),
    "rows singled out": lambda r: r["carried"].update(together=r["carried"]["together"] + 1),
    "rows singled out by a column": lambda r: r["carried"]["alone"].update(note=7),
    "an order kept": lambda r: r.update(shuffled=False),
    "no such order": lambda r: r.update(order="by the weather"),
    "another order": lambda r: r.update(order="kept"),
    "a theorem": lambda r: (
        r["certificate"].update(lower_bound=0, ratio=None, optimal=False),
        r["certificate"]["guarantee"].update(factor=1.0, theorem="an exact method"),
    ),
}


@pytest.mark.diagonal
@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges"])
@pytest.mark.parametrize("what", FORGED)
def test_with_the_original_no_number_can_be_forged(tmp_path: Path, publish: str, what: str) -> None:
    source, out, record, trees = made(tmp_path, publish)
    forge(record, FORGED[what])
    with suppress(InputError):
        assert not verify(out, record, source, hierarchies=trees).holds


UNASKED: dict[str, Any] = {
    "a rule book": lambda r: (
        r["policy"].update(preset="ema-0.09"),
        r.update(rule_book={"name": "ema-0.09", "k": 12, "source": "EMA"}),
    ),
    "a preset": lambda r: r["policy"].update(preset="cms-11"),
    "the rule book alone": lambda r: r.update(rule_book={"name": "k5", "k": 5, "source": "in use"}),
    "the rule": lambda r: r.update(safe_harbor={"columns": {}, "born": 1930}),
    "the rule by its name": lambda r: r["policy"].update(preset="hipaa-safe-harbor"),
    "a population": lambda r: r.update(population={"rows": 10**6, "k_map": 1000, "unique": 0}),
    "rows apart": lambda r: r.update(incomplete={"rows": 0, "smallest": 0, "smallest_of_others": 24, "columns": []}),
    "cells filled": lambda r: r.update(filled={"age": 0, "zip": 0}),
    "persons": lambda r: r.update(persons={"note": 9}),
    "coordinates": lambda r: r["policy"].update(coordinates=1),
}


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("what", UNASKED)
def test_nothing_is_said_to_hold_that_was_not_asked_for(tmp_path: Path, what: str, alone: bool) -> None:
    source, out, record, _ = made(tmp_path)
    forge(record, UNASKED[what])
    with suppress(InputError):
        assert not verify(out, record, None if alone else source).holds


NEVER_STATED: dict[str, Any] = {
    "a setting": lambda r: r["policy"].update(k=99),
    "of the unchanged columns": lambda r: r["carried"].update(safe=True),
    "a hierarchy": lambda r: r.update(hierarchies={"note": {"sha256": "0" * 64}}),
    "an order": lambda r: r.update(orders={"note": ["n0", "n1"]}),
    "the guarantee": lambda r: r["certificate"]["guarantee"].update(confidence=0.99),
    "who made it": lambda r: r.update(made_by="Ann has flu"),
    "a version of another thing": lambda r: r["made_by"].update(who="1"),
    "a version that is none": lambda r: r["made_by"].update(shoal="Ann has flu"),
    "a time that is none": lambda r: r.update(made_at="when Ann had flu"),
    "a key of the release": lambda r: r["release"].update(who="Ann"),
    "bytes that are no number": lambda r: r["release"].update(bytes="Ann"),
    "a name that is no text": lambda r: r["release"].update(file=["Ann"]),
    "parts of a file": lambda r: r["release"].update(parts=1),
    "a folder that is none": lambda r: r["release"].update(folder="Ann", parts=0),
    "an order by nobody": lambda r: r.update(shuffled=["by nobody"]),
    "a reading of missing values": lambda r: r.update(missing_values="a missing value matches every value"),
}


@pytest.mark.parametrize("kind", ["labels", "gather"])
@pytest.mark.parametrize("what", ["who made it", "a version that is none", "a time that is none", "a separator"])
def test_no_certificate_of_a_crosswalk_states_more_than_who_made_it(tmp_path: Path, kind: str, what: str) -> None:
    out = tmp_path / "c.csv"
    paper = released(kind)[0].write(out)
    forge(paper, {**NEVER_STATED, "a separator": lambda r: r.update(separator="Ann")}[what])
    with pytest.raises(InputError) as refused:
        shoal.verify(out, paper)
    assert "Ann" not in str(refused.value)


@pytest.mark.parametrize("what", NEVER_STATED)
def test_what_no_certificate_states_is_refused(tmp_path: Path, what: str) -> None:
    """A receiver who reads the file would believe a statement that no check has read."""
    made(tmp_path)
    paper = tmp_path / "r.certificate.json"
    forge(paper, NEVER_STATED[what])
    with suppress(InputError, CertificateError):
        assert not shoal.verify(tmp_path / "r.csv", paper).holds


def test_unchanged_columns_in_a_wrong_form_are_judged_or_refused(tmp_path: Path) -> None:
    made(tmp_path)
    paper = tmp_path / "r.certificate.json"
    genuine = json.loads(paper.read_text())["policy"]
    for odd in (None, "note", {}):
        forge(paper, lambda r, odd=odd: r.update(policy={**genuine, "insensitive": odd}))
        with suppress(InputError):
            shoal.verify(tmp_path / "r.csv", paper)


@pytest.mark.parametrize("kind", ["labels", "intervals", "regions", "tiles", "gather", "cellular"])
def test_a_crosswalk_promises_what_its_ratio_proves_and_nothing_more(tmp_path: Path, kind: str) -> None:
    paper = released(kind)[0].write(tmp_path / "c.csv")
    stated = json.loads(paper.read_text())["certificate"]
    best = {"factor": 1, "additive": 0, "theorem": "an exact method"}
    for ratio, promise in ((1.0, best), (2.0, best), *([] if kind in FIXED else [(2.0, best | {"factor": 1.5})])):
        resealed(paper, certificate={**stated, "ratio_at_most": ratio, "guarantee": promise})
        assert "promise" in failing(shoal.verify(tmp_path / "c.csv", paper)), promise


@pytest.mark.parametrize("kind", ["labels", "intervals", "regions", "tiles", "gather", "cellular"])
def test_a_crosswalk_names_no_promise_that_its_judge_does_not_count(tmp_path: Path, kind: str) -> None:
    paper = released(kind)[0].write(tmp_path / "c.csv")
    asked = json.loads(paper.read_text())["parameters"]
    for name in sorted({"k", "r", "l", "t", "privacy", "minimality"} - set(asked)):
        resealed(paper, parameters={**asked, name: 9})
        with pytest.raises(InputError, match=f"'{name}', which no certificate of {kind} has"):
            shoal.verify(tmp_path / "c.csv", paper)


PROMISED: dict[str, Any] = {
    "factor": lambda r: r["certificate"]["guarantee"].update(factor=4),
    "term": lambda r: r["certificate"]["guarantee"].update(additive=7),
    "theorem": lambda r: r["certificate"]["guarantee"].update(theorem="Theorem 4, and no tile shows anybody"),
    "a promise for what is left out": lambda r: r["parameters"].update(sparse="leave-out"),
    "a promise of a condition": lambda r: r["parameters"].update(max_width=3.0),
}


@pytest.mark.parametrize("what", PROMISED)
def test_the_guarantee_of_tiles_is_that_of_the_theorem(tmp_path: Path, what: str) -> None:
    paper = released("tiles")[0].write(tmp_path / "c.csv")
    assert json.loads(paper.read_text())["certificate"]["guarantee"]["factor"] == 5
    forge(paper, PROMISED[what])
    assert "promise" in failing(shoal.verify(tmp_path / "c.csv", paper))


def test_every_method_promises_what_its_certificate_may_state(tmp_path: Path) -> None:
    weights = np.random.default_rng(3).integers(1, 30, 40)
    frame = pl.DataFrame({"name": [f"n{i}" for i in range(40)], "people": weights})
    promises = set()
    for method in ("fold", "spread", "auto", "scheme"):
        more = {"epsilon": 0.5} if method == "scheme" else {}
        answer = shoal.labels.cover(frame["people"], 33, method, **more)
        paper = shoal.release(answer, frame, label="name", count="people").write(tmp_path / f"{method}.csv")
        assert shoal.verify(tmp_path / f"{method}.csv", paper).holds, method
        promises.add(json.loads(paper.read_text())["certificate"]["guarantee"]["theorem"])
    assert len(promises) > 1


@pytest.mark.parametrize("kind", ["labels", "intervals", "regions", "tiles", "gather", "cellular"])
def test_a_request_has_its_names_and_forms_alone(tmp_path: Path, kind: str) -> None:
    """A receiver would believe a condition that no judge counts."""
    paper = released(kind)[0].write(tmp_path / "c.csv")
    genuine = json.loads(paper.read_text())
    asked = genuine["parameters"]
    odd: list[tuple[str, Any]] = [("differentially private", True), ("safe", 1), *((n, {"a": [1]}) for n in asked)]
    odd += [("norm", "x"), ("setup_cost", -1), ("max_diameter", -1), ("at_most", 3), ("sensitive", 7)]
    for name, value in odd:
        if name in ("at_most", "hierarchies", "drawn") and isinstance(value, dict):
            continue
        resealed(paper, parameters={**asked, name: value})
        with suppress(InputError, VerificationError, CertificateError):
            assert not shoal.verify(tmp_path / "c.csv", paper).holds, name
    resealed(paper, parameters=asked, release={**genuine["release"], "people": "all agreed"})
    with pytest.raises(InputError, match="'people', which no certificate"):
        shoal.verify(tmp_path / "c.csv", paper)


RECORDED: dict[str, Any] = {
    "factor": lambda r: r["certificate"]["guarantee"].update(factor=r["certificate"]["guarantee"]["factor"] + 1),
    "theorem": lambda r: r["certificate"]["guarantee"].update(theorem="Theorem 9, and more"),
    "a fact": lambda r: r["facts"].update(people_asked=18),
    "the file": lambda r: r["release"].update(people_asked=18),
    "the certificate": lambda r: r["certificate"].update(people_asked=18),
    "a factor that is no number": lambda r: r["certificate"]["guarantee"].update(factor=True),
    "a unit that is no text": lambda r: r["certificate"].update(unit=["records"]),
}


@pytest.mark.parametrize("what", RECORDED)
@pytest.mark.parametrize("kind", ["labels", "intervals", "tiles"])
def test_a_record_states_what_its_kind_states(tmp_path: Path, kind: str, what: str) -> None:
    crosswalk, source = released(kind)
    record = kept(crosswalk.write(tmp_path / "c.csv"))
    assert verify(tmp_path / "c.csv", record, source).holds
    forge(record, RECORDED[what])
    with suppress(InputError, CertificateError):
        assert not verify(tmp_path / "c.csv", record, source).holds


@pytest.mark.parametrize("center", ["record", "mean", "medoid"])
@pytest.mark.parametrize("kind", ["gather", "cellular"])
def test_every_distance_agrees_with_the_radii_without_the_original(tmp_path: Path, kind: str, center: str) -> None:
    """The scale of a column is private, and one scale has to fit all clusters."""
    out = tmp_path / "c.csv"
    paper = clusters(kind, center).write(out)
    genuine, table = paper.read_text(), pl.read_csv(out)
    assert shoal.verify(out, paper).holds
    for at in range(table.height):
        for factor in (0.5, 0.7, 1.3, 2):
            own = pl.int_range(pl.len()) == at
            changed = pl.when(own).then(pl.col("distance") * factor).otherwise("distance")
            table.with_columns(changed.alias("distance")).write_csv(out)
            paper.write_text(genuine)
            raw = out.read_bytes()
            of_bytes = {"sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw)}
            forge(paper, lambda r, new=of_bytes: r["release"].update(new))
            assert "radius" in failing(shoal.verify(out, paper)), (at, factor)


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.parquet", "r.xlsx", "parts"])
def test_what_columns_without_a_promise_single_out_is_counted_in_the_file(tmp_path: Path, name: str) -> None:
    table = pl.read_csv(LINES.encode()).with_columns(
        rent=pl.Series([0.0, -0.0, 7.5] + [1.0] * 21), **{"a, *": pl.Series(["p"] + ["q"] * 23)}
    )
    table.write_parquet(tmp_path / "t.parquet")
    given: Any = table if "." in name else tmp_path / "t.parquet"
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["d"], "insensitive": ["rent", "note"]}
    engine = {} if "." in name else {"engine": "duckdb"}
    release = shoal.anonymize(given, **asked, k=3, l=2, effort="fast", seed=1, **engine)
    paper = release.write(tmp_path / name)
    genuine = json.loads(paper.read_text())
    assert genuine["carried"]["alone"] == {"note": 0, "rent": 1, "a, *": 1}
    assert genuine["carried"]["together"] == 3
    assert shoal.verify(tmp_path / name, paper).holds
    forged = [
        {"together": 0}, {"alone": {"note": 0, "rent": 1, "a, *": 0}}, {"alone": {"note": 0, "rent": 1}},
        {"columns": ["note", "rent", "a, *", "more"]}, {"insensitive": ["note", "rent", "a, *"]},
    ]  # fmt: skip
    for more in forged:
        resealed(paper, carried={**genuine["carried"], **more})
        assert failing(shoal.verify(tmp_path / name, paper)) == ["singled out"], more
    if "." in name:
        resealed(paper, release={**genuine["release"], "bytes": 7})
        assert "file" in failing(shoal.verify(tmp_path / name, paper))


def test_groups_that_show_somebodys_value_cannot_be_denied(tmp_path: Path) -> None:
    source, out, record, _ = made(tmp_path, "ranges")
    genuine = json.loads(record.read_text())
    assert genuine["exposed"]["groups"] > 0
    for columns in ({"age": 0.0, "zip": 0.0}, {**genuine["exposed"]["columns"], "age": 0.0}):
        resealed(record, exposed={"columns": columns, "groups": max(columns.values())})
        found = {f.check: f for f in verify(out, record, source).findings}
        assert not found["exposed"].holds
    for wrong in ({"columns": {}, "groups": 0.5}, {"columns": {"age": 2.0}, "groups": 2.0}, None):
        resealed(record, exposed=wrong)
        with pytest.raises(InputError, match="wrong form"):
            verify(out, record)


@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges", "centers"])
def test_a_search_made_again_refutes_a_bound_and_proves_one(tmp_path: Path, publish: str) -> None:
    source, out, record, trees = made(tmp_path, publish)
    genuine = json.loads(record.read_text())
    paid = genuine["certificate"]["cost"]

    def found(lower_bound: float, cost: float = paid) -> Finding:
        facts = json.loads(json.dumps(genuine))
        ratio = cost / lower_bound if lower_bound else None
        facts["certificate"].update(lower_bound=lower_bound, cost=cost, ratio=ratio, optimal=cost == lower_bound)
        write_sealed(record, facts)
        verdict = prove(out, original=source, effort="fast", hierarchies=trees)
        return next(f for f in verdict.findings if f.check == "bound")

    again = found(genuine["certificate"]["lower_bound"])
    assert (again.holds, again.how) == (True, "recomputed")
    assert not found(3 * paid, 4 * paid).holds


def test_between_proved_and_refuted_a_bound_is_stated() -> None:
    again = Certificate(cost=8, lower_bound=5, unit="stars")
    expected = {5: (True, "recomputed"), 6: (True, "stated"), 8: (True, "stated"), 9: (False, "recomputed")}
    for bound, wanted in expected.items():
        one = judged(Certificate(cost=9, lower_bound=bound, unit="stars"), again)
        assert (one.holds, one.how) == wanted
    other = judged(Certificate(cost=9, lower_bound=9, unit="ncp"), again)
    assert (other.holds, other.how) == (True, "stated")


def test_a_bound_is_proved_again_from_the_original_alone(tmp_path: Path) -> None:
    _, out, record, _ = made(tmp_path)
    with pytest.raises(InputError, match="say original=TABLE"):
        prove(out, record)


GRID = [(i, i + 1) for i in range(7) if i != 3] + [(i, i + 4) for i in range(4)]
PLACES = pl.DataFrame(
    {"x": [float(i % 4) for i in range(8)], "y": [float(i // 4) for i in range(8)], "s": list("uvuvvuvu")}
)
AREAS = PLACES.select(pl.Series("id", [f"a{i}" for i in range(8)]), "s", pop=pl.Series([3, 1, 2, 5, 2, 2, 4, 1]))


def answers(kind: str) -> tuple[shoal.Crosswalk, Any]:
    """An answer of a problem on its way out, and what it was made from."""
    spots, people = PLACES.select("x", "y").to_numpy(), AREAS["pop"].to_numpy()
    if kind == "labels":
        return shoal.release(shoal.labels.cover(people, 4), AREAS, label="id", count="pop"), AREAS
    if kind == "intervals":
        return shoal.release(shoal.intervals.cut([0, 1, 2, 3], [2] * 4, 3, "squares"), PLACES, value="x"), PLACES
    if kind == "tiles":
        found = shoal.tiles.split(spots, 2, sensitive=PLACES["s"].to_list(), distinct_l=2)
        return shoal.release(found, PLACES, x="x", y="y", sensitive="s"), PLACES
    if kind == "regions":
        found = shoal.regions.nested(GRID, people, [4, 9], exclude=np.arange(8) == 0, seed=1)
        pairs = pl.DataFrame([(f"a{i}", f"a{j}") for i, j in GRID], orient="row")
        return shoal.release(found, AREAS, weight="pop", edges=GRID, id="id"), [AREAS, pairs]
    own = {"sensitive": codes_of(PLACES, ["s"]), "distinct_l": 2}
    found = shoal.gathering.gather(spots, 3, **own) if kind == "gather" else shoal.gathering.cellular(spots, 3, **own)
    return shoal.release(found, PLACES, columns=["x", "y"], sensitive=["s"]), PLACES


@pytest.mark.parametrize("kind", crosswalk_problems())
def test_the_bound_of_every_problem_is_proved_again_and_a_forged_one_refuted(tmp_path: Path, kind: str) -> None:
    crosswalk, source = answers(kind)
    out = tmp_path / "out.csv"
    record = kept(crosswalk.write(out))
    found = {f.check: f for f in prove(out, record, source, effort="fast").findings if f.check.endswith("bound")}
    assert len(found) == (2 if kind == "regions" else 1)
    assert all((f.holds, f.how) == (True, "recomputed") for f in found.values()), found
    facts = json.loads(record.read_text())
    assert kind == "intervals" or facts["certificate"]["details"]["run"]["method"] == "auto"
    again = {f.check: f.how for f in prove(out, record, source, effort="same").findings}
    assert again["repeated"] == "recomputed"
    paid = facts["certificate"]["cost"] + 1
    facts["certificate"].update(lower_bound=paid, cost=2 * paid, ratio=2.0, optimal=False)
    if kind == "regions":
        facts["facts"]["levels"][0].update(cost=99, cost_at_least=99)
    write_sealed(record, facts)
    again = {f.check: f for f in prove(out, record, source, effort="fast").findings if f.check in found}
    assert not any(f.holds for f in again.values()), again
    for gone in list(facts["parameters"])[::3]:
        bare = {**facts, "parameters": {n: v for n, v in facts["parameters"].items() if n != gone}}
        write_sealed(record, bare)
        with suppress(InputError, VerificationError):
            prove(out, record, source, effort="fast")


LIES: list[tuple[str, str, Any]] = [
    *((kind, "release.bytes", 1) for kind in crosswalk_problems()),
    *((kind, "release.rows", 1) for kind in crosswalk_problems()),
    *((kind, "certificate.unit", "bananas") for kind in crosswalk_problems() if kind != "regions"),
    *((kind, "certificate.guarantee", {"additive": 1.0}) for kind in crosswalk_problems()),
    *((kind, "certificate.cost", 10**6) for kind in crosswalk_problems()),
    *((kind, "facts.smallest_group", 99) for kind in crosswalk_problems()),
    *((kind, "parameters.k", 99) for kind in ("labels", "intervals", "tiles")), ("regions", "parameters.k", [99]),
    ("gather", "parameters.r", 99), ("cellular", "parameters.r", 99),
    ("labels", "parameters.objective", "own"), ("labels", "certificate.details.groups", 3),
    ("intervals", "parameters.objective", "own"), ("intervals", "certificate.details.largest_group", 99),
    ("tiles", "parameters.sensitive", None), ("tiles", "parameters.coordinates", "flat"),
    ("tiles", "facts.points", 99), ("tiles", "facts.records", 99), ("tiles", "certificate.details.tiles", 99),
    ("regions", "parameters.levels", []), ("regions", "facts.levels.0.cost", 99), ("regions", "parameters.l", 2),
    ("regions", "facts.levels.0.unions_at_most", 0), ("regions", "facts.regions_at_most", 1),
    ("regions", "facts.variance_inside", 0.5), ("regions", "certificate.details.upper_bound", 9),
    ("regions", "certificate.details.areas", 99), ("regions", "certificate.details.left_out", 3),
    ("regions", "certificate.details.k", [9]), ("tiles", "certificate.details.tiles_at_most", 0),
    ("regions", "parameters.soft_boundary", "s"), ("regions", "parameters.max_diameter", 99.0),
    ("regions", "parameters.at_most", {"pop": 99}), ("regions", "parameters.k", []),
    ("regions", "parameters.weight", []), ("regions", "parameters.column", "absent"),
    ("gather", "facts.centers_replaced", 1), ("gather", "parameters.columns", ["x"]),
    ("gather", "parameters.problem", "tiles"),
    ("cellular", "facts.centers_replaced", 1), ("cellular", "parameters.max_diameter", 0.1),
]  # fmt: skip


@pytest.mark.parametrize("kind", crosswalk_problems())
def test_no_figure_of_a_crosswalk_can_be_forged(tmp_path: Path, kind: str) -> None:
    crosswalk, source = answers(kind)
    out = tmp_path / "out.csv"
    record = kept(crosswalk.write(out))
    genuine = record.read_text()
    assert verify(out, record, source).holds
    for _, place, value in [lie for lie in LIES if lie[0] == kind]:
        record.write_text(genuine)
        forge(record, put(*(int(x) if x.isdigit() else x for x in place.split(".")), to=value))
        with suppress(InputError, VerificationError):
            assert not verify(out, record, source).holds, (place, value)
    record.write_text(genuine)
    forge(record, put("certificate", "details", "more", to=1))
    said = {f.check: f.how for f in verify(out, record, source).findings}
    assert said["other details"] == said["request"] == said.get("why left out", "stated") == "stated"


@pytest.mark.parametrize(
    ("asked", "bent"),
    [
        ("soft_boundary", {"soft_boundary": [None, "half"]}),
        ("max_diameter", {"max_diameter": [None, 3.0], "at_most": [{"pop": 99}]}),
        ("at_most", {"at_most": [{}, {"pop": 8}], "max_diameter": [3.0]}),
        ("regions", {"regions": [None, 3]}),
    ],
)
def test_what_regions_were_asked_for_cannot_be_bent(tmp_path: Path, asked: str, bent: dict[str, list[Any]]) -> None:
    areas = AREAS.with_columns(s=pl.Series(list("uuvvuuvv")), half=pl.Series(list("ttttoooo")))
    places = PLACES.select("x", "y").to_numpy()
    given = {
        "soft_boundary": ({"soft_boundary": list("uuvvuuvv")}, {"soft_boundary": "s"}),
        "max_diameter": ({"max_diameter": 1.5, "coordinates": places, "geographic": False}, {"max_diameter": 1.5}),
        "at_most": ({"at_most": {"pop": (areas["pop"].to_numpy(), 7)}}, {"at_most": {"pop": 7}}),
        "regions": ({"regions": 2}, {"regions": 2}),
    }[asked]
    found = shoal.regions.merge(GRID, areas["pop"].to_numpy(), 4, seed=1, **given[0])
    out = tmp_path / "out.csv"
    record = kept(
        shoal.release(found, areas, weight="pop", edges=GRID, id="id", geographic=False, **given[1]).write(out)
    )
    source = [areas, pl.DataFrame([(f"a{i}", f"a{j}") for i, j in GRID], orient="row")]
    if asked != "regions":  # which is no condition of a region
        with pytest.raises(PolicyError, match=f"by another .*{asked}.* than the release names"):
            shoal.release(found, areas, weight="pop", edges=GRID, id="id", geographic=False)
    genuine = record.read_text()
    assert verify(out, record, source).holds
    for name, values in bent.items():
        for value in values:
            record.write_text(genuine)
            forge(record, put("parameters", name, to=value))
            wrong = {f.check for f in verify(out, record, source).findings if not f.holds}
            assert wrong, (name, value)
            assert name != "regions" or value is None or "regions" in wrong


def test_a_seed_that_nobody_gave_stands_on_record_and_gives_the_same_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    edges = [(i, i + 1) for i in range(63) if i % 8 != 7] + [(i, i + 8) for i in range(56)]
    people = rng.integers(1, 40, 64)
    frame = pl.DataFrame({"id": [f"a{i}" for i in range(64)], "pop": people})
    found = shoal.regions.merge(edges, people, 60, "search", effort="fast")
    record = kept(shoal.release(found, frame, weight="pop", edges=edges, id="id").write(tmp_path / "out.csv"))
    run = json.loads(record.read_text())["certificate"]["details"]["run"]
    assert run == {"method": "search", "effort": "fast", "seed": run["seed"]}
    assert (shoal.regions.merge(edges, people, 60, **run).labels == found.labels).all()
    forge(record, lambda facts: facts["certificate"]["details"].pop("run"))
    pairs = pl.DataFrame([(f"a{i}", f"a{j}") for i, j in edges], orient="row")
    with pytest.raises(InputError, match="does not say how the answer was made"):
        prove(tmp_path / "out.csv", record, [frame, pairs], effort="same")


def test_a_question_that_the_certificate_does_not_hold_is_not_guessed(tmp_path: Path) -> None:
    found = shoal.gathering.cellular(PLACES.select("x", "y").to_numpy(), 2, np.arange(8.0))
    record = kept(shoal.release(found, PLACES, columns=["x", "y"]).write(tmp_path / "out.csv"))
    with pytest.raises(InputError, match="set-up cost for each record"):
        prove(tmp_path / "out.csv", record, PLACES)


def test_what_is_only_stated_is_said_to_be(tmp_path: Path) -> None:
    source, out, record, _ = made(tmp_path)
    facts = json.loads(record.read_text())
    cost = facts["certificate"]["cost"]
    facts["certificate"].update(lower_bound=cost, ratio=1.0, optimal=True)
    facts["policy"]["sensitive"] = []
    facts["policy"]["privacy"] = [{"model": "KAnonymity", "k": 2}]
    facts["privacy"] = {"k": facts["privacy"].get("k", 3)}
    facts["carried"]["columns"].append("d")
    write_sealed(record, facts)
    found = {f.check: f for f in verify(out, record, source).findings}
    assert found["bound"].how == "stated"
    assert found["request"].how == "stated"
    assert "'d'" in found["request"].found
    assert found["signature"].how == "stated"


def test_a_hierarchy_handed_over_is_held_against_its_hash_without_the_original_too(tmp_path: Path) -> None:
    source, out, record, trees = made(tmp_path, "hierarchy")
    check = "hierarchy of zip"
    facts = json.loads(record.read_text())

    def found(given: Any, **changed: Any) -> tuple[bool, str | None]:
        record.write_text(json.dumps(facts))
        resealed(record, **changed)
        verdict = verify(out, record, hierarchies=given)
        return verdict.holds, next((f.how for f in verdict.findings if f.check == check), None)

    assert found(None) == (True, "stated")
    assert found(trees) == (True, "recomputed")
    assert found({"zip": [["1230", "9"], ["1231", "9"], ["1232", "8"]]}) == (False, "recomputed")
    assert found(trees, hierarchies={"zip": {"sha256": "0" * 64}}) == (False, "recomputed")
    for given in (None, trees):
        assert not found(given, hierarchies={})[0]
    record.write_text(json.dumps(facts))
    assert verify(out, record, source, hierarchies=trees).holds


def test_a_release_of_hierarchies_names_those_of_the_columns_it_changed(tmp_path: Path) -> None:
    frame, out = pl.DataFrame({"age": [*"aabbcd"], "zip": ["1230", "1231"] * 3}), tmp_path / "r.csv"
    asked: dict[str, Any] = {"publish": "hierarchy", "hierarchies": {"zip": TREE}, "k": 2}
    record = kept(shoal.anonymize(frame, quasi_identifiers=["age", "zip"], **asked).write(out))
    facts = json.loads(record.read_text())
    assert (facts["stars"], facts["changed"]) == ({"age": 2, "zip": 0}, {"age": 2, "zip": 6})

    def holds(changed: Any, hierarchies: Any, policy: Any) -> bool:
        asked = facts["policy"] | {"hierarchies": policy}
        resealed(record, changed=changed, hierarchies=hierarchies, policy=asked)
        return verify(out, record).holds

    zips, other = facts["hierarchies"], facts["policy"]["hierarchies"]
    assert holds(facts["changed"], zips, other)
    assert not holds(facts["changed"], {}, {})
    assert not holds(facts["stars"], {}, {})
    assert not holds(facts["changed"], {"age": zips["zip"]}, {"age": "stars"})


def test_json_nested_too_deep_is_refused_wherever_it_is_read(tmp_path: Path) -> None:
    for name in ("manifest.json", "tiles.geojson"):
        (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(VerificationError, match="no manifest of shoal"):
        read_manifest(tmp_path)
    with pytest.raises(VerificationError, match="holds no polygons of tiles"):
        judge_outlines(tmp_path / "tiles.geojson", None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="holds other things than a release"):
        check_folder(tmp_path, overwrite=True)


LEVELS: dict[str, dict[str, Any]] = {
    "rows": {"zip": [[f"{z}", f"{z // 10}x"] for z in range(1230, 1250)], "age": "intervals:10", "day": "stars"},
    "built": {"age": "intervals:5,20", "zip": "prefixes:3,2", "day": "dates:month,year"},
    "stars": {},
}


@pytest.mark.parametrize("column", ["age", "zip", "day"])
@pytest.mark.parametrize("kind", LEVELS)
def test_one_level_for_each_column_is_counted(tmp_path: Path, kind: str, column: str) -> None:
    """Only the column is recoded that differs from row to row."""
    rng, out = np.random.default_rng(5), tmp_path / "r.csv"
    frame = pl.DataFrame(
        {
            "age": rng.integers(20, 50, 200), "zip": rng.integers(1230, 1250, 200).astype(str), "d": ["x", "y"] * 100,
            "day": [f"2020-01-{min(d, 20):02}" for d in rng.geometric(0.25, 200)],
        }
    ).with_columns(pl.lit(value).alias(n) for n, value in (("age", 30), ("zip", "1231"), ("day", "2020-01-01"))
                   if n != column)  # fmt: skip
    trees = LEVELS[kind]
    more: dict[str, Any] = {"publish": "hierarchy", "hierarchies": trees} if trees else {"publish": "stars"}
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "zip", "day"], "sensitive": ["d"], "seed": 1}
    handed = {n: t for n, t in trees.items() if not isinstance(t, str)}
    for share in (0.0, 0.2):
        release = shoal.anonymize(frame, **asked, **more, k=9, global_recoding=True, max_suppressed=share)
        paper = release.write(out, overwrite=True)
        assert shoal.verify(out, paper, hierarchies=handed).holds
    paper = shoal.anonymize(frame, **asked, **more, k=9, effort="fast").write(out, overwrite=True)
    shown = pl.read_csv(out, infer_schema=False)[column].str.replace_all(r"\d", "9").unique()
    assert len(shown) > 1 or kind == "built", "nothing is mixed"
    forge(paper, lambda facts: facts["policy"].update(global_recoding=True))
    assert failing(shoal.verify(out, paper, hierarchies=handed)) == ["levels of columns"]


@pytest.mark.parametrize("fill", ["*", ""])
def test_values_shorter_than_the_prefixes_are_of_every_level(tmp_path: Path, fill: str) -> None:
    frame, out = pl.DataFrame({"code": ["90071", "90072", "5", "5"] * 2}), tmp_path / "r.csv"
    tree = shoal.Hierarchy.prefixes([2, 1], fill)
    asked: dict[str, Any] = {"publish": "hierarchy", "hierarchies": {"code": tree}, "global_recoding": True}
    for k, shown in ((2, {"90071", "90072", "5"}), (4, {f"90{3 * fill}", "5"})):
        release = shoal.anonymize(frame, quasi_identifiers=["code"], **asked, k=k, seed=1)
        assert set(release.table["code"]) == shown
        assert shoal.verify(out, release.write(out, overwrite=True), hierarchies={"code": tree}).holds


def test_the_highest_level_is_counted(tmp_path: Path) -> None:
    frame, out = pl.DataFrame({"zip": ["1230", "1231"] * 3}), tmp_path / "r.csv"
    tree = [["1230", "123", "12"], ["1231", "123", "12"], ["1290", "129", "12"]]
    asked: dict[str, Any] = {"publish": "hierarchy", "hierarchies": {"zip": tree}, "k": 4}
    paper = shoal.anonymize(frame, quasi_identifiers=["zip"], **asked).write(out)
    for level, holds in ((2, True), (1, True), (0, False)):
        forge(paper, lambda facts, level=level: facts["policy"].update(max_level={"zip": level}))
        assert shoal.verify(out, paper, hierarchies={"zip": tree}).holds is holds
    forge(paper, lambda facts: facts["policy"].update(max_level={"age": 1}))
    with pytest.raises(InputError, match="highest level"):
        shoal.verify(out, paper)


@pytest.mark.parametrize("alone", [True, False])
def test_settings_have_the_forms_of_settings(tmp_path: Path, alone: bool) -> None:
    source, out, record, _ = made(tmp_path)
    paper = record if not alone else tmp_path / "r.certificate.json"
    genuine = paper.read_text()
    bent_settings = {
        "identifiers": "a", "insensitive": ["note", "more"], "population": 7, "max_level": "none", "coarsen": "all",
        "global_recoding": None, "numeric_stars": "never", "bound": "exact", "missing": None, "max_suppressed": None,
        "method": ["best"], "keep_order": 0, "weights": None,
    }  # fmt: skip
    for name, value in bent_settings.items():
        paper.write_text(genuine)
        forge(paper, lambda facts, name=name, value=value: facts["policy"].update({name: value}))
        with suppress(InputError):
            assert not (shoal.verify(out, paper) if alone else verify(out, paper, source)).holds, name


# Entries that no receiver can check, by docs/trust.md: who made the file and when, its name, the names of columns of
# the source, and conditions that the file doesn't show, or that it meets with more than was asked.
OPEN = ["made_by", "made_at", "release.file", "ratio_at_most"]
OPEN_OF: dict[str, list[str]] = {
    "table": ["identifiers", "population", "person", "household", "max_suppressed", "max_average_risk", "effort",
              "method", "global_recoding", "bound", "numeric_stars", "hierarchies", "max_level", "policy.privacy",
              "policy.star"],
    "labels": ["parameters.column", "parameters.count", "parameters.k"],
    "intervals": ["parameters.column", "parameters.count", "parameters.k"],
    "regions": [*(f"parameters.{n}" for n in (
        "column", "source", "target", "drawn", "weight", "k", "boundary", "fixed", "soft_boundary", "apart", "at_most",
        "sensitive", "similar", "max_diameter", "geographic", "water")), "certificate.unit"],
    "tiles": [*(f"parameters.{n}" for n in (
        "weight", "k", "seam", "sensitive", "decimal", "boundary", "person", "household"))],
    "clusters": [*(f"parameters.{n}" for n in ("r", "epsilon", "l", "distinct_l", "eligible", "features.0.weight",
                 "features.1.weight", "max_diameter", "setup_cost", "max_clusters", "columns", "sensitive"))],
    "series": ["identifiers", "wait", "signatures", "counterfeits", "person", "series.made_up"],
}  # fmt: skip


def survivors(paper: Path, write: Any, holds: Any, one_of: int = 1) -> set[str]:
    """The changes of one entry with which a certificate still verifies; only refusals in words may come back.

    one_of  an ordinary run tries one of so many, chosen by their names: where they stand in the list of changes hangs
            on how many attempts a search makes, and on seconds that are 0
    """
    genuine, found = json.loads(paper.read_text()), set()
    for what, changed in each_entry(genuine, ("seal",)):
        if not isinstance(changed, dict) or (not ALL and crc32(what.encode()) % one_of):
            continue
        write(changed)
        with suppress(shoal.ShoalError):
            if holds():
                found.add(what.strip())
    return found


def not_open(found: set[str], kind: str) -> list[str]:
    """Those of an entry that isn't on the list of open ones, or that isn't there, or has another type."""
    named = [*OPEN, *OPEN_OF[kind]]
    return sorted(what for what in found if not any(name in what.split(" ")[0] for name in named))


def three(kind: str) -> tuple[shoal.Crosswalk, str]:
    """A crosswalk with more conditions than those of ``released``, and its kind in ``OPEN_OF``."""
    if kind == "gather two values":
        frame = PLACES.with_columns(t=PLACES["s"].reverse())
        metric = Metric(features=(Number("x", scale=2.0, weight=3.0), Number("y")))
        points = (frame["x"].to_numpy(), frame["y"].to_numpy())
        found = shoal.gathering.gather(points, 3, metric=metric, sensitive=codes_of(frame, ["s", "t"]), distinct_l=2)
        return shoal.release(found, frame, columns=["x", "y"], sensitive=["s", "t"], center="mean"), "clusters"
    if kind.startswith(("gather", "cellular")):
        return clusters(*kind.split(" ")), "clusters"
    if kind == "regions with water":
        wet = np.arange(8) == 3
        areas = AREAS.with_columns(lake=pl.Series(wet), pop=pl.Series([3, 1, 2, 0, 2, 2, 4, 1]))
        found = shoal.regions.merge(GRID, areas["pop"].to_numpy(), 4, seed=1, water=wet)
        return shoal.release(found, areas, weight="pop", edges=GRID, id="id", water="lake"), "regions"
    if kind == "regions with maxima":
        areas, places = AREAS, PLACES.select("x", "y").to_numpy()
        given = {"at_most": {"pop": (areas["pop"].to_numpy(), 9)}, "max_diameter": 3.5, "coordinates": places}
        found = shoal.regions.merge(GRID, areas["pop"].to_numpy(), 4, seed=1, geographic=False, apart=list("abcdefgh"),
                                    **given)  # fmt: skip
        more = {"at_most": {"pop": 9}, "max_diameter": 3.5, "apart": "id", "geographic": False}
        return shoal.release(found, areas, weight="pop", edges=GRID, id="id", **more), "regions"
    if kind == "tiles with decimal commas":
        frame = PLACES.with_columns(pl.col("x").cast(pl.String).str.replace(r"\.", ","))
        found = shoal.tiles.split(PLACES.select("x", "y").to_numpy(), 2)
        return shoal.release(found, frame, x="x", y="y", decimal={"x": ","}), "tiles"
    return released(kind)[0], kind.split(" ")[0]


KINDS_OF_CROSSWALKS = [
    "labels", "intervals", "regions", "regions with maxima", "regions with water", "tiles", "tiles across 180 degrees",
    "tiles with decimal commas", "gather record", "gather mean", "cellular medoid",
    "gather two values",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS_OF_CROSSWALKS)
def test_each_entry_of_a_crosswalk_is_checked_or_open(tmp_path: Path, kind: str) -> None:
    made_, name = three(kind)
    paper = made_.write(tmp_path / "c.csv")
    assert shoal.verify(tmp_path / "c.csv", paper).holds

    found = survivors(paper, partial(write_sealed, paper), lambda: shoal.verify(tmp_path / "c.csv", paper).holds)
    assert not not_open(found, name)
    assert not [what for what in found if what.endswith((" dropped", "= []", "= {}", "= True", "with a key more"))
                and not what.startswith(("parameters.eligible", "parameters.at_most", "parameters.geographic",
                                         "parameters.decimal", "parameters.water"))]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS_OF_CROSSWALKS)
def test_a_number_that_shoal_computes_has_one_form(tmp_path: Path, kind: str) -> None:
    """In one row, the same number is written in another way. What the source writes itself may have any form."""
    out, given = tmp_path / "c.csv", {"value", "area", "x", "y"}
    paper = three(kind)[0].write(out)
    first, *rows = csv.reader(out.read_text().splitlines())
    tried = 0
    for at, name in enumerate(first):
        number = rows[1][at]
        if name in given or not re.fullmatch(r"-?\d+(\.\d+)?", number):
            continue
        more = f"{number}0" if "." in number else f"{number}.0"
        for form in (f"{number} ", f" {number}", f"+{number}", f"{number}e0", f"0{number}", more):
            forged = "".join(
                ",".join(f'"{cell}"' if set(cell) & set(',"') else cell for cell in row) + "\n"
                for row in [first, rows[0], [*rows[1][:at], form, *rows[1][at + 1 :]], *rows[2:]]
            ).encode()
            out.write_bytes(forged)
            facts = {"sha256": hashlib.sha256(forged).hexdigest(), "bytes": len(forged)}
            forge(paper, lambda r, facts=facts: r["release"].update(facts))
            with suppress(VerificationError):
                assert not shoal.verify(out, paper).holds, (name, form)
            tried += 1
    assert tried > 6


def test_a_bound_of_a_tile_has_one_sign(tmp_path: Path) -> None:
    frame, out = pl.DataFrame({"x": [-1.0, -1.0, 1.0, 1.0], "y": [0.0] * 4}), tmp_path / "c.csv"
    frame = frame.with_columns(y=pl.Series([0.0, 1.0, 0.0, 1.0]))
    found = shoal.tiles.split(frame.to_numpy(), 2)
    paper = shoal.release(found, frame, x="x", y="y").write(out)
    assert shoal.verify(out, paper).holds
    text = out.read_text()
    assert ",0.0,," in text
    forged = text.replace(",0.0,,", ",-0.0,,", 1).encode()
    out.write_bytes(forged)
    forge(paper, lambda r: r["release"].update(sha256=hashlib.sha256(forged).hexdigest(), bytes=len(forged)))
    with pytest.raises(VerificationError, match="a number in a form that no release has"):
        shoal.verify(out, paper)


@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges", "centers"])
def test_each_entry_of_a_table_is_checked_or_open(tmp_path: Path, publish: str) -> None:
    _, out, _, trees = made(tmp_path, publish)
    paper = tmp_path / "r.certificate.json"

    found = survivors(
        paper, partial(write_sealed, paper), lambda: shoal.verify(out, paper, hierarchies=trees or None).holds
    )
    assert not not_open(found, "table")


@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges", "centers"])
def test_the_loss_of_a_table_is_in_a_unit_of_its_kind(tmp_path: Path, publish: str) -> None:
    """Also where nobody can count the loss: a hierarchy isn't handed over, or there are only centers."""
    _, out, _, _ = made(tmp_path, publish)
    paper = tmp_path / "r.certificate.json"
    genuine = paper.read_text()
    for unit in ("bananas", "stars" if publish == "centers" else "units"):
        paper.write_text(genuine)
        forge(paper, lambda facts, unit=unit: facts["certificate"].update(unit=unit))
        with pytest.raises(InputError, match="in a unit that no release of its kind has"):
            shoal.verify(out, paper)


@pytest.mark.parametrize("mode", ["increment", "again", "views"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_each_entry_of_a_series_is_checked_or_open(tmp_path: Path, mode: str, at: int) -> None:
    """Certificates after the forged one name it again, as a forger would write them."""
    place = tmp_path / "s"
    series = shoal.Series.start(place, small_policy(), mode=mode)
    series.add(small_people(1, 16), person="id")
    if mode == "views":
        series.view(["age", "ill"])
    else:
        series.add(small_people(2 if mode == "increment" else 1, 16), person="id")
    shutil.rmtree(place / "private")
    assert shoal.Series.verify_folder(place).holds
    papers = [place / "series.json", *(place / f"000{n}" / "release.certificate.json" for n in (1, 2))]
    genuine = [json.loads(path.read_text()) for path in papers]

    def write(changed: dict[str, Any]) -> None:
        write_sealed(papers[at], changed)
        for n in range(at + 1, 3):
            facts = json.loads(json.dumps(genuine[n]))
            facts["series"]["previous"] = hashlib.sha256(papers[n - 1].read_bytes()).hexdigest()
            facts["series"]["id"] = changed["id"] if at == 0 and "id" in changed else facts["series"]["id"]
            for other in facts["series"].get("others", []):
                other["certificate"] = hashlib.sha256(papers[other["number"]].read_bytes()).hexdigest()
            write_sealed(papers[n], facts)

    write(genuine[at])
    assert shoal.Series.verify_folder(place).holds
    found = survivors(papers[at], write, lambda: shoal.Series.verify_folder(place).holds, one_of=7 if at else 1)
    assert not not_open(found, "series")


def test_a_series_holds_no_other_file_beside_its_parts(tmp_path: Path) -> None:
    shoal.Series.start(tmp_path / "s", small_policy()).add(small_people(1, 16), person="id")
    assert shoal.Series.verify_folder(tmp_path / "s").holds
    (tmp_path / "s" / "notes.csv").write_text("Ann,flu\n")
    assert failing(shoal.Series.verify_folder(tmp_path / "s")) == ["files"]
    (tmp_path / "s" / "notes.csv").unlink()
    (tmp_path / "s" / "private").rename(tmp_path / "safe")
    (tmp_path / "s" / "private").symlink_to(tmp_path / "safe")
    assert shoal.Series.verify_folder(tmp_path / "s").holds, "the private folder may be elsewhere"
    (tmp_path / "s" / "0001" / "release.csv").rename(tmp_path / "elsewhere.csv")
    (tmp_path / "s" / "0001" / "release.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert failing(shoal.Series.verify_folder(tmp_path / "s")) == ["files"]


# Entries of a record of which any have the right form: words of a method, and what an optional step took.
LOOSE = ("certificate.details", "seconds", "policy.", "method", "exposed.columns.", "filled")


@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges", "centers"])
def test_each_entry_of_a_table_s_record_has_its_form(tmp_path: Path, publish: str) -> None:
    """A value of another type, an entry more, or one that is missing: any text could stand there."""
    _, out, record, trees = made(tmp_path, publish)
    found = survivors(
        record,
        lambda changed: write_sealed(record, changed),
        lambda: shoal.verify(out, record=record, hierarchies=trees or None).holds,
    )
    others = (" dropped", "= None", "= True", "= False", "= 'x'", "= []", "= {}", "with a key more", "and a half")
    of_type = re.compile(  # another number or text, an item less, or a ratio without a term to add
        r"(before|attempts|loss|exposed|certificate)\b.* and a half|(before|attempts)\S*\.(\d+|seconds) dropped"
        r"|(before\.\w+|attempts)( = \[\]|.*columns.*)|.*(method|theorem|bound|file) = 'x'"
        r"|certificate\.guarantee\.additive = None"
    )
    bad = [what for what in found if what.endswith(others) and not what.startswith(LOOSE)]
    assert not [what for what in bad if not of_type.fullmatch(what)]
    record.write_bytes(files(publish)["r.record.json"])
    forge(record, lambda facts: facts["before"]["distinct_values"].update(Ann=7))
    with pytest.raises(InputError, match="'before'"):
        shoal.verify(out, record=record)
    record.write_bytes(files(publish)["r.record.json"])
    forge(record, lambda facts: facts["certificate"]["guarantee"].update(factor=None, additive=1))
    with pytest.raises(InputError, match="'guarantee"):
        shoal.verify(out, record=record)


@pytest.mark.parametrize("kind", ["table", "labels", "gather record"])
def test_a_record_holds_its_entries_alone(tmp_path: Path, kind: str) -> None:
    if kind == "table":
        source, out, record, _ = made(tmp_path)
    else:
        record, out, source = kept(three(kind)[0].write(tmp_path / "c.csv")), tmp_path / "c.csv", None
    genuine = json.loads(record.read_text())
    assert verify(out, record, source).holds
    for name in [*genuine, "who"]:
        if name in ("seal", "private"):
            continue
        changed = {n: held for n, held in genuine.items() if n != name} | ({"who": "Ann"} if name == "who" else {})
        write_sealed(record, changed)
        with suppress(InputError, VerificationError, CertificateError):
            assert not verify(out, record, source).holds, name


def judged_both(words: list[Any], judge: Callable[[], Any]) -> bool:
    """Whether a function's verdict holds; the command's status and sentences are the function's."""
    done = run("verify", *words, "--json")
    held = told(done.stdout)
    refused: shoal.ShoalError | None = None
    try:
        verdict = judge()
    except shoal.ShoalError as error:
        refused = error
    if refused is not None:
        assert (done.returncode, held["error"]["message"]) == (refused.exit_status, refusal(refused))
        return False
    assert done.returncode == (0 if verdict.holds else 1)
    whole = json.loads(json.dumps(verdict.as_dict()))
    assert {name: held[name] for name in whole} == whole
    return bool(verdict.holds)


@pytest.mark.parametrize("kind", ["table", "table with original", "series", *KINDS, "labels with original"])
def test_the_command_judges_as_the_function_does(tmp_path: Path, kind: str) -> None:
    """A genuine release, and one of every hundred bent certificates."""
    source: list[Path] = []
    if kind.startswith("table"):
        table, out, *_ = made(tmp_path)
        paper, source = tmp_path / "r.certificate.json", [table] if "with" in kind else []
    elif kind == "series":
        out = tmp_path / "s"
        shoal.Series.start(out, small_policy()).add(small_people(1, 16), person="id")
        paper = out / "0001" / "release.certificate.json"
    else:
        crosswalk, frame = released(kind.split(" ")[0])
        out, paper = tmp_path / "c.csv", crosswalk.write(tmp_path / "c.csv")
        if "with" in kind:
            source = [tmp_path / "t.csv"]
            frame.write_csv(source[0])
    words: list[Any] = [out] if kind == "series" else [out, paper]
    words += [word for path in source for word in ("--original", path)]

    def judge() -> Any:
        if kind == "series":
            return shoal.Series.verify_folder(out)
        return shoal.verify(out, paper, source[0] if source else None)

    assert judged_both(words, judge)
    genuine = json.loads(paper.read_text())
    bent_ones = [changed for _, changed in each_entry(genuine, ("seal",)) if isinstance(changed, dict)]
    verdicts = []
    for changed in bent_ones[:: 1 + len(bent_ones) // 12]:
        write_sealed(paper, changed)
        verdicts.append(judged_both(words, judge))
    assert not all(verdicts)


ALONE: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], object]]] = {  # line that fails: request, change
    "groups": ({}, lambda r: r.update(smallest_group=r["smallest_group"] - 1)),
    "identifiers": ({}, lambda r: r["policy"].update(identifiers=["note"])),
    "columns named": ({}, lambda r: r["carried"].update(columns=[], alone={})),
    "suppressed rows": ({"max_suppressed": 0.9}, lambda r: r["policy"].update(max_suppressed=0.01)),
    "mean risk": ({"max_average_risk": 0.3}, lambda r: r["policy"].update(max_average_risk=0.01)),
    "minimality": ({"minimality": 0.9}, lambda r: r["policy"].update(minimality=0.01)),
}


@pytest.mark.parametrize("line", ALONE)
def test_one_line_alone_tells_that_a_certificate_is_bent(tmp_path: Path, line: str) -> None:
    asked, change = ALONE[line]
    unlike = pl.Series([max(i, 16) for i in range(24)])  # eight rows
    table = pl.read_csv(LINES.encode()).with_columns(age=unlike, zip=unlike.cast(pl.String))
    roles: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["d"]}
    release = shoal.anonymize(table, **roles, **asked, k=3, l=2, seed=1, effort="fast")
    paper = release.write(tmp_path / "r.csv")
    assert shoal.verify(tmp_path / "r.csv", paper).holds
    forge(paper, change)
    assert line in failing(shoal.verify(tmp_path / "r.csv", paper))


def test_fewer_stars_than_certified_are_refused_as_more_are() -> None:
    held = ReleaseContents(pl.DataFrame({"a": ["*", "*", "x"]}), np.array([1, 2, 4]), ("a",))
    for stars in (2, 3, 4):
        asked = ReleaseRequirement(["a"], [], [], "*", {"a": stars})
        with nullcontext() if stars == 3 else pytest.raises(VerificationError, match="3 stars in the file"):
            judge_held(held, asked, "csv")


def test_a_missing_person_is_no_person() -> None:
    assert fewest(pl.DataFrame({"a": ["x", "x", "x"], "who": ["1", None, "2"]}), ["a"], "who") == 2


def test_a_manifest_names_each_part_once_and_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "part-00000.csv").write_text("a\n1\n")
    sha256 = hashlib.sha256(b"a\n1\n").hexdigest()
    one = {"file": "part-00000.csv", "rows": 1, "bytes": 4, "sha256": sha256}
    for parts, holds in (([one], True), ([one, one], False)):
        (tmp_path / "manifest.json").write_text(json.dumps({"parts": parts}))
        with nullcontext() if holds else pytest.raises(VerificationError, match="no manifest of shoal"):
            read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"parts": [one]}))
    digest_of(tmp_path)
    (tmp_path / "manifest.json").rename(tmp_path.with_suffix(".json"))
    (tmp_path / "manifest.json").symlink_to(tmp_path.with_suffix(".json"))
    with pytest.raises(VerificationError, match="is a link"):
        digest_of(tmp_path)


def test_a_record_is_no_certificate_and_belongs_to_one_file(tmp_path: Path) -> None:
    _, out, record, _ = made(tmp_path)
    paper = tmp_path / "r.certificate.json"
    with pytest.raises(InputError, match="is a record, and a certificate is wanted"):
        shoal.verify(out, record)
    with pytest.raises(InputError, match="is a certificate, and a record is wanted"):
        shoal.verify(out, paper, record=paper)
    forge(record, lambda facts: facts["release"].update(sha256="0" * 64))
    assert "record" in failing(shoal.verify(out, paper, record=record))


def test_a_certificate_lists_its_insensitive_columns_and_hashes_its_hierarchies(tmp_path: Path) -> None:
    _, out, _, _ = made(tmp_path, "hierarchy")
    paper = tmp_path / "r.certificate.json"
    genuine = paper.read_text()
    forge(paper, lambda facts: facts["policy"].update(insensitive=["gone"]))
    with pytest.raises(InputError, match="an insensitive column that it does not list"):
        shoal.verify(out, paper)
    paper.write_text(genuine)
    forge(paper, lambda facts: facts.update(hierarchies={}))
    assert "hierarchy of zip" in failing(shoal.verify(out, paper))
