"""Head and agents on the machines of a Ray cluster; only ``actors.py`` imports Ray."""
