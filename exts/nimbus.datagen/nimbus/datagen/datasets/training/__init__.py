"""Reading for training, by episode and frame, in windows, shuffled: datasets of Nimbus, shards, LeRobot v3.0."""
