"""Datasets in an object store: addresses, objects, copies of them on this machine, uploads."""
