"""A made-up census with the domain sizes of the l-diversity papers' OCC table: skewed and correlated, any size.

The 600,000 American census rows those papers measured on are not public.  This generator has their eight columns and
numbers of values; its shares are invented after what any census shows (most people are natives, few are widowed at
twenty), so nothing in it is anybody's record.
"""

from __future__ import annotations

import numpy as np

DOMAINS: dict[str, int] = {
    "Age": 79,
    "Gender": 2,
    "Race": 9,
    "MaritalStatus": 6,
    "BirthPlace": 56,
    "Education": 17,
    "WorkClass": 9,
    "Occupation": 50,
}
SENSITIVE = "Occupation"
_SLOTS = 1 << 12


def census_like(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Column name -> int32[rows] of codes 0 .. size - 1; sizes in ``DOMAINS``; Occupation is the sensitive column.

    Age stands for 17 .. 95 and Education for years of schooling, so their codes have an order.  Race, birth place,
    education, class of work and occupation depend on one another; no occupation is above a tenth of the rows.
    The same seed gives the same rows; a longer table does not begin with a shorter one.  O(rows).
    """
    rng = np.random.default_rng(seed)
    age_of = np.arange(79)
    by_age = np.minimum(age_of // 8, 8)  # nine bands

    age = _draw(rng, _age_shares()[None], np.zeros(rows, np.int32))
    gender = _draw(rng, np.array([[0.52, 0.48]]), np.zeros(rows, np.int32))
    race = _draw(rng, np.array([[0.81, 0.09, 0.04, 0.03, 0.012, 0.008, 0.005, 0.003, 0.002]]), np.zeros(rows, np.int32))
    marital = _draw(rng, _marital_shares(), by_age[age] * 2 + gender)
    birth = _draw(rng, _birth_shares(), race)
    native = (birth > 0).astype(np.int32)
    education = _draw(rng, _education_shares(), by_age[age] * 2 + native)
    work = _draw(rng, _work_shares(), education * 2 + (age > 48))
    occupation = _draw(rng, _occupation_shares(), (education * 9 + work) * 2 + gender)
    columns = (age, gender, race, marital, birth, education, work, occupation)
    return dict(zip(DOMAINS, columns, strict=True))


def _draw(rng: np.random.Generator, shares: np.ndarray, given: np.ndarray) -> np.ndarray:
    """One code per row from shares float[c, v], the line chosen by given int[n]: a gather from 4096 equal slots."""
    shares = shares / shares.sum(axis=1, keepdims=True)
    least = 1.0 / _SLOTS  # every value keeps at least one slot
    shares = (1 - least * shares.shape[1]) * shares + least
    middle = (np.arange(_SLOTS) + 0.5) / _SLOTS
    slots = np.stack([np.searchsorted(np.cumsum(line), middle) for line in shares])
    slots = np.minimum(slots, shares.shape[1] - 1).astype(np.int32)
    pick = rng.integers(0, _SLOTS, size=given.size, dtype=np.int32)
    return slots.reshape(-1)[given.astype(np.int32) * np.int32(_SLOTS) + pick]


def _bump(size: int, at: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((np.arange(size) - at) / width) ** 2)


def _age_shares() -> np.ndarray:
    years = np.arange(79)
    return np.where(years < 30, 1.0, np.exp(-(years - 30) / 18.0))


def _marital_shares() -> np.ndarray:
    """By age band and gender: married, divorced, never married, separated, widowed, spouse absent."""
    out = np.zeros((9, 2, 6))
    for band in range(9):
        for gender in range(2):
            single = float(np.exp(-band / 1.3))
            widowed = 0.01 + 0.04 * max(band - 3, 0) * (1.6 if gender == 0 else 0.6)
            out[band, gender] = [0.9 * (1 - single), 0.10 + 0.01 * band, 0.05 + single, 0.03, widowed, 0.015]
    return out.reshape(18, 6)


def _birth_shares() -> np.ndarray:
    """By race: mostly code 0 (native), the rest falling off from a place that depends on the race."""
    out = np.zeros((9, 56))
    for race in range(9):
        rank = (np.arange(56) - 1 - 6 * race) % 55
        out[race] = 1.0 / (1.0 + rank) ** 1.3
        out[race, 0] = 0.0
        out[race] *= (0.05 + 0.09 * race) / out[race].sum()
        out[race, 0] = 1 - out[race].sum()
    return out


def _education_shares() -> np.ndarray:
    """By age band and foreign birth: peaks at the end of high school and at a degree, lower for the old."""
    out = np.zeros((9, 2, 17))
    for band in range(9):
        for foreign in range(2):
            school = _bump(17, 8.5 - 0.3 * band, 0.6 + 0.8 * foreign)
            degree = _bump(17, 12.5, 0.8) * (0.15 if band == 0 else 0.6 - 0.04 * band)
            out[band, foreign] = school + degree + 0.004 + 0.02 * foreign
    return out.reshape(18, 17)


def _work_shares() -> np.ndarray:
    """By education and being over 65: private, three governments, two self-employed, unpaid, none, other."""
    out = np.zeros((17, 2, 9))
    for education in range(17):
        learned = education / 16
        for old in range(2):
            state = 0.01 + 0.10 * learned
            self_employed = 0.02 + 0.05 * learned
            none = 0.02 + 0.4 * old
            out[education, old] = [0.78, state, state, self_employed, 0.06, self_employed, 0.005, none, 0.01]
    return out.reshape(34, 9)


def _occupation_shares() -> np.ndarray:
    """By education, class of work and gender: a falling list common to all, tilted towards each one's trades."""
    common = 1.0 / (4.0 + np.arange(50)) ** 0.9
    out = np.zeros((17, 9, 2, 50))
    for education in range(17):
        tilt = _bump(50, 3 * ((education * 7) % 17), 5.0)
        for work in range(9):
            trade = _bump(50, (work * 11) % 50, 3.0)
            for gender in range(2):
                kind = np.where(np.arange(50) % 2 == gender, 1.3, 0.7)
                out[education, work, gender] = common * kind * (1 + 1.2 * tilt + 0.8 * trade)
    return out.reshape(-1, 50)
