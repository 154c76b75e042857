"""The judge of places: regions, tiles and clusters as they stand on disk."""
