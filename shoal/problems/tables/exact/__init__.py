"""Least loss, proved: dynamic programs, set partition with odd sets, integer programs over patterns."""
