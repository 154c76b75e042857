"""Making releases of answers: how values are recoded, the release, its verification and its signature."""
