"""Navigation: free space of scenes, paths through it, and their descriptions; knows no stages."""
