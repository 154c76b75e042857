"""The judge of tables: privacy counted from what is published, alone, with the original, and with the population."""
