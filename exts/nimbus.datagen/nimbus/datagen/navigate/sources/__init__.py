"""Sources of scenes that tasks can name, one module each."""
