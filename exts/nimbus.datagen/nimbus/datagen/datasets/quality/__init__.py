"""Quality checks of training data: Nimbus datasets, and LeRobot v3.0 and v2.1 datasets of any origin."""
