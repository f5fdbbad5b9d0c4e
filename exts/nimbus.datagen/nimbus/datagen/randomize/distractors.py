"""Distractors: objects that no step of the task uses."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.objects.articulated.pose import swept_vertices
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.plugin import Field, Range, Streams, quat_from_axis_angle, quat_multiply, register, suggest
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization
from nimbus.datagen.randomize.placement import NoRoomError, PlacementPose, find_places, footprint, moved, rectangle

GROUP = "distractors"
_CLEARANCE = 0.03
"""Clearance to everything else [m]; it leaves room for a finger beside objects to be grasped."""


@register("randomizer", "distractors")
class DistractorRandomization(LayoutRandomization):
    """Additional objects on the table where there is room; steps and instructions do not refer to them."""

    part = "physical"
    library: str = Field("trash", description="object library")
    kinds: Annotated[tuple[str, ...], Field(min_length=1)] | Literal["all"] = Field(
        "all", description="kinds to choose from"
    )
    count: Range[Annotated[int, Field(ge=0, le=50)]] = Field(
        (0, 3), description="number of distractors, if there is room"
    )
    region: str = Field(description="region of the task in which distractors are placed")

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with the library's path relative to the working directory."""
        return self.model_copy(update={"library": resolve_from(folder, self.library)})

    @property
    def libraries(self) -> tuple[str, ...]:
        """Names of the libraries to open."""
        return (self.library,)

    def complaint(
        self, regions: Collection[str], libraries: Mapping[str, ObjectLibrary]
    ) -> tuple[str, str, str] | None:
        """Report an unknown region or unknown kinds."""
        if self.region not in regions:
            return "region", f"unknown region '{self.region}'", suggest(self.region, regions)
        known = libraries[self.library].kinds
        unknown = [kind for kind in (() if self.kinds == "all" else self.kinds) if kind not in known]
        return ("kinds", f"unknown kind '{unknown[0]}'", suggest(unknown[0], known)) if unknown else None

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a number, and a kind and a position for each distractor; those without room are omitted."""
        low, high = self.count
        names = [f"{GROUP}_{place}" for place in range(int(streams("count").integers(low, high + 1)))]
        drawn: Draws = {"planned": len(names)}
        for name in names:
            item = self._draw(name, draft, streams)
            if item:
                draft.objects.append(item)
                drawn[name] = {"kind": item.kind, "variant": item.variant, "x": item.position[0], "y": item.position[1]}
        return drawn | {"count": len(drawn) - 1}

    def _draw(self, name: str, draft: Draft, streams: Streams) -> PlacedObject | None:
        library = open_library(self.library)
        kinds = library.kinds if self.kinds == "all" else self.kinds
        rng = streams(name)
        kind = str(rng.choice(kinds))
        model = library.model(kind, int(rng.integers(library.variant_count(kind))))
        rest = model.rest_poses[int(rng.integers(len(model.rest_poses)))]
        outline = footprint(swept_vertices(model), rest.wxyz)
        place = self._place(name, outline, draft, streams)
        if place is None:
            return None
        assert draft.scene
        top = draft.scene.surfaces[draft.regions[self.region].on].upper[2]
        return PlacedObject(
            name=name,
            group=GROUP,
            library=library.name,
            kind=kind,
            variant=model.variant,
            object_class=model.object_class,
            position=(place.x, place.y, top + rest.height + 0.0005),  # it settles from there, like the task's objects
            wxyz=quat_multiply(quat_from_axis_angle((0, 0, 1), place.yaw), rest.wxyz),
            rest_pose=rest.name,
            mass=model.mass,
            friction=model.friction,
        )

    def _place(self, name: str, outline: FloatArray, draft: Draft, streams: Streams) -> PlacementPose | None:
        assert draft.scene
        region = draft.regions[self.region]
        taken = [rectangle(*fixture.world_bounds) for fixture in draft.scene.fixtures.values()]
        taken += [_outline(item) for item in draft.objects]
        try:
            (place,) = find_places(
                [outline],
                [streams(name, "pose")],
                center=region.center,
                size=region.size,
                yaw=(-math.pi, math.pi),
                clearance=_CLEARANCE,
                obstacles=taken,
            )
        except NoRoomError:
            return None
        return place


def _outline(item: PlacedObject) -> FloatArray:
    model = open_library(item.library).model(item.kind, item.variant)
    return moved(footprint(swept_vertices(model), item.wxyz), PlacementPose(item.position[0], item.position[1], 0.0))
