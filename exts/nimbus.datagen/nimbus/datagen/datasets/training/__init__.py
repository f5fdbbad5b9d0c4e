"""Readers for training: random access and shuffled iteration over Nimbus datasets, shards and LeRobot v3.0."""
