"""Names, classes and colors of all shipped kinds, without their models, and goal graphs of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.propose.goal_graph import ALONE, PLACES, RELATIONS, Goal, GoalGraph, Thing
from nimbus.datagen.random_streams import generator


@dataclass(frozen=True)
class Label:
    """Name, class and color of a kind."""

    category: str
    object_class: str
    color: str


@cache
def kind_labels() -> Mapping[str, Label]:
    """Return the labels of all kinds by name."""
    found = {}
    for name in scene_names("objects"):
        library = open_library(name)
        for kind in library.kinds:
            entry = library.kind(kind)
            found[f"{name}.{kind}"] = Label(entry.category, entry.object_class, next(iter(entry.colors), ""))
    return found


def draw_graph(seed: int) -> GoalGraph | None:
    """Draw random objects and goals, which may be meaningless; None if they are malformed."""
    rng, kinds = generator(seed, "graph"), list(kind_labels())
    count = int(rng.integers(2, 7))
    things = [
        Thing(f"t{index}", str(rng.choice(kinds)), str(rng.choice(PLACES)), count=int(rng.choice([1, 1, 1, 1, 2, 3])))
        for index in range(count)
    ]
    goals = []
    for _ in range(int(rng.integers(1, 4))):
        relation, (one, other) = str(rng.choice(RELATIONS)), rng.choice(count, 2, replace=False)
        target = "" if relation in ALONE else f"t{other}"
        goals.append(Goal(relation, f"t{one}", str(rng.choice(PLACES[1:])) if relation == "at" else target))
    graph = GoalGraph("panda", "table", tuple(things), tuple(goals))
    try:
        graph.check()
    except InputError:
        return None
    return graph
