"""The judge of tables: counts privacy from the release, alone, with the original, and with the population."""
