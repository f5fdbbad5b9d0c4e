"""Shape families of procedural objects."""
