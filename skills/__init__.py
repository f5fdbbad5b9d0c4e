"""Skills: one a file. What a robot can be asked to do in a task file."""
