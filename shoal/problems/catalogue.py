"""The catalogue of all problems: their algorithms by name, how answers are released and judged, and the words for them.

An entry "module:function" is imported when it is first used, so listing names is cheap. All algorithms of one problem
have one signature, which that problem's docstring states. Algorithms listed here can be selected by name, and are
tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any, NamedTuple

from shoal.errors import PolicyError

__all__ = ["CATALOGUE", "Problem", "algorithm", "crosswalk_problems", "names", "resolved"]


class Problem(NamedTuple):
    """One problem. Tables have only methods, because the pipeline releases their answers.

    methods     name -> "module:function"
    answers     the classes of its answers: "module:class"
    release     makes a ``shoal.publishing.crosswalks.crosswalk.Crosswalk`` of an answer: "module:function"
    judge       returns findings about a written release, ``shoal.publishing.sources.WrittenRelease``: "module:function"
    one, group  words for an item and for a group of items
    native      whether the frames of its release are of the input's kind; otherwise they are Polars frames
    proofs      the page of the guide, with its section, that proves the bounds
    """

    methods: Mapping[str, str] = {}
    answers: tuple[str, ...] = ()
    release: str = ""
    judge: str = ""
    one: str = ""
    group: str = ""
    native: bool = False
    proofs: tuple[str, str] = ("", "")

    def answered(self, answer: Any) -> bool:
        """Whether an answer belongs to this problem. A class that was never imported has no instances."""
        there = [where for where in self.answers if where.partition(":")[0] in modules]
        return any(isinstance(answer, resolved(where)) for where in there)


CLUSTERS = Problem(
    answers=("shoal.problems.gathering.gather:Gathering",),
    release="shoal.publishing.crosswalks.clusters:clusters",
    judge="shoal.publishing.sources:clusters",
    one="record",
    group="cluster",
    native=True,
    proofs=("docs/gathering.md", "The methods and what is proved of them"),
)

CATALOGUE: dict[str, Problem] = {
    "tables": Problem(
        methods={
            "auto": "shoal.problems.tables.auto:auto",
            "improve": "shoal.problems.tables.search.neighborhood:improve",
            "cascade": "shoal.problems.tables.search.cascade:cascade",
            "three_phase": "shoal.problems.tables.three_phase:three_phase",
            "hilbert": "shoal.problems.tables.methods.hilbert:hilbert",
            "three_phase_hilbert": "shoal.problems.tables.methods.hilbert:three_phase_hilbert",
            "two_anonymity": "shoal.problems.tables.exact.two_anonymity:two_anonymity",
            "matching": "shoal.problems.tables.methods.matching:matching",
            "top_down": "shoal.problems.tables.methods.top_down:top_down",
            "mondrian": "shoal.problems.tables.methods.top_down:mondrian",
            "global_recoding": "shoal.problems.tables.methods.global_recoding:global_recoding",
            "coarsen": "shoal.problems.tables.coarsen:coarsen",
            "optimal": "shoal.problems.tables.exact.optimal:optimal",
            "fewest_tuples": "shoal.problems.tables.exact.fewest_tuples:fewest_tuples",
            "halving": "shoal.problems.tables.exact.optimal:halving",
            "forest": "shoal.problems.tables.methods.forest:forest",
            "pattern_cover": "shoal.problems.tables.methods.pattern_cover:pattern_cover",
        },
    ),
    "labels": Problem(
        methods={
            "fold": "shoal.problems.labels.approximations:fold",
            "spread": "shoal.problems.labels.approximations:spread",
            "five_halves": "shoal.problems.labels.approximations:five_halves",
            "scheme": "shoal.problems.labels.approximations:scheme",
            "bicriteria": "shoal.problems.labels.approximations:bicriteria",
            "exact": "shoal.problems.labels.balance:exact",
        },
        answers=("shoal.problems.labels.instance:Cover",),
        release="shoal.publishing.crosswalks.grouped:labels",
        judge="shoal.publishing.sources:groups",
        one="label",
        group="group",
        proofs=("docs/labels.md", "How far from the least possible: the bounds"),
    ),
    "intervals": Problem(
        answers=("shoal.problems.intervals:Cut",),
        release="shoal.publishing.crosswalks.grouped:intervals",
        judge="shoal.publishing.sources:groups",
        one="value",
        group="interval",
        proofs=("docs/intervals.md", "How it works"),
    ),
    "regions": Problem(
        methods={
            "auto": "shoal.problems.regions.answer:auto",
            "tree": "shoal.problems.regions.methods:tree",
            "search": "shoal.problems.regions.methods:search",
            "exact": "shoal.problems.regions.answer:exact",
        },
        answers=("shoal.problems.regions.task:Regions", "shoal.problems.regions.task:Nested"),
        release="shoal.publishing.crosswalks.areas:regions",
        judge="shoal.publishing.sources:regions",
        one="area",
        group="region",
        proofs=("docs/regions.md", "The bounds"),
    ),
    "tiles": Problem(
        methods={
            "kd_tree": "shoal.problems.tiles.search:kd_tree",
            "least_waste": "shoal.problems.tiles.search:least_waste",
            "proportional": "shoal.problems.tiles.search:proportional",
            "best_cuts": "shoal.problems.tiles.search:best_cuts",
            "mondrian": "shoal.problems.tiles.search:mondrian",
        },
        answers=("shoal.problems.tiles.result:Tiles",),
        release="shoal.publishing.crosswalks.grouped:tiles",
        judge="shoal.publishing.sources:tiles",
        one="place",
        group="tile",
        proofs=("docs/tiles.md", "Bounds"),
    ),
    "gather": CLUSTERS._replace(
        methods={
            "local": "shoal.problems.gathering.gather:by_local",
            "disjoint": "shoal.problems.gathering.gather:by_disjoint",
            "threshold": "shoal.problems.gathering.gather:by_threshold",
            "peeling": "shoal.problems.gathering.gather:by_peeling",
            "rounds": "shoal.problems.gathering.gather:by_rounds",
            "exact": "shoal.problems.gathering.gather:by_exact",
        },
    ),
    "cellular": CLUSTERS._replace(
        methods={
            "search": "shoal.problems.gathering.cellular:by_search",
            "tight": "shoal.problems.gathering.cellular:by_tight",
            "procedure_one": "shoal.problems.gathering.cellular:by_procedure_one",
            "three_step": "shoal.problems.gathering.cellular:by_three_step",
            "exact": "shoal.problems.gathering.cellular:by_exact",
        },
    ),
}


def names(problem: str) -> list[str]:
    """The methods of one problem, in the listed order."""
    return list(CATALOGUE[problem].methods)


def crosswalk_problems() -> list[str]:
    """The problems whose answers are written as crosswalks: the kinds of their certificates."""
    return [name for name, problem in CATALOGUE.items() if problem.judge]


def resolved(where: str) -> Any:
    """The object at "module:name"."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def algorithm(problem: str, name: str) -> Callable[..., Any]:
    """The function of a method; PolicyError with the closest name if there is none."""
    found = CATALOGUE[problem].methods.get(name) if isinstance(name, str) else None
    if found is None:
        raise PolicyError.unknown(f"method for {problem}", str(name), ["auto", *names(problem)])
    function: Callable[..., Any] = resolved(found)
    return function
