"""The Load stage: scene assets, reach maps and the fingerprint of all content inputs."""
