"""Procedural objects: a library file declares kinds, from which any variant is made by seed."""
