"""Tiles under every setting, the slow way: all partitions of a small point set, and a check of one."""


def fits(rows, k, l, distinct_l, units, width, grid):
    """May these rows (x, y, value, persons, households, weight) be one tile?"""
    total = sum(r[5] for r in rows)
    if not rows or total < k:
        return False
    held = {}
    for r in rows:
        if r[5]:
            held[r[2]] = held.get(r[2], 0) + r[5]
    if l is not None and max(held.values()) * l > total:
        return False
    if distinct_l is not None and len(held) < distinct_l:
        return False
    for unit in units:
        if len({r[unit] for r in rows}) < k:
            return False
    if width is not None:
        for axis in (0, 1):
            low, high = min(r[axis] for r in rows), max(r[axis] for r in rows)
            if grid is not None:
                if (high // grid + 1 - low // grid) * grid > width:
                    return False
            elif high - low >= width:
                return False
    return True


def ways(rows, grid, leave_out, ok):
    """(lost, weights of the tiles) of every partition into rectangles, none of which goes on without a tile."""
    step = grid or 1
    xs, ys = (sorted({r[a] // step if grid else r[a] for r in rows}) for a in (0, 1))

    def at(r):
        return (xs.index(r[0] // step if grid else r[0]), ys.index(r[1] // step if grid else r[1]))

    square = {}
    for r in rows:
        square.setdefault(at(r), []).append(r)
    nx, ny = len(xs), len(ys)
    taken = [[False] * ny for _ in range(nx)]
    known = {}

    def judged(i, i2, j, j2):
        key = i, i2, j, j2
        if key not in known:
            inside = [r for a in range(i, i2 + 1) for b in range(j, j2 + 1) for r in square.get((a, b), ())]
            known[key] = ok(inside), sum(r[5] for r in inside)
        return known[key]

    found = set()

    def place(lost, weights):
        free = next(((i, j) for i in range(nx) for j in range(ny) if not taken[i][j]), None)
        if free is None:
            found.add((lost, tuple(sorted(weights))))
            return
        i, j = free
        height = ny
        for i2 in range(i, nx):
            run = j
            while run < height and not taken[i2][run]:
                run += 1
            height = run
            if height == j:
                break
            for j2 in range(j, height):
                good, weight = judged(i, i2, j, j2)
                single = i2 == i and j2 == j
                if not good and not (leave_out and single):
                    continue
                for a in range(i, i2 + 1):
                    for b in range(j, j2 + 1):
                        taken[a][b] = True
                if good:
                    place(lost, [*weights, weight])
                if leave_out and single:
                    place(lost + weight, weights)
                for a in range(i, i2 + 1):
                    for b in range(j, j2 + 1):
                        taken[a][b] = False

    place(0, [])
    return found


def best(rows, sides, grid, leave_out, ok):
    """(least weight left out, most tiles, least heaviest tile) over all partitions; None where there is none.

    The most tiles and the least heaviest are over all partitions, not only over those that lose least.
    """
    lost = most = heavy = 0
    for side in sorted(set(sides)):
        found = ways([r for r, s in zip(rows, sides, strict=True) if s == side], grid, leave_out, ok)
        if not found:
            return None
        lost += min(a for a, _ in found)
        most += max(len(w) for _, w in found)
        tiled = [max(w) for _, w in found if w]
        if tiled:  # a side that is left out whole has no heaviest tile
            heavy = min(heavy or min(tiled), min(tiled)) if leave_out else max(heavy, min(tiled))
    return lost, most, heavy


def straight(rows, sides, grid, leave_out, ok, goal):
    """(least lost, best) of cutting straight across again and again; best: heaviest tile, squares, or minus tiles."""
    step = grid or 1
    together = max if goal == "max" else sum

    def cut(part):
        found = []
        if ok(part):
            weight = sum(r[5] for r in part)
            found.append((0, {"max": weight, "sumsq": weight**2}.get(goal, -1)))
        if leave_out:
            found.append((sum(r[5] for r in part), 0))
        for axis in (0, 1):
            for line in sorted({r[axis] // step if grid else r[axis] for r in part})[1:]:
                low = [r for r in part if (r[axis] // step if grid else r[axis]) < line]
                high = [r for r in part if (r[axis] // step if grid else r[axis]) >= line]
                one, two = cut(low), cut(high)
                if one and two:
                    found.append((one[0] + two[0], together((one[1], two[1]))))
        return min(found, default=None)

    got = [cut([r for r, s in zip(rows, sides, strict=True) if s == side]) for side in sorted(set(sides))]
    return None if None in got else (sum(a for a, _ in got), together([b for _, b in got]))


def check(rows, sides, tiles, *, grid, width, leave_out, ok) -> None:
    """Every row in its own tile alone among those of its side; every tile as asked; no two over each other."""
    bounds = tiles.bounds.tolist()
    own = [None] * len(bounds) if tiles.boundary is None else list(tiles.boundary)
    inside = [[] for _ in bounds]
    for r, s, label in zip(rows, sides, tiles.labels.tolist(), strict=True):
        hit = [
            i for i, (a, b, c, d) in enumerate(bounds)
            if a <= r[0] < c and b <= r[1] < d and (own[i] is None or own[i] == s)
        ]  # fmt: skip
        if label < 0:
            assert leave_out
        else:
            assert hit == [label], "a row is in no tile, in two, or in another"
            inside[label].append(r)
    for i, box in enumerate(bounds):
        assert ok(inside[i]), "a tile is not as asked"
        assert tiles.counts[i] == sum(r[5] for r in inside[i])
        if grid is not None:
            assert all(v in (float("-inf"), float("inf")) or abs(v / grid - round(v / grid)) < 1e-9 for v in box)
        if width is not None:
            assert max(box[2] - box[0], box[3] - box[1]) <= width
        if tiles.asked.extent == "data":
            assert all(abs(v) < float("inf") for v in box)
            x, y = tiles.centers[i]
            assert box[0] <= x < box[2]
            assert box[1] <= y < box[3]
        for j in range(i):
            a, b = box, bounds[j]
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart or own[i] != own[j], "two tiles of one side lie over each other"
    assert int(tiles.counts.max()) == tiles.cost == tiles.certificate.cost
