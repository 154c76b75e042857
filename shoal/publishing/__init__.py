"""From a partition to what leaves: how values are recoded, the release, its verification and its signature."""
