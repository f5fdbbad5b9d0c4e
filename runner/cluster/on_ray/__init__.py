"""Head and agents on the machines of a Ray cluster; only the actors and the follower import Ray."""
