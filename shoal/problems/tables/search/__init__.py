"""The default method: the cascade through the lattice, the search around it, and the bounds on what it can reach."""
