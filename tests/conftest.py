"""Rules for every test: instances come from Hypothesis or a seeded generator, and no test measures time.

A busy machine draws slowly; that is no failure of what is tested, so Hypothesis may take as long as it needs.
"""

import os
import signal
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.amount import ALL, diagonal, thin

settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in what a shell runs behind itself, with all that starts there
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hashes and draws of pseudo-random numbers wrap around on purpose; without compilation NumPy says so of scalars.
WRAPPING = ("tables.lattice", "tables.near_groups", "gathering.pairs", "regions.areas", "tiles.guillotine")
# What takes longest comes first, so that no worker is left with it in the end.
LONGEST = ("tests/engines/spark", "tests/docs/test_examples.py", "tests/docs/test_start.py",
           "tests/test_nothing_more.py", "tests/conformance/test_every_method.py", "tests/workbench/test_walk.py",
           "tests/docs/test_guide_commands.py", "tests/tables/test_mondrian.py", "tests/population/test_models.py",
           "tests/test_pipeline.py", "tests/tables/test_models.py", "tests/test_release.py",
           "tests/tiles/test_split.py", "tests/publishing/test_clusters.py", "tests/gathering/test_degenerate.py",
           "tests/tables/test_bounds.py", "tests/experiments/test_l_diversity.py", "tests/regions/test_prices.py",
           "tests/tables/test_global_recoding.py", "tests/gathering/test_cellular.py",
           "tests/engines/test_parts.py")  # fmt: skip
ON_SPARK = ("tests/engines/", "tests/judge/test_elsewhere.py")  # where tests named so begin a session


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock that searches go by moves a hundredth of a second at each look: budgets end, on any machine alike."""
    looks = count(100)
    monkeypatch.setattr("shoal.clock._stood", 0.0)
    monkeypatch.setattr("shoal.clock.time", SimpleNamespace(monotonic=lambda: next(looks) / 100))


def pytest_configure(config: pytest.Config) -> None:
    """Without compilation every other overflow is an error."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        for name in WRAPPING:
            rule = f"ignore:overflow encountered in scalar:RuntimeWarning:shoal.kernels.{name}"
            config.addinivalue_line("filterwarnings", rule)


def together(test: str) -> str:
    """Which tests one worker runs: those of a file, so that it alone compiles their kernels, and all on Spark."""
    file, _, name = test.partition("::")
    return "tests/engines/spark" if file.startswith(ON_SPARK) and "spark" in file + name else file


def beside_the_diagonal(items: list[pytest.Item]) -> set[pytest.Item]:
    """The cases of tests marked ``diagonal`` that an ordinary run leaves out."""
    cases: dict[str, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("diagonal"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    omitted: set[pytest.Item] = set()
    for own in cases.values():
        own.sort(key=lambda item: item.nodeid)  # their order is drawn
        kept = diagonal([item.callspec.params for item in own])
        omitted |= {item for i, item in enumerate(own) if i not in kept}
    return omitted


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest first, the others by how many they are, as they were drawn where these are equal."""
    for item in items:
        thin(getattr(item, "function", None))
    if not ALL:
        omitted = beside_the_diagonal(items)
        items[:] = [item for item in items if item not in omitted]
        config.hook.pytest_deselected(items=list(omitted))
    rank = {name: i for i, name in enumerate(LONGEST)}
    place = {item: together(item.nodeid) for item in items}
    many: dict[str, int] = {}
    for name in place.values():
        many[name] = many.get(name, 0) + 1
    items.sort(key=lambda item: (rank.get(place[item], len(rank)), -many[place[item]]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile``: in the order above."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduler(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return Scheduler(config, log)
