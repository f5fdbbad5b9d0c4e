"""Certificates: stored results of checks of a dataset, with the number of checked episodes and figures."""
