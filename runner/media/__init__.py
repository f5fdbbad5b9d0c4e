"""Contact sheets, videos and Rerun recordings of datasets."""
