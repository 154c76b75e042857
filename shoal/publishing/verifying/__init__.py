"""Verification of published outputs, alone and with their sources."""
