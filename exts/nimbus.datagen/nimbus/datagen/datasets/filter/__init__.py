"""Filters, which write a subset of the episodes of a dataset as a new dataset."""
