"""State of the scene as skills and conditions can observe it without moving anything."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PhysicalLayout, PlacedObject
from nimbus.datagen.execute.articulation import FurthestParts, JointedPart, cavity
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.usd.stage import Fixture, StageInfo

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation
    from nimbus.datagen.tasks.task_file import Region


_SKIN = 0.002
"""Tolerance within which a point counts as inside a cavity [m]."""


class SimulatedScene:
    """Objects and fixtures of one physical layout in the current state of physics.

    Args:
        simulation: Simulation loaded with the layout.
        layout: The physical layout.
        regions: The task's regions by name.
    """

    def __init__(
        self, simulation: NewtonSimulation, layout: PhysicalLayout, *, regions: Mapping[str, Region] | None = None
    ) -> None:
        self.simulation = simulation
        self.regions = regions or {}
        self.stage: StageInfo = simulation.stage
        self.objects: dict[str, PlacedObject] = {item.name: item for item in layout.objects}
        self._models: dict[str, ObjectModel] = {}
        self._furthest = FurthestParts(self)
        # Start states are recorded now, because conditions compare later states with them.
        self._start_heights = {name: self.lowest_point(name) for name in self.objects}
        self.start_poses = {name: self.pose(name) for name in (*self.objects, *self.stage.fixtures)}

    def pose(self, name: str) -> FloatArray:
        """Return ``world_T_body`` (4, 4) of an object, a fixture or a robot link."""
        return self.simulation.body_pose(name)

    def is_at_rest(self, name: str) -> bool:
        """Return True if a thing is slower than 2 cm/s and 0.5 rad/s."""
        linear, angular = self.simulation.body_speed(name)
        return linear < 0.02 and angular < 0.5

    def model(self, name: str) -> ObjectModel:
        """Return the shape and metadata of an object."""
        # Conditions need models at every evaluation, and a library may read files for each model.
        if name not in self._models:
            item = self.objects[name]
            self._models[name] = open_library(item.library).model(item.kind, item.variant, item.scale)
        return self._models[name]

    def fixture(self, name: str) -> Fixture:
        """Return a fixture of the scene."""
        return self.stage.fixtures[name]

    def lowest_point(self, name: str) -> float:
        """Return the height of an object's lowest point [m]; for an object at rest, the height of its support."""
        if name in self.simulation.flexible:
            return float(self.simulation.points(name)[:, 2].min()) - self.thickness(name) / 2
        pose = self.pose(name)
        return float((self.model(name).vertices @ pose[2, :3]).min() + pose[2, 3])

    def points(self, name: str) -> FloatArray:
        """Return the points (V, 3) of a flexible object in the world frame [m]; empty for a rigid object.

        These are the vertices of a cloth, row after row, the ends of the links of a cable, or the centers of grains.
        """
        return self.simulation.points(name) if name in self.simulation.flexible else np.zeros((0, 3))

    def thickness(self, name: str) -> float:
        """Return the thickness of a cloth or a cable, or the diameter of grains [m]; 0 for a rigid object."""
        model = self.model(name)
        if model.sheet:
            return model.sheet.thickness
        round_bodies = model.chain or model.heap
        return 2 * round_bodies.radius if round_bodies else 0.0

    def bounds(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper corner (3,) of an object or a fixture along the world axes [m]."""
        if name in self.simulation.flexible:
            points, half = self.simulation.points(name), self.thickness(name) / 2
            return points.min(axis=0) - half, points.max(axis=0) + half
        pose = self.pose(name)
        if name in self.objects:
            points = self.model(name).vertices
        else:
            points = np.array(list(itertools.product(*np.transpose(self.fixture(name).bounds))))
        points = points @ pose[:3, :3].T + pose[:3, 3]
        return points.min(axis=0), points.max(axis=0)

    def has_fallen(self, name: str) -> bool:
        """Return True if an object is clearly below its initial support."""
        return self.lowest_point(name) < self._start_heights[name] - 0.1

    def part(self, name: str, part: str = "") -> JointedPart:
        """Return a moving part of an object, the first one by default."""
        return JointedPart(self, name, part)

    def joint_fraction(self, name: str, joint: str = "") -> float:
        """Return a part's fraction of its range: 0 closed or at rest, 1 fully open."""
        return self.part(name, joint).fraction

    def largest_fraction(self, name: str, joint: str = "") -> float:
        """Return the largest fraction that a part has reached so far, at any instant."""
        return self._furthest.fraction(self.part(name, joint).label)

    def joint_position(self, name: str, joint: str = "") -> float:
        """Return the position of a part's joint [rad or m]."""
        return self.part(name, joint).position

    def part_pose(self, name: str, part: str = "") -> FloatArray:
        """Return ``world_T_part`` (4, 4)."""
        return self.part(name, part).pose

    def cavity(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Return the cavity of an object, see :func:`~nimbus.datagen.execute.articulation.cavity`.

        Returns:
            Frame (4, 4) of the cavity in the world, and its lower and upper corner (2, 3) in that frame [m].
        """
        return cavity(self, name)

    def contents(self, name: str) -> list[str]:
        """Return the names of the objects whose centers are inside an open object."""
        interiors = self.model(name).interiors.values()
        if not interiors:
            return []
        # Objects that are fixed in place, such as furniture, cannot be put into another object.
        others = [other for other in self.objects if other != name and not self.objects[other].anchored]
        object_T_world = np.linalg.inv(self.pose(name))
        places = {other: (object_T_world @ self.pose(other))[:3, 3] for other in others}
        return [
            other
            for other, place in places.items()
            if any(np.all(place > low - _SKIN) and np.all(place < high + _SKIN) for low, high in interiors)
        ]

    def position_address(self, name: str) -> int:
        """Return the index of a free body's position in the simulator's position vector."""
        model = self.simulation.model
        return int(model.jnt_qposadr[model.body_jntadr[model.body(name).id]])
