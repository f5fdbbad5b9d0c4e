"""Progress, status file and dashboard of a run."""
