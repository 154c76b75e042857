"""Smallest enclosing balls of clusters, and the smallest disc that holds a point and r - 1 others."""

from __future__ import annotations

import math

import numpy as np

from shoal.kernels import njit


@njit(cache=True, nogil=True)
def enclosing_ball(x, member, steps, center):
    """A small ball around some points; on a line and in the plane the smallest.

    x       float64[n, d]
    member  int64[m]    the points, at least one
    steps   steps of Badoiu and Clarkson's walk towards the farthest point (d above 2), of which the best center is
            kept; within about 1/steps
    center  float64[d]  out
    returns the distance of the farthest member from center, so the ball holds all members whatever the rounding

    d = 2: incremental over pairs and triples, O(m) expected for points in random order, O(m^3) at worst.
    """
    m, d = member.size, x.shape[1]
    for c in range(d):
        center[c] = x[member[0], c]
    if d == 1:
        low, high = center[0], center[0]
        for i in range(1, m):
            low, high = min(low, x[member[i], 0]), max(high, x[member[i], 0])
        center[0] = (low + high) / 2
    elif d == 2:
        radius = 0.0
        for i in range(1, m):
            a = member[i]
            if math.hypot(x[a, 0] - center[0], x[a, 1] - center[1]) <= radius * (1 + 1e-12):
                continue
            center[0], center[1], radius = x[a, 0], x[a, 1], 0.0
            for j in range(i):
                b = member[j]
                if math.hypot(x[b, 0] - center[0], x[b, 1] - center[1]) <= radius * (1 + 1e-12):
                    continue
                center[0], center[1] = (x[a, 0] + x[b, 0]) / 2, (x[a, 1] + x[b, 1]) / 2
                radius = math.hypot(x[a, 0] - x[b, 0], x[a, 1] - x[b, 1]) / 2
                for k in range(j):
                    c = member[k]
                    if math.hypot(x[c, 0] - center[0], x[c, 1] - center[1]) <= radius * (1 + 1e-12):
                        continue
                    px, py = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1]
                    qx, qy = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1]
                    cross = 2 * (px * qy - py * qx)
                    if cross == 0.0:
                        continue
                    p2, q2 = px * px + py * py, qx * qx + qy * qy
                    ux, uy = (qy * p2 - py * q2) / cross, (px * q2 - qx * p2) / cross
                    center[0], center[1], radius = x[a, 0] + ux, x[a, 1] + uy, math.hypot(ux, uy)
    else:
        walk, least = center.copy(), np.inf
        for step in range(1, steps + 1):
            far, who = -1.0, 0
            for i in range(m):
                away = 0.0
                for c in range(d):
                    away += (x[member[i], c] - walk[c]) ** 2
                if away > far:
                    far, who = away, member[i]
            if far < least:
                least = far
                center[:] = walk
            if far <= 0.0:
                break
            for c in range(d):
                walk[c] += (x[who, c] - walk[c]) / (step + 1)
    far = 0.0
    for i in range(m):
        away = 0.0
        for c in range(d):
            away += (x[member[i], c] - center[c]) ** 2
        far = max(far, away)
    return math.sqrt(far)


@njit(cache=True, nogil=True)
def enclosing_balls(x, start, member, steps, center, radius):
    """``enclosing_ball`` of every cluster: members of cluster c are member[start[c] : start[c + 1]].

    center  float64[m, d] out, radius float64[m] out.
    """
    for c in range(start.size - 1):
        if start[c + 1] > start[c]:
            radius[c] = enclosing_ball(x, member[start[c] : start[c + 1]], steps, center[c])


@njit(cache=True, nogil=True)
def disc_holds(x, reach, r, at):
    """Whether a disc of radius reach holds the first of the points and r - 1 others.

    x        float64[m, 2]  the point itself first; all others within 2 * reach of it
    at       float64[2]     out: a center, when there is one
    returns  bool; a True may be wrong by a relative 1e-9, a False is right

    If some disc does, one has a point on its rim: its center is swept along the circle of radius reach around every
    point.  O(m^2 log m) time, O(m) space.
    """
    m = x.shape[0]
    at[0], at[1] = x[0, 0], x[0, 1]
    if r <= 1:
        return True
    if m < r:
        return False
    loose = reach * (1 + 1e-9)
    angle = np.empty(2 * m)
    change = np.empty(2 * m, np.int64)
    for q in range(m):
        dx, dy = x[0, 0] - x[q, 0], x[0, 1] - x[q, 1]
        apart = math.hypot(dx, dy)
        middle, half = 0.0, math.pi
        if q > 0:
            if apart > 2 * loose:
                continue
            if apart > 0:
                middle, half = math.atan2(dy, dx), math.acos(min(1.0, apart / (2 * loose))) + 1e-9
        always, events = 0, 0
        for u in range(m):
            if u == q:
                always += 1
                continue
            dx, dy = x[u, 0] - x[q, 0], x[u, 1] - x[q, 1]
            apart = math.hypot(dx, dy)
            if apart > 2 * loose:
                continue
            if apart == 0:
                always += 1
                continue
            turn = math.atan2(dy, dx) - middle
            if turn > math.pi:
                turn -= 2 * math.pi
            elif turn < -math.pi:
                turn += 2 * math.pi
            wide = math.acos(min(1.0, apart / (2 * loose))) + 1e-9
            low, high = max(turn - wide, -half), min(turn + wide, half)
            if low > high:
                continue
            angle[events], change[events] = low, 1
            angle[events + 1], change[events + 1] = high, -1
            events += 2
            if half == math.pi and turn + wide > math.pi:  # the whole circle: an arc may run over its seam
                angle[events], change[events] = -math.pi, 1
                angle[events + 1], change[events + 1] = turn + wide - 2 * math.pi, -1
                events += 2
            elif half == math.pi and turn - wide < -math.pi:
                angle[events], change[events] = turn - wide + 2 * math.pi, 1
                angle[events + 1], change[events + 1] = math.pi, -1
                events += 2
            if events + 4 > angle.size:
                bigger, other = np.empty(2 * angle.size), np.empty(2 * angle.size, np.int64)
                bigger[:events], other[:events] = angle[:events], change[:events]
                angle, change = bigger, other
        if always >= r:
            at[0], at[1] = x[0, 0], x[0, 1]
            return True
        order = np.argsort(angle[:events])
        inside = always
        e = 0
        while e < events:
            f = e
            while f < events and angle[order[f]] == angle[order[e]]:  # arcs that begin here before those that end
                if change[order[f]] > 0:
                    inside += 1
                f += 1
            if inside >= r:
                theta = middle + angle[order[e]]
                at[0], at[1] = x[q, 0] + reach * math.cos(theta), x[q, 1] + reach * math.sin(theta)
                return True
            for g in range(e, f):
                if change[order[g]] < 0:
                    inside -= 1
            e = f
    return False
