"""Datasets in the formats that training code reads, made of stored episodes."""
