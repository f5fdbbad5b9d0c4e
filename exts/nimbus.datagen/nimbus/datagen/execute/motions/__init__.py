"""Motion primitives that skills share: grasps, releases, pushing, moving parts."""
