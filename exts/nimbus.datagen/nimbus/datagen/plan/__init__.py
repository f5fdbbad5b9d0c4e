"""Motion planning: inverse kinematics, collision checks, paths, timing and grasps."""
