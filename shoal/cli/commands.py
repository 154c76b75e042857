"""All commands: each module puts its own on ``app`` when imported."""

from __future__ import annotations

from shoal.cli import anonymize, assign, compare, explore, gather, init, labels, regions, reproduce, tiles

__all__ = ["anonymize", "assign", "compare", "explore", "gather", "init", "labels", "regions", "reproduce", "tiles"]
