"""Long calls show a bar in a notebook and their steps in the log; elsewhere, and inside one another, nothing."""

import inspect
import logging
import sys
import time
from io import StringIO
from types import ModuleType, SimpleNamespace

import polars as pl
import pytest

import shoal
from shoal import watching

TABLE = pl.DataFrame({"age": [31, 31, 47, 47] * 5, "note": ["MARKER"] * 20})
ASKED = {"quasi_identifiers": ["age"], "sensitive": ["note"], "k": 5, "effort": "fast"}


class _Notebook:
    """A stand-in for IPython's display: what was shown, and then put in its place."""

    def __init__(self):
        self.shown = []

    def display(self, data, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append(data)
        return SimpleNamespace(update=lambda data, raw: self.shown.append(data))


@pytest.fixture
def notebook(monkeypatch):
    found, package, module = _Notebook(), ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=None)
    package.display, module.display = module, found.display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(watching, "PATIENCE", 0.02)
    monkeypatch.setattr(watching, "BEAT", 0.02)
    return found


@watching.watched
def _slow(seen=lambda _: time.sleep(0.02) or True, progress=lambda _what, _share: None):
    """Five steps, each as long as it takes until that has been seen."""
    for i in range(5):
        progress("counting <rows>", i / 5)
        while not seen(i):
            time.sleep(0.001)
    return "done"


@watching.watched
def _outer(seen):
    return _slow(seen)


def test_a_bar_comes_moves_and_leaves(notebook):
    def seen(i):
        return notebook.shown and (not i or f'value="{i / 5:.3f}"' in notebook.shown[-1]["text/html"])

    assert _slow(seen) == "done"
    first, *_, before, last = notebook.shown
    assert "<progress max=1" in first["text/html"]
    assert 'value="0.' in before["text/html"]
    assert "&lt;rows&gt;" in before["text/html"]
    assert "left" in before["text/plain"]
    assert last == {"text/html": "", "text/plain": ""}


def test_a_bar_leaves_with_an_error_too(notebook):
    @watching.watched
    def broken():
        while not notebook.shown:
            time.sleep(0.001)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert notebook.shown[-1] == {"text/html": "", "text/plain": ""}


def test_inner_calls_and_own_callbacks_have_no_bar(notebook):
    _slow(progress=lambda _what, _share: None)
    assert notebook.shown == []
    _outer(lambda i: len(notebook.shown) > i)
    assert all("counting" not in shown["text/plain"] for shown in notebook.shown)


def test_no_bar_outside_a_notebook_or_below_the_wait(notebook, monkeypatch):
    monkeypatch.setattr(watching, "PATIENCE", 1e6)
    _slow()
    monkeypatch.setattr(watching, "PATIENCE", 0.0)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    _slow()
    assert notebook.shown == []


def test_signatures_stay(notebook):
    assert "quasi_identifiers" not in inspect.signature(shoal.anonymize).parameters  # settings, by keyword
    assert list(inspect.signature(shoal.labels.cover).parameters)[:3] == ["sizes", "k", "method"]


def test_the_log_names_steps_and_no_value(caplog):
    with caplog.at_level(logging.INFO, logger="shoal"):
        shoal.anonymize(TABLE, **ASKED)
        shoal.labels.cover([3, 4, 5, 6], 6)
    said = [r.getMessage().partition(" took ")[0] for r in caplog.records if r.name == "shoal"]
    assert said == ["reading", "counting", "solving", "recoding", "anonymize", "cover"]
    assert "MARKER" not in caplog.text
    assert "47" not in [word for r in caplog.records for word in r.getMessage().split()]


def test_what_is_compiled_is_told_and_not_printed_beside(monkeypatch):
    told, heard, ear = [], [], logging.Handler()
    log = logging.getLogger("shoal.compiling")
    monkeypatch.setattr(ear, "emit", heard.append)
    monkeypatch.setattr(log, "handlers", [ear])
    with watching.compiling(lambda: told.append(1)):
        log.info("compiling something, once per machine")
    assert told == [1]
    assert not heard
    assert not log.filters


def test_a_terminal_is_told_the_share_done_and_the_time_left(monkeypatch):
    from shoal.cli.common import begin, working

    begin([], [])  # a command of another test may have asked for lines of JSON
    now = [0.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    screen = StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    with working("merging 9 areas"):
        watching.done(0.04)
        now[0] = 30.0
        watching.done(0.25)
    assert "25% of the search done, about 90 s left in this step" in screen.getvalue()
