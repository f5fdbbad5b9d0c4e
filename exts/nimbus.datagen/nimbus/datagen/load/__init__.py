"""Load stage: scene assets, reach maps, and the fingerprint of all inputs that determine content."""
