"""Instances on which a guarantee is tight, or a printed claim fails, with their optima."""

import numpy as np


def figure_one() -> np.ndarray:
    """Fig. 1 of Aggarwal et al.: (age, location); r = 2: radius 3, cellular cost 2 * 1 + 3 * 3 = 11.

    The first center is (alpha + 1, beta), no input point.
    """
    return np.array([[0.0, 100.0], [2.0, 100.0], [50.0, 3.0], [50.0, 0.0], [50.0, -3.0]])


def figure_two(seed: int = 0) -> tuple[np.ndarray, list[int]]:
    """Fig. 2(c): 50, 20 and 8 points around centers of radius 10, 5 and 3; r = 8, cost 50*10 + 20*5 + 8*3 = 624.

    Each cluster: its center, and members out to the radius, four of them exactly on it, far from the others.
    """
    rng = np.random.default_rng(seed)
    out, sizes = [], [50, 20, 8]
    for i, (size, radius) in enumerate(zip(sizes, (10.0, 5.0, 3.0), strict=True)):
        middle = np.array([1000.0 * i, 0.0])
        rim = radius * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
        turn, far = rng.uniform(0, 2 * np.pi, size - 5), radius * rng.uniform(0.97, 0.99, size - 5)
        inside = np.stack([far * np.cos(turn), far * np.sin(turn)], axis=1)
        out.append(np.concatenate([[middle], middle + rim, middle + inside]))
    return np.concatenate(out), sizes


def figure_three() -> np.ndarray:
    """Fig. 3: five records over four attributes, Hamming distance; 5-cellular cost 5 (5-anonymity hides all 20)."""
    return np.array([[1, 1, 1, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])


def satisfiability(variables: int, clauses: list[tuple[int, ...]], r: int) -> np.ndarray:
    """Shortest-path distances of the graph of section 2.1: an r-gather of radius 1 exactly when satisfiable (r > 6).

    Vertices: true and false literal of each variable, its r - 2 companions, then the clauses.
    """
    n = variables * r + len(clauses)
    d = np.full((n, n), np.inf)
    np.fill_diagonal(d, 0.0)

    def edge(a: int, b: int) -> None:
        d[a, b] = d[b, a] = 1.0

    for i in range(variables):
        yes, no = r * i, r * i + 1
        edge(yes, no)
        for s in range(2, r):
            edge(yes, r * i + s)
            edge(no, r * i + s)
    for j, clause in enumerate(clauses):
        for literal in clause:
            edge(variables * r + j, r * (abs(literal) - 1) + (literal < 0))
    for k in range(n):
        d = np.minimum(d, d[:, [k]] + d[[k], :])
    far = d[np.isfinite(d)].max()
    return np.where(np.isfinite(d), d, 4 * far)


def threshold_nearly_two(m: int = 8) -> tuple[np.ndarray, int, float]:
    """A star: m leaves at distance 1 around a center that the order visits last; r = m + 1.

    One cluster only; its radius is 1 around the middle and nearly 2 around the first leaf.
    """
    turn = 2 * np.pi * np.arange(m) / m
    return np.concatenate([np.stack([np.cos(turn), np.sin(turn)], axis=1), [[0.0, 0.0]]]), m + 1, 1.0


def shared_idle_point(r: int) -> tuple[np.ndarray, int, float]:
    """On a line: r copies at 0, p at -1, q at r + 1, r copies at r + 3.  Optimum 3 (r + 1): p goes left, q right.

    With set-up cost r times the radius, Procedure 1 opens (0, radius 1) for p at time r + 1; that shuts down the
    cluster (0, radius r + 1), whose member q becomes idle with p.  Sharing then makes r points pay radius r + 1:
    (r + 2)(r + 1) in the end, (r + 2) / 3 times the optimum.
    """
    x = np.concatenate([np.zeros(r), [-1.0], [r + 1.0], np.full(r, r + 3.0)])
    return np.stack([x, np.zeros_like(x)], axis=1), r, 3.0 * (r + 1)


def leftovers_at_both_ends(m: int, length: float = 2000.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(points, labels, centers, r = 3) of clusters to be made disjoint; m directions at each of two places.

    At a place a stand m trios, each in a direction of its own, and between a and each trio a point f whose cluster of
    three holds a and one of the trio.  A wide cluster in the middle owns both places.  Every f belongs to its trio;
    going with the wide cluster joins points of both places, at m times the cost.
    """
    points, labels, centers = [np.zeros(m + 1) for _ in range(5)], [0] * 5, [2]
    points[0][m], points[1][m] = -length / 2, length / 2
    for k in range(m):
        for side in (0, 1):
            step = np.eye(m + 1)[k]
            for away in (1.0, 1.9, 2.05, 2.1):
                points.append(points[side] + away * step)
            f = len(points) - 4
            labels += [len(centers), *[len(centers) + 1] * 3]
            centers += [f, f + 2]
    return np.array(points), np.array(labels), np.array(centers), 3


def payers_elsewhere(m: int, little: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """(distances, set-up costs): m points at 0 pay for a kept ball, and another stands in for their witness.

    On a line: m points at 0, one at -little, 1, 2 and 3; only those at 0 (the first), 1 and 3 can be opened cheaply.
    The ball of radius 1 around 1 freezes all at 0; it shares the payer at 2 with the ball of radius 1 around 3, which
    is kept.  The ball of radius ``little`` around 0 is paid later, by the points at 0 above all, and kept as well.  A
    point at 0 that goes with the stand-in of its witness travels 3 and has paid 1 for the ball it leaves: nearly 4
    times the sum of prices.
    """
    x = np.array([*[0.0] * m, -little, 1.0, 2.0, 3.0])
    setup = np.full(m + 4, 1e6)
    setup[0], setup[m + 1], setup[m + 3] = m * (1 + little) + 1, (m + 3) * little, little / 2
    return abs(x[:, None] - x[None]), setup


def leftovers_on_both_sides(r: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(points, labels, centers) of clusters of r that share points: one around 0, one around 2, one around -2.

    On a line, all of radius 1; the one in the middle owns -1 and 1, which the others need.  They lack a point then and
    are put together: 3 away from the middle, 5 from the center of either.
    """
    side = np.array([2.0, *[3.0] * (r - 2)])
    x = np.array([*[0.0] * (r - 2), -1.0, 1.0, *side, *-side])
    labels = np.repeat([0, 1, 2], [r, r - 1, r - 1])
    points = np.stack([x, np.zeros_like(x)], axis=1)
    return points, labels, np.array([0, r, 2 * r - 1])
