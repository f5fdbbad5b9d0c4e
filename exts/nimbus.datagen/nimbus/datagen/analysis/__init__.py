"""Statistics of a dataset's yield: factors, significance and forecasts."""
