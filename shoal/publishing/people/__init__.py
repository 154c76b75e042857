"""Who stands behind rows: several rows of one person, a population that the sample was drawn from."""
