"""Whether a dataset is fit to train on: of Nimbus, or of LeRobot v3.0 and v2.1 whoever wrote it."""
