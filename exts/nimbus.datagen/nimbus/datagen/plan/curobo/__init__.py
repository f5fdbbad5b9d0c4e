"""Motion planning by cuRobo V2 on a GPU, in a separate process; only ``adapter`` imports cuRobo."""
