"""The least loss of a small series of mode "again", by an exact program, and a bound of a large month's loss (HiGHS).

The program knows the promise alone, and shares no code with what makes releases.  People of one signature S in one
class are h rows of each value of S, of people or made up, so a part is: a number h of hands for each signature and each
published tuple, and a seat for everybody.  A person keeps the signature for as long as the value stays the same.  A
hand of 2 l values or more is two hands of the same class, so signatures have l to 2 l - 1 values.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import highspy
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_matrix, csr_matrix

Month = Mapping[str, tuple[tuple[Any, ...], str]]  # person -> quasi-identifiers, sensitive value
Signature = tuple[str, ...]


class Least(NamedTuple):
    """What a program found: the loss, a lower bound of it, and the made-up rows, of all months together.

    loss  infinite where the seconds ended before one was found
    loss, bound  sum of the losses of all rows, made-up ones included, each from 0 to 1
    """

    loss: float
    bound: float
    made_up: int


def tuples(month: Month, publish: str) -> list[tuple[tuple[Any, ...], float]]:
    """Every tuple that can be published and takes in somebody, with its loss.

    A tuple has for each column the lowest and the highest value, or None for a star.
    """
    each = []
    for column in zip(*(quasi for quasi, _ in month.values()), strict=True):
        values = sorted(set(column))
        if publish == "stars":
            each.append([((v, v), 0.0) for v in values] + [(None, 1.0)])
        else:
            span = max(values[-1] - values[0], 1)
            pairs = itertools.combinations_with_replacement(values, 2)
            each.append([((low, high), (high - low) / span) for low, high in pairs])
    found = []
    for parts in itertools.product(*each):
        texts = tuple(text for text, _ in parts)
        if any(covers(texts, quasi) for quasi, _ in month.values()):
            found.append((texts, sum(loss for _, loss in parts) / len(parts)))
    return found


def covers(texts: tuple[Any, ...], quasi: tuple[Any, ...]) -> bool:
    """Whether a published tuple takes in a row."""
    return all(t is None or t[0] <= q <= t[1] for t, q in zip(texts, quasi, strict=True))


def signatures(values: Sequence[str], l: int) -> list[Signature]:
    """All sets of l to 2 l - 1 values."""
    return [s for many in range(l, 2 * l) for s in itertools.combinations(sorted(values), many)]


class _Program:
    """A mixed-integer program that grows by variables and rows."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def variable(self, cost: float = 0.0, upper: float = np.inf, whole: bool = False) -> int:
        self.cost.append(cost)
        self.upper.append(upper)
        self.whole.append(int(whole))
        return len(self.cost) - 1

    def row(self, of: dict[int, float], low: float, high: float) -> None:
        self.rows.append((of, low, high))

    def solve(self, seconds: float) -> tuple[float, float, list[float]] | None:
        """Objective, its lower bound, and the values found, none where the time ended before; None: there are none."""
        at = [(r, c, v) for r, (of, _, _) in enumerate(self.rows) for c, v in of.items()]
        r, c, v = (np.array(x) for x in zip(*at, strict=True))
        matrix = csr_matrix((v, (r, c)), shape=(len(self.rows), len(self.cost)))
        limits = LinearConstraint(matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows])
        how = {"time_limit": seconds, "mip_rel_gap": 1e-6}
        found = milp(self.cost, integrality=self.whole, bounds=Bounds(0, self.upper), constraints=limits, options=how)
        if found.status == 2:
            return None
        return (np.inf, found.mip_dual_bound, []) if found.x is None else (found.fun, found.mip_dual_bound, [*found.x])


def free(month: Month, publish: str, k: int, l: int, seconds: float = 60) -> Least:
    """The least loss of a month that knows no past, for k and the frequency form of l."""
    program = _Program()
    seats: dict[str, dict[int, float]] = {person: {} for person in month}
    values = sorted({value for _, value in month.values()})
    for texts, loss in tuples(month, publish):
        used = program.variable(upper=1, whole=True)
        there = {p: program.variable(loss, 1, whole=True) for p, (quasi, _) in month.items() if covers(texts, quasi)}
        for person, x in there.items():
            seats[person][x] = 1
            program.row({x: 1, used: -1}, -np.inf, 0)
        program.row({**dict.fromkeys(there.values(), 1.0), used: -k}, 0, np.inf)
        for value in values:
            own = {x: 1.0 - l * (month[p][1] == value) for p, x in there.items()}
            program.row(own, 0, np.inf)
    for person in month:
        program.row(seats[person], 1, 1)
    found = program.solve(seconds)
    assert found is not None
    return Least(found[0], found[1], 0)


def least(
    months: Sequence[Month],
    publish: str,
    k: int,
    l: int,
    *,
    kept: Mapping[str, Signature] | None = None,
    made_up: Sequence[int] | None = None,
    values: Sequence[str] | None = None,
    seconds: float = 60,
) -> Least | None:
    """The least loss of all months together under the promise, by whoever knows all of them; None where there is none.

    kept     signatures of people of the first month that an earlier one fixed
    made_up  how many made-up rows each month may have, any number when None
    values   that a signature may have, of people or not;  those of the months when None
    """
    values = sorted({v for month in months for _, v in month.values()} if values is None else values)
    program = _Program()
    spells: dict[tuple[str, int], dict[Signature, int]] = {}
    last: dict[str, tuple[str, int]] = {}
    rows_of: dict[int, float] = {}
    for number, month in enumerate(months):
        spell: dict[str, dict[Signature, int]] = {}
        for person, (_, value) in month.items():
            if person not in last or last[person][0] != value:
                last[person] = (value, number)
                own = (kept or {}).get(person) if number == 0 else None
                choice = [s for s in (signatures(values, l) if own is None else [own]) if value in s]
                fixed = {s: program.variable(upper=1, whole=True) for s in choice}
                program.row(dict.fromkeys(fixed.values(), 1.0), 1, 1)
                spells[person, number] = fixed
            spell[person] = spells[person, last[person][1]]
        here: dict[int, float] = {}
        seats: dict[tuple[str, Signature], dict[int, float]] = {}
        for texts, loss in tuples(month, publish):
            inside = [p for p, (quasi, _) in month.items() if covers(texts, quasi)]
            used = program.variable(upper=1, whole=True)
            size: dict[int, float] = {used: -k}
            held: dict[Signature, int] = {}
            at: dict[str, dict[int, float]] = {p: {used: -1.0} for p in inside}
            for s in sorted({s for p in inside for s in spell[p]}):
                held[s] = program.variable(loss * len(s), whole=True)
                size[held[s]] = len(s)
                here[held[s]] = len(s)
                program.row({held[s]: 1, used: -len(month)}, -np.inf, 0)
                of_value: dict[str, dict[int, float]] = {v: {held[s]: -1.0} for v in s}
                for p in inside:
                    if s in spell[p]:
                        x = program.variable(upper=1)
                        of_value[month[p][1]][x] = 1
                        seats.setdefault((p, s), {})[x] = 1
                        at[p][x] = 1
                for of in of_value.values():
                    program.row(of, -np.inf, 0)
            program.row(size, 0, np.inf)
            for of in at.values():
                program.row(of, -np.inf, 0)
        for (p, s), of in seats.items():
            program.row({**of, spell[p][s]: -1}, 0, 0)
        program.row(here, len(month), np.inf if made_up is None else len(month) + made_up[number])
        rows_of |= here
    found = program.solve(seconds)
    if found is None:
        return None
    loss, bound, at = found
    more = round(sum(at[x] * many for x, many in rows_of.items())) - sum(map(len, months)) if at else 0
    return Least(loss, bound, more)


class Bound(NamedTuple):
    """A lower bound of a month's stars, from prices that the program found; and what the program itself says."""

    stars: float
    program: float


def fewest_stars(
    people: Sequence[tuple[tuple[Any, ...], str, Signature | None]],
    k: int,
    l: int,
    made_up: int,
    *,
    most: int = 2,
    seconds: float = 300,
) -> Bound:
    """A lower bound of the stars of a month, made-up rows included, for the signatures that earlier months published.

    people   quasi-identifiers, value, and the signature of who stays; None of a newcomer
    made_up  how many made-up rows there may be
    most     tuples with more stars are held possible for everybody

    The linear program has a variable for each kind of people and each tuple that takes them in; for each tuple the
    rows of every signature that somebody who stays there has, and the rows of newcomers and made-up ones in hands of
    other signatures.  docs/series.md proves that every legal month is one of its solutions.  Any prices give a bound:
    each variable takes the cheaper of its two ends.
    """
    width, many = len(people[0][0]), len(people)
    patterns = [p for r in range(min(most, width) + 1) for p in itertools.combinations(range(width), r)]
    kinds = Counter(people)
    size: Counter[tuple[Any, ...]] = Counter()
    for (quasi, _, _), n in kinds.items():
        for p in patterns:
            size[_starred(quasi, p)] += n
    program = _Linear()
    budget = program.row(-np.inf, many + made_up)  # all rows
    of_signature: dict[tuple[Any, Signature], dict[str, int]] = {}
    of_newcomers: dict[Any, dict[str, int]] = {}
    fresh = Counter(value for _, value, signature in people if signature is None)
    for (quasi, value, signature), n in kinds.items():
        own = program.row(n, n)
        alone: set[tuple[int, float]] = set()
        for p in patterns:
            texts = _starred(quasi, p)
            if size[texts] < k:  # filled with made-up rows, for each of the people there as many
                alone.add((len(p), k / size[texts]))
            elif signature is None:
                held = of_newcomers.setdefault(texts, {})
                held.setdefault(value, program.row(-np.inf, 0))
                program.variable(0, n, {own: 1, held[value]: 1})
            else:
                if (texts, signature) not in of_signature:
                    of_signature[texts, signature] = {v: program.row(-np.inf, 0) for v in signature}
                program.variable(0, n, {own: 1, of_signature[texts, signature][value]: 1})
        for stars, rows in alone:
            if not any(s <= stars and r <= rows and (s, r) != (stars, rows) for s, r in alone):
                program.variable(stars * rows, n, {own: 1, budget: rows})
        if most < width:
            program.variable(most + 1, n, {own: 1, budget: 1})
    for (texts, signature), held in of_signature.items():
        rows = len(signature)
        of = {**dict.fromkeys(held.values(), -1.0), budget: rows}
        program.variable(_stars(texts) * rows, many + made_up, of)  # hands
        for value in signature:
            if value in of_newcomers.get(texts, {}):  # beside who stays
                program.variable(0, fresh[value], {of_newcomers[texts][value]: -1, held[value]: 1})
    for texts, held in of_newcomers.items():
        shares = {value: program.row(-np.inf, 0) for value in held}
        for value, row in held.items():
            of = {shares[v]: (l if v == value else 0.0) - 1 for v in held}
            program.variable(_stars(texts), fresh[value], {row: -1, budget: 1, **of})
        more = {budget: 1.0, **dict.fromkeys(shares.values(), -1.0)}
        program.variable(_stars(texts), many + made_up, more)
    return program.solve(seconds)


def _starred(quasi: tuple[Any, ...], columns: Sequence[int]) -> tuple[Any, ...]:
    return tuple(None if j in columns else q for j, q in enumerate(quasi))


def _stars(texts: tuple[Any, ...]) -> int:
    return texts.count(None)


class _Linear:
    """A linear program of variables from 0 to their upper ends, which are finite."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.start, self.index, self.value = [0], list[int](), list[float]()

    def row(self, low: float, high: float) -> int:
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def variable(self, cost: float, upper: float, of: Mapping[int, float]) -> None:
        self.cost.append(cost)
        self.upper.append(upper)
        self.index += of
        self.value += of.values()
        self.start.append(len(self.index))

    def solve(self, seconds: float) -> Bound:
        """The bound that the prices found give."""
        cost, upper, low, high = (np.array(x, float) for x in (self.cost, self.upper, self.low, self.high))
        matrix = csc_matrix((self.value, self.index, self.start), shape=(low.size, cost.size))
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = cost.size, low.size
        model.col_cost_, model.col_lower_, model.col_upper_ = cost, np.zeros(cost.size), upper
        model.row_lower_, model.row_upper_ = low, high
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = self.start, self.index, self.value
        solver = highspy.Highs()
        for name, value in (
            ("output_flag", False), ("time_limit", seconds), ("solver", "ipm"), ("run_crossover", "off"),
        ):  # fmt: skip
            solver.setOptionValue(name, value)
        solver.passModel(model)
        solver.run()
        price = np.array(solver.getSolution().row_dual)
        price[np.isinf(low)] = np.minimum(price[np.isinf(low)], 0.0)  # of a row with a highest sum alone
        rows = np.where(price > 0, low, high)
        reduced = cost - matrix.T @ price
        found = float((price * np.where(price == 0, 0.0, rows)).sum() + np.minimum(reduced, 0.0) @ upper)
        return Bound(found, solver.getInfo().objective_function_value)
