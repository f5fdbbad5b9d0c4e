"""Tasks from goals: goal graphs, their plans and layouts, and a generator of graphs."""
