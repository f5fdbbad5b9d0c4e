"""A task file while it is edited: its text, its fields and the declarations that they come from."""
