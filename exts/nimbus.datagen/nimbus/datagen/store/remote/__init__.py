"""Datasets in an object store: addresses, objects, local copies, uploads."""
