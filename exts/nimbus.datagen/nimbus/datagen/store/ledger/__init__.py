"""The ledger: tables, records and consistency checks of every attempt."""
