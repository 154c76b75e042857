"""The algorithms of the papers on tables: three phases, TP+ (with the curves), matching, 2-anonymity, kernels."""
