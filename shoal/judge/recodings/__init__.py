"""The judge's own parser of each recoding, in a file named like the recoding's. Nothing is shared with the writers.

``found(raw, column)`` parses a text that is neither a star nor a missing value. It returns (low, high, members,
losses): the first and last covered value (low > high if there is no interval), further covered values, and the possible
losses from 0 to 1, one for each meaning of the text. It returns None if the text is no coarser form. ``column`` is a
``Decoder`` (``shoal.judge.tables.covering``): the values of the original in order, and how they were published.
"""
