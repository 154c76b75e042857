"""A recoding found on one table and applied to others, in the manner of scikit-learn; nothing of it is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.carried import look
from shoal.engines.codes import as_text
from shoal.engines.frames import require
from shoal.engines.index import row_numbers
from shoal.engines.open import open_table
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.model.audit import Audit
from shoal.model.hierarchy import Hierarchy
from shoal.model.policy import GENERATED, Policy
from shoal.pipeline import anonymize
from shoal.publishing.opening import like, opened
from shoal.publishing.tables.audited import audit_table

STAR = "*"


class Recoder:
    """One level of a hierarchy for every quasi-identifier, found by ``fit`` and applied by ``transform``.

    quasi_identifiers, sensitive, identifiers, insensitive, k, l, hierarchies, max_level, effort, seed
        as in ``shoal.anonymize``; a column without a hierarchy is kept or starred whole.  Sensitive columns must stand
        in every table that is transformed; leave them out where what is transformed has none

    The recoding is *global*: equal values become equal in every table, so that a model learns from what it will meet.
    Groups chosen row by row would differ from table to table, overlap, and let two tables be set against each other.

    What is promised.  Each table that comes out meets k (and l) by its own rows: it is judged after it was recoded, and
    InfeasibleError is raised, and nothing comes out, where a group is too small.  So few rows at once are refused.
    Somebody who stands in two tables shows the same in both, but hides among those only that both groups may mean, and
    an attacker who knows that both hold the person learns what the two groups' sensitive values have in common.  The
    levels themselves depend on the table that was fitted, of which they tell no more than this.  Rows stay in their
    order and under their index, so that a target column stays aligned: drop the index and shuffle before publishing.

    ``fit`` is O(n) and the search of ``method="global_recoding"``; ``transform`` is O(n).  After it, ``levels_`` has
    the level of each column, ``certificate_`` what that costs the fitted table, ``columns_`` the columns that come out.

    Examples:
        >>> import polars as pl
        >>> import shoal
        >>> table = pl.DataFrame({"age": [31, 33, 38, 52, 54, 59]})
        >>> recoder = shoal.Recoder(["age"], k=3, hierarchies={"age": "intervals:10,20"}).fit(table)
        >>> recoder.transform(pl.DataFrame({"age": [35, 36, 37]}))["age"].to_list()
        ['30-39', '30-39', '30-39']
    """

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
        self.effort = effort
        self.seed = seed

    def fit(self, table: Any, y: Any = None) -> Recoder:
        """Find the levels that lose least of this table; ``y`` is not looked at.

        table  a path, or a frame of any kind
        """
        policy = self._policy()
        made = [n for n, source in policy.hierarchies.items() if isinstance(source, str) and source in GENERATED]
        if made:
            raise PolicyError(
                f"hierarchies[{made[0]!r}] is made from the table's own counts, which another table has not; name a "
                "file or a builder such as 'intervals:5,10'"
            )
        frame = opened(table)
        found = anonymize(frame, policy)
        self.levels_ = {name: int(level) for name, level in found.certificate.details["levels"].items()}
        self.certificate_ = found.certificate
        self.columns_ = [c for c in frame.columns if c not in policy.identifiers]
        self._trees = {n: Hierarchy.of(policy.hierarchies.get(n, "stars")) for n in policy.quasi_identifiers}
        self._kinds = {name: self._kind(frame[name], name) for name in policy.quasi_identifiers}
        return self

    def transform(self, table: Any) -> Any:
        """A table at the levels that were fitted, of the kind that came (a path gives Polars), its rows in their order.

        Raises InfeasibleError where a group would be too small, PolicyError for values that the hierarchies do not
        have, InputError for columns that are missing or that single people out, and for a pandas index that may.
        """
        if not hasattr(self, "levels_"):
            raise PolicyError("this Recoder was not fitted; call fit(table) first")
        policy, frame = self._policy(), opened(table)
        require(frame.columns, [*policy.quasi_identifiers, *policy.sensitive])
        frame = frame.drop(c for c in policy.identifiers if c in frame.columns)
        if sorted(frame.columns) != sorted(self.columns_):
            raise InputError(
                f"the table has {len(frame.columns)} columns that would come out, the one that was fitted had "
                f"{len(self.columns_)} of these names: {', '.join(self.columns_)}; give both the same columns"
            )
        if not frame.height:
            raise InputError("the table has a header and no rows, so there is nothing to transform")
        look(open_table(frame), policy)
        index = row_numbers(table)
        out = frame.select(self.columns_).with_columns(self._recoded(frame[name], name) for name in self.levels_)
        self._refuse(audit_table(open_table(out), policy, 0.2, policy.privacy))
        given = like(table, out)
        if index is not None:
            given.index = index
        return given

    def fit_transform(self, table: Any, y: Any = None) -> Any:
        """Fit, and transform the same table."""
        return self.fit(table, y).transform(table)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name, as scikit-learn asks for them."""
        names = ("quasi_identifiers", "sensitive", "identifiers", "insensitive", "k", "l", "hierarchies", "max_level")
        return {name: getattr(self, name) for name in (*names, "effort", "seed")}

    def set_params(self, **settings: Any) -> Recoder:
        """Set arguments by name; fit again afterwards."""
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise PolicyError.unknown("argument of Recoder", name, known)
            setattr(self, name, value)
        return self

    def get_feature_names_out(self, names: Any = None) -> np.ndarray:
        """The columns that come out."""
        return np.array(self.columns_, object)

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
            "hierarchies": dict(self.hierarchies or {}), "max_level": dict(self.max_level or {}),
            "effort": self.effort, "seed": self.seed,
        }  # fmt: skip
        asked = {name: value for name, value in asked.items() if value is not None}
        publish = "hierarchy" if self.hierarchies else "stars"
        return Policy.of(None, **asked, publish=publish, global_recoding=True, keep_order=True)

    def _kind(self, column: pl.Series, name: str) -> tuple[int, str]:
        """Height of the column's hierarchy, and how it writes a whole number: both may follow from the values."""
        tree = self._trees[name]
        values = _distinct(column)
        probe = "0" if tree.kind == "intervals" else None
        if probe is not None and probe not in values:
            values = [*values, probe]
        found = tree.resolve(values, name)
        level = min(1, found.node.shape[0] - 1)
        return found.node.shape[0], "" if probe is None else found.labels[level][found.node[level][values.index(probe)]]

    def _recoded(self, column: pl.Series, name: str) -> pl.Series:
        """A column at its level: as it is, or as text."""
        level, values = self.levels_[name], _distinct(column)
        if STAR in values:
            raise InputError(f"column {name!r} holds the text {STAR!r}, which is the star; rename that value")
        if self._kind(column, name) != self._kinds[name]:
            raise InputError(
                f"column {name!r} holds values of another form than the table that was fitted (longer codes, or "
                "fractions where there were whole numbers), so that its classes would be named otherwise"
            )
        if level == 0:
            return column
        found = self._trees[name].resolve(values, name)
        labels = [found.labels[level][i] for i in found.node[level].tolist()]
        top = level == found.node.shape[0] - 1
        shown = [None if v is None and not top else text for v, text in zip(values, labels, strict=True)]
        texts = as_text(column).alias("__shoal_own")
        table = pl.DataFrame(
            {"__shoal_own": pl.Series(values, dtype=pl.String), name: pl.Series(shown, dtype=pl.String)}
        )
        return texts.to_frame().join(table, on="__shoal_own", how="left", nulls_equal=True, maintain_order="left")[name]

    def _refuse(self, audit: Audit) -> None:
        """InfeasibleError unless every model holds."""
        failed = next((check for check in audit.checks if not check.passes), None)
        if failed is None:
            return
        if audit.smallest_class < self.k:
            few = sum(int(size) * number for size, number in audit.sizes.items() if int(size) < self.k)
            why = f"{few:,} of {audit.rows:,} rows would stand in groups of fewer than k = {self.k}"
        else:
            why = f"{failed.model} of {failed.column or 'the groups'} would not hold"
        raise InfeasibleError(
            f"under the recoding that was fitted {why}, so nothing is given out; transform all rows at once and "
            "split what comes out, or fit with coarser hierarchies, or on a table as small as this one"
        )


def _distinct(column: pl.Series) -> list[str | None]:
    """The values as text, in the order in which they appear."""
    return as_text(column).unique(maintain_order=True).to_list()  # type: ignore[no-any-return]
