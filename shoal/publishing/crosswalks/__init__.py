"""Releases of the problems other than tables: crosswalks to regions, tiles, clusters, labels, and intervals."""
