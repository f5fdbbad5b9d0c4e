"""Quality checks for training: of datasets of Nimbus, and of LeRobot v3.0 and v2.1 of any origin."""
