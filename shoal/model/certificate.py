"""The certificate of an answer: its cost, a lower bound for every valid answer, and the argument for the bound.

A ``Certificate`` is private and has the exact bound. A ``PublicCertificate`` has only the ratio, rounded up to one of
a few steps.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from shoal.errors import CertificateError, InputError
from shoal.model.cards import Shown, certificate_lines, number
from shoal.model.conditions import (
    Each,
    is_flag,
    is_null,
    is_number,
    is_text,
    is_whole,
    misfit,
    misstated,
)
from shoal.model.hierarchy import BUILDERS, REGIONS, Hierarchy
from shoal.model.settings import SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What a theorem promises before it sees the input: cost <= factor * optimum + additive.

    If nothing is promised (a heuristic), ``factor`` and ``additive`` are None. A factor without an ``additive``
    adds nothing. ``theorem`` names the source, for example "Xiao, Yi, Tao 2010, Theorem 5.19".
    """

    factor: float | None = None
    additive: float | None = None
    theorem: str = "none: a heuristic, judged by the instance bound alone"

    def __post_init__(self) -> None:
        if self.factor is not None and not self.factor >= 1:
            raise CertificateError(f"a guarantee of factor {self.factor} is below 1")
        if self.additive is not None and not self.additive >= 0:
            raise CertificateError(f"a guarantee of additive term {self.additive} is below 0")

    def as_dict(self) -> dict[str, Any]:
        """Plain values only, ready for JSON."""
        return {"factor": self.factor, "additive": self.additive, "theorem": self.theorem}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The inverse of ``as_dict``. A missing part gets its default; TypeError for other content."""
        if not isinstance(data, Mapping) or not isinstance(data.get("theorem", ""), str):
            raise TypeError("the guarantee")
        if any(type(data.get(name)) not in (int, float, type(None)) for name in ("factor", "additive")):
            raise TypeError("the guarantee")
        return cls(**data)


LADDER = (1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)  # the values of a published ratio
MORE = "more"  # a ratio above the ladder

ROUNDING = 1e-9  # largest relative difference of two sums of floats that counts as rounding


def tight(bound: float, cost: float, unit: str, why: str = "") -> int | float:
    """A bound for a certificate: the bound itself, or the cost if the bound exceeds it only by the rounding of floats.

    Integers have no rounding: if both are integers, a bound above the cost is an error.

    Raises CertificateError for a bound that is not finite or that exceeds the cost by more. Then one of the two is
    miscomputed, and a lowered bound would be a wrong proof of optimality.
    """
    exact, paid = _plain(bound), _plain(cost)
    if exact <= paid:
        return exact
    counted = isinstance(exact, int) and isinstance(paid, int)
    if counted or not exact <= paid * (1 + ROUNDING):
        raise CertificateError(
            f"lower bound {exact} is above the cost {paid} {unit}; "
            f"the bound ({why or 'unnamed'}) or the cost is miscomputed"
        )
    return paid


def _plain(value: float) -> int | float:
    return int(value) if isinstance(value, Integral) else float(value)


def ratio_step(ratio: Fraction | float | None) -> float | str | None:
    """A proved ratio, rounded up to a step of ``LADDER``: 1.3 gives 1.5, 12 gives "more"; None if nothing is proved.

    This step is the only figure of a public certificate that depends on the original. It is one of twelve values, so it
    reveals at most log2(12) = 3.6 bits.
    """
    if ratio is None:
        return None
    return next((step for step in LADDER if ratio <= step), MORE)


@contextmanager
def _a_certificate() -> Iterator[None]:
    """Inside the block, turn errors about missing or wrong parts into CertificateError."""
    try:
        yield
    except CertificateError:
        raise
    except (KeyError, TypeError) as error:
        raise CertificateError(f"not a certificate: {error!s} is missing or of the wrong kind") from error
    except (ValueError, OverflowError) as error:
        raise CertificateError("not a certificate: it holds words where a number belongs") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCertificate:
    """The figures of an answer's quality in a certificate file. Only the rounded ratio depends on the original.

    unit           what is counted, as in ``Certificate``
    cost           the loss in that unit that the released file itself shows; None if the file doesn't show it
    ratio_at_most  the answer costs at most this many times the optimum: a step of ``LADDER``, "more" if it is above
                   all steps, None if no ratio is proved or published
    guarantee      what a theorem promises for every input
    """

    unit: str
    cost: float | None
    ratio_at_most: float | str | None
    guarantee: Guarantee = field(default_factory=Guarantee)

    def __post_init__(self) -> None:
        known = self.ratio_at_most is None or self.ratio_at_most == MORE or self.ratio_at_most in LADDER
        if not known or isinstance(self.ratio_at_most, bool):
            raise CertificateError(f"a ratio of {self.ratio_at_most!r} is none that a certificate publishes")
        if self.cost is not None and not 0 <= self.cost < math.inf:
            raise CertificateError(f"a cost of {self.cost} {self.unit} cannot be")

    def as_dict(self) -> dict[str, Any]:
        """Plain values only, ready for JSON."""
        return {
            "unit": self.unit,
            "cost": self.cost,
            "ratio_at_most": self.ratio_at_most,
            "guarantee": self.guarantee.as_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PublicCertificate:
        """The inverse of ``as_dict``; raises CertificateError for other content."""
        with _a_certificate():
            odd = misfit(data, _PUBLIC_PROOF)
            if odd is not None:
                raise KeyError(odd)
            return cls(**{**data, "guarantee": Guarantee.from_dict(data["guarantee"])})

    def __repr__(self) -> str:
        least = {None: "no ratio is published", MORE: f"a ratio above {LADDER[-1]:g} is proved", 1.0: "proved least"}
        shown = "" if self.cost is None else f"{number(self.cost)} {self.unit}, "
        return f"Certificate: {shown}{least.get(self.ratio_at_most, f'at most {self.ratio_at_most} times the least')}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Certificate(Shown):
    """Cost and lower bound of one answer, in one unit, with the argument for each.

    cost         the cost of this answer: int if the unit is counted, otherwise float
    lower_bound  no valid answer costs less. A certificate needs 0 <= lower_bound <= cost
    unit         what is counted: "stars", "suppressed tuples", "ncp", "records", "km"
    guarantee    what the method promises before the run
    bound        the theorem or argument behind lower_bound
    details      further facts: the phase reached, the limit that stopped a search, ...
    """

    cost: float
    lower_bound: float
    unit: str
    guarantee: Guarantee = field(default_factory=Guarantee)
    bound: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    IN_A_LINE: ClassVar[int] = 3

    def __post_init__(self) -> None:
        cost, bound = _plain(self.cost), _plain(self.lower_bound)
        finite = isinstance(cost, int) or math.isfinite(cost)  # an int may be larger than any float
        if not (finite and 0 <= bound <= cost):
            raise CertificateError(
                f"lower bound {bound} is outside 0..{cost} {self.unit}; "
                f"the bound ({self.bound or 'unnamed'}) or the cost is miscomputed"
            )
        object.__setattr__(self, "cost", cost)
        object.__setattr__(self, "lower_bound", bound)
        object.__setattr__(self, "details", dict(self.details))

    @property
    def ratio(self) -> Fraction | float | None:
        """An upper bound for the cost divided by the optimum: cost / lower_bound.

        A Fraction for counted units, a float for measured ones. None if the bound is 0 and the cost is not.
        """
        if self.cost == self.lower_bound:
            return Fraction(1)
        if not self.lower_bound:
            return None
        if isinstance(self.cost, int) and isinstance(self.lower_bound, int):
            return Fraction(self.cost, self.lower_bound)
        return self.cost / self.lower_bound

    @property
    def optimal(self) -> bool:
        """Whether the answer is proved optimal: the bound equals the cost."""
        return self.cost == self.lower_bound

    def _lines(self) -> list[str]:
        return ["Certificate", *certificate_lines(self.as_dict())]

    def as_dict(self) -> dict[str, Any]:
        """Plain values only, ready for JSON."""
        ratio = self.ratio
        return {
            "cost": self.cost,
            "lower_bound": self.lower_bound,
            "unit": self.unit,
            "ratio": None if ratio is None else float(ratio),
            "optimal": self.optimal,
            "guarantee": self.guarantee.as_dict(),
            "bound": self.bound,
            "details": dict(self.details),
        }

    def to_json(self) -> str:
        """The certificate as a JSON object, keys in a fixed order."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """The inverse of ``as_dict``; raises CertificateError for contradictory content."""
        with _a_certificate():
            return cls(
                cost=data["cost"],
                lower_bound=data["lower_bound"],
                unit=data["unit"],
                guarantee=Guarantee.from_dict(data.get("guarantee") or {}),
                bound=data.get("bound", ""),
                details=data.get("details") or {},
            )

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """The inverse of ``to_json``."""
        return cls.from_dict(json.loads(text))


FORMAT = 2  # version of certificate files and records; version 1 had both in one file
# settings of a policy that no receiver needs: with the seed, someone could repeat the search
PRIVATE_SETTINGS = tuple(name for name, entry in SETTINGS.items() if entry.private)
DEEPEST = 40
LARGEST = 64 << 20


def read_json(path: str | Path, what: str = "certificate file of shoal") -> dict[str, Any]:
    """The JSON object in a file.

    Raises InputError for content that readers could understand differently: a duplicate key, NaN or an infinite number,
    text that isn't Unicode, objects or lists nested more than 40 deep, or a file above 64 MB.
    """
    path = Path(path)

    def no(why: str) -> NoReturn:
        raise InputError(f"{path.name!r} is not a {what} ({why})")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            no("it names a key twice")
        return found

    def number(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            no("it holds a number that is not finite")
        return value

    try:
        if path.is_file() and path.stat().st_size > LARGEST:
            no("it is larger than 64 MB")
        found = json.loads(
            path.read_text(encoding="utf-8"), object_pairs_hook=once, parse_float=number, parse_constant=number
        )
    except FileNotFoundError:
        raise InputError(f"there is no {what.split(' of ')[0].removesuffix(' file')} {str(path)!r}") from None
    except InputError:
        raise
    except (ValueError, RecursionError, OSError):
        no("not JSON")
    if not isinstance(found, dict):
        no("no object")
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [*item, *item.values()]
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str) and any("\ud800" <= c <= "\udfff" for c in item):
                no("it holds text that is not Unicode")
        level = below
        if not level:
            return found
    no("it is nested too deep")


def canonical(record: Mapping[str, Any], without: tuple[str, ...] = ()) -> bytes:
    """A record as bytes with sorted keys, without some of its entries."""
    kept = {k: v for k, v in record.items() if k not in without}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def digest(hierarchy: Hierarchy) -> str:
    """SHA-256 of a hierarchy's content. It doesn't depend on the order of the rows, or on whether they come from a
    file."""
    content = [
        hierarchy.kind,
        sorted(map(list, hierarchy.rows)),
        [str(s) if not isinstance(s, tuple) else [str(x) for x in s] for s in hierarchy.steps],
        str(hierarchy.origin),
        hierarchy.fill,
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def recipe(path: str | Path, generated: Collection[str], place: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a certificate file records, as arguments of ``Policy.of``, to make the same request again.

    generated  names of hierarchies that are built from the table
    place      name of the column that coordinates become
    given      hierarchies that the caller passes, which are not searched

    A hierarchy from a file is searched next to the certificate, then in the working folder, and must have the certified
    hash. Raises InputError if it is missing or different.
    """
    path = Path(path)
    record = read_json(path)
    asked, hashes = record.get("policy"), record.get("hierarchies")
    if not isinstance(asked, dict) or not isinstance(asked.get("quasi_identifiers"), list):
        raise InputError(f"{path.name!r} is no certificate of a release: it records no policy")
    values = {name: value for name, value in asked.items() if value is not None}
    for what in ("population", "areas", "edges"):
        name = values.pop(what, None)
        found = [p for p in (path.parent / str(name), Path(str(name))) if name is not None and p.is_file()]
        if found:
            values[what] = str(found[0])
    if "coordinates" in values:
        values["quasi_identifiers"] = [name for name in values["quasi_identifiers"] if name != place]
    sources = values.get("hierarchies", {})
    if not isinstance(sources, dict) or not isinstance(hashes, dict):
        raise InputError(f"{path.name!r} does not say which hierarchies were used")
    values["hierarchies"] = {
        name: given[name]
        if name in given
        else source
        if source in (*generated, REGIONS)  # areas are read later and then compared with ``certified``
        else source_of(name, str(source), path.parent)
        for name, source in sources.items()
        if not ("coordinates" in values and name == place)
    }
    values["certified"] = {}
    for name, source in values["hierarchies"].items():
        entry = hashes.get(name)
        if isinstance(source, str) and source == REGIONS:
            if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
                raise InputError(f"the certificate names the areas of {name!r} without their hash")
            values["certified"][name] = entry["sha256"]
        if isinstance(source, str) and source in (*generated, REGIONS):
            continue
        if not isinstance(entry, dict) or digest(Hierarchy.of(source)) != entry.get("sha256"):
            raise InputError(f"the hierarchy of {name!r} is not the one certified")
    return values


def source_of(column: str, source: str, folder: Path) -> str:
    """The source of a recorded hierarchy: a builder's name, or the path of a file next to the certificate or in this
    folder."""
    if source.partition(":")[0] in BUILDERS:
        return source
    name = Path(source).name
    for place in (folder / name, Path(name)):
        if name and place.is_file():
            return str(place)
    raise InputError(
        f"the hierarchy of {column!r} ({source}) is neither next to the certificate nor here; put it there, or pass it "
        f"in: ⟨hierarchies[{column!r}]=FILE⟩"
    )


# methods that never cost more than the three-phase algorithm
NEVER_DEARER = ("auto", "three_phase", "cascade", "improve")
PROVED = Guarantee(factor=1, additive=0, theorem="no valid release costs less, proved for this table")
SOURCE = "Xiao, Yi, Tao 2010, Theorem 5.19"
WITHOUT = [name for name, entry in SETTINGS.items() if not entry.promised]  # settings that void the guarantee


def promised(asked: Mapping[str, Any]) -> Guarantee:
    """The guarantee that follows from a request alone, a policy as ``Policy.describe`` gives it.

    With stars, one sensitive column, l-diversity by frequency, and k at most l: at most l times the minimum number of
    suppressed tuples, and so at most l d times the minimum number of stars for d quasi-identifiers (Lemma 2 of the same
    paper). With k-anonymity alone: the minimum number of suppressed tuples, so at most d times the minimum number of
    stars. Otherwise: none.
    """
    models = {str(m["model"]): m for m in asked["privacy"]}
    d = len(asked["quasi_identifiers"])
    plain = asked["publish"] == "stars" and asked.get("method") in NEVER_DEARER and asked.get("missing") != "apart"
    plain = plain and set(models) <= {"KAnonymity", "LDiversity"} and len(models) == len(asked["privacy"])
    if not plain or not d or any(asked.get(name) for name in WITHOUT):
        return Guarantee()
    k, l = (int(models[n][of]) if n in models else 1 for n, of in (("KAnonymity", "k"), ("LDiversity", "l")))
    if l > 1 and (k > l or len(asked["sensitive"]) != 1):
        return Guarantee()
    if l > 1:
        theorem = f"never costs more than the three-phase algorithm; {SOURCE}: at most {l} times the fewest"
        return Guarantee(factor=l * d, additive=0, theorem=f"{theorem} suppressed tuples, each at most {d} stars")
    theorem = "never costs more than the fewest suppressed tuples: rows of classes under k must leave"
    return Guarantee(factor=d, additive=0, theorem=f"{theorem}; each is at most {d} stars")


_SIZES = ("groups", "smallest_group", "largest_group")
USUAL = ("rows", *_SIZES)  # of a kind that is not listed
FACTS: dict[str, tuple[str, ...]] = {  # figures that the crosswalk itself shows
    "labels": ("rows", "records", *_SIZES),
    "intervals": ("rows", "records", *_SIZES),
    "regions": ("rows", "left_out", *_SIZES),
    "tiles": ("rows", "records", *_SIZES),
    "gather": ("rows", "records", "radius", *_SIZES),
    "cellular": ("rows", "records", "radius", *_SIZES),
}
COMPANIONS: dict[str, tuple[str, ...]] = {  # figures that another output shows if the crosswalk is not written
    "regions": ("rows", "groups", "left_out"),
    "tiles": _SIZES,
    "gather": FACTS["gather"],
    "cellular": FACTS["cellular"],
}
LEVEL = ("left_out", *_SIZES)  # figures of a further level of regions
_OF_LEVEL = {"regions": ("groups", "left_out")}
_BY_SIZE = ("max", "count", "squares", "sumsq")  # objectives whose cost follows from the group sizes
FIXED = ("labels", "intervals", "tiles")  # kinds whose guarantee depends on the request alone


def facts(kind: str, known: Mapping[str, Any], whole: bool) -> dict[str, Any]:
    """The figures that the files show. whole: whether the crosswalk itself is among these files."""
    names = FACTS.get(kind, USUAL) if whole else COMPANIONS.get(kind, ())
    found = {name: known[name] for name in names}
    if known.get("levels"):
        own = LEVEL if whole else _OF_LEVEL.get(kind, ())
        found["levels"] = [{name: level[name] for name in own} for level in known["levels"]]
    return found


def parameters(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The request without the scales of features, which are ranges of the original's columns."""
    if "features" not in asked:
        return dict(asked)
    features = [{name: held for name, held in f.items() if name != "scale"} for f in asked["features"]]
    return {**asked, "features": features}


def shows_cost(kind: str, asked: Mapping[str, Any], whole: bool) -> bool:
    """Whether the files show the cost of the answer; whole: as in ``facts``."""
    if kind in ("gather", "cellular"):
        own = asked["center"] == "record" and not asked["epsilon"]
        return own and asked.get("setup_cost") != "per record"
    first = str(asked.get("objective")).split(",")[0]
    if kind == "tiles":
        return True
    if kind == "regions":
        plain = not (asked.get("fixed") or asked.get("soft_boundary"))
        return whole and (first in ("max", "sumsq") or (first == "count" and plain))
    return first in _BY_SIZE


def certificate(kind: str, asked: Mapping[str, Any], known: Certificate, whole: bool, bound: bool) -> PublicCertificate:
    """The public certificate: the cost if the files show it, the rounded ratio if ``bound``, and the guarantee."""
    step = ratio_step(known.ratio) if bound else None
    promise = known.guarantee if kind in FIXED else Guarantee()
    if kind == "labels" and promise.factor == 1:  # holds only because a search finished, which the ratio already states
        promise = Guarantee()
    return PublicCertificate(
        unit=known.unit,
        cost=known.cost if shows_cost(kind, asked, whole) else None,
        ratio_at_most=step,
        guarantee=PROVED if step == 1 else promise,
    )


# Details of an answer's certificate that follow from the facts and parameters next to it, so a record omits them.
FOLLOWING: dict[str, set[str]] = {
    "labels": {"k", "groups", "smallest_group"},
    "intervals": {"k", "groups", "smallest_group", "largest_group"},
    "regions": {"k", "l", "areas", "regions", "upper_bound", "largest", "left_out"},
    "tiles": {"tiles", "smallest"},
}


_DU = "Du, Eppstein, Goodrich, Lueker 2009, Theorem"
THEOREMS: dict[str, dict[str, tuple[float, float | None]]] = {  # what methods promise: factor and additive term
    "labels": {
        f"{_DU} 7: at most max(k - 1 + largest item, 3k - 3)": (3, 0),
        f"{_DU} 7: at most max(k - 1 + largest item, 3k - 3), whose proof covers Spread": (3, 0),
        f"{_DU} 9": (2.5, 0),
    },
    "intervals": {
        "optimal by dynamic programming over all cuts": (1, 0),
        "optimal by dynamic programming over all cuts, up to the rounding of floats": (1 + 1e-6, 0),
    },
    "tiles": {f"{_DU} 4: no tile can be cut, so none weighs over 4 (k - 1) and a place": (5, None)},
}
_SCHEME = f"{_DU} 10: at most (1 + epsilon)(Opt + k)"  # of labels, with any epsilon


def may_promise(kind: str, stated: PublicCertificate, asked: Mapping[str, Any]) -> bool:
    """Whether a certificate file of this kind may state its guarantee for this request.

    A ratio of 1 goes with the guarantee of an optimum only. Other files state none, or, for a kind in ``FIXED``, that
    of a method; it may make the answer optimal only if no other ratio is stated.
    """
    promise = stated.guarantee
    if stated.ratio_at_most == 1:
        return promise == PROVED
    if promise == Guarantee():
        return True
    if kind not in FIXED or (promise.factor == 1 and stated.ratio_at_most is not None):
        return False
    if kind == "tiles" and (asked.get("sparse") == "leave-out" or any(asked.get(name) for name in _LIMITS)):
        return False
    return _of_a_method(kind, promise, asked)


def may_record(kind: str, known: Certificate, asked: Mapping[str, Any]) -> bool:
    """Whether a record may state its guarantee: for a kind in ``FIXED``, that of a method, or none.

    The guarantees of other kinds depend on the data, and rest on the record.
    """
    promise = known.guarantee
    searched = promise.factor == 1 and not promise.additive and promise.theorem in _SEARCHED
    return kind not in FIXED or promise == Guarantee() or searched or _of_a_method(kind, promise, asked)


def _of_a_method(kind: str, promise: Guarantee, asked: Mapping[str, Any]) -> bool:
    """Whether a method of this kind has this guarantee."""
    if kind == "labels" and promise.theorem == _SCHEME:
        return promise.factor is not None and promise.factor > 1 and promise.additive == promise.factor * asked["k"]
    return THEOREMS[kind].get(promise.theorem) == (promise.factor, promise.additive)


def malformed_record(record: Mapping[str, Any]) -> str | None:
    """The first entry of a crosswalk's record that is missing, or that no record of its kind has in this form."""
    own = {*(name for names in FACTS.values() for name in names), *_RECORDED}
    anything = Each(lambda _: True)  # of a problem that another module adds
    facts = {f"{name}?": lambda _: True for name in own} if record["kind"] in FACTS else anything
    odd = misfit(record, {**_RECORD, "facts": facts})
    return odd or misstated(record["kind"], record["parameters"], private=True)


_SEARCHED = ("every grouping was looked at", "exhaustive search, finished")  # of labels, if the answer is optimal
_RECORDED = {"points", "left_out", "may_be_left_out", "centers_replaced", "codes_left_out", "rows_left_out"}
_RECORDED |= {"center_decimals", "regions_at_most", "variance_inside", "levels"}
_LIMITS = ("l", "distinct_l", "person", "household", "max_width")  # conditions of tiles without a theorem


def content(
    record: Mapping[str, Any], known: Certificate, hidden: Collection[str], whole: bool, bound: bool
) -> dict[str, Any]:
    """The content of a certificate file, derived from the record. hidden: entries of the record to omit."""
    kind, asked = record["kind"], record["parameters"]
    return {
        **{name: held for name, held in record.items() if name not in hidden},
        "parameters": parameters(asked),
        "facts": facts(kind, record["facts"], whole),
        "certificate": certificate(kind, asked, known, whole, bound).as_dict(),
    }


_STATED_FILE = {"file": is_text, "separator": is_text, "sha256": is_text, "bytes": is_whole}
_DOCUMENT = {  # of a crosswalk; ``misstated`` has the form of its request
    "format": is_whole, "kind": is_text, "made_by": Each(is_text), "made_at": is_text, "separator": is_text,
    "release": ({**_STATED_FILE, "rows": is_whole}, {"file": is_text, "separator": is_text}, is_null),
    "also?": [{**_STATED_FILE, "part": is_text, "rows?": is_whole, "order?": is_text}],
    "parameters": Each(lambda _: True), "certificate": Each(lambda _: True), "seal": is_text,
}  # fmt: skip


UNITS, CENTER_UNITS = ("stars", "suppressed tuples", "ncp"), ("units",)  # in which tables count their loss
RUN = {  # in a record: what ``--if-changed`` compares the next run with
    "command": (is_text, is_null), "salt": is_text, "inputs": Each(lambda _: True), "written": Each(lambda _: True),
    "answer": Each(lambda _: True),
}  # fmt: skip
_NO_PROMISE = {"factor": is_null, "additive": is_null, "theorem": is_text}
_PROMISE = ({"factor": is_number, "additive": (is_number, is_null), "theorem": is_text}, _NO_PROMISE)
_PUBLIC_PROOF = {
    "unit": is_text, "cost": (is_number, is_null), "ratio_at_most": (is_number, is_text, is_null),
    "guarantee": _PROMISE,
}  # fmt: skip
PROOF = {  # of a record
    "cost": is_number, "lower_bound": is_number, "unit": is_text, "ratio": (is_number, is_null), "bound": is_text,
    "optimal": is_flag, "guarantee": _PROMISE, "details": Each(lambda _: True),
}  # fmt: skip
_RECORD = {  # of a crosswalk; its details are those of a method
    **_DOCUMENT, "private": lambda held: held is True, "run?": RUN, "facts": Each(lambda _: True), "method": is_text,
    "separator": (is_text, is_null),
    "certificate": PROOF,
}  # fmt: skip


def malformed(public: Mapping[str, Any]) -> str | None:
    """The first entry of a crosswalk's certificate file that is missing or has another form than in any such file.

    The facts are those that the files show, and the cost is stated if they show it.
    """
    kind, asked, release = str(public["kind"]), public["parameters"], public.get("release")
    whole_file = isinstance(release, Mapping) and "sha256" in release
    names = FACTS.get(kind, USUAL) if whole_file else COMPANIONS.get(kind, ())
    form: dict[str, Any] = {name: is_number if name == "radius" else is_whole for name in names}
    if asked.get("levels"):
        own = LEVEL if whole_file else _OF_LEVEL.get(kind, ())
        form["levels"] = [dict.fromkeys(own, is_whole)]
    odd = misfit(public, {**_DOCUMENT, "facts": form, "signature?": Each(is_text)})
    if odd is not None:
        return odd
    files = [about for about in (release, *public.get("also", [])) if about is not None]
    if public["separator"] not in [about["separator"] for about in files]:
        return "separator"
    levels = public["facts"].get("levels", asked.get("levels"))
    if len(levels or ()) != len(asked.get("levels") or ()):
        return "levels"
    return "cost" if (public["certificate"].get("cost") is None) is shows_cost(kind, asked, whole_file) else None


def differs(public: Mapping[str, Any], private: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The entries in which a record contradicts its certificate file. names: entries that both must share."""
    odd = [name for name in names if public.get(name) != private.get(name)]
    odd += [] if public.get("parameters") == parameters(private["parameters"]) else ["parameters"]
    stated = dict(public.get("facts") or {})
    levels = stated.pop("levels", [])
    odd += [name for name, held in stated.items() if private["facts"].get(name) != held]
    own = private["facts"].get("levels") or levels
    pairs = [(a, b) for a, b in zip(levels, own, strict=False)]
    odd += ["levels"] if len(levels) != len(own) or any(b.get(n) != v for a, b in pairs for n, v in a.items()) else []
    return odd
