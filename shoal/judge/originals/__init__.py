"""The judge of releases beside other tables: the original, and the population it was drawn from."""
