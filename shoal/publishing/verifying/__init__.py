"""Looking again at what was published: by itself, and beside what it was made from."""
