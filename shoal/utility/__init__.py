"""What a release is good for: the choice between releases, and releases held against their original."""
