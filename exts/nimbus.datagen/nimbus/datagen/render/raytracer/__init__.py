"""The default renderer's Warp kernels and the data that they read."""
