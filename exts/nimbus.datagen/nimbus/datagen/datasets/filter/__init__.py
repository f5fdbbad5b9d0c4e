"""Filters that write some episodes of a dataset as a new dataset."""
