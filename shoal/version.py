"""The version, alone, so that everything may ask for it."""

__version__ = "0.1.0"
