"""A table on its way out: the release, what it states of itself, its figures, and what was asked of it as a whole."""
