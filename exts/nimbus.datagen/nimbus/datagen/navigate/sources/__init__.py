"""Sources of scenes that tasks name, one module each."""
