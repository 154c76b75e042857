"""One way out for every problem: an answer and the data it was found for, as something that may be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from shoal.engines.carried import named_sensitive
from shoal.engines.files import numbers
from shoal.engines.oddities import coded_places, sensitive_notes
from shoal.errors import InputError, PolicyError
from shoal.problems.catalogue import CATALOGUE, resolved
from shoal.publishing.crosswalks.crosswalk import Crosswalk
from shoal.publishing.opening import like, opened
from shoal.watching import watched


@watched
def release(
    answer: Any,
    data: Any,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    read: Sequence[str | Path | None] = (),
    **how: Any,
) -> Crosswalk:
    """An answer of a problem as a release: written, verified on its bytes and certified as tables are.

    answer  what ``shoal.labels.cover``, ``shoal.intervals.cut``, ``shoal.regions.merge`` or ``nested``,
            ``shoal.tiles.split``, ``shoal.gathering.gather`` or ``shoal.gathering.cellular`` returned
    data    what it was found for: a path, or a pandas, Polars, PyArrow, DuckDB or Spark frame
    how     labels: label=column, count=column of records (each row is one without it), naming="ends", "largest" or
            "numbers", or names=[...] of your own; intervals: value=column, count=, names=;
            regions: weight=column or columns, edges=pairs of row numbers (a Geography has its own), id=column,
            and the columns that were asked for: boundary=, fixed=, apart=, sensitive=, l=, ...;
            tiles: x=column, y=column, weight=column;
            clusters: columns=[...] in the order of the features, place=(latitude, longitude),
            coordinates={column: file}, hierarchies={column: file}, sensitive=[...], center="record", "mean" or
            "medoid", and for the assignments keep_order=, secret=
    separator, encoding  of data that is a CSV; found out when None
    read    files that the data came from, which are never written over; a path given as data is one

    Returns a ``Crosswalk``: ``.table``, ``.certificate``, ``.write(path)``, ``.report(path)``, ``.plot(path)``,
    ``.map(path)``; of clusters also ``.assignments``, ``.geojson(path)``, and frames of the kind that came in.

    Raises InputError when the answer is none of these data, PolicyError for an answer that may not be published.
    O(n log n) for n rows.

    Examples:
        >>> import polars as pl
        >>> import shoal
        >>> frame = pl.DataFrame({"name": ["Adams", "Baker", "Clark"], "people": [3, 2, 4]})
        >>> out = shoal.release(shoal.labels.cover(frame["people"], k=4), frame, label="name", count="people")
        >>> out.facts["smallest_group"]
        4
    """
    kind = type(answer)
    makers = [p.release for p in CATALOGUE.values() if kind.__name__ in p.answers]
    if not makers or not kind.__module__.startswith("shoal.problems."):
        raise InputError(
            f"a {kind.__name__} is no answer of a problem; tables of categories are released by shoal.anonymize"
        )
    make = resolved(makers[0])
    name = make.__name__
    from_path = [data] if isinstance(data, (str, Path)) else []
    files = tuple(p for p in (*from_path, *read) if p is not None)
    if name == "regions":
        return make(answer, data, files, **how)  # type: ignore[no-any-return]
    own = {n: p for n, p in signature(make).parameters.items() if p.kind == p.KEYWORD_ONLY}
    for given in how:
        if given not in own:
            raise PolicyError.unknown(f"argument of a release of {name}", given, own)
    lacking = [n for n, p in own.items() if p.default is p.empty and n not in how]
    if lacking:
        raise PolicyError(f"a release of {name} needs the names of columns: {', '.join(f'{n}=...' for n in lacking)}")
    made = _noted(make(answer, opened(data, separator, encoding), files, **how))
    return replace(made, native=partial(like, data)) if name == "clusters" else made


def _noted(made: Crosswalk) -> Crosswalk:
    """With what is to be said of the sensitive values and the places behind it."""
    given, table = made.parameters.get("sensitive") or (), made.sources.table
    if table is None:
        return made
    named = [given] if isinstance(given, str) else list(given)
    said = [*(note.removeprefix("warning: ") for note in named_sensitive(named)), *sensitive_notes(table, named)]
    for feature in made.parameters.get("features", ()):
        if feature["kind"] == "place" and feature["geometry"] == "great-circle":
            latitude, longitude = (numbers(table, name) for name in feature["columns"])
            said += coded_places(np.column_stack([longitude, latitude]))
    return replace(made, warnings=(*made.warnings, *said))
