"""Small objects on the furniture of generated homes: cups on tables, books on desks, tools on workbenches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.meshes.triangles import Triangles
from nimbus.datagen.navigate.navigation_scene import ScenePart
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.model import ObjectModel
from nimbus.datagen.random_streams import generator
from nimbus.datagen.rooms.furnishing import Furnishing
from nimbus.datagen.rooms.home_model import HomePlan, HomeRoom

_TOPS = frozenset(
    ("dining_table", "coffee_table", "side_table", "side_desk", "nightstand", "dresser", "console_table")
    + ("base_cabinet", "drawer_unit", "dishwasher", "washing_machine", "tumble_dryer", "workbench")
)
"""Kinds of furnishings with a flat top on which objects are put."""
_FOOD = ("kitchen bowl", "kitchen plate", "kitchen cup", "kitchen apple", "trash carton")
_DESK = ("tools book", "kitchen cup")
_LEISURE = ("tools book", "kitchen cup", "kitchen apple")
_STORE = ("containers basket", "trash carton")
_THEMES = {
    "kitchen": _FOOD,
    "dining_room": _FOOD,
    "living_room": _LEISURE,
    "library": _DESK,
    "study": _DESK,
    "hall": _LEISURE,
    "bedroom": _LEISURE,
    "childs_room": ("tools book", "containers basket"),
    "workshop": ("tools hammer", "tools screwdriver", "tools wrench"),
}
"""Objects by kind of room, each as library and kind; other rooms use :data:`_STORE`."""
_CHANCE = 0.6
"""Probability that an object is put on a top."""
_MOST = 12
"""Largest number of objects in a home; each has about 1,000 triangles, for which lighting is baked."""
_MOST_OF_ROOM = 2
"""Largest number of tops with objects in a room."""
_TRIES = 6
"""Number of positions that are tried for an object."""
_MARGIN = 0.02
"""Distance of an object from the edge of its top, and from other objects [m]."""
THING_KINDS = tuple(sorted({name.split()[1] for kinds in (*_THEMES.values(), _STORE) for name in kinds}))
"""All kinds of these objects; an object's class is its kind."""


@dataclass(frozen=True)
class _Place:
    """Mesh of an object in the frame of the home."""

    vertices: FloatArray
    """(n, 3) vertices [m]."""
    normals: FloatArray
    """(n, 3) unit normals."""

    @property
    def bounds(self) -> FloatArray:
        """(2, 3) lower and upper corner of the bounding box [m]."""
        return np.array([self.vertices.min(axis=0), self.vertices.max(axis=0)])


def hash_libraries() -> str:
    """Return the content hashes of the object libraries that provide the objects."""
    names = sorted({name.split()[0] for kinds in (*_THEMES.values(), _STORE) for name in kinds})
    return " ".join(open_library(name).content_hash for name in names)


def place_things(home: HomePlan) -> list[ScenePart]:
    """Put objects on furniture; return their parts. Equal homes get equal objects.

    All objects of a kind in one home are the same variant, like a set of dishes. No object extends beyond its
    furniture, so that paths do not change.
    """
    rng = generator(home.seed, "home", "things")
    counts = Counter(one.kind for room in home.rooms for one in room.furnishings)
    found: list[ScenePart] = []
    for place in rng.permutation(len(home.rooms)):
        room = home.rooms[int(place)]
        kinds = _THEMES.get(room.kind, _STORE)
        tops = [one for one in room.furnishings if one.kind in _TOPS]
        for top in [tops[int(number)] for number in rng.permutation(len(tops))[:_MOST_OF_ROOM]]:
            if len(found) >= _MOST or rng.uniform() > _CHANCE:
                continue
            library, kind = kinds[int(rng.integers(len(kinds)))].split()
            model = _model(home.seed, library, kind)
            if (made := _set_down(model, top, room, rng)) is not None:
                found.append(_part(f"{kind}_{counts[kind]}", kind, room.name, model, made))
                counts[kind] += 1
    return found


def _model(seed: int, library: str, kind: str) -> ObjectModel:
    """Return the variant of a kind that a home contains."""
    opened = open_library(library)
    return opened.model(kind, int(generator(seed, "home", "thing", kind).integers(opened.variant_count(kind))))


def _set_down(model: ObjectModel, top: Furnishing, room: HomeRoom, rng: np.random.Generator) -> _Place | None:
    """Put an object at a random free position on a top; return None if no tried position is free."""
    rest = model.rest_pose("upright") or model.rest_poses[0]
    others = [one.bounds for one in room.furnishings if one is not top]
    low, high = top.bounds[:, :2]
    for _ in range(_TRIES):
        turn = quat_to_matrix(quat_from_axis_angle((0, 0, 1), float(rng.uniform(-np.pi, np.pi))))
        rotation = turn @ quat_to_matrix(rest.wxyz)
        spot = rng.uniform(low, high)
        vertices = model.vertices @ rotation.T + (*spot, top.bounds[1, 2] + rest.height)
        made = _Place(vertices, model.normals @ rotation.T)
        box = made.bounds + np.array([[-_MARGIN, -_MARGIN, 0.001], [_MARGIN, _MARGIN, 0.0]])
        if np.all(box[0, :2] >= low) and np.all(box[1, :2] <= high) and not _meets(box, others):
            return made
    return None


def _meets(box: FloatArray, others: Sequence[FloatArray]) -> bool:
    return any(np.all(box[0] < other[1]) and np.all(other[0] < box[1]) for other in others)


def _part(name: str, kind: str, room: str, model: ObjectModel, made: _Place) -> ScenePart:
    triangles = Triangles(
        vertices=made.vertices.astype(np.float32),
        faces=np.asarray(model.faces, dtype=np.int32),
        normals=made.normals.astype(np.float32),
        uvs=np.asarray(model.uvs, dtype=np.float32),
        colors=np.ones((len(made.vertices), 3), dtype=np.float32),
    )
    return ScenePart(name=name, object_class=kind, room=room, triangles=triangles, picture=model.texture)
