"""What may be asked of both problems."""

from __future__ import annotations

from shoal.errors import PolicyError
from shoal.problems.catalogue import CATALOGUE


def check(n: int, r: int, epsilon: float, most: int | None, centers: str, method: str, problem: str) -> None:
    """PolicyError for parameters that contradict each other, InfeasibleError where n points cannot meet them."""
    if isinstance(r, bool) or int(r) != r or r < 1:
        raise PolicyError(f"r={r!r}: a cluster has a whole number of points, at least 1")
    if not 0 <= epsilon < 1:
        raise PolicyError(
            f"epsilon={epsilon!r}: the share left out is at least 0 and under 1, or nothing would be left"
        )
    if most is not None and (isinstance(most, bool) or int(most) != most or most < 1):
        raise PolicyError(f"max_clusters={most!r}: a whole number, at least 1")
    if centers not in ("points", "anywhere"):
        raise PolicyError.unknown("place for centers", centers, ["points", "anywhere"])
    if method != "auto" and method not in CATALOGUE[problem]:
        raise PolicyError.unknown(f"method for {problem}", method, ["auto", *CATALOGUE[problem]])
