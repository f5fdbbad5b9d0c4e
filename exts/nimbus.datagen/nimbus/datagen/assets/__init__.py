"""Import of assets: what others made becomes a prepared library, each asset judged alone."""
