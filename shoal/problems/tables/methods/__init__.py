"""Methods of the literature, a file each."""
