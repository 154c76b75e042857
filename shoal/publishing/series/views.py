"""Mode "views": one partition for several readers; each view is a coarser copy of the first part.

The first part publishes a table by the whole policy. A view keeps some of its columns, with coarser texts. Each
published row becomes one row of the view, which depends only on its published texts. So all views together are a
function of the first part, and reveal no more than it does.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import column_names
from shoal.model.hierarchy import Hierarchy
from shoal.model.members import meanings_of_classes
from shoal.model.notation import RangeOf, SetOf, parse, reader_of
from shoal.model.policy import Policy

Text = str | None
FINER = {"hierarchy": ("hierarchy", "stars"), "ranges": ("ranges", "hierarchy", "stars"), "stars": ("stars",)}


@dataclass(frozen=True, kw_only=True)
class ReaderView:
    """The content of a view.

    columns  the columns that it keeps, quasi-identifiers and sensitive ones, in the order of the first part
    publish  the way to publish: that of the first part, or a coarser one
    levels   for each column with a hierarchy, the lowest level that may be published
    """

    columns: tuple[str, ...]
    publish: str
    levels: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy, columns: Any, publish: str | None, levels: Mapping[str, int] | None) -> ReaderView:
        """A view of a series with this policy; PolicyError for a request that it can't show."""
        every = (*policy.grouped, *policy.sensitive)
        named = column_names("columns", columns) if columns else every
        for name in named:
            if name not in every:
                raise PolicyError.unknown("column of the first part", name, every)
        if not any(name in policy.grouped for name in named):
            raise PolicyError("a view keeps a quasi-identifier at least; name one in columns")
        way = publish or policy.publish
        if way not in FINER.get(policy.publish, (policy.publish,)):
            raise PolicyError(
                f"the first part publishes {policy.publish!r}, of which a view in {way!r} is not a coarser copy; "
                f"choose among {', '.join(FINER.get(policy.publish, (policy.publish,)))}"
            )
        trees = [n for n in named if n in policy.hierarchies and n in policy.grouped]
        if way == "hierarchy" and not trees:
            raise PolicyError("a view in 'hierarchy' needs a hierarchy in the policy for one of its quasi-identifiers")
        for name, level in (levels or {}).items():
            if name not in named:
                raise PolicyError.unknown("column of this view", name, named)
            if way != "hierarchy" or name not in trees:
                raise PolicyError(
                    f"level of {name!r}: a level is one of a hierarchy; that column has none in this view"
                )
            if isinstance(level, bool) or not isinstance(level, int) or level < 0:
                raise PolicyError(f"level of {name!r} = {level!r}: a level is a whole number from 0, the value itself")
        return cls(columns=tuple(n for n in every if n in named), publish=way, levels=dict(levels or {}))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a certificate."""
        return {"columns": list(self.columns), "publish": self.publish, "levels": dict(self.levels)}

    def policy(self, policy: Policy) -> Policy:
        """The policy of the view: the models that apply to its columns."""
        quasi = tuple(n for n in policy.grouped if n in self.columns)
        sensitive = tuple(n for n in policy.sensitive if n in self.columns)
        models = tuple(m for m in policy.privacy if sensitive or m.short == "k")
        if not models:
            raise PolicyError(
                "no model of the policy applies to this view without a sensitive column; keep one, or ask for k as well"
            )
        # a model may need the hierarchy of these columns
        held = (*quasi, *sensitive) if self.publish == "hierarchy" else sensitive
        kept = {n: t for n, t in policy.hierarchies.items() if n in held}
        return replace(
            policy, quasi_identifiers=quasi, sensitive=sensitive, insensitive=(), privacy=models, publish=self.publish,
            hierarchies=kept, weights={n: w for n, w in policy.weights.items() if n in quasi}, max_level={},
            range_step={n: s for n, s in policy.range_step.items() if n in quasi and self.publish == "ranges"},
            dates={n: d for n, d in policy.dates.items() if n in (*quasi, *sensitive)},
            decimal={n: d for n, d in policy.decimal.items() if n in (*quasi, *sensitive)},
            top={n: t for n, t in policy.top.items() if n in quasi},
            bottom={n: b for n, b in policy.bottom.items() if n in quasi},
            global_recoding=False, coarsen=None, max_suppressed=0.0, max_average_risk=None, preset=None,
        )  # fmt: skip


def view(first: pl.DataFrame, view: ReaderView, policy: Policy) -> pl.DataFrame:
    """The rows of the first part as a view shows them.

    first   the published rows, columns of text
    policy  of the series

    O(rows), and O(distinct texts x size of the hierarchy) to coarsen them.
    """
    missing = [n for n in view.columns if n not in first.columns]
    if missing:
        raise InputError(f"the first part has no column {missing[0]!r}")
    out = []
    for name in view.columns:
        column = first[name]
        if name in policy.grouped and (view.publish != policy.publish or view.levels.get(name)):
            texts = column.unique().to_list()
            tree = policy.hierarchies.get(name) if view.publish == "hierarchy" else None
            images = _coarser(texts, policy, name, tree, view.levels.get(name, 0))
            column = pl.Series(name, [images[t] for t in column.to_list()], dtype=pl.String)
        out.append(column)
    return pl.DataFrame(out)


def _coarser(texts: Sequence[Text], policy: Policy, name: str, tree: Any, level: int) -> dict[Text, Text]:
    """Published text -> text of a view: a value, the lowest class from ``level`` on that contains all values, or a
    star."""
    star = policy.star
    paths = _Paths(None if tree is None else Hierarchy.of(tree), name, policy.notations.get(name))
    if paths.height is not None and level > paths.height:
        raise PolicyError(
            f"level of {name!r} = {level}: the hierarchy of this column has levels 0 to {paths.height}, where "
            f"{paths.height} is the star"
        )
    classes = policy.publish == "hierarchy" and name in policy.hierarchies
    if classes and tree is None:  # classes become stars, values stay
        paths = _Paths(Hierarchy.of(policy.hierarchies[name]), name, policy.notations.get(name))
    out: dict[Text, Text] = {star: star, None: None if level == 0 else star}
    for text in texts:
        if text is None or text == star:
            continue
        if classes:
            path = paths.above(text)
            if tree is None:
                out[text] = text if path and path[0] == text and paths.is_value(text) else star
            else:
                start = path.index(text) if text in path else 0
                out[text] = next(iter(path[max(start, level) :]), star)
            continue
        values, between = _values(text) if policy.publish == "ranges" else ([text], False)
        if tree is None:
            out[text] = values[0] if len(values) == 1 else star
        else:
            out[text] = paths.common(values, level, between=between) or star
    return out


def _values(text: str) -> tuple[list[Text], bool]:
    """The values in a text of ranges: its value, the members of a set, or the ends of a range; and whether it is a
    range."""
    found = parse(text)
    if isinstance(found, RangeOf):
        return [found.low, found.high], True
    return (list(found.values) if isinstance(found, SetOf) else [found]), False


class _Paths:
    """The classes above values and above classes of one hierarchy."""

    def __init__(self, tree: Hierarchy | None, name: str, notation: str | None = None) -> None:
        self._tree, self._name, self._notation = tree, name, notation
        self._listed: dict[str, tuple[str, ...]] = {}
        self._values: set[str] = set()
        if tree is not None and tree.rows:
            found = tree.resolve([row[0] for row in tree.rows], name)
            for i, row in enumerate(tree.rows):
                path = found.path(i)
                self._values.add(row[0])
                for label in path:
                    self._listed.setdefault(label, path)

    @property
    def height(self) -> int | None:
        """The level of the star; None for a hierarchy by a rule, whose height depends on the values."""
        return len(next(iter(self._listed.values()))) if self._listed else None

    def is_value(self, text: str) -> bool:
        """Whether a text is a value and not a class; a text that may be a prefix with its fill is a class."""
        if self._listed:
            return text in self._values
        filled = self._tree is not None and self._tree.kind == "prefixes" and text.endswith(self._tree.fill)
        return not filled and bool(self._resolved(text))

    def above(self, text: str) -> tuple[str, ...]:
        """A path through a class or a value, from a value to below the root; empty if the text is unknown."""
        if self._listed:
            return self._listed.get(text, ())
        own = self._resolved(text)
        if own:
            return own
        low = meanings_of_classes([text], self._tree, self._notation)[text].low
        if low is None or math.isinf(low):
            return ()
        date = self._tree is not None and self._tree.kind == "dates"
        return self._resolved(str(datetime.date(1970, 1, 1) + datetime.timedelta(low)) if date else f"{low:.15g}")

    def _resolved(self, value: str) -> tuple[str, ...]:
        if self._tree is None:
            return ()
        try:
            found = self._tree.resolve([value], self._name, reader_of(self._notation), self._notation)
        except PolicyError:
            return ()
        return found.path(0)

    def common(self, values: Sequence[Text], level: int, *, between: bool) -> Text:
        """The lowest class from ``level`` on that contains all values. between: also all listed values between both
        ends."""
        if None in values:
            return None
        ends = [v for v in values if v is not None]
        if between and self._values:
            ends += self._between(*ends)
        paths = [self.above(v) for v in ends]
        if not all(paths):
            return None
        return next(
            (label for h, label in enumerate(paths[0]) if h >= level and all(p[h] == label for p in paths)), None
        )

    def _between(self, low: str, high: str) -> list[str]:
        try:
            a, b = float(low), float(high)
            return [v for v in self._values if a <= float(v) <= b]
        except ValueError:
            return list(self._values)  # the order isn't that of numbers, so any value may lie between
