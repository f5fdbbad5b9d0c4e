"""Training readers, by episode and frame, in windows, shuffled: Nimbus datasets, shards, LeRobot v3.0."""
