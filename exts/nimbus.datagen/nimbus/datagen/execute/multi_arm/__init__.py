"""Several arms at once: scheduling and path conflicts."""
