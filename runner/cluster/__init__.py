"""Many machines."""
