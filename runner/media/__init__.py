"""Pictures and recordings of datasets."""
