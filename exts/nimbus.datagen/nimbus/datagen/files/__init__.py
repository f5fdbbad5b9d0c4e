"""Files that people and programs read and write: formats, atomic writes."""
