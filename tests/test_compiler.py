"""The compiler of kernels changes numba's translation: values, references, and refusals stay those of numba."""

import sys
from typing import NamedTuple

import numpy as np
import pytest
from llvmlite import ir
from numba import njit as numbas

from shoal.kernels import INNER, LEAN_INNER, STEP, njit
from shoal.kernels.compiler import FoldingBuilder, drop_unused
from tests.commands import python

KINDS = ["int8", "uint64", "float32"]


class Place(NamedTuple):
    one: np.ndarray
    two: np.ndarray
    most: int


class Outer(NamedTuple):
    inner: Place
    flag: bool
    pair: tuple


def one_place(a, b, seen, i, j, by):
    before = a[i] + b[i, j]
    seen[j] = not seen[i]
    b[j, i] += by
    a[-1] = b[-1, 0] - by
    a[j] = i
    return before, a.shape[0], b.shape, b.size, a[0], b[0, 1]


def of_tuple(outer, i):
    inner, pair = outer.inner, outer.pair
    total = inner.one[i] + inner.two[i, -1] + pair[0][i] * pair[1]
    if outer.flag:
        inner.one[i] = inner.most
    return total, pair[-2][0], inner.two.shape[1]


def one_or_other(one, two, n):
    """Arrays from arguments, and from elsewhere, in the same variable."""
    own, other = one, two
    for i in range(n):
        own, other = other, own
        if i % 3 == 2:
            own = own[::-1]
        if i % 5 == 4:
            other = other + i
    return own, other, one


def either(place, n):
    """An array that is always one of an argument's, but not always the same."""
    total, last = 0.0, place.one
    for i in range(n):
        held = place.one
        if i % 3:
            held = last
        total += held[i % 4]
        if i % 2:
            last = place.two
    return total, last


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [INNER, LEAN_INNER], ids=["counts", "lean"])
def test_elements_are_those_of_numba(kind: str, options: dict) -> None:
    """For every kind of number, layout of an array, and kind and sign of an index."""
    kernel, expected = njit(**{**options, "cache": False})(one_place), numbas(one_place)
    outer = njit()(lambda a, b, seen, i, j, by: kernel(a, b, seen, i, j, by))
    random = np.random.default_rng(5)
    square = random.integers(0, 100, (8, 8)).astype(kind)
    by = np.dtype(kind).type(1)
    for copied in (lambda a: a[:4, :4].copy(), lambda a: a[:4, :4].copy(order="F"), lambda a: a.copy()[::2, ::-2]):
        for index in (np.int64, np.int32, np.uint8):
            for i, j in ((0, 3), (2, 1), (-1, -4), (3, -2))[: 2 if index is np.uint8 else 4]:
                mine, theirs = ((square[0, :4].copy(), copied(square), np.zeros(4, bool)) for _ in "ab")
                got = outer(*mine, index(i), index(j), by)
                assert got == expected(*theirs, index(i), index(j), by)
                assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_fields_of_nested_tuples_are_those_of_python() -> None:
    kernel = njit(**{**INNER, "cache": False})(of_tuple)
    outer = njit()(lambda given, i: kernel(given, i))
    for flag in (False, True):
        for i in (0, 2, -1):
            given = [
                Outer(Place(np.arange(4.0), np.arange(12).reshape(4, 3)[:, ::2], 7), flag, (np.arange(5), 3))
                for _ in "ab"
            ]
            assert outer(given[0], i) == of_tuple(given[1], i)
            assert np.array_equal(given[0].inner.one, given[1].inner.one)


def test_references_are_counted_where_an_array_may_end() -> None:
    """Neither is an array freed that is still used, nor one kept that nobody has."""
    kernel = njit()(one_or_other)
    for n in (0, 1, 3, 5, 30):
        one, two = np.arange(6), np.arange(6) + 10
        before = sys.getrefcount(one), sys.getrefcount(two)
        got, wanted = kernel(one, two, n), one_or_other(one, two, n)
        assert all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True))
        del got, wanted
        assert (sys.getrefcount(one), sys.getrefcount(two)) == before


def test_a_variable_with_several_arrays_of_arguments_has_the_last() -> None:
    kernel = njit()(either)
    for n in (0, 1, 2, 7, 12):
        place = Place(np.arange(4.0), np.arange(4.0) + 10, 3)
        before = sys.getrefcount(place.one), sys.getrefcount(place.two)
        got, wanted = kernel(place, n), either(place, n)
        assert got[0] == wanted[0]
        assert np.array_equal(got[1], wanted[1])
        del got, wanted
        assert (sys.getrefcount(place.one), sys.getrefcount(place.two)) == before


def test_no_memory_is_kept() -> None:
    code = (
        "import os\nos.environ['NUMBA_NRT_STATS'] = '1'\nimport numpy as np\n"
        "from numba.core.runtime import rtsys\nfrom tests.test_compiler import njit, one_or_other\n"
        "kernel = njit()(one_or_other)\n"
        "def open_ones():\n    now = rtsys.get_allocation_stats()\n    return now.mi_alloc - now.mi_free\n"
        "kernel(np.arange(6), np.arange(6), 9)\nbefore = open_ones()\n"
        "for _ in range(50):\n    kernel(np.arange(6), np.arange(6), 9)\n"
        "assert rtsys.get_allocation_stats().mi_alloc > 50\nprint(open_ones() - before)"
    )
    assert python("-c", code).said.strip() == "0"


def test_bounds_are_checked_if_asked() -> None:
    code = (
        "import os\nos.environ['NUMBA_BOUNDSCHECK'] = '1'\nimport numpy as np\nfrom shoal.kernels import njit\n"
        "@njit()\ndef at(a, i):\n    return a[i]\n@njit()\ndef put(a, i):\n    a[i] = 1\n"
        "for kernel in (at, put):\n    try:\n        kernel(np.zeros(3), 5)\n"
        "    except IndexError:\n        print('refused')\n"
    )
    assert python("-c", code).said.split() == ["refused"] * 2


def test_functions_in_functions_and_generators_are_compiled() -> None:
    @njit()
    def squares(n):
        return np.array([i * i for i in range(n)])

    @njit()
    def steps(a):
        for i in range(a.size):
            yield a[i] + 1

    @njit()
    def total(a):
        found = 0
        for each in steps(a):
            found += each
        return found

    assert squares(4).tolist() == [0, 1, 4, 9]
    assert total(np.arange(4)) == 10


def raised(a, i, by):
    last = a[i]
    for _ in range(2):
        if by > last:
            last = by
        by = last - 1
    a[i] = last
    return by


def test_an_inlined_step_has_the_variables_of_its_caller_and_its_own() -> None:
    step = njit(**{**STEP, "cache": False})(raised)

    def summed(a, n):
        last, by = 0, n
        for i in range(a.size):
            if i % 2:
                last = by
            by = step(a, i, last + i)
            last += by
        return last, by

    lean = njit(**{**LEAN_INNER, "cache": False})(summed)
    kernel = njit()(lambda a, n: lean(a, n))
    mine, theirs = np.arange(9) % 4, np.arange(9) % 4
    got, step = kernel(mine, 5), raised
    assert got == summed(theirs, 5)
    assert mine.tolist() == theirs.tolist()


def test_calculations_with_whole_arrays_and_dictionaries_are_those_of_numba() -> None:
    def found(a, n):
        known = {
            1: 2.5, 2: 0.5, 3: n, 4: n, 5: n, 6: n, 7: n, 8: n, 9: n, 10: n,
            11: n, 12: n, 13: n, 14: n, 15: n, 16: n, 17: n, 18: n, 19: n, 20: n,
        }  # fmt: skip
        known[n] = 7.0
        above = (a + known[1]) * a - np.minimum(a, n)
        return above, -above > known[n], np.array([known[2], n]), len(known)

    kernel, expected = njit()(found), numbas(found)
    for n in (1, 3):
        got, wanted = kernel(np.arange(5.0), n), expected(np.arange(5.0), n)
        assert all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True))


def test_a_part_of_a_packed_tuple_is_what_was_put_there() -> None:
    number = ir.IntType(64)
    pair = ir.LiteralStructType([number, ir.LiteralStructType([number, number])])
    function = ir.Function(ir.Module(), ir.FunctionType(number, [number, number, pair]), "f")
    builder = FoldingBuilder(function.append_basic_block())
    one, two, given = function.args
    inner = builder.insert_value(builder.insert_value(pair.elements[1](ir.Undefined), one, 0), two, 1)
    whole = builder.insert_value(builder.insert_value(given, two, 0), inner, 1)
    assert builder.extract_value(whole, 0) is two
    assert builder.extract_value(whole, (1, 0)) is one
    assert builder.extract_value(whole, 1) is inner
    deep = builder.insert_value(given, one, (1, 0))
    kept = builder.extract_value(deep, 1)
    assert kept.operands[0] is deep  # a part of it was put there, and the rest was given
    assert builder.extract_value(deep, (1, 1)).operands[0] is given
    last = builder.load(builder.alloca(number))
    builder.ret(builder.add(last, builder.extract_value(kept, 0)))
    drop_unused(function)
    left = [step.opname for step in function.blocks[0].instructions]
    assert left == ["insertvalue", "extractvalue", "alloca", "load", "extractvalue", "add", "ret"]
