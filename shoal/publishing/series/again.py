"""Mode "again": the whole table each time, while people come, stay, change and go.

m-invariance (Xiao, Tao 2007): whoever stays keeps the *signature*, the set of at least l values that remain possible.
A published class consists of hands; a hand has a signature and a row for each value of it, of a person or made up.  Who
stays keeps the signature and need not keep the hand or the class, so each part is put together anew:

1. who stays and fits is seated in the class of the part before, in a hand of the same signature;
2. the seat of somebody who left is taken by a newcomer of the same value, by somebody of the same signature whose own
   hand has a gap, or by a made-up row;
3. newcomers without a seat form hands in a class that publishes their very tuple, else in classes of the search;
4. hands move between classes, classes are dissolved and new ones gathered, as long as less is lost;
5. newcomers who would lose too much wait for the next part, where more newcomers may stand beside them.

The proof is in docs/series.md.

Source: X. Xiao, Y. Tao, m-invariance: towards privacy preserving re-publication of dynamic datasets, SIGMOD 2007.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import polars as pl

from shoal.engines.order import ShuffleKey, permutation
from shoal.errors import InfeasibleError, InputError
from shoal.model.policy import Policy
from shoal.publishing.series.increment import Added, Search, Text, refuse_twice
from shoal.publishing.series.seating import Hand, HashedRows, Seating, Signature, Tuple
from shoal.publishing.series_folder import SCHEMA, Keyed, Ledger

Shown = Callable[[int], pl.DataFrame]


def add(
    frame: pl.DataFrame,
    persons: pl.Series | None,
    ledger: Ledger,
    keyed: Keyed,
    search: Search,
    policy: Policy,
    *,
    shown: Shown,
    counterfeits: bool,
    wait: int = 0,
    wait_above: float = 0.3,
) -> Added:
    """The next part, of the whole table as it now is.

    frame     the table's columns as text;  persons: keyed hash of each row's person
    search    publishes a table so that it meets the models, rows in their order
    shown     number of a part -> its distinct published rows, columns of text
    wait, wait_above  after the first part, newcomers who would lose more than this share wait, at most so many parts

    Raises InputError for a table without persons or with columns that made-up rows could not have, InfeasibleError
    where no part can exist.  The search of the newcomers without a seat, minimum-cost assignments for each sensitive
    value and signature, O(hands x classes) for each round of moves.
    """
    if persons is None:
        raise InputError("mode 'again' knows people again; name the column of persons with ⟨person=...⟩")
    refuse_twice(persons)
    extra = [c for c in frame.columns if c not in (*policy.grouped, *policy.sensitive)]
    if extra:
        raise InputError(
            f"column {extra[0]!r} is insensitive, and a made-up row could have no value there; leave it out with "
            f"⟨identifiers={extra}⟩"
        )
    people = HashedRows(frame, persons.to_list(), policy, keyed)
    seating = Seating(people)
    fresh = _seated(people, seating, ledger, keyed, policy, shown)
    seating.tighten()
    fresh = seating.fill(fresh)
    seating.merge()
    held = [] if counterfeits else _hold_back(fresh, people, seating)
    fresh, hard = _eligible(sorted(fresh), people)
    rest = seating.alike(fresh)
    if rest:
        try:
            published = search(frame[rest])
        except InfeasibleError:
            if not seating.classes:
                raise
            hard += rest
        else:
            _new_classes(rest, people, published, policy, seating)
    if not counterfeits:
        held += hard
    elif hard:
        if not seating.classes:
            search(frame)  # says what cannot be met
        for i in sorted(hard, key=lambda i: people.value[i]):
            seating.squeeze(i)
    may = {i for i, p in enumerate(people.persons) if i not in people.known and ledger.waiting.get(p, 0) < wait}
    waiting = seating.defer(may, wait_above) if ledger.number else []
    seating.improve()
    if waiting:
        waiting += seating.defer(may, wait_above)
    if not counterfeits:
        held += seating.drop_small()
    else:
        seating.enough()
    waited = {people.persons[i]: ledger.waiting.get(people.persons[i], 0) + 1 for i in waiting}
    return _written(people, seating, ledger, keyed, policy, waited)._replace(held=len(held))


def _seated(
    people: HashedRows, seating: Seating, ledger: Ledger, keyed: Keyed, policy: Policy, shown: Shown
) -> list[int]:
    """Seat who stays in the class of the part before, who must move alone in a class to be dissolved; the newcomers."""
    last = ledger.persons
    texts = _read(people, last, ledger.number, keyed, policy, shown)
    before = {p: (part, t, v, s) for p, part, t, v, s in last.rows()}
    seats: dict[str, dict[Signature, list[int]]] = defaultdict(lambda: defaultdict(list))
    fresh = []
    for i, person in enumerate(people.persons):
        part, of, value, possible = before.get(person, (0, "", "", ""))
        if value != people.value[i]:
            fresh.append(i)
            continue
        signature = tuple(possible.split())
        people.known.add(i)
        if part == ledger.number and people.fits(texts[of], i):
            seats[of][signature].append(i)
        else:
            seating.found([Hand(signature, {value: i})])
    for of, groups in seats.items():
        hands = [hand for signature, rows in groups.items() for hand in people.paired(signature, rows)]
        seating.found(hands, texts[of])
    return fresh


def _read(
    people: HashedRows, last: pl.DataFrame, parts: int, keyed: Keyed, policy: Policy, shown: Shown
) -> dict[str, Tuple]:
    """Hash -> tuple published last; and the words of the values that are possible for somebody, for made-up rows."""
    texts: dict[str, Tuple] = {}
    wanted = {v for s in last["possible"].unique().to_list() for v in s.split()} - set(people.words)
    for number in range(parts, 0, -1):
        if number < parts and not wanted:
            break
        cells = shown(number)
        for value in cells[policy.sensitive[0]].unique().to_list():
            people.words.setdefault(keyed.one("value", [value]), value)
        wanted -= set(people.words)
        if number == parts:
            texts = {keyed.one("tuple", t): t for t in set(cells.select(policy.grouped).rows())}
    return texts


def _hold_back(fresh: list[int], people: HashedRows, seating: Seating) -> list[int]:
    """Take hands with a gap out: newcomers go on looking, those published before are held back."""
    held: list[int] = []
    for hand in seating.take_gaps():
        for i in hand.rows.values():
            (held if i in people.known else fresh).append(i)
    return held


def _eligible(fresh: list[int], people: HashedRows) -> tuple[list[int], list[int]]:
    """The most newcomers that can be hands of their own, and the others: too many of one value, or too few in all."""
    counts = Counter(people.value[i] for i in fresh)
    if not counts:
        return [], []
    value, most = counts.most_common(1)[0]
    allowed = min(most, (len(fresh) - most) // (people.l - 1))
    rest, hard, seen = [], [], 0
    for i in fresh:
        if people.value[i] == value:
            seen += 1
            if seen > allowed:
                hard.append(i)
                continue
        rest.append(i)
    if not people.eligible(rest):
        return [], fresh
    return rest, hard


def _new_classes(
    rest: list[int], people: HashedRows, published: pl.DataFrame, policy: Policy, seating: Seating
) -> None:
    """Newcomers in classes of their own, each dealt out into hands of l or more different values."""
    rows: dict[Tuple, list[int]] = defaultdict(list)
    for i, texts in zip(rest, published.select(policy.grouped).rows(), strict=True):
        rows[texts].append(i)
    order = permutation(len(people.persons), ShuffleKey.of(None).order)
    for texts, members in rows.items():
        seating.found(people.dealt(members, order), texts)


def _written(
    people: HashedRows, seating: Seating, ledger: Ledger, keyed: Keyed, policy: Policy, waiting: dict[str, int]
) -> Added:
    """The published rows, and the ledger after them; waiting: person -> parts they have waited for."""
    rows: list[tuple[Text, ...]] = []
    lines: list[tuple[str, int, str, str, str]] = []
    units: Counter[tuple[str, str]] = Counter()
    made_up = 0
    for texts, hands in seating.published():
        of = keyed.one("tuple", texts)
        for hand in hands:
            possible = " ".join(hand.signature)
            units[of, possible] += 1
            rows += [(*texts, people.words[value]) for value in hand.signature]
            made_up += hand.gaps
            lines += [(people.persons[i], ledger.number + 1, of, v, possible) for v, i in hand.rows.items()]
    now = pl.DataFrame(lines, schema=SCHEMA, orient="row").lazy()
    names = [*policy.grouped, *policy.sensitive]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    after = ledger.after(now, units=[(t, s, n) for (t, s), n in sorted(units.items())], waiting=waiting)
    shuffled = frame[permutation(frame.height, ShuffleKey.of(None).order)]
    return Added(shuffled.lazy(), after, made_up=made_up, waiting=len(waiting))
