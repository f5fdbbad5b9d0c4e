"""Task editor in a browser, served by viser: a 3-D scene beside the form of a task."""
