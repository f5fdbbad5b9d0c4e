"""How steps and conditions are put together: one composite a file."""
