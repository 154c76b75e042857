"""The usefulness of a release: exploring requests, and comparing releases with their original."""
