"""Attacks of the literature on a release of any tool; each returns a figure with its baseline."""
