"""Navigation: free space of scenes, paths through it, and instructions for them. It uses no stage of the pipeline."""
