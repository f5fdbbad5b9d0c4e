"""Prepared libraries written by ``nimbus assets import``: an index, and one folder per kind."""
