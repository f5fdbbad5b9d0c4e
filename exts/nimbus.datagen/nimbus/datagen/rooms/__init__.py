"""Generated rooms: walls, furniture and fixtures in a plan around a bench, as a USD stage."""
