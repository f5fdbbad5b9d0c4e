"""Datasets in an object store: addresses, objects, local copies and uploads."""
