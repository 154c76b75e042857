"""Series of releases: the chain, the ledger, the modes and the judge."""
