"""The other problems on their way out: from what was given to its region, tile, cluster, label or interval."""
