"""Editable task file: its text, its fields, and the declarations that the fields are derived from."""
