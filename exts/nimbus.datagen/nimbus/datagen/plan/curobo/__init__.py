"""Planning by cuRobo V2 on a GPU, in a process of its own; nothing here imports cuRobo but ``adapter``."""
