"""The intruder: attacks of the literature on a release of anybody, each with a figure and its baseline."""
