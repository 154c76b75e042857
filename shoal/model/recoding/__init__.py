"""How the values of a group are published, and what each published value costs: a file for each way.

``levels`` (hierarchies, and stars), ``ranges`` and ``sets`` answer what ``column`` asks; ``recoding`` puts columns
together.  A further way is a file that answers the same, and a line in ``shoal.model.ways``.
"""

from shoal.model.recoding.column import ColumnRecoding, Labels, Shown, Slot
from shoal.model.recoding.levels import FORBIDDEN, Levels
from shoal.model.recoding.ranges import Grid, Ranges
from shoal.model.recoding.recoding import Published, Recoding
from shoal.model.recoding.sets import Sets

__all__ = [
    "FORBIDDEN",
    "ColumnRecoding",
    "Grid",
    "Labels",
    "Levels",
    "Published",
    "Ranges",
    "Recoding",
    "Sets",
    "Shown",
    "Slot",
]
