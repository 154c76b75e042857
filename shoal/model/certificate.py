"""What was paid, what every valid answer must pay, and where that is proved."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral
from typing import Any

from shoal.errors import CertificateError


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What a theorem promises before the input is seen: cost <= factor * optimum + additive.

    ``factor`` and ``additive`` are None where nothing is promised (a heuristic); ``theorem`` names
    the source, for example "Xiao, Yi, Tao 2010, Theorem 5.19".
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
        """Rebuild from ``as_dict``; a part that is missing has its default."""
        return cls(**{name: data[name] for name in ("factor", "additive", "theorem") if name in data})


LADDER = (1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)  # rungs of a ratio that is published
MORE = "more"  # a ratio above the ladder

ROUNDING = 1e-9  # share of the cost by which sums of floats may differ and still be taken for equal


def tight(bound: float, cost: float, unit: str, why: str = "") -> int | float:
    """A bound for a certificate: itself, or the cost where it is above that by no more than floats round.

    Whole numbers do not round: of two of them a bound above the cost by 1 is an error like any other.

    Raises CertificateError for a bound that is not finite or above the cost by more: one of the two is miscomputed,
    and to lower the bound would turn that into a proof of optimality.
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


def rung(ratio: Fraction | float | None) -> float | str | None:
    """A proved ratio rounded up to a rung of ``LADDER``: 1.3 is 1.5, 12 is "more"; None where nothing is proved.

    Of all that is known of the original, a public certificate tells this rung alone: one of twelve values, so at most
    log2(12) = 3.6 bits.
    """
    if ratio is None:
        return None
    return next((step for step in LADDER if ratio <= step), MORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCertificate:
    """What a certificate file says of an answer's quality: nothing that needs the original but one rounded ratio.

    unit           what is counted, as in ``Certificate``
    cost           what the released file itself shows to be lost, in that unit; None where the file does not show it
    ratio_at_most  the answer costs at most this many times the least possible: a rung of ``LADDER``, "more" above it,
                   None where no ratio is proved or none is published
    guarantee      what a theorem promises of every input
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
        """Rebuild from ``as_dict``; raises CertificateError when it holds something else."""
        try:
            stray = sorted(set(data) - {"unit", "cost", "ratio_at_most", "guarantee"})
            if stray:
                raise CertificateError(f"not a public certificate: it states {stray[0]!r}")
            ratio, cost = data["ratio_at_most"], data["cost"]
            if not isinstance(ratio, (str, type(None))):
                ratio = float(ratio)
            if isinstance(cost, bool) or not isinstance(cost, (int, float, type(None))):
                raise TypeError("the cost")
            return cls(
                unit=str(data["unit"]), cost=cost, ratio_at_most=ratio, guarantee=Guarantee.from_dict(data["guarantee"])
            )
        except CertificateError:
            raise
        except (KeyError, TypeError) as error:
            raise CertificateError(f"not a certificate: {error!s} is missing or of the wrong kind") from error
        except (ValueError, OverflowError) as error:
            raise CertificateError("not a certificate: it holds words where a number belongs") from error

    def __repr__(self) -> str:
        least = {None: "no ratio is published", MORE: f"a ratio above {LADDER[-1]:g} is proved", 1.0: "proved least"}
        shown = "" if self.cost is None else f"{self.cost:.6g} {self.unit}, "
        return f"Certificate: {shown}{least.get(self.ratio_at_most, f'at most {self.ratio_at_most} times the least')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Cost and lower bound of one answer, in one unit, with the argument behind each.

    cost         what this answer costs, int where the unit is counted, else float
    lower_bound  no valid answer costs less; 0 <= lower_bound <= cost or the value cannot be made
    unit         what is counted: "stars", "suppressed tuples", "ncp", "records", "km"
    guarantee    the a-priori promise of the method
    bound        the theorem or argument behind lower_bound
    details      what else should stand on record: phase reached, limit that stopped a search, ...
    """

    cost: float
    lower_bound: float
    unit: str
    guarantee: Guarantee = field(default_factory=Guarantee)
    bound: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cost, bound = _plain(self.cost), _plain(self.lower_bound)
        finite = isinstance(cost, int) or math.isfinite(cost)  # whole numbers may be longer than any float
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
        """The answer costs at most this many times the optimum; None when that is not known.

        A Fraction for counted units, a float for measured ones; None when the bound is 0 and the cost is not.
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
        """Proved optimal: the bound equals the cost."""
        return self.cost == self.lower_bound

    def __repr__(self) -> str:
        from shoal.model.cards import certificate_lines, in_one_line

        return in_one_line(["Certificate", *certificate_lines(self.as_dict())], 3)

    def __str__(self) -> str:
        from shoal.model.cards import certificate_lines

        return "\n".join(["Certificate", *certificate_lines(self.as_dict())])

    def _repr_html_(self) -> str:
        from shoal.model.cards import certificate_card

        return certificate_card(self.as_dict())

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
        """Rebuild from ``as_dict``; raises CertificateError when it contradicts itself."""
        try:
            return cls(
                cost=data["cost"],
                lower_bound=data["lower_bound"],
                unit=data["unit"],
                guarantee=Guarantee.from_dict(data.get("guarantee") or {}),
                bound=data.get("bound", ""),
                details=data.get("details") or {},
            )
        except CertificateError:
            raise
        except (KeyError, TypeError) as error:
            raise CertificateError(f"not a certificate: {error!s} is missing or of the wrong kind") from error
        except (ValueError, OverflowError) as error:
            raise CertificateError("not a certificate: it holds words where a number belongs") from error

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Rebuild from ``to_json``."""
        return cls.from_dict(json.loads(text))
