"""The answer of gathering and of cellular clustering, and the arguments that both problems take."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.arguments import coordinates, known, whole_number
from shoal.model.arguments import number as number_of
from shoal.model.cards import Shown, number, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate
from shoal.model.metric import Metric
from shoal.problems.catalogue import names


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Gathering(Shown):
    """A clustering with its certificate.

    labels         int64[n]    cluster of each point, -1 if it is left out
    centers        float64[m, d] coordinates of the centers; int64[m] rows if the metric is a matrix, a function, or
                   has columns that are not plain numbers
    center_rows    int64[m]    the input point at each center, -1 if the center is not an input point
    radii          float64[m]  largest distance of a member from its center
    sizes          int64[m]    members
    mean_distance  mean over the clustered points of the distance to their center
    certificate    cost (largest radius, or cellular cost) and bound
    details        the request: problem ("gather" or "cellular"), r, epsilon, max_clusters, l and distinct_l (one for
                   each sensitive column), eligible (whether a function was passed), setup_cost, max_diameter
    """

    labels: np.ndarray
    centers: np.ndarray
    center_rows: np.ndarray
    radii: np.ndarray
    sizes: np.ndarray
    mean_distance: float
    certificate: Certificate
    method: str
    metric: Metric
    diameter: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def of_rows(self, rows: np.ndarray) -> Gathering:
        """These clusters for points in another order: point i of these is row rows[i]."""
        labels = np.empty_like(self.labels)
        labels[rows] = self.labels
        center = np.where(self.center_rows < 0, -1, rows[self.center_rows])
        return replace(
            self, labels=labels, center_rows=center, centers=center if self.centers.ndim == 1 else self.centers
        )

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return int(self.sizes.size)

    @property
    def radius(self) -> float:
        """The largest radius."""
        return float(self.radii.max(initial=0.0))

    @property
    def left_out(self) -> int:
        """Number of points in no cluster."""
        return int((self.labels < 0).sum())

    @property
    def cost(self) -> float:
        """What the certificate counts."""
        return self.certificate.cost

    def _lines(self) -> list[str]:
        r, unit = self.details.get("r"), self.metric.unit
        asked = f"at least r = {r:,} asked" if r else "no least number asked"
        lines = [
            f"{several(len(self.labels) - self.left_out, 'point')} in {several(self.clusters, 'cluster')}",
            sizes_line("points in a cluster", self.sizes.tolist(), asked),
            f"distance from the center: largest {number(self.radius)}, mean {number(float(self.mean_distance))} {unit}",
            *proof_lines(self.certificate, self.method),
        ]
        return [*lines, f"left out: {several(self.left_out, 'point')}"] if self.left_out else lines

    def as_dict(self) -> dict[str, Any]:
        """Sizes and figures for JSON; never a point."""
        return {
            "points": int(self.labels.size),
            "clusters": self.clusters,
            "left_out": self.left_out,
            "smallest_cluster": int(self.sizes.min()) if self.sizes.size else 0,
            "largest_cluster": int(self.sizes.max(initial=0)),
            "radius": self.radius,
            "median_radius": float(np.median(self.radii)) if self.clusters else 0.0,
            "mean_distance": self.mean_distance,
            "cost": self.certificate.cost,
            "certificate": self.certificate.as_dict(),
            "method": self.method,
            "metric": self.metric.as_dict(),
        }


SECONDS = {"fast": 2.0, "balanced": 60.0, "thorough": 600.0}  # of the exact methods


def check(r: Any, epsilon: Any, most: Any, centers: str, method: str, problem: str) -> tuple[int, float, int | None]:
    """r, epsilon and max_clusters as numbers; PolicyError for what is none, or a word that is not known."""
    least = whole_number("r", r, "a cluster has a whole number of points, at least 1")
    says = "the share left out is at least 0 and under 1, or nothing would be left"
    share = number_of("epsilon", epsilon, says, lambda x: 0 <= x < 1)
    if most is not None:
        most = whole_number("max_clusters", most)
    known("place for centers", centers, ["points", "anywhere"])
    known(f"method for {problem}", method, ["auto", *names(problem)])
    return least, share, most


def setup_of(setup_costs: Any, n: int) -> np.ndarray:
    """float64[n]: what opening a cluster around each point costs; InputError for what is no cost."""
    if setup_costs is None:
        return np.zeros(n)
    setup = coordinates(setup_costs, "setup_costs")
    if setup.ndim and setup.shape != (n,):
        raise InputError(f"⟨setup_costs⟩ has shape {setup.shape}; one number, or one for each of the {n} points")
    setup = np.full(n, float(setup)) if not setup.ndim else setup.copy()
    bad = ~np.isfinite(setup) | (setup < 0)
    if bad.any():
        said = "costs are finite and at least 0"
        if np.ndim(setup_costs):  # those of the points stay unsaid
            raise InputError(f"⟨setup_costs⟩: {said}, and {int(bad.sum()):,} are not")
        raise InputError(f"⟨setup_costs={float(setup_costs):g}⟩: {said}")
    return setup
