"""Tasks from goals: a graph of what shall hold, its plan, its layout, and a generator of such graphs."""
