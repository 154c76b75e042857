"""The judge's own reading of each recoding, in a file named like the recoding's; nothing is shared with what writes.

``found(raw, column)`` gives (low, high, members, losses) of a text that is no star and no missing value: the first and
last value that it covers (low > high where that is no interval), those covered beside them, and what it may lose, from
0 to 1, every way in which it can be read; None where it is no coarser form.  ``column`` is a ``Decoder``
(``shoal.judge.tables.covering``): the values of the original in their order, and how they were published.
"""
