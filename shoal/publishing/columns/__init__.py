"""How each column is published: recodings, the texts they write, ranges on a grid, centers."""
