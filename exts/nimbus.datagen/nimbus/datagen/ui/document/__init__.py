"""Editable task file: its text, its fields, and the declarations behind them."""
