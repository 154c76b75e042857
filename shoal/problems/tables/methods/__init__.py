"""Methods of the literature, one file each."""
