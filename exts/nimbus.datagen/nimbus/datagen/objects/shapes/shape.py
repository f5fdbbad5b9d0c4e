"""What a shape family makes: a mesh to look at, convex pieces to touch, and a map of its texture."""

from __future__ import annotations
