"""Files that people write: strict YAML, quantities, lookup, caches, atomic writes."""
