"""Proof that travels with a dataset: what was checked of it, how far, and with which figures."""
