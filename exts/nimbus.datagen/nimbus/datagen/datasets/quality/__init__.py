"""Quality checks for training, for Nimbus datasets and for LeRobot v3.0 and v2.1 of any origin."""
