"""The lattice of generalizations of a table: one level per column, with the loss each level causes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.model.recoding import Recoding
from shoal.model.task import Task

ENUMERATED = 1_000_000


@dataclass(frozen=True, eq=False)
class Lattice:
    """Per column a chain of ever coarser classes of its codes.

    up    per column int32[h, size]    class of a code at a level, classes numbered 0 ..
    loss  per column float64[h, size]  weighted loss of publishing a code's class at a level, rising with the level
    """

    up: tuple[np.ndarray, ...]
    loss: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, recoding: Recoding) -> Lattice:
        """Levels columns: the levels up to the ceiling.  Ranges: halves, quarters, ... of the codes.  Sets: one or all.

        For ranges and sets the loss is that of the whole class, an upper bound on what its rows publish.
        """
        ladders = [(*column.ladder(), column.weight) for column in recoding.columns]
        return cls(tuple(up.astype(np.int32) for up, *_ in ladders), tuple(loss * w for _, loss, w in ladders))

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """Levels per column."""
        return tuple(int(u.shape[0]) for u in self.up)

    @cached_property
    def nodes(self) -> float:
        """Number of nodes; a float, for it may be beyond any integer type."""
        return float(np.prod(np.array(self.heights, float)))

    @cached_property
    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """up int32[..], at int64[d], size int64[d], exact, as the kernels want them."""
        size = np.array([u.shape[1] for u in self.up], np.int64)
        at = np.concatenate([[0], np.cumsum([u.size for u in self.up])])[:-1].astype(np.int64)
        exact = float(np.prod(size.astype(float))) < 2.0**62
        return np.concatenate([u.reshape(-1) for u in self.up]).astype(np.int32), at, size, exact

    def mean_loss(self, task: Task) -> list[np.ndarray]:
        """Per column, per level: mean loss of the table's own rows."""
        out = []
        for j, loss in enumerate(self.loss):
            held = np.bincount(task.histogram.quasi[:, j], weights=task.histogram.count, minlength=loss.shape[1])
            out.append(loss @ held / max(held.sum(), 1))
        return out

    def entropy(self, task: Task) -> list[np.ndarray]:
        """Per column, per level: entropy of the table's rows over the classes, in nats."""
        out = []
        for j, up in enumerate(self.up):
            share = np.zeros(up.shape[0])
            for level in range(up.shape[0]):
                held = np.bincount(up[level][task.histogram.quasi[:, j]], weights=task.histogram.count)
                held = held[held > 0] / held.sum()
                share[level] = -(held * np.log(held)).sum()
            out.append(share)
        return out

    def chain(self, task: Task) -> np.ndarray:
        """One path from the bottom to the top, int32[v, d]: each step merges most per loss it adds."""
        means, shares = self.mean_loss(task), self.entropy(task)
        node = np.zeros(len(self.up), np.int32)
        path = [node.copy()]
        while True:
            open_columns = [j for j, h in enumerate(self.heights) if node[j] + 1 < h]
            if not open_columns:
                return np.stack(path)

            def merit(j: int) -> float:
                level = int(node[j])
                return float((shares[j][level] - shares[j][level + 1]) / (means[j][level + 1] - means[j][level] + 1e-9))

            node[max(open_columns, key=merit)] += 1
            path.append(node.copy())

    def ordered(self, task: Task) -> np.ndarray:
        """All nodes, int32[v, d], by mean loss on the table's marginals; of equals first what merges most."""
        total, detail = np.zeros(1), np.zeros(1)
        digits = []
        means, shares = self.mean_loss(task), self.entropy(task)
        for mean, share in zip(means, shares, strict=True):
            total = (total[:, None] + mean[None, :]).reshape(-1)
            detail = (detail[:, None] + share[None, :]).reshape(-1)
            digits.append(len(mean))
        order = np.lexsort((detail, np.round(total, 9)))
        return np.stack(np.unravel_index(order, digits), axis=1).astype(np.int32)
