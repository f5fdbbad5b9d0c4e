"""Prepared libraries, as ``nimbus assets import`` writes them: an index, and a folder of each kind."""
