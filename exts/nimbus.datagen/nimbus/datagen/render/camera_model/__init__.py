"""Camera effects: lens, sensor, latency and optical flow."""
