"""A recoding that is fitted on one table and applied to others, with scikit-learn's interface but without importing it.

A recoder is saved as files: settings and levels as TOML, and each hierarchy of rows as a CSV next to it. If a hierarchy
of rows doesn't list a value, the value is put into the closest class, or starred.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.atomic import Piece, check_outputs, publish_together
from shoal.engines.codes import as_text, encode
from shoal.engines.columns import row_numbers
from shoal.engines.frames import require
from shoal.engines.propose import quoted
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.model.arguments import column_names, keywords, known, suggesting
from shoal.model.cards import in_one_line
from shoal.model.certificate import Certificate
from shoal.model.hierarchy import REGIONS, Hierarchy, exact
from shoal.model.members import place, ruler_of, span
from shoal.model.notation import named_notations, of_limits, reader_of
from shoal.model.policy import Policy
from shoal.model.refusals import refuse_generated
from shoal.paths import POLICY, TABLE
from shoal.pipeline import FixedLevels, anonymize, prepare
from shoal.publishing.sources import like, opened
from shoal.publishing.tables.audited import MAX_COMPOSITION
from shoal.publishing.tables.release import Release

FORMAT = 1
LOOKS = 300  # levels at which several tables are tried until all meet the models
_BY_COLUMN = ("max_level", "dates", "decimal", "bottom", "top")
_ASKED = ("quasi_identifiers", "sensitive", "identifiers", "insensitive", "k", "l", "max_suppressed", "effort", "seed")


class SavedRecoder(NamedTuple):
    """The contents of a recoder's file.

    asked        the arguments except hierarchies
    hierarchies  per column, as ``Hierarchy.of`` takes them
    levels       the fitted level of every quasi-identifier
    columns      the columns of the output
    forms        per quasi-identifier the height of its hierarchy, and how it formats a whole number
    """

    asked: Mapping[str, Any]
    hierarchies: Mapping[str, Any]
    levels: Mapping[str, int]
    columns: Sequence[str]
    forms: Mapping[str, tuple[int, str]]


def write_saved(kept: SavedRecoder, path: Path, *, overwrite: bool) -> Path:
    """Write all files together or none.

    If a hierarchy was read from a file next to the recoder, that file is unchanged.
    """
    files: dict[Path, str] = {}
    trees: dict[str, Any] = {}
    for name, source in kept.hierarchies.items():
        tree = Hierarchy.of(source)
        if tree.kind == "rows":
            file = path.with_name(f"{path.stem}.{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.csv")
            if file in files:
                file = file.with_name(f"{file.stem}.{len(files)}.csv")
            files[file] = tree.file
            trees[name] = file.name
        else:
            trees[name] = tree.builder or _steps(tree)
    top = {"recoder": FORMAT, **{n: kept.asked[n] for n in _ASKED}, "columns": list(kept.columns)}
    tables = {
        "levels": kept.levels,
        **{name: kept.asked[name] for name in _BY_COLUMN},
        "hierarchies": trees,
        "forms": {name: {"levels": height, "whole": shown} for name, (height, shown) in kept.forms.items()},
    }
    lines = ["# A recoding for shoal apply: the levels may be raised by hand.", *_lines(top)]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *_lines(table)]
    new = {file: text for file, text in files.items() if not (file.is_file() and file.read_text("utf-8") == text)}
    closed = check_outputs([(path, POLICY), *((file, TABLE) for file in new)], [], overwrite=overwrite)
    texts = {path: "\n".join(lines) + "\n", **new}
    publish_together([Piece(file, _filler(text)) for file, text in texts.items()], closed=closed)
    return path


def _filler(text: str) -> Any:
    return lambda temporary: temporary.write_text(text, encoding="utf-8")


def read_saved(path: Path) -> SavedRecoder:
    """The contents of a file that ``write_saved`` wrote. Raises PolicyError for other files."""
    try:
        with open(path, "rb") as file:
            held = tomllib.load(file)
    except FileNotFoundError:
        raise PolicyError(f"there is no recoder {str(path)!r}; Recoder.save or shoal fit writes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError):
        raise PolicyError(f"{path.name!r} is not TOML, so it is no recoder; Recoder.save writes one") from None
    if held.get("recoder") != FORMAT:
        raise PolicyError(f"{path.name!r} is no recoder of format {FORMAT}; Recoder.save writes one")
    named = [*_ASKED, *_BY_COLUMN, "columns", "levels", "hierarchies"]
    odd = set(held) - {*named, "recoder", "forms"}
    if odd:
        raise PolicyError.unknown("setting of a recoder", min(odd), named)
    trees = {name: _tree(source, path.parent) for name, source in _table(held, "hierarchies", path).items()}
    levels, forms = _table(held, "levels", path), {}
    for name, form in _table(held, "forms", path).items():
        level = levels.get(name)
        if type(level) is not int or not isinstance(form, Mapping) or not 0 <= level < form.get("levels", 0):
            raise PolicyError(f"{path.name!r} has no level of {name!r} that its hierarchy has")
        forms[name] = (form["levels"], str(form.get("whole", "")))
    asked = {name: held[name] for name in _ASKED if name in held}
    asked |= {name: _table(held, name, path) or None for name in _BY_COLUMN}
    if set(levels) != set(forms) or set(levels) != set(asked.get("quasi_identifiers", ())):
        raise PolicyError(f"{path.name!r} has other levels than quasi-identifiers")
    return SavedRecoder(asked, trees, levels, held.get("columns", ()), forms)


def _table(held: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    found = held.get(name, {})
    if not isinstance(found, Mapping):
        raise PolicyError(f"{path.name!r} has no table [{name}]")
    return found


def _steps(tree: Hierarchy) -> dict[str, Any]:
    """The settings of a hierarchy that its builder's text lacks: cuts, an origin, another fill character."""
    cuts = [[str(c) for c in step] if isinstance(step, tuple) else str(step) for step in tree.steps]
    return {"kind": tree.kind, "steps": cuts, "origin": str(tree.origin), "fill": tree.fill}


def _tree(source: Any, folder: Path) -> Any:
    if isinstance(source, Mapping):
        kind, steps = source.get("kind"), list(source.get("steps", ()))
        if kind == "intervals":
            cuts = [[exact(c) for c in step] if isinstance(step, list) else exact(step) for step in steps]
            return Hierarchy.intervals(cuts, exact(source.get("origin", "0")))  # type: ignore[arg-type]
        if kind == "prefixes":
            return Hierarchy.prefixes([int(s) for s in steps] or None, str(source.get("fill", "*")))
        if kind == REGIONS and len(steps) == 4:
            names, weights, first, second = steps
            return Hierarchy.regions(names, list(zip(first, second, strict=True)), [int(w) for w in weights])
        raise PolicyError(f"a hierarchy of kind {kind!r} is none that a recoder holds")
    return str(folder / source) if isinstance(source, str) and source.endswith(".csv") else source


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(name)} = {_toml(value)}" for name, value in table.items() if value is not None]


def _toml(value: Any) -> str:
    """A value in TOML: JSON's strings, numbers, and lists are valid TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_lines(value)) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return quoted(str(value))


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else quoted(name)


def placed(
    frame: pl.DataFrame, name: str, tree: Hierarchy, level: int, notation: str | None = None
) -> tuple[pl.DataFrame, int, int]:
    """The table with every unlisted value of a column replaced with a listed one of the same published class.

    tree      a hierarchy of rows
    level     at which the column is published
    notation  of the column's dates or numbers
    A value without such a class becomes missing. So does every unlisted value at level 0, where another value would be
    false, and at the top level, where all values are starred.
    Returns the table, the number of rows placed, and the rows without a class. O(n + new values listed).
    """
    texts = _texts(frame[name], notation)
    listed = {row[0]: row for row in tree.rows}
    new = [v for v in texts.unique(maintain_order=True).drop_nulls().to_list() if v not in listed]
    if not new:
        return frame, 0, 0
    plain = level in (0, len(tree.rows[0]))  # published unchanged, or starred
    known = {v: None if plain else near(v, tree, notation) for v in new}
    lost = [v for v, found in known.items() if found is None]
    rows, without = int(texts.is_in(new).sum()), int(texts.is_in(lost).sum()) if lost else 0
    if plain:
        return frame.with_columns(frame[name].set(texts.is_in(new).fill_null(False), None)), 0, rows
    own = as_text(frame[name])  # with the exact values beyond a limit
    out = texts.replace_strict(new, [known[v] for v in new], default=own, return_dtype=pl.String)
    with contextlib.suppress(pl.exceptions.PolarsError):  # the former type, if it can hold the listed values
        out = out.cast(frame.schema[name])
    return frame.with_columns(out.alias(name)), rows - without, without


def near(value: str, tree: Hierarchy, notation: str | None = None) -> str | None:
    """A listed value of the class to which an unlisted value belongs; None if there is none.

    The order of choice: a class whose text is a range that contains the value, the finest first; the closest number or
    date; a value that differs only in blanks and case.
    """
    ruler, read = notation or ruler_of(row[0] for row in tree.rows), reader_of(notation)
    at = place(plain := value if read is None else read(value) or value, "number")
    if at is not None:
        for level in range(1, len(tree.rows[0])):
            for row in tree.rows:
                found = span(row[level])
                if found is not None and plain in found:
                    return row[0]
    here = place(value, ruler)
    if here is not None and np.isfinite(here):
        places = np.array([place(row[0], ruler) for row in tree.rows], float)
        return tree.rows[int(np.nanargmin(np.abs(places - here)))][0]
    bare = value.strip().casefold()
    return next((row[0] for row in tree.rows if row[0].strip().casefold() == bare), None)


STAR = "*"


class Recoder:
    """One level of a hierarchy for each quasi-identifier, which ``fit`` finds and ``apply`` or ``transform`` applies.

    quasi_identifiers, sensitive, identifiers, insensitive, k, l, hierarchies, max_level, dates, decimal, bottom, top,
    max_suppressed, effort, seed
        as in ``shoal.anonymize``. A column without a hierarchy is kept or starred completely. Every table that you
        transform must have the sensitive columns; if it has none, leave them out

    The recoding is *global*: equal values become equal in every table, so a model meets the classes that it has
    learned. With local recoding, groups would differ between tables and overlap, and someone could intersect them.

    Each table in the output meets k (and l), and is checked after it is recoded. Rows in groups that are too small are
    starred completely, up to the share ``max_suppressed`` of the table (0 by default). If more rows are in such groups,
    there is no output, and InfeasibleError states how many, and the least change that suffices. A person who is in two
    tables has the same published values in both, unless starred. An attacker who knows this can exclude everyone who
    doesn't fit both groups, and all sensitive values that the two groups don't share: ``after`` of ``apply`` counts
    this. The levels depend on the fitted table and reveal nothing else about it. ``transform`` keeps the order of rows
    and the index, so that a target column still matches. Before you publish, drop the index and shuffle the rows, or
    publish the result of ``apply``.

    If the hierarchy of a column does not list a value, the value takes the class whose range contains it. Otherwise, it
    takes the class of the nearest number, or of the value that differs only in blanks and case. If there is no such
    class, the whole row is starred; the same applies to an unlisted value of a column without a hierarchy. ``notes``
    states how many rows this affects.

    ``fit`` is O(n) plus the search of ``method="global_recoding"``; ``apply`` is O(n). Afterward, ``levels_`` has the
    level of each column, ``certificate_`` what it costs the fitted table (None for a recoder that was read from a
    file), and ``columns_`` the columns of the output. ``feature_names_in_`` and ``n_features_in_`` are the columns of
    the fitted table, and their number; a recoder that was read from a file lists no identifiers.

    Examples:
        >>> import polars as pl
        >>> import shoal
        >>> table = pl.DataFrame({"age": [31, 33, 38, 52, 54, 59]})
        >>> recoder = shoal.Recoder(["age"], k=3, hierarchies={"age": "intervals:10,20"}).fit(table)
        >>> recoder.transform(pl.DataFrame({"age": [35, 36, 37]}))["age"].to_list()
        ['30-39', '30-39', '30-39']
    """

    @suggesting
    def __init__(
        self,
        quasi_identifiers: Sequence[str] = (),
        *,
        sensitive: Sequence[str] = (),
        identifiers: Sequence[str] = (),
        insensitive: Sequence[str] = (),
        k: int = 5,
        l: int | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        max_level: Mapping[str, int] | None = None,
        dates: Mapping[str, str] | None = None,
        decimal: Mapping[str, str] | None = None,
        bottom: Mapping[str, float] | None = None,
        top: Mapping[str, float] | None = None,
        max_suppressed: float = 0.0,
        effort: str | float = "balanced",
        seed: int | None = None,
    ) -> None:
        self.quasi_identifiers = quasi_identifiers
        self.sensitive = sensitive
        self.identifiers = identifiers
        self.insensitive = insensitive
        self.k = k
        self.l = l
        self.hierarchies = hierarchies
        self.max_level = max_level
        self.dates = dates
        self.decimal = decimal
        self.bottom = bottom
        self.top = top
        self.max_suppressed = max_suppressed
        self.effort = effort
        self.seed = seed

    def __repr__(self) -> str:
        columns = column_names("quasi_identifiers", self.quasi_identifiers)
        facts = [f"Recoder of {', '.join(columns)}", f"k = {self.k}"]
        facts += [] if self.l is None else [f"l = {self.l}"]
        levels = ", ".join(f"{name} {level}" for name, level in getattr(self, "levels_", {}).items())
        return in_one_line([*facts, f"levels: {levels}" if levels else "not fitted"], 3)

    def fit(self, table: Any, y: Any = None) -> Recoder:
        """Find the levels that lose least of this table; ``y`` is ignored.

        table  a path, or a frame of any kind; or a list of tables, each of which must meet the models. Each level is
               then the highest that a table needs. If not all tables meet the models there, the search goes on to the
               closest levels at which they do. Levels are lowered as far as all tables allow
        """
        policy = self._policy()
        refuse_generated(policy)
        tables = table if isinstance(table, (list, tuple)) else [table]
        frames = [opened(one, unread=policy.identifiers) for one in tables]
        if not frames:
            raise InputError("there is no table to learn from")
        found = [anonymize(frame, policy) for frame in frames]
        levels = [one.certificate.details["levels"] for one in found]
        self.levels_ = {name: max(int(own[name]) for own in levels) for name in levels[0]}
        self.certificate_: Certificate | None = found[0].certificate
        self.feature_names_in_ = np.array(frames[0].columns, object)
        self.columns_ = [c for c in frames[0].columns if c not in policy.identifiers]
        self._trees = {n: Hierarchy.of(policy.hierarchies.get(n, "stars")) for n in policy.quasi_identifiers}
        kinds = [{n: self._kind(frame[n], n) for n in policy.quasi_identifiers} for frame in frames]
        self._kinds = kinds[0]
        odd = next((n for own in kinds for n in own if own[n] != self._kinds[n]), None)
        if odd is not None:
            raise _otherwise(odd)
        if len(frames) > 1:
            self._lower(frames)
        return self

    def _lower(self, frames: Sequence[pl.DataFrame]) -> None:
        """Lower levels one by one while every table still meets the models; certify the first table's cost.

        If rows may be starred, every table may meet the models at its own levels, but not at the maximum of these
        levels: then too few rows are starred together, or every row is at the top of every hierarchy. So the search
        starts at the closest levels at which every table meets the models.
        """

        def passes(levels: dict[str, int]) -> Release[Any] | None:
            try:
                made = [prepare(frame, self._policy(), fixed=FixedLevels(levels)) for frame in frames]
            except InfeasibleError:
                return None
            return made[0]

        tried = itertools.islice(self._nearest(), LOOKS)
        start = next(((at, found) for at in tried if (found := passes(at)) is not None), None)
        if start is None:
            raise InfeasibleError(
                "no levels were found at which every table meets the models; allow more starred rows with "
                "⟨max_suppressed=⟩, or higher levels with ⟨max_level=⟩"
            )
        self.levels_, kept = start
        for name in sorted(self.levels_, key=lambda n: -self.levels_[n]):
            while self.levels_[name]:
                lower = {**self.levels_, name: self.levels_[name] - 1}
                found = passes(lower)
                if found is None:
                    break
                self.levels_, kept = lower, found
        self.certificate_ = kept.certificate

    def _nearest(self) -> Iterator[dict[str, int]]:
        """The fitted levels, then others by the number of steps from them; a step is one level of one column."""
        highest = dict(self.max_level or {})
        top = {name: min(many - 1, highest.get(name, many - 1)) for name, (many, _) in self._kinds.items()}
        queue = deque([self.levels_])
        seen = {tuple(self.levels_.values())}
        while queue:
            levels = queue.popleft()
            yield levels
            for name, step in itertools.product(levels, (1, -1)):
                near = {**levels, name: levels[name] + step}
                if 0 <= near[name] <= top[name] and tuple(near.values()) not in seen:
                    seen.add(tuple(near.values()))
                    queue.append(near)

    @suggesting
    def apply(
        self,
        table: Any,
        *,
        keep_order: bool = False,
        secret: bytes | None = None,
        after: Any = None,
        max_composition: float = MAX_COMPOSITION,
        force_composition: bool = False,
        target: Path | None = None,
    ) -> Release[Any]:
        """A release of a table at the fitted levels; its ``table`` is the kind of frame that you passed.

        secret, after, max_composition, force_composition  as in ``shoal.anonymize``
        target  where it will be written: if the format cannot hold a value, the call refuses before the work

        Raises InfeasibleError if more rows than the budget would be in groups that do not meet the models, InputError
        for columns that are missing or that single people out, and for a pandas index that might.
        """
        if not self.__sklearn_is_fitted__():
            raise PolicyError("this Recoder was not fitted; call fit(table) first")
        policy = self._policy()
        frame = opened(table, unread=policy.identifiers)
        require(frame.columns, [*policy.quasi_identifiers, *policy.sensitive])
        left_out = tuple(c for c in policy.identifiers if c in frame.columns)
        policy = replace(policy, keep_order=keep_order, identifiers=left_out)
        stay = [c for c in frame.columns if c not in left_out]
        if sorted(stay) != sorted(self.columns_):
            raise InputError(
                f"the table has {len(stay)} columns that would come out, the one that was fitted had "
                f"{len(self.columns_)} of these names: {', '.join(self.columns_)}; give both the same columns"
            )
        if not frame.height:
            raise InputError("the table has a header and no rows, so there is nothing to transform")
        if keep_order:
            row_numbers(table)
        # a selection would interpret a column "*" as all columns
        frame, starred, notes = self._known(frame[[*self.columns_, *left_out]])
        try:
            release = prepare(
                like(table, frame), policy, fixed=FixedLevels(self.levels_, starred), secret=secret, after=after,
                max_composition=max_composition, force_composition=force_composition, target=target,
            )  # fmt: skip
        except InfeasibleError as error:
            raise InfeasibleError(
                f"under the recoding that was fitted, {error.sentence.marked}; nothing is given out. "
                "Transform all rows at once and split what comes out, or fit with more starred rows "
                "(⟨max_suppressed=⟩) or coarser hierarchies, or on a table as small as this one"
            ) from None
        release = replace(release, facts=replace(release.facts, notes=(*release.facts.notes, *notes)))
        release.check()
        return release

    def transform(self, table: Any) -> Any:
        """A table at the fitted levels, as the kind of frame that you passed (a path gives Polars), in the same order.

        Raises as ``apply`` does.
        """
        release, index = self.apply(table, keep_order=True), row_numbers(table)
        out = release.table
        if index is not None:
            out.index = index
        asked = getattr(self, "_sklearn_output_config", {}).get("transform")
        return out if asked is None else _as_kind(out, asked)

    def set_output(self, *, transform: str | None = None) -> Recoder:
        """Set the kind of frame that ``transform`` returns: "pandas", "polars", or "default", the kind of the input.

        scikit-learn calls this method if a pipeline sets its output. None changes nothing.
        """
        if transform is not None:
            kind = known("kind of frame", transform, ("default", "pandas", "polars"))
            self._sklearn_output_config = {} if kind == "default" else {"transform": kind}
        return self

    def save(self, path: str | Path, *, overwrite: bool = True) -> Path:
        """Write the recoder as a TOML file, with each hierarchy of rows as a CSV next to it; ``read`` loads it again.

        It contains the request, levels, names of columns, and the hierarchies, but nothing of a table's rows.
        overwrite  False: refuse to replace files that exist
        """
        if not self.__sklearn_is_fitted__():
            raise PolicyError("this Recoder was not fitted; call fit(table) first")
        trees = {
            **dict(self.hierarchies or {}),
            **{n: t for n, t in self._trees.items() if n in (self.hierarchies or {})},
        }
        kept = SavedRecoder(self.get_params(), trees, self.levels_, self.columns_, self._kinds)
        return write_saved(kept, Path(path), overwrite=overwrite)

    @classmethod
    def read(cls, path: str | Path) -> Recoder:
        """A recoder that ``save`` wrote.  Raises PolicyError for any other file."""
        kept = read_saved(Path(path))
        made = cls(**kept.asked, hierarchies=kept.hierarchies or None)
        asked = made._policy()
        made._trees = {n: Hierarchy.of(asked.hierarchies.get(n, "stars")) for n in asked.quasi_identifiers}
        made.levels_, made._kinds = dict(kept.levels), dict(kept.forms)
        made.columns_, made.certificate_ = list(kept.columns), None
        made.feature_names_in_ = np.array(made.columns_, object)
        return made

    def fit_transform(self, table: Any, y: Any = None) -> Any:
        """Fit, and transform the same table."""
        return self.fit(table, y).transform(table)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name, as scikit-learn requires."""
        names = ("quasi_identifiers", "sensitive", "identifiers", "insensitive", "k", "l", "hierarchies", *_BY_COLUMN)
        return {name: getattr(self, name) for name in (*names, "max_suppressed", "effort", "seed")}

    def set_params(self, **settings: Any) -> Recoder:
        """Set arguments by name; fit again afterwards."""
        keywords("argument of Recoder", settings, self.get_params())
        for name, value in settings.items():
            setattr(self, name, value)
        return self

    def get_feature_names_out(self, names: Any = None) -> np.ndarray:
        """The columns of the output, object[columns].

        names  the columns of the input, or None. Raises InputError if they are others than those that were fitted
        """
        if not self.__sklearn_is_fitted__():
            raise PolicyError("this Recoder was not fitted; call fit(table) first")
        if names is not None and list(names) != self.feature_names_in_.tolist():
            fitted, given = (", ".join(map(str, these)) for these in (self.feature_names_in_, names))
            raise InputError(f"the columns of the fitted table are {fitted}, not {given}; give these, or None")
        return np.array(self.columns_, object)

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the fitted table; AttributeError before ``fit``, as scikit-learn expects."""
        return len(self.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "levels_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(string=True, categorical=True, allow_nan=True),
        )

    def _policy(self) -> Policy:
        asked: dict[str, Any] = {
            "quasi_identifiers": list(self.quasi_identifiers), "sensitive": list(self.sensitive),
            "identifiers": list(self.identifiers), "insensitive": list(self.insensitive), "k": self.k, "l": self.l,
            "hierarchies": dict(self.hierarchies or {}),
            **{name: dict(getattr(self, name) or {}) for name in _BY_COLUMN},
            "max_suppressed": self.max_suppressed, "effort": self.effort, "seed": self.seed,
        }  # fmt: skip
        asked = {name: value for name, value in asked.items() if value is not None}
        word = next(
            (n for n, source in asked["hierarchies"].items() if isinstance(source, str) and source == REGIONS), None
        )
        if word is not None:
            raise PolicyError(
                f"a recoder reads no areas; pass the graph of {word!r} as a hierarchy, which "
                "shoal.Hierarchy.regions(areas, pairs, weights) makes: its classes are connected sets of areas"
            )
        publish = "hierarchy" if self.hierarchies else "stars"
        return Policy.of(None, **asked, publish=publish, global_recoding=True, keep_order=True)

    def _kind(self, column: pl.Series, name: str) -> tuple[int, str]:
        """The height of the column's hierarchy, and how it formats a whole number; both may depend on the values."""
        tree = self._trees[name]
        values = _distinct(column, self._notation(name))
        probe = "0" if tree.kind == "intervals" else None
        if probe is not None and probe not in values:
            values = [*values, probe]
        found = tree.resolve(values, name, reader_of(self._notation(name)))
        level = min(1, found.node.shape[0] - 1)
        return found.node.shape[0], "" if probe is None else found.labels[level][found.node[level][values.index(probe)]]

    def _notation(self, name: str) -> str | None:
        """The notation of a column's dates or numbers."""
        return named_notations({setting: getattr(self, setting) or {} for setting in _BY_COLUMN[1:]}).get(name)

    def _known(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, frozenset[str], list[str]]:
        """The table with unlisted values replaced by a value of their class; the columns to star; notes about them."""
        notes, starred = [], set()
        for name, level in self.levels_.items():
            values = _distinct(frame[name], self._notation(name))
            if STAR in values:
                raise InputError(f"column {name!r} holds the text {STAR!r}, which is the star; rename that value")
            tree = self._trees[name]
            if tree.kind == "rows":
                top = level == len(tree.rows[0])
                frame, moved, lost = placed(frame, name, tree, level, self._notation(name))
                if moved:
                    notes.append(f"{moved:,} rows of {name!r} hold values that the hierarchy lacks: nearest class")
                if lost:
                    notes.append(
                        f"{lost:,} rows of {name!r} hold values that no class of its hierarchy is near: starred"
                    )
                if lost and not top:
                    starred.add(name)
            elif self._kind(frame[name], name) != self._kinds[name]:
                raise _otherwise(name)
        return frame, frozenset(starred), notes


def _as_kind(frame: Any, kind: str) -> Any:
    """A frame as pandas or Polars; a pandas frame that stays pandas keeps its index."""
    if type(frame).__module__.partition(".")[0] == kind:
        return frame
    held = opened(frame)
    return held.to_pandas() if kind == "pandas" else held


def _otherwise(name: str) -> InputError:
    return InputError(
        f"column {name!r} holds values of another form than the table that was fitted (longer codes, or "
        "fractions where there were whole numbers), so that its classes would be named otherwise"
    )


def _texts(column: pl.Series, notation: str | None) -> pl.Series:
    """The values as text; all beyond a limit of the column are one."""
    if not of_limits(notation):
        return as_text(column)
    coded = encode(column, notation)
    return coded.values.gather(coded.codes)


def _distinct(column: pl.Series, notation: str | None) -> list[str | None]:
    """The values as text, in the order in which they appear."""
    return _texts(column, notation).unique(maintain_order=True).to_list()
