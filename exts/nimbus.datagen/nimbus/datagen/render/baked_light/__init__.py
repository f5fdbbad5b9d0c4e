"""Light that is computed once for what stands still: a basis of lamps and sky, and looks as sums of it."""
