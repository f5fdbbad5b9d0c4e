"""Navigation: free space of scenes, paths through it, and their descriptions; independent of the stages."""
