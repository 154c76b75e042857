"""The docstrings of the public names are plain English, and their examples run."""

import doctest
import inspect
import re
import sys

import pytest

import shoal
from tests.docs.test_words import retired

CALLS = (
    shoal.anonymize,
    shoal.audit,
    shoal.verify,
    shoal.Policy,
    shoal.release,
    shoal.tables.group,
    shoal.gathering.gather,
    shoal.gathering.cellular,
    shoal.regions.merge,
    shoal.tiles.split,
    shoal.labels.cover,
    shoal.intervals.cut,
)


@pytest.mark.parametrize("call", [c for c in CALLS if c not in (shoal.Policy, shoal.release)], ids=lambda c: c.__name__)
def test_a_docstring_says_what_is_refused_what_it_takes_and_where_it_comes_from(call):
    text = inspect.getdoc(call)
    for part in ("Raises|raises", r"O\(", r"Sources?\b|docs/"):
        assert re.search(part, text), part


@pytest.mark.parametrize("call", CALLS, ids=lambda c: c.__name__)
def test_the_example_of_a_docstring_runs(call):
    whole = inspect.unwrap(call)
    examples = doctest.DocTestFinder(recurse=False).find(
        whole, call.__name__, globs=dict(sys.modules[whole.__module__].__dict__)
    )
    assert sum(len(e.examples) for e in examples) >= 2
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0


NAMESPACES = [getattr(shoal, name) for name in shoal.__all__ if inspect.ismodule(getattr(shoal, name))]
PUBLIC = {name: getattr(shoal, name) for name in shoal.__all__ if callable(getattr(shoal, name))} | {
    f"{space.__name__}.{name}": held
    for space in NAMESPACES
    for name, held in vars(space).items()
    if not name.startswith("_") and callable(held) and held.__module__.startswith(space.__name__)
}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_docstrings_of_a_public_name_have_no_retired_word(name: str) -> None:
    one = PUBLIC[name]
    members = vars(one).items() if inspect.isclass(one) else ()
    texts = {name: one, **{f"{name}.{member}": held for member, held in members if not member.startswith("_")}}
    found = {at: retired((inspect.getdoc(held) or "").split("\nExamples")[0]) for at, held in texts.items()}
    assert not {at: words for at, words in found.items() if words}
