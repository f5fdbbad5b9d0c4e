"""Procedural objects: a library file declares kinds, code makes any variant of them from a seed."""
