"""Graphs of known connectivity, and instances on which a bound is met or an optimum is known."""

import random

import networkx as nx


def antiprism(m: int) -> nx.Graph:
    """4-regular, planar and 4-connected: two cycles of length m with a zigzag of triangles between them."""
    g = nx.Graph()
    for i in range(m):
        j = (i + 1) % m
        g.add_edges_from([(i, j), (m + i, m + j), (i, m + i), (i, m + j)])
    return g


def prism(m: int) -> nx.Graph:
    """3-regular, planar and 3-connected: two cycles of length m side by side."""
    g = nx.Graph()
    for i in range(m):
        j = (i + 1) % m
        g.add_edges_from([(i, j), (m + i, m + j), (i, m + i)])
    return g


def wheel(m: int) -> nx.Graph:
    """Planar and 3-connected: a cycle of length m and a hub."""
    return nx.wheel_graph(m + 1)


def kleetope(g: nx.Graph) -> nx.Graph:
    """A vertex of degree 3 put into every face of a plane triangulation: 3-connected, soon without a spanning path."""
    _, embedding = nx.check_planarity(g)
    faces, marked = [], set()
    for u, v in embedding.edges():
        if (u, v) not in marked:
            faces.append(embedding.traverse_face(u, v, marked))
    grown = nx.Graph(g.edges())
    for face in faces:
        apex = grown.number_of_nodes()
        grown.add_edges_from((apex, v) for v in face)
    return grown


def stacked(n: int, seed: int) -> nx.Graph:
    """A random stacked triangulation (Apollonian network): planar and 3-connected, full of separating triangles."""
    rng = random.Random(seed)
    g = nx.complete_graph(4)
    faces = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    for v in range(4, n):
        a, b, c = faces.pop(rng.randrange(len(faces)))
        g.add_edges_from([(v, a), (v, b), (v, c)])
        faces += [(v, a, b), (v, a, c), (v, b, c)]
    return g


def flipped(n: int, flips: int, seed: int) -> nx.Graph:
    """A random 4-connected triangulation: a double wheel whose edges are flipped while no separating triangle appears.

    A triangulation on at least 6 vertices is 4-connected exactly when every triangle in it bounds a face.
    """
    rng = random.Random(seed)
    m = n - 2
    g = nx.cycle_graph(m)
    g.add_edges_from((hub, i) for hub in (m, m + 1) for i in range(m))
    apexes = {frozenset((i, (i + 1) % m)): {m, m + 1} for i in range(m)}
    for hub in (m, m + 1):
        for i in range(m):
            apexes[frozenset((hub, i))] = {(i - 1) % m, (i + 1) % m}
    for _ in range(flips):
        edge = rng.choice(sorted(map(sorted, apexes)))
        (a, b), (c, d) = edge, sorted(apexes[frozenset(edge)])
        common = set(g[c]) & set(g[d])
        if g.has_edge(c, d) or common != {a, b} or g.degree(a) == 4 or g.degree(b) == 4:
            continue
        g.remove_edge(a, b)
        g.add_edge(c, d)
        del apexes[frozenset((a, b))]
        apexes[frozenset((c, d))] = {a, b}
        for x, y, old, new in ((a, c, b, d), (a, d, b, c), (b, c, a, d), (b, d, a, c)):
            side = apexes[frozenset((x, y))]
            side.remove(old)
            side.add(new)
    return g


def cubic_with_perfect_partition(m: int, seed: int) -> tuple[nx.Graph, int]:
    """A 3-regular planar graph on 6m vertices that has a partition into paths of three vertices, and k = 3.

    A prism over a cycle of length 3m: the paths run along the two cycles.  The least maximum is 3.
    """
    g = prism(3 * m)
    order = list(g)
    random.Random(seed).shuffle(order)
    return nx.relabel_nodes(g, dict(zip(g, order, strict=True))), 3


def cubic_without_perfect_partition() -> nx.Graph:
    """A 3-regular planar graph on 24 vertices that has no partition into connected threes: the least maximum is
    above 3.

    Two hubs joined by an edge, each with two arms that hang on it by a bridge.  Of an arm of five vertices exactly
    two must go with its hub, for the other threes lie inside the arm; the first hub has two such arms.
    """
    five = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    seven = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 5), (3, 6), (4, 5), (4, 6), (5, 6)]
    g = nx.Graph([("hub 1", "hub 2")])
    for arm, (hub, inside) in enumerate([("hub 1", five), ("hub 1", five), ("hub 2", five), ("hub 2", seven)]):
        g.add_edge(hub, (arm, 0))
        g.add_edges_from(((arm, a), (arm, b)) for a, b in inside)
    return g


def star_of_lights(d: int, k: int) -> tuple[list[tuple[int, int]], list[int], int]:
    """A tree on which Lemma 1 is met exactly: a hub of weight kappa = k with d leaves of weight k - 1, nothing to cut.

    The only partition is one region of kappa + d (k - 1), so that is the optimum as well.
    """
    return [(0, i) for i in range(1, d + 1)], [k] + [k - 1] * d, k
