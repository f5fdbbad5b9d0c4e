"""Task proposals: goal graphs, their generators, plans, layouts and tests in physics."""
