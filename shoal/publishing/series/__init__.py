"""A series of releases: its folder and ledger, and one module for each way of going on."""
