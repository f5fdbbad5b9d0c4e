"""Damaged and hostile inputs by the thousand: each must be read, or refused in one line."""
