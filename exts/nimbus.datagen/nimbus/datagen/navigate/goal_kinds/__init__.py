"""Goal kinds for tasks, one module per kind."""
