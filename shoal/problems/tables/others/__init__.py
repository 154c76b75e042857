"""Known methods of others: Hilbert runs, Mondrian, top-down specialization, global recoding, forests, covers."""
