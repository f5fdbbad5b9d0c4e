"""Procedural objects. A library file declares kinds, and a seed determines every variant of a kind."""
