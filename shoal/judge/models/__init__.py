"""The judge's own reading of each privacy model, in a module named like the model's: ``found``, or where
it reads several, ``FOUND`` by the name of the class, gives the level that a
table reaches, and whether the model holds.  Nothing here is shared with what enforces it.

``found`` takes the model and, by what it speaks of, the sizes of the classes, a ``Column``, or (codes int64[n, s] of
all sensitive columns, classes int64[n]); never of an empty table, which meets everything.
"""
