"""The examples in the docstrings of the public calls are run."""

from __future__ import annotations

import doctest
import inspect

import pytest

import shoal


@pytest.mark.parametrize(
    "call", [shoal.gathering.gather, shoal.gathering.cellular, shoal.release], ids=lambda c: c.__name__
)
def test_the_example_of_a_docstring_runs(call):
    whole = inspect.unwrap(call)
    examples = doctest.DocTestFinder(recurse=False).find(whole, call.__name__, globs=dict(whole.__globals__))
    assert sum(len(e.examples) for e in examples) >= 2
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0
