"""Loss and risk over a grid of requests, to choose k, l, and the way to publish; and ``prove``, a second search."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard, Unpack

import polars as pl

from shoal.engines.open import open_table, written_file
from shoal.engines.source import Scope, refuse_database
from shoal.engines.table import Table, require
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.judge.finding import STATED, Finding
from shoal.model.arguments import column_names, mapping, suggesting, whole_number
from shoal.model.certificate import ROUNDING, Certificate, read_json
from shoal.model.policy import Policy
from shoal.model.privacy import KAnonymity, LDiversity, describe
from shoal.model.privacy.base import Model
from shoal.model.settings import RECODINGS, SETTINGS, OtherSettings
from shoal.model.task import nothing
from shoal.paths import record_path
from shoal.pipeline import anonymize, prepare
from shoal.publishing.crosswalks.answers import SAME, solved_again
from shoal.publishing.sources import sources_of
from shoal.publishing.verifying.recheck import read_record
from shoal.publishing.verifying.verify import Verdict, verify, with_areas
from shoal.watching import watched

_Asking = tuple[str, str, int, int]  # way to publish, method, l, k


@dataclass(frozen=True, kw_only=True)
class GridPoint:
    """One possible release.

    k, l        as requested; l = 1 requires nothing
    publish     how groups are published
    method      the method that found the release
    loss        NCP, the mean loss of a cell, from 0 to 1, weighted by the columns' weights if given; None if no such
                release exists
    bound       a proved lower bound of the NCP of every such release
    groups      number of groups
    risk        highest risk of re-identification of a row (prosecutor): one over the smallest group
    mean_risk   mean risk of re-identification of a row: groups over rows
    seconds     time taken
    frontier    no other point is at least as good in risk, diversity, and loss, and better in one
    reason      why there is no such release, else None
    taken_from  "k = 5, l = 2" if the release of this stricter point loses less than the one found here. It meets this
                request too, so loss, groups, risks, and method are those of that release. Else None
    """

    k: int
    l: int
    publish: str
    method: str
    loss: float | None = None
    bound: float | None = None
    groups: int | None = None
    risk: float | None = None
    mean_risk: float | None = None
    seconds: float = 0.0
    frontier: bool = False
    reason: str | None = None
    taken_from: str | None = None


@dataclass(frozen=True, eq=False)
class Exploration:
    """The points of a grid, in order.

    asked    the number of points of the complete grid, also after an interruption
    request  the request: "file", "grid" with the tried values, "policy" and "models" with what all points share
    sources  the input files: no page may replace them, or be readable by more people

    The figures are about the original table, so the page and its JSON are internal: you must not publish them.
    """

    found: tuple[GridPoint, ...]
    rows: int
    asked: int
    request: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str | Path, ...] = ()

    def __repr__(self) -> str:
        return f"<{len(self.found)} of {self.asked} points on {self.rows:,} rows>"

    def __str__(self) -> str:
        kept = ", ".join(f"k={p.k} l={p.l} {p.publish} (loss {p.loss:.4g})" for p in self.frontier[:5])
        more = f" and {len(self.frontier) - 5} more" if len(self.frontier) > 5 else ""
        return (
            f"{len(self.found)} of {self.asked} points on {self.rows:,} rows: .points, .plot(), .report(path)\n"
            f"on the frontier: {kept or 'none'}{more}"
        )

    @classmethod
    def read(cls, path: str | Path) -> Exploration:
        """The exploration in the JSON next to a page of ``report``, or in the output of ``shoal explore --json``.

        Raises InputError for anything else.
        """
        what = "file of figures that shoal explore wrote next to its page"
        record = read_json(path, what)
        try:
            points = tuple(GridPoint(**p) for p in record["points"])
            made = cls(points, int(record["rows"]), int(record["asked"]), dict(record.get("request") or {}))
            if made.points.height:  # a frame of the points checks their types
                return made
        except (ValueError, TypeError, KeyError, OverflowError, pl.exceptions.PolarsError):
            pass
        raise InputError(f"{Path(path).name!r} is not a {what}")

    @property
    def points(self) -> pl.DataFrame:
        """One row for each point; the columns are the fields of ``GridPoint``."""
        kinds = {
            "k": pl.Int64, "l": pl.Int64, "publish": pl.String, "method": pl.String, "loss": pl.Float64,
            "bound": pl.Float64, "groups": pl.Int64, "risk": pl.Float64, "mean_risk": pl.Float64,
            "seconds": pl.Float64, "frontier": pl.Boolean, "reason": pl.String,
            "taken_from": pl.String,
        }  # fmt: skip
        return pl.DataFrame([asdict(p) for p in self.found], schema=kinds)

    @property
    def frontier(self) -> tuple[GridPoint, ...]:
        """The points that no other point dominates in risk, diversity, and loss."""
        return tuple(p for p in self.found if p.frontier)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        points = [asdict(p) for p in self.found]
        return {
            "points": points,
            "frontier": [p for p in points if p["frontier"]],
            "rows": self.rows,
            "asked": self.asked,
            "complete": len(points) == self.asked,
            "request": dict(self.request),
            "internal": True,
        }

    def plot(self, axes: Any = None) -> Any:
        """Loss against risk, a line for each way to publish and l; returns the matplotlib axes."""
        from shoal.report.exploring import draw_exploration

        return draw_exploration(self.as_dict()["points"], axes)

    def report(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """One self-contained HTML page that opens offline, and next to it the figures, which ``read`` accepts.

        Both contain figures of the original: the page states this, and only the owner can read new files.
        """
        from shoal.engines.atomic import publish_page
        from shoal.report.exploring import exploration_page

        return publish_page(path, self.as_dict, exploration_page, self.sources, overwrite=overwrite, private=True)

    def _repr_html_(self) -> str:
        from shoal.report.exploring import exploration_table

        return exploration_table(self.as_dict()["points"])


@watched
@suggesting
def explore(
    data: Any,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    k: int | Sequence[int] = (3, 5, 11),
    l: int | Sequence[int] | None = None,
    publish: str | Sequence[str] | Mapping[str, str] | None = None,
    method: str | Sequence[str] | None = None,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    progress: Callable[[str, float | None], None] = nothing,
    each: Callable[[GridPoint], None] | None = None,
    partial: Callable[[Exploration], None] | None = None,
    **settings: Unpack[OtherSettings],
) -> Exploration:
    """Loss, groups, and risk for every combination of k, l, way to publish, and method.

    data      a path or a frame, as for ``anonymize``; it is read once
    policy    a Policy, or its settings as keywords. k replaces its own; its other privacy models are kept
    k, l      whole numbers, one or several; l = 1 (frequency form) requires nothing. l replaces that of the policy, if
              it is not None, and without any it is 1
    publish   ways to publish; the policy's own if None. Hierarchies are used if the way is "hierarchy". Or a mapping
              such as {"zip": "regions"}, as in ``anonymize``
    method    methods of the catalogue; the policy's own if None
    progress  called with (step, share done)
    each      called with every point as it is found; partial: with everything found so far, after every point

    Nothing is published: a point is a release that is made, judged, and discarded. A combination that no release can
    meet is a point with its reason. If the release of a stricter point loses less, a looser point reuses it. Raises
    what ``anonymize`` raises; an interruption has the Exploration so far as ``found``. Time: one run of ``anonymize``
    for each point, with effort "fast" by default.
    """
    ks = _whole("k", k)
    steps = settings.pop("range_step", None)
    if not isinstance(policy, Policy):
        policy = {"effort": "fast", "k": ks[0], **mapping("policy", policy)}
    given: dict[str, Any] = {**settings}
    if isinstance(publish, Mapping):  # for single columns; only publishing with hierarchies supports it
        given["publish"], publish = publish, None
    elif publish == "hierarchy" or (isinstance(publish, (list, tuple)) and "hierarchy" in publish):
        given["publish"] = "hierarchy"  # for settings that need it
    asked = Policy.of(policy, **given)
    ls = _whole("l", [int(m.l) for m in asked.privacy if _in_grid(m) and m.l == int(m.l)] or 1 if l is None else l)
    ways = _some("publish", publish, asked.publish, list(RECODINGS))
    methods = _some("method", method, asked.method, None)
    if steps and "ranges" not in ways:
        raise PolicyError(f"⟨range_step⟩ widens ranges; it cannot go with ⟨publish={', '.join(ways)!r}⟩; leave it out")
    if max(ls) > 1 and not asked.sensitive:
        raise PolicyError("l above 1 needs a sensitive column, and none is given; set ⟨sensitive=[...]⟩")
    refuse_database(data)
    scope, engine = Scope().as_asked(data, engine, asked)
    frame = _relevant_columns(open_table(data, engine, separator=separator, encoding=encoding, scope=scope), asked)
    grid = list(itertools.product(ways, methods, ls, ks))
    found, rows = dict[_Asking, GridPoint](), 0
    # strictest requests first, because their releases also meet weaker requests
    sources = tuple(p for p in (data, asked.population) if isinstance(p, (str, Path)))
    tried = {"k": ks, "l": ls, "publish": ways, "method": methods}
    request = {
        "file": _named(data),
        "grid": tried,
        **_common_settings(asked, asked.range_step if steps is None else steps),
    }
    try:
        for i, asking in enumerate(sorted(grid, key=lambda g: (ways.index(g[0]), methods.index(g[1]), -g[2], -g[3]))):
            way, how, want_l, want_k = asking
            progress(f"k = {want_k}, l = {want_l}, {way}", i / len(grid))
            one = _request(asked, asking, asked.range_step if steps is None else steps)
            own, rows = _point(frame, one, (want_k, want_l), rows)
            same = [p for (*at, _, _), p in found.items() if at == [way, how]]
            found[asking] = _best_of_stricter(own, [p for p in same if p.k >= want_k and p.l >= want_l])
            if each is not None:
                each(found[asking])
            if partial is not None and i + 1 < len(grid):
                partial(_exploration_of(grid, found, rows, request, sources))
    except BaseException as stop:
        if found and not isinstance(stop, Exception):  # Ctrl-C, or a request to stop
            vars(stop)["found"] = _exploration_of(grid, found, rows, request, sources)
        raise
    return _exploration_of(grid, found, rows, request, sources)


def _named(data: Any) -> str | None:
    """The name of the file that was read; None for a frame."""
    return Path(data).name if isinstance(data, (str, Path)) else None


def _in_grid(model: Model) -> TypeGuard[LDiversity]:
    """Whether a model is the l of all sensitive columns, which the grid replaces."""
    return isinstance(model, LDiversity) and model.column is None


def _common(asked: Policy) -> tuple[Model, ...]:
    """The models of every point: all except k and l, which the grid replaces."""
    return tuple(m for m in asked.privacy if not isinstance(m, KAnonymity) and not _in_grid(m))


def _common_settings(asked: Policy, steps: Mapping[str, float | str]) -> dict[str, Any]:
    """The settings common to all points, as plain values, without those that the grid replaces."""
    held = {name: value for name, value in asked.describe().items() if name not in ("publish", "method", "preset")}
    models = _common(asked)
    held |= {"privacy": [describe(m) for m in models], "range_step": dict(steps)}
    return {"policy": held, "models": [f"{m.name}: {m.words()}" for m in models]}


def _exploration_of(
    grid: Sequence[_Asking], found: Mapping[_Asking, GridPoint], rows: int, request: Mapping[str, Any],
    sources: tuple[str | Path, ...],
) -> Exploration:  # fmt: skip
    """The exploration of the points found so far, in the grid's order."""
    there = [asking for asking in grid if asking in found]
    points = with_bounds([found[asking] for asking in there], [how for _, how, _, _ in there])
    return Exploration(with_frontier(points), rows, len(grid), request, sources)


def _relevant_columns(table: Table, asked: Policy) -> Any:
    """The columns that determine loss and risk, as a frame."""
    names = [*asked.quasi_identifiers, *(asked.coordinates or ()), *asked.sensitive, *asked.counting]
    with asked.naming():
        require(table.columns, [*names, *asked.identifiers, *asked.insensitive])
    return table.without([c for c in table.columns if c not in names])


def _point(frame: Any, request: Policy, asked: tuple[int, int], rows: int) -> tuple[GridPoint, int]:
    """The point of one request, and the rows of the table, if known. asked: k and l."""
    clock = time.perf_counter()
    try:
        release = anonymize(frame, request)
    except InfeasibleError as refusal:
        point = GridPoint(
            k=asked[0], l=asked[1], publish=request.publish, method=request.method, reason=refusal.sentence
        )
    else:
        rows = release.facts.rows
        proof = release.certificate
        scale = rows * len(request.grouped) if proof.unit == "stars" else 1
        point = GridPoint(
            k=asked[0],
            l=asked[1],
            publish=request.publish,
            method=release.method,
            loss=_lost(release),
            bound=float(proof.lower_bound) / max(scale, 1) if proof.unit in ("stars", "ncp") else None,
            groups=release.audit.classes,
            risk=1 / release.audit.smallest_class if rows else 0.0,
            mean_risk=release.audit.classes / rows if rows else 0.0,
        )
    return replace(point, seconds=round(time.perf_counter() - clock, 4)), rows


def _lost(release: Any) -> float:
    """The mean loss of a cell, weighted by the columns' weights if given."""
    if release.certificate.unit == "ncp":
        return float(release.certificate.cost)
    weighted = any(weight != 1 for weight in release.policy.weights.values())
    return float(release.loss["weighted_ncp"] if weighted else release.facts.cost["ncp"])


def _best_of_stricter(own: GridPoint, stricter: Sequence[GridPoint]) -> GridPoint:
    """The point itself, or if a stricter point loses less, the point with the figures of the best of these.

    If a release meets a stricter request, it meets every weaker one, for all privacy models.
    """
    held = [p for p in stricter if p.loss is not None]
    best = min(held, key=lambda p: p.loss or 0.0, default=None)
    if best is None or best.loss is None or (own.loss is not None and own.loss <= best.loss):
        return own
    return replace(
        own, method=best.method, loss=best.loss, groups=best.groups, risk=best.risk, mean_risk=best.mean_risk,
        reason=None, taken_from=best.taken_from or f"k = {best.k}, l = {best.l}",
    )  # fmt: skip


def with_bounds(points: Sequence[GridPoint], methods: Sequence[str]) -> tuple[GridPoint, ...]:
    """Points with their largest bound: the bounds of all weaker requests hold for a stricter one too.

    methods  requested for each point: a bound holds for the releases that a method can make
    """
    asked = list(zip(points, methods, strict=True))

    def largest(p: GridPoint, how: str) -> float | None:
        weaker = [q.bound for q, own in asked if (q.publish, own) == (p.publish, how) and q.k <= p.k and q.l <= p.l]
        return p.bound if p.bound is None else max(b for b in weaker if b is not None)

    return tuple(replace(p, bound=largest(p, how)) for p, how in asked)


def with_frontier(points: Sequence[GridPoint]) -> tuple[GridPoint, ...]:
    """Points, with those marked that no other point dominates in risk, diversity, and loss."""

    def dominates(a: GridPoint, b: GridPoint) -> bool:
        pair = [(a.risk, b.risk), (-a.l, -b.l), (a.loss, b.loss)]
        return all(x <= y for x, y in pair) and any(x < y for x, y in pair)  # type: ignore[operator]

    real = [p for p in points if p.loss is not None]
    return tuple(replace(p, frontier=p.loss is not None and not any(dominates(q, p) for q in real)) for p in points)


def _request(asked: Policy, asking: _Asking, steps: Mapping[str, float | str]) -> Policy:
    """The policy of one point: hierarchies, ceilings, and steps only for the ways to publish that use them."""
    way, method, l, k = asking
    levels = way == "hierarchy"
    return replace(
        asked,
        privacy=(KAnonymity(k), *((LDiversity(l),) if l > 1 else ()), *_common(asked)),
        preset=None,  # its k is replaced by the grid's k
        publish=way,
        method=method,
        identifiers=(),  # neither is used, nor in the table of the exploration
        insensitive=(),
        hierarchies={n: h for n, h in asked.hierarchies.items() if levels or n in asked.sensitive},
        areas=asked.areas if levels else None,
        edges=asked.edges if levels else None,
        region_loss=asked.region_loss if levels else SETTINGS["region_loss"].default,
        max_level=asked.max_level if levels else {},
        range_step=steps if way == "ranges" else {},
        global_recoding=asked.global_recoding and way in ("hierarchy", "stars"),
        coarsen=asked.coarsen if levels else None,
    )


def _whole(name: str, given: int | Sequence[int]) -> list[int]:
    values = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else [given]
    if not values:
        raise PolicyError(f"{name} is empty; give whole numbers from 1, one or several")
    return sorted({whole_number(name, v, "give whole numbers from 1, one or several") for v in values})


def _some(name: str, given: str | Sequence[str] | None, own: str, known: Sequence[str] | None) -> list[str]:
    values = [own] if given is None else list(dict.fromkeys(column_names(name, given)))
    for value in values:
        if known is not None and value not in known:
            raise PolicyError.unknown("way to publish", str(value), known)
    if not values:
        raise PolicyError(f"{name} is empty; name at least one")
    return values


@watched
@suggesting
def prove(
    release: str | Path,
    certificate: str | Path | None = None,
    original: Any = None,
    *,
    effort: str | float = "balanced",
    record: str | Path | None = None,
    population: Any = None,
    separator: str | None = None,
    encoding: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    areas: Any = None,
    edges: str | Path | None = None,
    signer: str | Path | None = None,
    table: str | None = None,
    query: str | None = None,
    progress: Callable[[str, float | None], None] = nothing,
) -> Verdict:
    """``verify`` with the original, followed by a second search that tests the lower bound.

    original  the data, as in ``verify``: a table, a path, or a frame; for a crosswalk, the source or a list
    effort    of the search: "fast", "balanced", "thorough", or seconds; the rest of the request is the same as before.
              "same": repeat the run with the recorded method, effort, and seed; the finding "repeated" states whether
              it has the certified cost. With an effort in seconds, it need not
    record    the private record, which contains the bound; RELEASE.record.json if None
    others    as in ``verify``

    The finding "bound" is replaced. It is false if an answer that costs less than the bound was found, "recomputed" if
    the search proved at least as much, and "stated" in between. ``verify`` shares no code with the solvers; this call
    runs them again. So it refutes a false bound that someone wrote into a file. It detects a bound that shoal computed
    wrongly only if a cheaper answer is found. It takes as long as the first run. Raises InputError without the
    original, and if the certificate does not contain the whole request, such as a set-up cost for each record.

    Examples:
        >>> import polars as pl, shoal, tempfile, pathlib
        >>> people = pl.DataFrame({"age": [34, 34, 35, 61, 61, 62]})
        >>> place = pathlib.Path(tempfile.mkdtemp()) / "release.csv"
        >>> beside = shoal.anonymize(people, quasi_identifiers=["age"], k=3, publish="ranges").write(place)
        >>> next(f.how for f in prove(place, original=people).findings if f.check == "bound")
        'recomputed'
    """
    if original is None:
        raise InputError("a bound is proved again from what the release was made from: say ⟨original=TABLE⟩")
    text: dict[str, Any] = {"separator": separator, "encoding": encoding}
    place: dict[str, Any] = {"table": table, "query": query}
    with written_file(release, certificate) as (path, beside):
        kept = record_path(beside) if record is None else Path(record)
        if not kept.is_file():
            raise InputError(
                f"a bound is proved again from the private record; there is no {kept.name!r}: say ⟨record=FILE⟩"
            )
        others: dict[str, Any] = {"record": kept, "population": population, "signer": signer}
        others |= {"hierarchies": hierarchies, "areas": areas, "edges": edges}
        verdict = verify(path, beside, original, progress=progress, **others, **text, **place)
        known = read_record(kept, private=True)
        stated = verdict.record
        assert stated is not None
        if known.get("kind", "table") == "table":
            trees = with_areas(hierarchies, areas, edges, beside)
            more = {name: given for name, given in (("hierarchies", trees), ("population", population)) if given}
            asked = Policy.read(kept, **more, **({} if effort == SAME else {"effort": effort}))
            again = prepare(original, asked, **text, **place, progress=progress).certificate
            pairs = {"bound": (stated, again)}
        else:
            progress("solving", None)
            sources = sources_of(original, known, separator, encoding, (hierarchies or {}, beside.parent))
            pairs = solved_again(path, known, sources, effort)
    rest = tuple(f for f in verdict.findings if f.check not in pairs)
    findings = (*rest, *(judged(*pair)._replace(check=check) for check, pair in pairs.items()))
    if effort == SAME:
        findings = (*findings, repeated(*pairs["bound"]))
    return replace(verdict, holds=all(f.holds for f in findings), findings=findings)


def repeated(stated: Certificate, again: Certificate) -> Finding:
    """Whether a repeated run has the certified cost."""
    if again.unit == stated.unit and abs(again.cost - stated.cost) <= ROUNDING * abs(stated.cost):
        return Finding("repeated", True, f"made again, it costs {again.cost:.9g} {again.unit}, as certified")
    text = f"{stated.cost:.9g} {stated.unit} certified; made again, it costs {again.cost:.9g} {again.unit}"
    return Finding("repeated", True, f"{text}: by another version, machine or order of rows perhaps", STATED)


def judged(stated: Certificate, again: Certificate) -> Finding:
    """The certified bound, compared with the cost and the bound of a second search for the same request."""
    stated_bound = f"{stated.lower_bound:.9g} {stated.unit} certified"
    if again.unit != stated.unit:
        return Finding(
            "bound", True, f"{stated_bound}; searched again by {again.unit}, which says nothing of it", STATED
        )
    if again.cost < stated.lower_bound * (1 - ROUNDING):
        return Finding("bound", False, f"{stated_bound}, and an answer that costs {again.cost:.9g} was found")
    if again.lower_bound >= stated.lower_bound * (1 - ROUNDING):
        return Finding("bound", True, f"{stated_bound}, {again.lower_bound:.9g} proved again")
    text = (
        f"{stated_bound}, {again.lower_bound:.9g} proved again, and no answer that costs less than certified was found"
    )
    return Finding("bound", True, text, STATED)
