"""Skills of robots, one per file, for the steps of a task file."""
