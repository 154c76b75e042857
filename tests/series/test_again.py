"""Mode again: whoever stays keeps what remains possible, and an intruder with every part finds nobody above 1/l."""

import random
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.publishing.series import again, buckets
from shoal.publishing.series_folder import Keyed, Ledger
from tests.series.common import Row, frame, policy
from tests.series.intruder import Lives, TooMany, lives_of, never_above, tried_again, whole_tables


def ledger_of(series: shoal.Series, number: int) -> Ledger:
    from shoal.publishing.series_folder import open_series

    held = open_series(series.place)
    return Ledger.read(series.place / "private", held.keyed, str(held.about["id"]), held.digests[1 : number + 1])


def keyed_of(series: shoal.Series) -> Keyed:
    return Keyed((series.place / "private" / "key").read_bytes())


def table(series: shoal.Series, number: int) -> pl.DataFrame:
    return pl.read_csv(series.place / f"{number:04d}" / "release.csv", infer_schema=False)


def learned(series: shoal.Series, months: list[list[Row]]) -> list[dict[str, Fraction]]:
    """Of everybody published the share of all assignments of values in which each value is theirs."""
    keyed = keyed_of(series)
    known: list[tuple[int, Lives, Ledger]] = []
    for number, rows in enumerate(months, start=1):
        ledger = ledger_of(series, number)
        shown: dict[str, Counter[str]] = defaultdict(Counter)
        for *quasi, value in table(series, number).select("age", "zip", "ill").rows():
            shown[keyed.one("tuple", quasi)][keyed.one("value", [value])] += 1
        stated: dict[str, Counter[str]] = defaultdict(Counter)
        for t, s, n in ledger.units:
            stated[t].update(dict.fromkeys(s.split(), n))
        assert shown == stated  # what the intruder is told of groups is what stands in the table
        known.append((number, lives_of(rows, known, ledger, keyed), ledger))
    try:
        return whole_tables(known, keyed)
    except TooMany:
        return []


def start(tmp_path, **more) -> shoal.Series:
    asked = {name: more.pop(name) for name in ("k", "l") if name in more}
    return shoal.Series.start(tmp_path / "s", policy(**asked), mode="again", **more)


MONTH: list[Row] = [
    ("a", "30", "1", "flu"), ("b", "30", "1", "gout"), ("c", "30", "1", "flu"), ("d", "30", "1", "gout"),
    ("e", "40", "2", "flu"), ("f", "40", "2", "gout"),
]  # fmt: skip


def begun(tmp_path, **more) -> shoal.Series:
    series = start(tmp_path, **more)
    series.add(frame(MONTH), person="id")
    return series


def test_the_same_people_are_published_the_same(tmp_path):
    series = start(tmp_path)
    first = series.add(frame(MONTH), person="id")
    again = series.add(frame(MONTH), person="id")
    assert (first.made_up, again.made_up, again.rows) == (0, 0, 6)
    assert sorted(table(series, 1).rows()) == sorted(table(series, 2).rows())
    assert series.verify().holds


@pytest.mark.parametrize(
    "month",
    [
        pytest.param([*MONTH[1:], ("g", "30", "1", "flu")], id="a newcomer of the same value takes a place"),
        pytest.param(
            [*MONTH[:4], ("e", "30", "1", "flu"), ("g", "30", "1", "gout")],
            id="who moves stands among those whom they are like now",
        ),
        pytest.param(
            [MONTH[0], MONTH[2], MONTH[3], ("f", "30", "1", "gout")], id="two who were left alone stand together"
        ),
    ],
)
def test_nobody_is_made_up_and_nothing_is_lost(tmp_path, month: list[Row]):
    series = begun(tmp_path)
    part = series.add(frame(month), person="id")
    assert (part.made_up, part.rows, part.loss["stars"]) == (0, len(month), 0)
    assert series.verify().holds


def test_a_made_up_row_stands_where_nobody_comes_and_is_counted(tmp_path):
    series = begun(tmp_path)
    part = series.add(frame(MONTH[:-1]), person="id")
    assert (part.made_up, part.rows) == (1, 6)
    assert part.warnings[0].startswith("1 of 6 rows (16.7 %) are made up")
    assert len(part.warnings) == 1
    assert part.as_dict()["warnings"] == list(part.warnings)
    assert sorted(table(series, 1).rows()) == sorted(table(series, 2).rows())
    assert '"made_up": 1' in (series.place / "0002" / "release.certificate.json").read_text()
    assert series.verify().holds


def test_leavers_of_both_values_leave_no_made_up_row(tmp_path):
    series = begun(tmp_path)
    part = series.add(frame([MONTH[0], *MONTH[3:]]), person="id")  # b and c left: a and d stand together
    assert (part.made_up, part.rows) == (0, 4)
    assert part.warnings == ()
    assert "warnings" not in part.as_dict()


def test_without_counterfeits_the_group_is_held_back_and_comes_again(tmp_path):
    series = begun(tmp_path, counterfeits=False)
    part = series.add(frame(MONTH[:-1]), person="id")
    assert (part.made_up, part.held_back, part.rows) == (0, 1, 4)
    part = series.add(frame([*MONTH[:-1], ("h", "40", "2", "gout")]), person="id")
    assert (part.made_up, part.rows) == (0, 6)
    assert series.verify().holds


@pytest.mark.parametrize(
    ("who", "months"),
    [("f", [MONTH[:4], MONTH]), ("a", [[(p, "41" if p == "a" else age, z, v) for p, age, z, v in MONTH]])],
    ids=["returned", "older"],
)
def test_who_returns_or_is_older_now_keeps_what_was_possible(tmp_path, who: str, months: list[list[Row]]):
    series = begun(tmp_path)
    for month in months:
        series.add(frame(month), person="id")
    key, numbers = keyed_of(series).one("person", [who]), range(1, len(months) + 2)
    sets = {ledger_of(series, n).persons.filter(pl.col("person") == key)["possible"][0] for n in numbers}
    assert len(sets) == 1
    assert series.verify().holds


def test_the_judge_sees_somebody_whose_possible_values_change(tmp_path, monkeypatch):
    """The code is broken on purpose: whoever stays is treated as new."""
    from shoal.publishing.series import again

    def forgets(people, *more):
        return list(range(len(people.persons)))

    rows = [*MONTH[:4], ("e", "40", "2", "cough"), ("f", "40", "2", "rash")]
    series = start(tmp_path, k=2)
    series.add(frame(rows), person="id")
    monkeypatch.setattr(again, "_initial_classes", forgets)
    series.add(frame([row for row in rows if row[0] in "ae"]), person="id")  # who stood in two classes stands in one
    verdict = series.verify()
    assert {f.check for f in verdict.findings if not f.holds} == {"persons"}, verdict


@pytest.mark.parametrize(
    "asked",
    [
        {"max_level": {"age": 1}, "publish": "hierarchy", "hierarchies": {"age": "intervals:10"}},
        {"l": None},
        {"t": 0.2},
        {"l": 1},
        {"sensitive": ["ill", "zip"], "quasi_identifiers": ["age"]},
    ],
)
def test_what_is_not_promised_is_refused(tmp_path, asked):
    base = {"quasi_identifiers": ["age", "zip"], "sensitive": "ill", "k": 2, "l": 2} | asked
    with pytest.raises(shoal.PolicyError, match="again"):
        shoal.Series.start(
            tmp_path / "s", shoal.Policy(**{n: v for n, v in base.items() if v is not None}), mode="again"
        )


person = st.tuples(st.sampled_from("123"), st.sampled_from("xy"), st.sampled_from("abc"))
change = st.sampled_from(["in", "in", "in", "out", "corrected", "older"])


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    who=st.lists(person, min_size=4, max_size=9),
    months=st.lists(st.lists(change, min_size=9, max_size=9), min_size=2, max_size=3),
    l=st.integers(2, 3),
    counterfeits=st.booleans(),
)
def test_an_intruder_with_every_part_finds_nobody_above_the_promise(tmp_path_factory, who, months, l, counterfeits):
    series = start(tmp_path_factory.mktemp("s"), k=2, l=l, counterfeits=counterfeits)
    done: list[list[Row]] = []
    now = {f"p{i}": row for i, row in enumerate(who)}
    for changes in months:
        rows: list[Row] = []
        for (name, (age, code, ill)), what in zip(list(now.items()), changes, strict=False):
            if what == "corrected" and done:
                ill = "abc"[("abc".index(ill) + 1) % 3]
            if what == "older" and done:
                age = "123"[("123".index(age) + 1) % 3]
            now[name] = (age, code, ill)
            if what != "out":
                rows.append((name, age, code, ill))
        try:
            series.add(frame(rows), person="id") if rows else None
        except (shoal.InfeasibleError, shoal.InputError):
            continue
        if rows:
            done.append(rows)
    assume(done)
    assert series.verify().holds, series.verify()
    never_above(learned(series, done), l)


def test_newcomers_who_would_lose_too_much_wait_and_come_out_in_time(tmp_path):
    series = start(tmp_path, wait=1, wait_above=0.3)
    series.add(frame(MONTH), person="id")
    lone: list[Row] = [("g", "70", "7", "flu"), ("h", "80", "8", "gout")]
    part = series.add(frame([*MONTH, *lone]), person="id")
    assert (part.waiting, part.rows, series.status()["waiting"]) == (2, 6, 2)
    partners: list[Row] = [("i", "70", "7", "gout"), ("j", "80", "8", "flu")]
    part = series.add(frame([*MONTH, *lone, *partners]), person="id")
    assert (part.waiting, part.rows, part.loss["stars"]) == (0, 10, 0)
    part = series.add(frame([*MONTH, *lone, *partners, ("k", "90", "9", "flu"), ("l", "95", "5", "gout")]), person="id")
    assert (part.waiting, part.rows) == (2, 10)
    part = series.add(frame([*MONTH, *lone, *partners, ("k", "90", "9", "flu"), ("l", "95", "5", "gout")]), person="id")
    assert (part.waiting, part.rows) == (0, 12)  # they have waited once, and are published as coarsely as it takes
    assert series.verify().holds


def test_nobody_who_was_published_waits_and_the_first_part_publishes_all(tmp_path):
    series = start(tmp_path, wait=3, wait_above=0.0)
    far: list[Row] = [(p, str(i), str(i), v) for i, (p, _, _, v) in enumerate(MONTH)]
    assert series.add(frame(far), person="id").rows == 6
    moved: list[Row] = [(p, str(9 - i), str(i), v) for i, (p, _, _, v) in enumerate(MONTH)]
    part = series.add(frame([*moved, ("g", "70", "7", "flu"), ("h", "80", "8", "gout")]), person="id")
    assert (part.waiting, part.rows) == (2, 6)


@given(st.lists(st.integers(0, 6), max_size=6), st.integers(2, 4))
def test_as_many_newcomers_as_can_be_have_buckets_of_their_own(counts, l):
    value = [v for v, many in zip("abcdef", counts, strict=False) for _ in range(many)]

    def eligible(rows):
        most = max(Counter(value[i] for i in rows).values(), default=0)
        return not rows or (len(rows) >= l and most * l <= len(rows))

    people = SimpleNamespace(value=value, l=l, eligible=eligible)
    rest, hard = again._eligible([*range(len(value))], people)
    assert sorted(rest + hard) == [*range(len(value))]
    assert eligible(rest)
    caps = [sum(min(c, cap) for c in counts) for cap in range(7)]
    assert len(rest) == max(n for cap, n in enumerate(caps) if n >= l * cap)


def test_newcomers_stand_beside_who_stays_only_where_all_who_stay_lack_them():
    value = ["a", "b", "a", "b", "c", "c"]  # a and b stay, and all others are new and alike
    people = SimpleNamespace(value=value, l=3, persons=value, dealt=lambda rows: [])
    kept = {0: ("a", "b", "c"), 1: ("a", "b", "c")}
    lacking = again._lacking(people, kept)
    assert lacking == {("a", "b", "c"): {"a": 0, "b": 0, "c": 1}}
    assert again._buckets_of(people, kept, lacking, [0, 2, 3, 4, 5]) == []  # b stays elsewhere
    (bucket,) = again._buckets_of(people, kept, lacking, range(6))
    assert {bucket.rows["a"], bucket.rows["b"]} == {0, 1}
    two = {0: ("a", "b")}
    (bucket,) = again._buckets_of(people, two, again._lacking(people, two), [0, 3])
    assert bucket.rows == {"a": 0, "b": 3}


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=6),
    st.lists(st.sets(st.sampled_from("abcde"), min_size=2, max_size=2), min_size=1, max_size=4),
)
def test_buckets_of_few_signatures_are_taken_until_none_is_left(counts, signatures):
    given = [tuple(sorted(s)) for s in signatures]
    fresh = {
        v: [10 * j + i for i in range(many)] for j, (v, (many, _)) in enumerate(zip("abcdef", counts, strict=False))
    }
    before = {v: [*some] for v, some in fresh.items()}
    buckets = again._Few(given).buckets(fresh)
    taken = Counter(i for bucket in buckets for i in bucket.rows.values())
    assert all(n == 1 for n in taken.values())
    assert sorted([*taken, *(i for some in fresh.values() for i in some)]) == sorted(
        i for some in before.values() for i in some
    )
    for bucket in buckets:
        assert bucket.signature in given
        assert bucket.gaps == 0
        assert all(i in before[v] for v, i in bucket.rows.items())
    assert not any(all(fresh.get(v) for v in s) for s in given)  # nobody is left who could make another bucket


@given(st.lists(st.integers(1, 9), min_size=5, max_size=8), st.integers(2, 4), st.integers(1, 40), st.booleans())
def test_few_signatures_take_in_everybody(counts, l, most, stay):
    value = [v for v, many in zip("abcdefgh", counts, strict=False) for _ in range(many)]
    people = SimpleNamespace(value=value, l=l, persons=value, order=[*range(len(value))])
    kept = {i: tuple("abcd"[:l]) for i in range(0, len(value), 2)} if stay else {}
    few = again._few_signatures(people, kept, most)
    buckets = len(value) // l
    if len([*combinations(set(value), l)]) <= most:
        assert few is None
    elif max(counts) > buckets:
        assert few is None  # no deal takes in all people
    elif stay:
        assert few.signatures == [tuple("abcd"[:l])]
    else:
        assert all(len(set(s)) == l and [*s] == sorted(s) for s in few.signatures)
        assert len(set(few.signatures)) == len(few.signatures) < most + len(value)
        assert {v for s in few.signatures for v in s} == set(value) or buckets * l < len(value)


def test_few_signatures_are_about_as_many_as_asked():
    value = [v for v in "abcdefgh" for _ in range(4)]
    people = SimpleNamespace(value=value, l=3, persons=value, order=[*range(len(value))])
    few = again._few_signatures(people, {}, 5)
    assert 5 <= len(few.signatures) < 5 + 8
    kept = dict.fromkeys(range(9), ("a", "b", "c", "d")) | {
        9: ("a", "b", "c"),
        10: ("a", "b", "c"),
        11: ("b", "c", "d"),
    }
    few = again._few_signatures(people, kept, 1)
    assert few.signatures == [("a", "b", "c")]  # of l values, so that newcomers can have it


def test_tuples_with_one_star_and_two_more_are_offered():
    tuples = Counter({("30", "1", "x"): 7, ("30", "*", "x"): 3})
    again._offer_coarser(tuples, "*")
    assert tuples[("30", "1", "x")] == 7
    assert tuples[("30", "*", "x")] == 3
    one = {("*", "1", "x"), ("30", "1", "*")}
    two = {("*", "*", "x"), ("*", "1", "*"), ("30", "*", "*")}
    assert set(tuples) == {("30", "1", "x"), ("30", "*", "x"), *one, *two, ("*", "*", "*")}


def test_people_of_few_signatures_may_stand_in_coarser_classes(tmp_path, monkeypatch):
    form, offered = again._form_buckets, []

    def formed(people, builder, kept, tuples, *more):
        offered.append(set(tuples))
        return form(people, builder, kept, tuples, *more)

    monkeypatch.setattr(again, "_form_buckets", formed)
    series = start(tmp_path, signatures=1)
    rows: list[Row] = [*MONTH, ("g", "40", "2", "rash"), ("h", "40", "2", "flu")]
    series.add(frame(rows), person="id")
    series.add(frame(rows), person="id")
    assert len(offered) == 2
    for tuples in offered:
        assert {("30", "1"), ("30", "*"), ("*", "1"), ("*", "*")} <= tuples
    assert series.verify().holds


def test_a_first_part_of_few_signatures_that_cannot_be_is_refused(tmp_path):
    series = start(tmp_path, k=7, signatures=1)
    rows: list[Row] = [("a", "30", "1", "flu"), ("b", "30", "1", "gout"), ("c", "30", "1", "rash")]
    with pytest.raises(shoal.InfeasibleError):
        series.add(frame(rows), person="id")


def test_few_signatures_stay_few_and_need_fewer_made_up_rows(tmp_path):
    rng = random.Random(5)

    def person(name: str) -> Row:
        return name, rng.choice("1234"), rng.choice("xyz"), rng.choice("abcdefghij")

    made, signatures = [], []
    months = [[person(f"p{i}") for i in range(120)]]
    for month in range(4):
        stay = [row for row in months[-1] if rng.random() > 0.15]
        months.append([*stay, *(person(f"q{month}-{i}") for i in range(20))])
    for few in (None, 5):
        series = shoal.Series.start(tmp_path / str(few), policy(k=2, l=3), mode="again",
                                    signatures=few)  # fmt: skip
        parts = [series.add(frame(rows), person="id") for rows in months]
        assert series.verify().holds
        made.append(parts[-1].made_up)
        signatures.append(ledger_of(series, 1).persons["possible"].n_unique())
    assert signatures[1] + 5 < signatures[0]
    assert made[1] < made[0]


def test_a_class_knows_its_size_and_its_finest_tuple(monkeypatch):
    """What comes and goes is counted; here each class of some parts is counted anew."""
    published, seen = buckets.ClassBuilder.published, []

    def counted(self):
        for one in self.classes.values():
            rows = [i for bucket in one.buckets for i in bucket.rows.values()]
            assert self.size[one.number] == sum(bucket.size for bucket in one.buckets)
            for j, column in enumerate(self.people.columns):
                held = Counter(self.people.tuple[i][j] for i in rows)
                assert one.held[j] == held
                text = column.texts[self.text[one.number, j]]
                assert all(column.column.fits(text, column.values[v]) for v in held)
                seen.append(len(held))
        return published(self)

    monkeypatch.setattr(buckets.ClassBuilder, "published", counted)
    for seed in range(12):
        tried_again(seed)
    assert max(seen) > 1


def test_newcomers_take_the_places_of_who_left_until_there_are_no_more():
    table = pl.DataFrame({"age": ["30"] * 5, "zip": ["1"] * 5, "ill": ["flu", "gout", "gout", "gout", "gout"]})
    people = buckets.HashedRows(table, list("abcde"), policy(), Keyed(b"k" * 32))
    flu, gout = people.value[0], people.value[1]
    signature = tuple(sorted([flu, gout]))
    pair = [buckets.Bucket(signature, {flu: 0}), buckets.Bucket(signature, {})]
    builder = buckets.ClassBuilder(people)
    builder.found(pair)
    left = builder.fill([1, 2, 3, 4])
    assert len(left) == 2
    assert all(gout in bucket.rows for bucket in pair)
    assert sorted([*left, *(bucket.rows[gout] for bucket in pair)]) == [1, 2, 3, 4]


def test_who_has_nobody_to_stand_beside_joins_newcomers_and_else_made_up_rows():
    table = pl.DataFrame({"age": ["30"] * 3, "zip": ["1"] * 3, "ill": ["flu", "gout", "cold"]})
    for known in (set(), {0}):  # whoever is known keeps the signature
        people = buckets.HashedRows(table, list("abc"), policy(), Keyed(b"k" * 32))
        people.known = known
        flu, gout, cold = people.value
        bucket = buckets.Bucket(tuple(sorted([flu, gout])), {flu: 0, gout: 1})
        builder = buckets.ClassBuilder(people)
        builder.found([bucket])
        builder.squeeze([2])
        made_up = sum(other.gaps for one in builder.classes.values() for other in one.buckets)
        assert (cold in bucket.rows, made_up > 0) == (not known, bool(known))


def test_buckets_of_the_same_tuple_get_a_class_of_their_own():
    ages, ills = ["30", "30", "40", "40"] * 2, ["flu", "gout"] * 4
    table = pl.DataFrame({"age": ages, "zip": ["1"] * 8, "ill": ills})
    people = buckets.HashedRows(table, list("abcdefgh"), policy(), Keyed(b"k" * 32))
    pairs = [
        buckets.Bucket(tuple(sorted(people.value[:2])), {people.value[i]: i, people.value[i + 1]: i + 1})
        for i in range(0, 8, 2)
    ]
    builder = buckets.ClassBuilder(people)
    builder.found(pairs[:2])
    builder.found(pairs[2:])
    before = {number: builder.loss[number] for number in builder.classes}
    builder._gather()
    new = [one for number, one in builder.classes.items() if number not in before]
    found = [sorted(i for bucket in one.buckets for i in bucket.rows.values()) for one in new]
    assert found == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert all(builder.loss[one.number] == 0 < min(before.values()) for one in new)


@pytest.mark.parametrize("limits", [{}, {"top": {"age": 60}}])
@pytest.mark.parametrize("gap", [999, 9])
def test_ranges_of_all_parts_end_at_steps(gap: int, limits: dict, tmp_path) -> None:
    draw = random.Random(4)
    people = [
        (
            f"p{i}",
            None if i % gap == 5 and gap < 99 else draw.randint(20, 69),
            draw.choice("ab"),
            draw.choice(["flu", "gout", "burn"]),
        )
        for i in range(260)
    ]
    every = pl.DataFrame(people, schema=["who", "age", "zip", "ill"], orient="row")
    asked = shoal.Policy(
        quasi_identifiers=["age", "zip"], sensitive=["ill"], l=2, publish="ranges", range_step={"age": 5}, **limits
    )
    series = shoal.Series.start(tmp_path / "s", asked, mode="again")
    for month in (every.head(150), every.slice(20, 190), every.slice(60)):
        series.add(month, person="who")
    assert series.verify().holds
    shown = {text for number in (1, 2, 3) for text in table(series, number)["age"].drop_nulls()}
    ends = {end.strip("[]<>=") for text in shown for end in text.split(", ")}
    assert len(shown) > 3
    assert all(int(end) % 5 == 0 for end in ends - {"*", "missing"})


@pytest.mark.parametrize("kind", [pl.DataFrame.clone, pl.DataFrame.to_pandas])
def test_floats_of_a_frame_are_the_numbers_of_a_file(kind, tmp_path):
    """A column of whole numbers is one of floats as soon as a cell of it is missing."""
    series = shoal.Series.start(tmp_path / "s", policy(), mode="again")
    rows = [(str(10 + i), "3" + "04"[i % 2], "1", str(i // 2 % 2)) for i in range(8)]
    frame(rows).write_csv(tmp_path / "t.csv")
    series.add(tmp_path / "t.csv", person="id")
    floats = kind(frame(rows).cast(pl.Float64))
    assert series.add(floats, person="id").made_up == 0
    first, second = table(series, 1), table(series, 2)
    assert sorted(second.rows()) == sorted(first.rows())
    both = [ledger_of(series, n).persons.sort("person").select("person", "possible").rows() for n in (1, 2)]
    assert both[0] == both[1]


def test_values_in_another_spelling_are_refused(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy(), mode="again")
    rows = [(f"p{i}", "3" + "04"[i % 2], "1", "12"[i // 2 % 2]) for i in range(8)]
    series.add(frame(rows), person="id")
    for spelled in ("{}.0", "0{}", " {}"):
        with pytest.raises(shoal.InputError, match="column 'ill' has 8 values in another spelling than before"):
            series.add(frame([(*row[:3], spelled.format(row[3])) for row in rows]), person="id")
    assert series.parts == 1
    corrected = [*rows[:-1], (*rows[-1][:3], "2.0"), ("q", "30", "1", "2")]  # "2" is still a value of its own
    assert series.add(frame(corrected), person="id").rows >= 9
