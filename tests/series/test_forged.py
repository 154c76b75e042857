"""Forged, exchanged, repeated and reordered parts, one after the other, in every mode: none of them verifies.

A receiver has the public files alone.  What a receiver cannot see, because no later certificate names it, the owner
sees: a last part that was taken away or made again.
"""

import hashlib
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.judge.series import _mac, _waiting_fault, judge_series
from shoal.publishing.series_folder import Keyed
from tests.fuzz.certificates import each_entry
from tests.kept import failing, forge
from tests.series.common import frame, people, policy

PARTS = 4
EARLIER = "2001-01-01T00:00:00+00:00"
MODES = ["increment", "again", "views"]


def made(place: Path, mode: str) -> Path:
    series = shoal.Series.start(place, policy(), mode=mode)
    series.add(people(1, 16), person="id")
    for month in range(2, PARTS + 1):
        if mode == "views":
            series.view([["age", "ill"], ["zip", "ill"], ["age", "zip"]][month - 2])
        else:
            series.add(people(month if mode == "increment" else 1, 16), person="id")
    return place


@pytest.fixture(scope="module", params=MODES)
def sound(request, tmp_path_factory) -> Path:
    return made(tmp_path_factory.mktemp("sound") / "s", request.param)


@pytest.fixture(scope="module")
def stranger(sound, tmp_path_factory) -> Path:
    """Another series of the same people, policy and mode."""
    return made(tmp_path_factory.mktemp("other") / "s", json.loads((sound / "series.json").read_text())["mode"])


def part(place: Path, number: int) -> Path:
    return place / f"{number:04d}"


def reorder(place: Path, order: tuple[int, ...]) -> None:
    for number in range(1, PARTS + 1):
        part(place, number).rename(place / f"x{number}")
    for to, number in enumerate(order, start=1):
        (place / f"x{number}").rename(part(place, to))


def renumbered(place: Path, order: tuple[int, ...]) -> None:
    """Reordered by somebody who writes the numbers anew and seals the certificates again."""
    reorder(place, order)
    for number in range(1, PARTS + 1):
        forge(part(place, number) / "release.certificate.json", lambda c, n=number: c["series"].update(number=n))


def repeat(place: Path, number: int, to: int) -> None:
    shutil.rmtree(part(place, to), ignore_errors=True)
    shutil.copytree(part(place, number), part(place, to))


def changed(place: Path, number: int, change: Callable[[dict], object]) -> None:
    forge(part(place, number) / "release.certificate.json", change)


def taken_from(other: Path, place: Path, number: int) -> None:
    shutil.rmtree(part(place, number))
    shutil.copytree(part(other, number), part(place, number))


def row_less(place: Path, number: int) -> None:
    path = part(place, number) / "release.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


FORGERIES: dict[str, Callable[[Path, Path], object]] = {
    **{f"order {o}": lambda p, _, o=o: reorder(p, o)
       for o in itertools.permutations(range(1, PARTS + 1)) if o != (1, 2, 3, 4)},
    **{f"order {o}, sealed again": lambda p, _, o=o: renumbered(p, o)
       for o in itertools.permutations(range(1, PARTS + 1)) if o != (1, 2, 3, 4)},
    **{f"part {n} left out": lambda p, _, n=n: shutil.rmtree(part(p, n)) for n in range(1, PARTS)},
    "part 2 left out and the gap closed": lambda p, _: [
        shutil.rmtree(part(p, 2)), *(part(p, n).rename(part(p, n - 1)) for n in range(3, PARTS + 1))],
    **{f"part {n} also as {to}": lambda p, _, n=n, to=to: repeat(p, n, to)
       for n in range(1, PARTS + 1) for to in range(1, PARTS + 2) if n != to},
    **{f"part {n} of another series": lambda p, o, n=n: taken_from(o, p, n) for n in range(1, PARTS + 1)},
    **{f"part {n} a row shorter": lambda p, _, n=n: row_less(p, n) for n in range(1, PARTS + 1)},
    **{f"part {n} made at another time": lambda p, _, n=n: changed(p, n, lambda c: c.update(made_at=EARLIER))
       for n in range(1, PARTS)},
    **{f"part {n} of no series": lambda p, _, n=n: changed(p, n, lambda c: c.pop("series"))
       for n in range(1, PARTS + 1)},
    **{f"part {n} with another promise": lambda p, _, n=n: changed(p, n, lambda c: c["policy"].update(privacy=[]))
       for n in range(1, PARTS + 1)},
    **{f"last part states {n}": lambda p, _, odd=odd: changed(p, PARTS, lambda c: odd(c["series"]))
       for n, odd in {
           "another key": lambda s: s.update(who="Ann"), "made-up rows in words": lambda s: s.update(made_up="Ann"),
           "less than no rows": lambda s: s.update(made_up=-1), "others": lambda s: s.update(others=None),
           "fewer others": lambda s: s.update(others=s.get("others", [{}] * 2)[1:]),
           "others with another key": lambda s: s.setdefault("others", [{}])[0].update(who="Ann"),
           "others with another column": lambda s: s.setdefault("others", [{}])[0].update(columns=["Ann"]),
           "no view": lambda s: s.update(view=None), "a view of nothing": lambda s: s.update(view={"columns": [None]}),
           "levels of a view": lambda s: s.update(view={**s.get("view", {}), "levels": {"age": 1}}),
           "a key of a view": lambda s: s.update(view={**s.get("view", {}), "who": "Ann"}),
       }.items()},
    "another request": lambda p, _: forge(p / "series.json", lambda c: c["policy"]["privacy"][0].update(k=1)),
    "another mode": lambda p, _: forge(
        p / "series.json", lambda c: c.update(mode="again" if c["mode"] != "again" else "increment")),
    "another series.json": lambda p, o: shutil.copy(o / "series.json", p / "series.json"),
    "all but series.json": lambda p, o: [taken_from(o, p, n) for n in range(1, PARTS + 1)],
}  # fmt: skip


def test_no_forgery_verifies(sound, stranger, tmp_path):
    """One test for all of them: a series is made once, copied for each."""
    passed = []
    for i, (name, harm) in enumerate(FORGERIES.items()):
        place = tmp_path / str(i)
        shutil.copytree(sound, place, ignore=shutil.ignore_patterns("private"))
        harm(place, stranger)
        if shoal.Series.verify_folder(place).holds:
            passed.append(name)
        shutil.rmtree(place)
    assert not passed
    shutil.copytree(sound, tmp_path / "whole", ignore=shutil.ignore_patterns("private"))
    assert shoal.Series.verify_folder(tmp_path / "whole").holds, "and what nobody touched does"


def test_the_owner_sees_what_a_receiver_cannot(sound, tmp_path):
    for name, harm in {
        "last part left out": lambda p: shutil.rmtree(part(p, PARTS)),
        "last part sealed again": lambda p: changed(p, PARTS, lambda c: c.update(made_at=EARLIER)),
    }.items():
        shutil.copytree(sound, tmp_path / name)
        harm(tmp_path / name)
        with pytest.raises(shoal.VerificationError):
            shoal.Series(tmp_path / name)


def test_an_older_or_another_ledger_is_refused(sound, stranger, tmp_path):
    """Every file of the private folder lost, older or another's."""
    private = sound / "private"
    last = f"ledger-{PARTS:04d}"
    first = f"ledger-{1:04d}"  # whom it names stands in no later one
    parts = [f"{one}{name}" for one in (first, last) for name in ("", "/ledger.json", "/persons.parquet")]
    for lost in ["key", "head.json", *parts]:
        for how in ("lost", "another"):
            place = tmp_path / f"{how}-{lost.replace('/', '-')}"
            shutil.copytree(sound, place)
            path = place / "private" / lost
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            if how == "another":
                held = stranger / "private" / lost
                if held.is_file() and held.read_bytes() == (private / lost).read_bytes():
                    continue  # of a view, which speaks of nobody
                shutil.copytree(held, path) if held.is_dir() else shutil.copy(held, path)
            with pytest.raises(shoal.ShoalError):
                shoal.Series(place)
    for number in range(1, PARTS):
        place = tmp_path / f"older-{number}"
        shutil.copytree(sound, place)
        shutil.rmtree(place / "private" / last)
        shutil.copytree(private / f"ledger-{number:04d}", place / "private" / last)
        with pytest.raises(shoal.VerificationError):
            shoal.Series(place)


@pytest.mark.parametrize("mode", ["increment", "again"])
def test_the_judge_counts_how_long_people_wait(mode, tmp_path):
    """The ledger of a part says otherwise, and is sealed again by whoever has the key."""
    place = tmp_path / "s"
    series = shoal.Series.start(place, policy(), mode=mode, wait=2, wait_above=0.3)
    series.add(people(1, 16), person="id")
    late = frame([("g", "70", "7", "a"), ("h", "80", "8", "b")])
    table = pl.concat([people(2 if mode == "increment" else 1, 16), late])
    series.add(table, person="id")
    keyed = Keyed((place / "private" / "key").read_bytes())
    path = place / "private" / "ledger-0002" / "ledger.json"
    sound = json.loads(path.read_text())
    who = keyed.one("person", ["g"])
    assert (sound["waiting"][who], series.verify().holds) == (1, True)
    shown = pl.read_parquet(path.with_name("persons.parquet"))["person"][0]
    for waiting in ({who: 2}, {who: 0}, {who: 1, shown: 1}):
        forged = sound | {"waiting": waiting}
        path.write_text(json.dumps(forged | {"mac": keyed.mac(forged)}))
        odd = {f.check for f in judge_series(place, policy().privacy, 2) if not f.holds}
        assert odd == {"persons"}, waiting
    path.write_text(json.dumps(sound))
    about = json.loads((place / "series.json").read_text())
    assert (
        _waiting_fault({who: 1}, {who: 2}, None, pl.DataFrame({"person": [shown]}), about | {"mode": "increment"})
        is None
    )
    late_too = _waiting_fault({who: 2}, {who: 3}, None, pl.DataFrame({"person": [shown]}), about)
    assert late_too == "somebody waits for more than 2 parts"
    published, here = pl.DataFrame({"person": [who]}), pl.DataFrame({"person": [shown]})
    again = _waiting_fault({}, {who: 1}, published, here, about | {"mode": "again"})
    increment = _waiting_fault({}, {who: 1}, published, here, about | {"mode": "increment"})
    assert (again, increment) == (
        None,
        "a person on the waiting list is published",
    )  # "again": who left, and comes anew


@pytest.mark.parametrize("name", ["ledger-0001/ledger.json", "ledger-0004/ledger.json", "head.json"])
def test_each_entry_of_a_ledger_and_of_its_head_has_its_form(sound: Path, tmp_path: Path, name: str) -> None:
    """The owner's key signs the entries, so a patched shoal could write anything in them."""
    place = Path(shutil.copytree(sound, tmp_path / "s"))
    path, key = place / "private" / name, (place / "private" / "key").read_bytes()
    ledgers = [place / "private" / f"ledger-{number:04d}" / "ledger.json" for number in range(1, PARTS + 1)]
    genuine = {paper: json.loads(paper.read_text()) for paper in (*ledgers, path)}

    def write(paper: Path, facts: dict[str, Any]) -> None:
        facts = {n: held for n, held in facts.items() if n != "mac"}
        paper.write_text(json.dumps(facts | {"mac": _mac(key, facts)}))

    def forged(facts: dict[str, Any]) -> bool:
        """Whether a series with this file verifies; the ledgers after it name it."""
        write(path, facts)
        for before, after in itertools.pairwise(ledgers):
            if path in ledgers[: ledgers.index(after)]:
                write(after, genuine[after] | {"previous": hashlib.sha256(before.read_bytes()).hexdigest()})
        return shoal.Series.verify_folder(place).holds

    assert forged(genuine[path])
    bent = [(what, held) for what, held in each_entry(genuine[path], ("mac",)) if isinstance(held, dict)]
    for what, facts in [*bent[:9], *bent[9 :: 1 + len(bent) // 60]]:
        assert not forged(facts), what


def test_a_ledger_has_no_other_column(sound: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(sound, tmp_path / "s"))
    folder, key = place / "private" / f"ledger-{PARTS:04d}", (place / "private" / "key").read_bytes()
    persons = pl.read_parquet(folder / "persons.parquet")
    persons.with_columns(who=pl.lit("Ann")).write_parquet(folder / "persons.parquet")
    facts = json.loads((folder / "ledger.json").read_text())
    facts["persons"] = hashlib.sha256((folder / "persons.parquet").read_bytes()).hexdigest()
    (folder / "ledger.json").write_text(json.dumps(facts | {"mac": _mac(key, facts)}))
    assert failing(shoal.Series.verify_folder(place)) == ["ledger"]


def test_a_ledger_and_its_head_need_the_key(sound: Path, tmp_path: Path) -> None:
    """Each of these would hold if it were sealed with the key."""
    place = Path(shutil.copytree(sound, tmp_path / "s"))
    ledger, head = place / "private" / f"ledger-{PARTS:04d}" / "ledger.json", place / "private" / "head.json"
    before = hashlib.sha256((part(place, PARTS - 1) / "release.certificate.json").read_bytes()).hexdigest()
    key = (place / "private" / "key").read_bytes()
    for path, change in ((ledger, {"table": "0" * 32}), (head, {"number": PARTS - 1, "certificate": before})):
        genuine = path.read_text()
        facts = json.loads(genuine) | change
        for mac, holds in ((_mac(key, facts), True), (facts["mac"], False)):
            path.write_text(json.dumps(facts | {"mac": mac}))
            assert shoal.Series.verify_folder(place).holds is holds
        path.write_text(genuine)
