"""Starts and local searches for the default method: the cascade, neighborhood search, annealing, and open tuples."""
