"""The library: tasks, layouts, planning, simulation, rendering and storage."""
