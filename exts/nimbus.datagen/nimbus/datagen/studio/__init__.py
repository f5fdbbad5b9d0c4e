"""The task editor in a browser, over the panel's view-model: a 3-D scene beside the fields of a task."""
