"""Export of stored episodes to the formats of training code."""
