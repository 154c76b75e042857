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
            "guarantee": {
                "factor": self.guarantee.factor,
                "additive": self.guarantee.additive,
                "theorem": self.guarantee.theorem,
            },
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
            promise = data.get("guarantee") or {}
            return cls(
                cost=data["cost"],
                lower_bound=data["lower_bound"],
                unit=data["unit"],
                guarantee=Guarantee(**{k: promise[k] for k in ("factor", "additive", "theorem") if k in promise}),
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
