"""The judge of places: checks regions, tiles, and clusters as the files have them."""
