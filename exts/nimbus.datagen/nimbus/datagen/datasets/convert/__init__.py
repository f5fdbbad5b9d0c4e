"""LeRobot datasets, whoever wrote them, written anew: in another version, cut otherwise, or only some episodes."""
