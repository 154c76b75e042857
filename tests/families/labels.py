"""Families for min-max bin covering, each with its optimum."""

import random


def nearly_full(k: int) -> tuple[list[int], int]:
    """k - 1 items of k - 1 and k - 1 ones, k odd.  The optimum is k: a one completes each large item.

    Greedy covering pairs the large items, (k - 1) / 2 bins of 2k - 2, and is left with the ones.
    Fold throws them into one bin: 3k - 3, ratio toward 3.
    Theorem 9 as in the paper splits them by Lemma 8: 2k - 2 + k // 2, ratio toward 5/2.
    Spread, and Theorem 9 with one leftover at a time, give each bin two: 2k, ratio 2.
    """
    assert k % 2 == 1
    return [k - 1] * (k - 1) + [1] * (k - 1), k


def three_partition(m: int, total: int, seed: int) -> list[int]:
    """3 m sizes between total / 4 and total / 2 that fall into m triples of sum ``total`` (Theorem 5: the optimum
    for k = total is total)."""
    rng = random.Random(seed)
    low, high = total // 4 + 1, (total - 1) // 2
    sizes: list[int] = []
    while len(sizes) < 3 * m:
        a, b = rng.randint(low, high), rng.randint(low, high)
        if low <= total - a - b <= high:
            sizes += [a, b, total - a - b]
    rng.shuffle(sizes)
    return sizes


# sizes, k, the optimum, words of the only bound that reaches it: neither the largest item nor total / (total // k) does
BOUNDS = [
    ([3, 5, 6], 7, 14, "at most 1 bins reach 7"),
    ([6, 7, 11, 10, 2], 12, 18, "at most 2 bins reach 12"),
    ([25, 4, 4], 10, 33, "at most 1 bins reach 10"),
    ([5, 9, 12], 9, 14, "no selection that holds an item of 5 has a sum in 9..13"),
    ([6, 11, 12, 10, 3], 10, 16, "no selection that holds an item of 6 has a sum in 10..15"),
    ([9, 9, 4, 9, 4, 11], 12, 18, "the 4 items of 9 or more cannot each fill a bin"),
    ([6, 6, 11, 2, 7], 9, 12, "the 4 items of 6 or more cannot each fill a bin"),
    ([10, 2, 10], 10, 12, "with all counts and k divided by 2"),
    ([4, 4, 4, 4, 4], 10, 20, "with all counts and k divided by 4"),
]

# sizes, k, cost of Theorem 9's algorithm, and the case of the proof that it meets
CASES = [
    ([6, 6, 5, 5], 10, 12, "every bin is full"),
    ([4, 4, 4, 4, 4], 10, 20, "case 1, one bin closed"),
    ([9, 9, 7, 7, 3, 3], 10, 20, "case 1, two bins closed"),
    ([9, 9, 8, 8, 7, 7, 3, 3, 3], 10, 20, "case 1, three bins closed"),
    ([23, 21, 20, 19, 6, 5, 4, 2], 24, 51, "case 1, more than twice the optimum of 25"),
    ([30, 5, 4], 10, 39, "case 1, beside an oversize item"),
    ([9, 6, 6, 1], 10, 12, "case 2.1, x_1 and f change places"),
    ([6, 6, 6], 10, 18, "case 2.2, Fold"),
    ([12, 6, 1], 10, 19, "case 2, x_1 is in the last bin"),
]
