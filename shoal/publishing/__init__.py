"""From an answer to a release: recoding of values, the release, its verification, and its signature."""
