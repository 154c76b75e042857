"""Checks of arguments that all problems share: numbers, words, lists, counts, coordinates, seeds, and effort."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

import numpy as np

from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.model.cards import several
from shoal.model.notation import numerals, refuse_notations
from shoal.model.settings import EFFORTS, named_elsewhere

P = ParamSpec("P")
R = TypeVar("R")
FAR = 1e150  # beyond this, squares of coordinates overflow a float, and below its inverse, they are 0


def number(name: str, value: Any, says: str, fits: Callable[[float], bool]) -> float:
    """The value as a finite float that fits; PolicyError ``NAME=VALUE: says`` for anything else, such as text or a
    bool."""
    found = _real(value)
    if found is None or not fits(found):
        raise PolicyError(f"⟨{name}={value!r}⟩: {says}")
    return found


def whole_number(name: str, value: Any, says: str = "a whole number of at least 1", least: int = 1) -> int:
    """The value as an int of any length, at least ``least``; 3.0 counts as 3; PolicyError ``NAME=VALUE: says``
    otherwise."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        exact: int | None = int(value)
    else:
        found = _real(value)
        exact = int(found) if found is not None and found.is_integer() else None
    if exact is None or exact < least:
        raise PolicyError(f"⟨{name}={value!r}⟩: {says}")
    return exact


def _real(value: Any) -> float | None:
    """The float of a real number or a zero-dimensional array; None for other types and for numbers that are not
    finite."""
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        found = float(value)
    except OverflowError:  # an integer above the largest float
        return None
    return found if math.isfinite(found) else None


def seed_of(value: Any) -> int | None:
    """A seed as an int of at least 0; None: fresh randomness; PolicyError for anything else."""
    if value is None:
        return None
    return whole_number("seed", value, "a seed is a whole number from 0; leave it out for fresh randomness", least=0)


def coordinates(values: Any, what: str, decimal: Mapping[str, str] | None = None) -> np.ndarray:
    """The values as float64 of the same shape.

    decimal  column of a pandas or Polars frame whose numbers are texts -> its decimal mark

    Missing and infinite values stay, and the caller counts them. Raises InputError, without a value, for values that
    are not real numbers, exceed 1e150, or are all below 1e-150. For a frame, it names the column and counts the rows.
    O(n) for n values.
    """
    marks = mapping("decimal", decimal)
    refuse_notations({}, marks)
    in_memory = hasattr(values, "to_numpy")
    if not in_memory and not hasattr(values, "__array__") and hasattr(type(values), "columns"):
        raise InputError(
            f"{what} are one {type(values).__name__}, whose rows are not in memory; pass a pandas or Polars frame, "
            "such as relation.pl() of DuckDB, frame.toPandas() of Spark, or frame.collect() of Polars"
        )
    if hasattr(values, "get_coordinates"):
        raise InputError(f"the {what} have geometries; pass their coordinates: frame.get_coordinates()")
    names = list(getattr(values, "columns", ())) if in_memory else []
    if marks and not names:
        raise PolicyError(
            f"⟨decimal=⟩ names columns of a pandas or Polars frame, and the {what} are none; leave it out"
        )
    if again := next((n for i, n in enumerate(names) if n in names[:i]), None):
        raise InputError(f"two columns of {what} have the name {str(again)!r}; rename one of them, or leave it out")
    for name in marks:
        if name not in map(str, names):
            raise PolicyError.unknown("column (⟨decimal⟩)", name, [str(n) for n in names])
    if names:
        # in a column of pandas a missing value becomes NaN; in a whole frame it stays an object that is no number
        columns = [numbers_of(_array(values[name]), str(name), marks.get(str(name))) for name in names]
        values = np.column_stack(columns)
    elif in_memory:
        values = _array(values)
    try:
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise TypeError("complex")
        found = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} must be numbers, as many for each record") from None
    for j, column in enumerate(found.T if found.ndim == 2 else [found]):
        if measurable(column[np.isfinite(column)]):
            continue
        name = repr(str(names[j])) if names else f"{j + 1} of the {what}"
        subject = f"column {name} holds" if found.ndim == 2 else f"{what} hold"
        if (np.abs(column[np.isfinite(column)]) > FAR).any():
            raise InputError(
                f"{subject} numbers beyond 1e150, whose distances no float holds; use a larger unit, or leave out the "
                "rows if such a number stands for a missing one"
            )
        raise InputError(f"{subject} no numbers but those below 1e-150, whose squares are 0; use a smaller unit")
    return found


def _array(held: Any) -> np.ndarray:
    """A frame or a column as an array. Polars has integers of 128 bits, numpy has none."""
    wide = str(getattr(held, "dtype", "")) in ("Int128", "UInt128")
    return np.asarray((held.cast(float) if wide else held).to_numpy())


def measurable(line: np.ndarray) -> bool:
    """Whether floats hold the squares of the distances of finite numbers, and don't take all of them for 0."""
    most = float(np.abs(line).max(initial=0.0))
    return most <= FAR and not 0 < most < 1 / FAR


NEAREST = 1e-290  # a smaller distance than this has no inverse among floats, or a weight would leave none


def spanned(low: float, high: float) -> bool:
    """Whether the distance of two numbers is one by which others can be divided, or they are equal."""
    return low == high or NEAREST <= high - low < math.inf


def numbers_of(values: np.ndarray, name: str, mark: str | None) -> np.ndarray:
    """A column of a frame as numbers, a missing value as NaN; InputError for dates and for what is no number.

    values  any[n]; complex numbers stay what they are
    mark    decimal mark of its texts; None: they are written as Python writes numbers

    O(n), and O(distinct texts) for reading texts with a mark.
    """
    if values.dtype.kind in "mM":
        raise InputError(f"column {name!r} holds dates or durations; turn them into numbers of one unit, such as days")
    if values.dtype.kind == "c":
        return values
    if mark is None or values.dtype.kind not in "OUT":
        with suppress(TypeError, ValueError, OverflowError):
            return values.astype(np.float64)
    given = values.tolist()
    read = given if mark is None else numerals(given, mark)
    found = [_float(text if isinstance(value, str) else value) for text, value in zip(read, given, strict=True)]
    bad = np.array([x is None and not missing(value) for x, value in zip(found, given, strict=True)])
    if bad.any():
        raise no_numbers(name, bad, given, mark)
    return np.array([math.nan if x is None else x for x in found])


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def no_numbers(name: str, bad: np.ndarray, values: Iterable[Any], mark: str | None, marks: bool = True) -> InputError:
    """The refusal of a column that has values which are no finite numbers.

    bad     bool[n]: the rows with such a value, at least one
    values  any[n]: the column
    mark    its decimal mark, if one is named;  marks: whether the caller takes one
    """
    texts = [str(v).strip() for v, wrong in zip(values, bad.tolist(), strict=True) if wrong and not missing(v)]
    texts = [text for text in texts if text]
    if bad.all() and not texts:
        return InputError(f"column {name!r} is empty; name a column of numbers")
    hint = f"none has the decimal mark {mark!r}" if mark else "name a column of numbers"
    mend = "correct these values or remove the rows"
    if mark is None and texts and all(re.fullmatch(r"-?\d+,\d+", text) for text in texts):
        named = f", or name its decimal mark (⟨decimal[{name!r}] = ','⟩)" if marks else ""
        hint = mend = f"write decimal points for its commas{named}"
    if bad.all():
        return InputError(f"column {name!r} holds no numbers in any row; {hint}")
    marked = "" if mark is None else f" with the decimal mark {mark!r}"
    return InputError(
        f"column {name!r} has no finite number{marked} in {several(int(bad.sum()), 'row')}, first in row "
        f"{int(bad.argmax()) + 1:,}; {mend}"
    )


def array_of(values: Any, what: str, says: str) -> np.ndarray:
    """The values as an array; InputError, without a value, for rows of different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{what} holds rows of different lengths; give {says}") from None


def known(what: str, value: Any, words: Iterable[str], meanings: Mapping[str, str] | None = None) -> str:
    """The value, if it is one of the words; otherwise PolicyError with the most similar word or with all meanings."""
    words = list(words)
    if not isinstance(value, str) or value not in words:
        shown = isinstance(value, (str, bool, int, float))  # the text of a frame holds its rows
        raise PolicyError.unknown(what, str(value) if shown else type(value).__name__, words, meanings)
    return value


def no_effect(setting: str, *needed: str) -> PolicyError:
    """The refusal of a setting that nothing reads. needed: the settings of which one would read it."""
    say = "say that too" if len(needed) == 1 else "say one of them"
    return PolicyError(f"⟨{setting}⟩ has no effect without {' or '.join(needed)}; {say}, or leave it out")


def too_few(what: str, total: int, k: int, group: str) -> InfeasibleError:
    """The refusal of k records in each group, where all of them are fewer."""
    way = f"lower k to at most {total}, or leave the column out" if total else "leave the column out"
    return InfeasibleError(f"all {what} together count {total}, below k = {k}: no {group} of k exists; {way}")


def missing(value: Any) -> bool:
    """Whether a value is None, NaN, or pandas' NA: what stands in a table where nothing is known."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # only pandas' NA compares as neither true nor false
        return True


def each_of(name: str, values: Any, n: int) -> list[Any] | None:
    """A list of n values, one for each area, with None where one is missing; None if no values are given; InputError
    for anything else."""
    if values is None:
        return None
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"{name} is one {type(values).__name__}; give one value for each of {n} areas")
    given = values.tolist() if hasattr(values, "tolist") else list(values)
    if not isinstance(given, list):
        given = [given]
    if len(given) != n:
        raise InputError(f"{name} has {len(given)} values; give one for each of {n} areas")
    try:
        hash(tuple(given))
    except TypeError:
        raise InputError(f"{name} holds lists or mappings; give one number or text for each of {n} areas") from None
    return [None if missing(value) else value for value in given]


def column_names(what: str, given: Any) -> tuple[str, ...]:
    """One or several column names as a tuple; PolicyError for anything else."""
    if isinstance(given, str):
        return (given,)
    if hasattr(given, "columns"):  # a frame, whose items may be its columns with their values
        raise PolicyError(f"⟨{what}⟩ is one {type(given).__name__}; name the columns, as in ⟨{what}=[...]⟩")
    try:
        names = tuple(given)
    except TypeError:
        raise PolicyError(f"⟨{what}={given!r}⟩: give a list of column names") from None
    for name in names:
        if not isinstance(name, str):
            raise PolicyError(
                f"⟨{what}⟩ holds {name!r}, and a column name is text; rename the columns, in pandas with "
                "df.columns.astype(str), or with df.columns.map('_'.join) if there are several levels"
            )
    return names


def mapping(what: str, given: Any) -> Mapping[str, Any]:
    """The given mapping, empty for None; PolicyError for anything else."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    kind = type(given).__name__
    # a frame of others may have columns of these names as attributes
    ours = what.endswith("policy") and type(given).__module__.startswith("shoal.")
    held = next((own for own in ("settings", "policy") if ours and hasattr(given, own)), None)
    if held is not None:  # proposed roles, or a release
        call = "()" if held == "settings" else ""
        raise PolicyError(f"{what} is one {kind}; pass what it holds, {kind.lower()}.{held}{call}")
    raise PolicyError(f"{what} is one {kind}; give a mapping from names to values")


def keywords(what: str, given: Iterable[str], names: Collection[str]) -> None:
    """PolicyError for the first name that isn't one of those available, with the one that is meant."""
    for name in given:
        if name in names:
            continue
        meant = named_elsewhere(name)
        if meant in names:
            article = "an" if what[:1] in "aeio" else "a"
            raise PolicyError(f"{name!r} is not {article} {what}; in shoal this is {meant!r}")
        raise PolicyError.unknown(what, name, names)


def suggesting(call: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function so that it refuses an unknown keyword with the name that is meant.

    If it has ``**more: Unpack[Keywords]``, those of the TypedDict are available too; ``**more: Any`` accepts any.
    """
    taken = signature(call).parameters.values()
    by_name = [p for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    own = [p.name for p in by_name if p.name not in ("self", "cls")]
    more = next((p for p in taken if p.kind == p.VAR_KEYWORD), None)
    if more is not None and "Unpack" not in str(more.annotation):
        return call

    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs.keys() <= {*own}:
            typed = [] if more is None else get_args(get_type_hints(call)[more.name])[0].__annotations__
            keywords(f"argument of {call.__qualname__.removesuffix('.__init__')}", kwargs, [*own, *typed])
        return call(*args, **kwargs)

    return run


class FrozenMapping(dict[Any, Any]):
    """A checked mapping that can't be changed. It equals a dict with the same content, also in JSON and in a pickle."""

    def _refuse(self, *_given: Any, **_more: Any) -> Any:
        raise TypeError("this value is frozen; make a new one with other settings")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenMapping, (dict(self),)


_FRACTION = "{what} number {number} is not a whole number; counts of records are needed"  # never the value
WIDE = 1 << 62  # from this total on, counts are Python integers instead of int64


def whole(values: Iterable[Any], what: str = "size") -> np.ndarray:
    """Counts as int64[n], or as object[n] of Python integers if their total needs it; InputError otherwise."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        given = values
    else:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"the {what}s are one {type(values).__name__}; pass one list of whole numbers")
        listed = [*values]
        try:
            given = np.asarray(listed)
        except ValueError:
            given = np.array(listed, dtype=object)
        if given.dtype.kind == "f":
            given = np.array(listed, dtype=object)  # a list of floats may contain integers that a float can't represent
    if given.ndim != 1:
        raise InputError(f"the {what}s have {given.ndim} dimensions; pass one list of whole numbers")
    if given.dtype.kind == "f":
        wrong = ~(np.isfinite(given) & (given == np.floor(given)))
        if wrong.any():
            raise InputError(_FRACTION.format(what=what, number=int(wrong.argmax()) + 1))
        given = (
            given.astype(np.int64) if (np.abs(given) < 2.0**53).all() else np.array([*map(int, given)], dtype=object)
        )
    elif given.dtype.kind not in "iu":
        given = np.array([_whole(v, what, i) for i, v in enumerate(given.tolist(), 1)], dtype=object)
    if not len(given):
        return np.zeros(0, np.int64)
    least, most = int(given.min()), int(given.max())
    if least < 0:
        raise InputError(f"{what} number {int(given.argmin()) + 1} is negative; a count is at least 0")
    if most * len(given) < WIDE or sum(given.tolist()) < WIDE:
        return given.astype(np.int64)
    return np.array(given.tolist(), dtype=object)


def _whole(value: Any, what: str, number: int) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise InputError(_FRACTION.format(what=what, number=number))


def threshold(k: Any) -> int:
    """k as an int of at least 1, or PolicyError."""
    return whole_number("k", k)


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    name     "fast": the constructive method, and for small tables a short search; "balanced": a longer search;
             "thorough": a much longer one. Steps are counted, so a seed reproduces the answer. "seconds": a search
             until a time limit
    seconds  wall-clock budget for name "seconds", from the moment the method starts
    """

    name: str = "balanced"
    seconds: float | None = None

    @classmethod
    def of(cls, effort: str | float | Effort) -> Effort:
        """The effort of a name or a number of seconds; PolicyError for anything else."""
        if isinstance(effort, Effort):
            return effort
        if isinstance(effort, str) and effort in EFFORTS:
            return cls(effort)
        try:
            seconds = float(effort)
        except (TypeError, ValueError, OverflowError):
            raise PolicyError.unknown("effort (nor a number of seconds)", str(effort), EFFORTS) from None
        if isinstance(effort, bool) or not 0 < seconds < float("inf"):
            raise PolicyError(f"effort {effort!r}: seconds are a number above 0; or one of {', '.join(EFFORTS)}")
        return cls("seconds", seconds)

    @property
    def recorded(self) -> str | float:
        """The effort as a caller writes it: a name, or a number of seconds."""
        return self.name if self.seconds is None else self.seconds

    def among(self, named: Mapping[str, float]) -> float:
        """The number of seconds, or the value for the effort's name in ``named``."""
        return named[self.name] if self.seconds is None else self.seconds


# arguments that define how an answer is found, not the question
HOW = ("method", "effort", "seed", "order", "rule", "improve")


def drawn() -> int:
    """A random seed for a call without one. The certificate records it, so the search can be repeated."""
    return secrets.randbelow(2**32)


def recorded(call: Callable[P, R]) -> Callable[P, R]:
    """Decorate a solver so that its certificate records method, effort, and seed in ``details["run"]``."""
    asked = signature(call)
    names = [name for name in HOW if name in asked.parameters]

    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = asked.bind(*args, **kwargs)
        except TypeError as wrong:  # the message that Python writes if it calls the function itself
            raise TypeError(f"{call.__name__}() {wrong}") from None
        given.apply_defaults()
        if "seed" in names and given.arguments["seed"] is None and given.arguments.get("order", "random") == "random":
            given.arguments["seed"] = drawn()
        answer: Any = call(*given.args, **given.kwargs)
        how = {name: given.arguments[name] for name in names}
        if "effort" in how:
            how["effort"] = Effort.of(how["effort"]).recorded
        proof = answer.certificate
        return replace(answer, certificate=replace(proof, details={**proof.details, "run": how}))  # type: ignore[no-any-return]

    return run
