"""``Policy``: a validated, immutable request with roles, privacy models, way to publish, and effort.

A request can name its models in a list, by keywords, and by a rule book; ``Policy.privacy`` contains all of them.
``choices`` gives all possible settings as plain values, from which forms, pages, and other languages make their fields.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, Unpack

from shoal.errors import PolicyError, Sentence, ShoalError, UnaskedError, within
from shoal.model.arguments import Effort, FrozenMapping, column_names, keywords, known, mapping, number, seed_of
from shoal.model.certificate import recipe
from shoal.model.hierarchy import GENERATED, REGIONS, is_built
from shoal.model.notation import named_notations, refuse_notations
from shoal.model.privacy import MODELS, KAnonymity, Model, PrivacyModel, describe, restore
from shoal.model.privacy.population import counts_rows
from shoal.model.refusals import (
    limits_of,
    limits_of_columns,
    minimality_of,
    refuse_coarsen,
    refuse_empty_names,
    refuse_hierarchies,
    refuse_missing,
    refuse_population,
    refuse_regions,
    with_regions,
)
from shoal.model.rule_books import RULE_BOOKS
from shoal.model.settings import EFFORTS, RECODINGS, SETTINGS, SHORTHANDS, PolicySettings
from shoal.paths import ending, is_json


class Models(tuple[Model, ...]):
    """The models of a policy, and the rule book among them.

    The type distinguishes these models from a list that a caller passes. If a policy is copied with other keywords,
    each keyword replaces its previous model. If a caller lists models, each keyword adds one.
    """

    preset: str | None = None


def by_shorthand(name: str, value: Any) -> Model:
    """The model of a shorthand such as ``t``; PolicyError for a wrong number of values."""
    short = SHORTHANDS[name]
    model: Any = MODELS[short.model]
    if len(short.kinds) == 1:
        return model(value, **dict(short.fixed))  # type: ignore[no-any-return]
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != len(short.kinds):
        raise PolicyError(f"⟨{name}={value!r}⟩: give two numbers")
    return model(*value, **dict(short.fixed))  # type: ignore[no-any-return]


def take_models(values: dict[str, Any]) -> Models:
    """Remove the shorthands and ``privacy`` from values, and return their models."""
    listed, preset = values.pop("privacy", ()), values.get("preset")
    if preset is not None and (not isinstance(preset, str) or preset not in RULE_BOOKS):
        raise PolicyError.unknown("preset", str(preset), RULE_BOOKS)
    from_shorthands = [
        by_shorthand(name, value) for name in SHORTHANDS if (value := values.pop(name, None)) is not None
    ]
    again = isinstance(listed, Models)
    models = list(listed) if again else _listed(listed)
    if again and listed.preset not in (None, values.get("preset", listed.preset)):
        models.remove(_book(listed.preset))
    book = None if preset is None else _book(preset)
    if book is not None and book not in models:
        models.append(book)
    for model in from_shorthands:
        former = [i for i, m in enumerate(models) if again and _alike(m, model) and m != book]
        models = [m for i, m in enumerate(models) if i not in former]
        models.insert(min(former, default=len(models)), model)
    held = Models(models)
    held.preset = preset
    return held


def _refusal_of(values: Mapping[str, Any]) -> str | None:
    """Why settings are refused; None if they are a policy."""
    try:
        Policy.of(values)
    except PolicyError as error:
        return str(error)
    return None


def _listed(given: Any) -> list[Model]:
    """The models that a caller lists: models, mappings as in a policy file, names of rule books."""
    models: list[Model] = []
    for item in [given] if not isinstance(given, Sequence) or isinstance(given, (str, bytes)) else given:
        if isinstance(item, Mapping) and "model" not in item:
            raise PolicyError(
                "⟨privacy⟩ holds a mapping that names no model; write such as {model = 'KAnonymity', k = 5}, with one "
                f"of {', '.join(MODELS)}"
            )
        if isinstance(item, Mapping):
            models.append(restore(dict(item)))
        elif isinstance(item, str) and item in RULE_BOOKS:
            models.append(_book(item))
        elif isinstance(item, Model):
            models.append(item)
        else:
            raise PolicyError(f"⟨privacy⟩ holds {item!r}, which is not a privacy model such as KAnonymity(5)")
    return models


def _book(preset: str) -> Model:
    """The model of a rule book."""
    return KAnonymity(RULE_BOOKS[preset].k)


def _alike(one: Model, other: Model) -> bool:
    """Whether two models have the same keyword: the same model of the same columns, measured the same way."""
    fixed = {name for short in SHORTHANDS.values() if short.model == type(one).__name__ for name, _ in short.fixed}
    return type(one) is type(other) and all(getattr(one, n) == getattr(other, n) for n in ("column", *fixed))


BOUNDS = SETTINGS["bound"].words  # what a certificate may state about the ratio to the minimum loss
PERIODS = ("month", "year")  # steps of dates other than numbers of days
PLACE = "place"
_COUNTED = ("person", "household", "population_weights")  # columns that are counted and removed


@dataclass(frozen=True, kw_only=True, init=False)
class Policy:
    """A request for a release: ``Policy(quasi_identifiers=["age", "zip"], sensitive=["disease"], k=5, l=3)``.

    ``shoal.model.settings`` has an entry for each setting, with its default and its meaning; docs/settings.md lists
    them. If you copy a policy with another k (``dataclasses.replace(policy, k=3)``), it replaces the previous k.
    ``source`` is the file from which the policy was read, and ``written`` has the settings that it states;
    ``certified`` has the SHA-256 of each graph of areas that the certificate from which it was read names.

    Raises PolicyError for an unknown setting and for settings that contradict each other. Sources: docs/tables.md.

    Examples:
        >>> from dataclasses import replace
        >>> policy = Policy(quasi_identifiers=["age", "zip"], sensitive="disease", k=5, l=3)
        >>> print(*(model.words() for model in replace(policy, k=3).privacy), sep="; ")
        every group has at least 3 rows; at most 1/3 of every group share a value
    """

    # types after validation; ``settings`` has the types of the arguments and the defaults
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    identifiers: tuple[str, ...]
    insensitive: tuple[str, ...]
    person: str | None
    household: str | None
    population: Any = field(compare=False)
    population_weights: str | None
    coordinates: tuple[str, str] | None
    privacy: tuple[Model, ...]
    preset: str | None
    publish: str
    hierarchies: Mapping[str, Any] = field(hash=False)
    areas: Any = field(compare=False)
    edges: str | Path | None = field(compare=False)
    region_loss: str
    weights: Mapping[str, float] = field(hash=False)
    max_level: Mapping[str, int] = field(hash=False)
    range_step: Mapping[str, float | str] = field(hash=False)
    dates: Mapping[str, str] = field(hash=False)
    decimal: Mapping[str, str] = field(hash=False)
    top: Mapping[str, float] = field(hash=False)
    bottom: Mapping[str, float] = field(hash=False)
    global_recoding: bool
    coarsen: str | None
    max_suppressed: float
    max_average_risk: float | None
    minimality: float | None
    method: str
    effort: str | float
    shards: int | None
    seed: int | None
    keep_order: bool
    missing: str
    star: str
    numeric_stars: str
    bound: str
    strict_roles: bool
    engine: str | None = field(compare=False)
    judge: str = field(compare=False)
    memory: str | None = field(compare=False)
    threads: int | None = field(compare=False)
    temporary: str | Path | None = field(compare=False)
    source: Path | None = field(default=None, compare=False)
    written: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    certified: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __init__(self, **asked: Unpack[PolicySettings]) -> None:
        """Raises PolicyError, with a suggestion, for unknown settings and for contradictions."""
        values: dict[str, Any] = dict(asked)
        known_names = [f.name for f in fields(self)] + [*SHORTHANDS]
        keywords("setting of a policy", values, known_names)
        values["privacy"] = take_models(values)
        values |= with_regions(values)
        read: dict[str, Any] = {"source": None, "written": {}, "certified": {}}
        held = read | {name: entry.default for name, entry in SETTINGS.items()} | values
        held["written"] = mapping("written", held["written"])
        for name, entry in SETTINGS.items():
            if entry.kind == "names" and not (held[name] is None and entry.default is None):
                held[name] = column_names(name, held[name])
        for name, value in held.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """Refuse contradictions, part by part. Mappings are copied, so that checked values can't change."""
        for name in (self.person, self.household):
            if name is not None and (not isinstance(name, str) or not name):
                raise PolicyError(f"{name!r} names no column; person and household are one column each")
        refuse_empty_names(self)
        refuse_population(self)
        refuse_missing(self)
        self._check_roles()
        self._check_words()
        self._check_columns()
        if self.publish == "hierarchy" and not any(name in self.grouped for name in self.hierarchies):
            raise PolicyError(
                "⟨publish='hierarchy'⟩ needs ⟨hierarchies={column: ...}⟩ for at least one quasi-identifier; "
                "columns without one are published as value or star"
            )
        if self.global_recoding and self.publish not in ("hierarchy", "stars"):
            raise PolicyError(f"⟨global_recoding⟩ works on levels; it cannot go with ⟨publish={self.publish!r}⟩")
        refuse_coarsen(self)
        for name, value in {**limits_of(self), **minimality_of(self)}.items():
            object.__setattr__(self, name, value)
        effort = Effort.of(self.effort)
        object.__setattr__(self, "effort", effort.name if effort.seconds is None else effort.seconds)
        if not self.privacy:
            raise UnaskedError("there is no privacy model; say ⟨k=5⟩, or ⟨l=3⟩ with a sensitive column")

    def _check_roles(self) -> None:
        """Check that every column has one role. Persons and weights become identifiers; places are published as
        tiles."""
        leave = (*self.units, *(n for n in self.weighed if n not in self.insensitive))
        kept = tuple(n for n in self.identifiers if n not in leave)
        object.__setattr__(self, "identifiers", (*kept, *leave))
        roles = {
            "quasi_identifiers": self.quasi_identifiers,
            "sensitive": self.sensitive,
            "identifiers": kept,
            "insensitive": self.insensitive,
            **{what: (name,) for what in _COUNTED if (name := getattr(self, what)) in leave},
        }
        if self.coordinates is not None:
            roles["coordinates"] = self.coordinates
            if len(self.coordinates) != 2:
                raise PolicyError(
                    f"⟨coordinates={self.coordinates!r}⟩: name two columns, x (longitude) and y (latitude)"
                )
            if self.publish != "hierarchy":
                raise PolicyError("coordinates are published as tiles; say ⟨publish='hierarchy'⟩")
            object.__setattr__(self, "hierarchies", {**self.hierarchies, PLACE: "tiles"})
        if not self.grouped:
            raise UnaskedError(
                "no quasi-identifier is named; say ⟨quasi_identifiers=[...]⟩ (the columns others may know; shoal init "
                "and shoal.roles propose them)"
            )
        seen: dict[str, str] = {}
        for role, names in roles.items():
            for name in names:
                if name in seen:
                    both = " and ".join(f"⟨{r}=...⟩" if r in _COUNTED else f"⟨{r}=[...]⟩" for r in (seen[name], role))
                    other = "twice" if seen[name] == role else f"in both {both}"
                    raise PolicyError(
                        f"column {name!r} is named {other}; a column has one role, so take it out of one of them"
                    )
                seen[name] = role

    def _check_words(self) -> None:
        """Check settings that are a word, a switch, or a seed."""
        if not isinstance(self.method, str):
            raise PolicyError(f"⟨method={self.method!r}⟩: a method is the name of one")
        for name, entry in SETTINGS.items():
            if entry.kind == "switch" and not isinstance(getattr(self, name), bool):
                raise PolicyError(f"⟨{name}={getattr(self, name)!r}⟩: say true or false")
        # one level for each column is published, and the certificate must state this
        if self.method == "global_recoding":
            object.__setattr__(self, "global_recoding", True)
        known("way to publish", self.publish, RECODINGS, {name: way.words for name, way in RECODINGS.items()})
        for name in ("numeric_stars", "bound", "judge"):
            known(f"choice for ⟨{name}⟩", getattr(self, name), SETTINGS[name].words)
        if not isinstance(self.star, str) or not self.star:
            raise PolicyError(f"⟨star={self.star!r}⟩: a suppressed value is written as a text that is not empty")
        object.__setattr__(self, "seed", seed_of(self.seed))

    def _check_columns(self) -> None:
        """Check that settings by column name a quasi-identifier and have allowed values."""
        for what in (name for name, entry in SETTINGS.items() if entry.kind == "mapping"):
            given = getattr(self, what)
            if not isinstance(given, Mapping):
                raise PolicyError(
                    f"⟨{what}={given!r}⟩: give a mapping from column to value, {{{self.grouped[0]!r}: ...}}"
                )
            of_both = what in ("hierarchies", "dates", "decimal")
            named = [*self.grouped, *(self.sensitive if of_both else ())]
            places = (self.coordinates or ()) if what == "decimal" else ()
            for name in given:
                if name not in (*named, *places):
                    if name in SETTINGS or name in SHORTHANDS:
                        raise PolicyError(
                            f"⟨{what}⟩ holds the setting {name!r}; in a policy file, every line below [{what}] is part "
                            "of it, so move the other settings above that line"
                        )
                    kinds = "quasi-identifier or sensitive column" if of_both else "quasi-identifier"
                    raise PolicyError.unknown(f"{kinds} (⟨{what}⟩)", name, [*named, *places])
            object.__setattr__(self, what, FrozenMapping(given))
        refuse_hierarchies(self)
        refuse_regions(self)
        says = "a weight is a positive number, from 0.000001 to 1,000,000; only how weights compare counts"
        plain = {n: number(f"weights[{n!r}]", w, says, lambda x: 1e-6 <= x <= 1e6) for n, w in self.weights.items()}
        object.__setattr__(self, "weights", FrozenMapping(plain))
        for name, level in self.max_level.items():
            if isinstance(level, bool) or not isinstance(level, int) or level < 0:
                raise PolicyError(
                    f"⟨max_level[{name!r}] = {level!r}⟩: a level is a whole number from 0, the value itself"
                )
        refuse_notations(self.dates, self.decimal)
        for name, plain_limits in limits_of_columns(self).items():
            object.__setattr__(self, name, FrozenMapping(plain_limits))
        self._check_steps()

    def _check_steps(self) -> None:
        for name, step in self.range_step.items():
            good = step in PERIODS if isinstance(step, str) else not isinstance(step, bool) and isinstance(step, Real)
            if not good or (not isinstance(step, str) and not 0 < step < float("inf")):
                raise PolicyError(
                    f"⟨range_step[{name!r}] = {step!r}⟩: a step is a number above 0, for dates of days, "
                    "or 'month' or 'year'"
                )
        plain = {
            n: s if isinstance(s, str) else int(s) if s == int(s) else float(s) for n, s in self.range_step.items()
        }
        object.__setattr__(self, "range_step", FrozenMapping(plain))
        if self.range_step and self.publish != "ranges":
            raise PolicyError(f"⟨range_step⟩ widens ranges; it cannot go with ⟨publish={self.publish!r}⟩; leave it out")
        if self.max_level and RECODINGS[self.publish].recoding != "Levels":
            ranges = self.publish == "ranges"
            none = "ranges have none; ⟨range_step⟩ widens ranges" if ranges else f"⟨publish={self.publish!r}⟩ has none"
            raise PolicyError(f"⟨max_level⟩ counts levels of a hierarchy, and {none}")

    @property
    def grouped(self) -> tuple[str, ...]:
        """The quasi-identifiers as they are published. Coordinates become one of them, ``place``."""
        return self.quasi_identifiers if self.coordinates is None else (*self.quasi_identifiers, PLACE)

    @property
    def notations(self) -> dict[str, str]:
        """Column -> notation of its dates, decimal mark of its numbers, or limits."""
        return named_notations({n: getattr(self, n) for n in ("dates", "decimal", "bottom", "top")})

    @property
    def limits(self) -> dict[str, str]:
        """Column -> its limits as a notation, such as ``<=18 >=90``."""
        return named_notations({"bottom": self.bottom, "top": self.top})

    @property
    def units(self) -> tuple[str, ...]:
        """The columns whose values k counts in addition to rows: persons and households."""
        return tuple(n for n in (self.person, self.household) if n is not None)

    @property
    def of_rows(self) -> tuple[PrivacyModel, ...]:
        """The models that the released rows show. Models that count persons need the person column, which is
        removed."""
        return tuple(m for m in self.privacy if not (self.units and counts_rows(m)))

    @property
    def weighed(self) -> tuple[str, ...]:
        """The column of weights, if there is one."""
        return () if self.population_weights is None else (self.population_weights,)

    @property
    def counting(self) -> tuple[str, ...]:
        """Columns that are counted like sensitive ones, but need not be diverse in any group."""
        return (*self.units, *self.weighed)

    @property
    def files(self) -> tuple[str | Path, ...]:
        """The policy file and the files that the policy names, which no output may replace."""
        given = (h for h in self.hierarchies.values() if isinstance(h, (str, Path)) and h not in (*GENERATED, REGIONS))
        named = [h for h in given if not is_built(h)]
        people = [p for p in (self.population, self.areas, self.edges) if isinstance(p, (str, Path))]
        return (*([] if self.source is None else [self.source]), *named, *people)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name settings of the policy file by their keys in a refusal that the block raises. Add to the refusal of a
        column the setting and the file that name the column."""
        try:
            yield
        except ShoalError as error:
            if error.keys:  # an inner block has done it
                raise
            error.keys = self.written.keys()
            for setting in ("quasi_identifiers", "sensitive", "identifiers", "insensitive", "coordinates", *_COUNTED):
                if self.source is not None and error.column in column_names(setting, self.written.get(setting, ())):
                    with within(f"⟨{setting}⟩ of {self.source.name}"):
                        raise
            raise

    @classmethod
    def of(cls, given: Policy | Mapping[str, Any] | None = None, **more: Any) -> Policy:
        """The policy of a Policy or a mapping, with single settings replaced by keyword arguments: k=3 keeps l.

        Raises PolicyError, with a suggestion, for unknown settings.
        """
        base: dict[str, Any] = {}
        if isinstance(given, Policy):
            base = {f.name: getattr(given, f.name) for f in fields(cls)}
        else:
            if isinstance(given, (str, Path)):
                raise PolicyError(f"a policy that is a file is read first: shoal.Policy.read({str(given)!r})")
            if isinstance(given, (list, tuple)):
                raise PolicyError(
                    f"the second argument is the policy, and a {type(given).__name__} is given; name the columns with "
                    "⟨quasi_identifiers=[...]⟩"
                )
            base = dict(mapping("the policy", given))
        more = {name: value for name, value in more.items() if value is not None or name == "seed"}
        if "seed" in more and more["seed"] is None and "seed" in base:
            more.pop("seed")
        if isinstance(given, Policy):
            base["written"] = {name: held for name, held in given.written.items() if name not in more}
        return cls(**{**base, **more})

    @classmethod
    def read(cls, path: str | Path, **more: Any) -> Policy:
        """A policy from a TOML file, or from the certificate file (.json) of a release, to make the same request again.

        The keys are the keyword arguments of ``Policy``. Paths of hierarchies are relative to the file.
        """
        path = Path(path)
        if is_json(path):
            given = more.get("hierarchies")
            values = recipe(path, GENERATED, PLACE, given if isinstance(given, Mapping) else {})
            if values["hierarchies"] and "hierarchies" in more:
                more["hierarchies"] = {**values["hierarchies"], **more["hierarchies"]}
            return cls.of({**values, "privacy": take_models(dict(values))}, **more)
        try:
            with open(path, "rb") as file:
                values = tomllib.load(file)
        except FileNotFoundError:
            raise PolicyError(f"there is no policy file {str(path)!r}; shoal init TABLE writes one") from None
        except IsADirectoryError:
            raise PolicyError(f"{str(path)!r} is a folder; name the policy file in it") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            at = re.search(r"at line \d+, column \d+|at end of document", str(error))
            if at and "overwrite" in str(error):
                raise PolicyError(
                    f"{path.name!r} has a setting a second time ({at[0]}); take one of them out"
                ) from None
            mend = "shoal init TABLE writes one"
            if at and ending(path) == ".toml":
                mend = f"it is unreadable {at[0]}: there or above, a comma, a quote, or a bracket may be missing, or "
                mend += "true and false have a capital letter"
            raise PolicyError(f"{path.name!r} is not TOML; {mend}") from None
        for name in ("source", "written", "certified"):
            if name in values:
                raise PolicyError(f"{path.name!r} has the setting {name!r}, which is not one of a policy; take it out")
        given = values.get("hierarchies")
        for name, source in list(given.items()) if isinstance(given, dict) else []:
            if isinstance(source, str) and source not in (*GENERATED, REGIONS) and not is_built(source):
                values["hierarchies"][name] = str(path.parent / source)
        for name in ("population", "areas", "edges"):
            if isinstance(values.get(name), str):
                values[name] = str(path.parent / values[name])
        replaced = {n for n, v in more.items() if v is not None}
        try:
            written = {name: held for name, held in values.items() if name not in replaced}
            return cls.of(values, **more, source=path, written=written)
        except PolicyError as error:
            error.keys = values.keys() - replaced
            if error.keys & set(error.settings) or _refusal_of(values) == str(error):
                error.keys |= set(error.settings) - replaced
                error.args = (Sentence(f"in {path.name}, {error.sentence.marked}"),)
            raise

    def seeded(self, seed: int) -> Policy:
        """This policy with the given seed, if it has none, so that the seed is recorded and the search can be repeated.

        A seed fixes which cells share a group. It doesn't influence rows: only the shuffle key assigns and orders them.
        """
        return self if self.seed is not None else replace(self, seed=seed)

    def describe(self) -> dict[str, Any]:
        """The request as plain values for the certificate, with hierarchies by the name of their file."""
        otherwise = {
            "quasi_identifiers": list(self.grouped),
            "population": _table(self.population),
            "areas": _table(self.areas),
            "edges": _table(self.edges),
            "privacy": [describe(m) for m in self.privacy],
            "hierarchies": {
                name: REGIONS
                if getattr(h, "kind", None) == REGIONS
                else Path(h).name
                if isinstance(h, (str, Path))
                else getattr(h, "builder", None) or type(h).__name__
                for name, h in self.hierarchies.items()
            },
        }
        held = {f.name: getattr(self, f.name) for f in fields(self) if f.name in SETTINGS}
        plain = {name: otherwise[name] if name in otherwise else _plain(value) for name, value in held.items()}
        return {name: value for name, value in plain.items() if SETTINGS[name].is_stated(held[name])}


def _table(given: Any) -> str | None:
    """The file name of a table; a description if it isn't a file."""
    return Path(given).name if isinstance(given, (str, Path)) else None if given is None else "a table in memory"


def _plain(value: Any) -> Any:
    """A setting as JSON represents it."""
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def choices() -> dict[str, Any]:
    """The tables of settings that ``Policy`` and the command line read, as plain values.

    "settings" keyword of a policy -> "help" in a line and "more", "kind" of value ("names", "mapping", "switch",
               "whole", "number", "text", "file", "models"), "words" it may be, "default", "option" of the command line
               and "section" of its help
    "models"   keyword of a policy -> formal "name", "help" in a line, "numbers" (the kind of each, "int" or "float"),
               what it "applies_to" (rows, columns, persons, or tuples), and "source"
    "presets"  rule book -> its k, source, reason, and what it doesn't cover
    "publish"  way to publish -> what it shows;  "effort": names of efforts

    Examples:
        >>> choices()["models"]["k"]["name"], choices()["models"]["recursive_cl"]["numbers"]
        ('k-anonymity', ['float', 'int'])
        >>> choices()["settings"]["missing"]["words"]
        ['category', 'apart', 'filled']
    """
    models = {
        name: {
            "name": MODELS[short.model].name,
            "help": short.help,
            "numbers": [kind.__name__ for kind in short.kinds],
            "applies_to": MODELS[short.model].applies_to,
            "source": MODELS[short.model].source,
        }
        for name, short in SHORTHANDS.items()
    }
    return {
        "settings": {
            name: {
                "help": entry.help, "more": entry.more, "kind": entry.kind, "words": list(entry.words),
                "default": _plain(entry.default), "option": entry.option, "section": entry.section,
            }
            for name, entry in SETTINGS.items()
        },
        "models": models,
        "presets": {name: book.as_dict() for name, book in RULE_BOOKS.items()},
        "publish": {name: way.words for name, way in RECODINGS.items()},
        "effort": list(EFFORTS),
    }  # fmt: skip
