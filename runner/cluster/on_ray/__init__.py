"""Head and agents on the machines of a Ray cluster; ``actors.py`` alone imports Ray."""
