"""Task proposals: goal graphs and their sources, plans, layouts and tests in physics."""
