"""Messages and shared memory between the processes of a cell."""
