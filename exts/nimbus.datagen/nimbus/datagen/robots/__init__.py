"""Robot models: robot files, URDF and MJCF, and their checks."""
