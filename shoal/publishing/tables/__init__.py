"""Releases of tables: the release, its certificate and record, its figures, and conditions on the whole table."""
