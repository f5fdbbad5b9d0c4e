"""Sources of scenes for tasks, one module per source."""
