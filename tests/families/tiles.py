"""Point sets on which a bound about tiles is tight."""

Weighted = tuple[list[tuple[float, float]], list[int]]


def bare_cross(k: int) -> Weighted:
    """Theorem 4's figure as printed: a place of k, and k - 1 north, south, east and west of it.

    No tile can hold an arm without the center, and the center's tile none without being the only one: the optimum is
    5 k - 4 itself, so the figure alone shows no loss.
    """
    return [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)], [k, k - 1, k - 1, k - 1, k - 1]


def tight_cross(k: int) -> Weighted:
    """The cross with a record beyond each arm, and behind it a row of places of k that nearly halves the weight; k > 4.

    Cutting nearest the median, wider side first, parts each arm from the record that would complete it, and leaves
    5 k - 4.  The optimum is k: every arm with its record, the center, and every place of the rows by itself.
    """
    points, weights = bare_cross(k)
    inside = 5 * k - 4
    for (dx, dy), reach in (((0, 1), 20.0), ((0, -1), 100.0), ((-1, 0), 500.0), ((1, 0), 3000.0)):
        places = (inside - 1) // k  # the most that leave the cut nearest the median between arm and record
        points.append((2 * dx, 2 * dy))
        weights.append(1)
        for i in range(places):
            at = 3 + (reach - 3) * (i + 1) / places
            points.append((at * dx, at * dy))
            weights.append(k)
        inside += 1 + places * k
    return points, weights


def pinwheel(k: int) -> Weighted:
    """Five tiles of k around a center that no straight cut of the plane leaves whole: the guillotine optimum is worse.

    On a grid of 3 by 3 the four rim tiles are dominoes, each of a heavy and a light place.
    """
    heavy = k - 1
    table = {(0, 0): heavy, (0, 1): 1, (0, 2): heavy, (1, 2): 1, (2, 2): heavy, (2, 1): 1, (2, 0): heavy, (1, 0): 1}
    table[1, 1] = k
    return list(table), list(table.values())
