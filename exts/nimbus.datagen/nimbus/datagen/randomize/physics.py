"""Randomizers of physical properties of objects: mass, friction and damping of joints."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from nimbus.datagen.plugin import Field, Range, Ratio, Streams, register
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization


@register("randomizer", "mass")
class MassRandomization(LayoutRandomization):
    """Factor on the mass and the inertia of each object."""

    part = "physical"
    factor: Range[Annotated[Ratio, Field(ge=0.01, le=10)]] = Field((0.8, 1.25), description="factor on the mass")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a factor for each object."""
        factors = {item.name: float(streams(item.name).uniform(*self.factor)) for item in draft.objects}
        draft.objects = [dataclasses.replace(item, mass=item.mass * factors[item.name]) for item in draft.objects]
        return {name: {"factor": factor} for name, factor in factors.items()}


@register("randomizer", "friction")
class FrictionRandomization(LayoutRandomization):
    """Factor on the sliding friction of each object."""

    part = "physical"
    factor: Range[Annotated[Ratio, Field(ge=0.01, le=10)]] = Field((0.85, 1.2), description="factor on the friction")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a factor for each object."""
        factors = {item.name: float(streams(item.name).uniform(*self.factor)) for item in draft.objects}
        draft.objects = [
            dataclasses.replace(item, friction=item.friction * factors[item.name]) for item in draft.objects
        ]
        return {name: {"factor": factor} for name, factor in factors.items()}


@register("randomizer", "damping")
class DampingRandomization(LayoutRandomization):
    """Factor on damping and dry friction in the joints of every object with moving parts."""

    part = "physical"
    factor: Range[Annotated[Ratio, Field(gt=0, le=20)]] = Field(
        (0.7, 1.4), description="factor on the object's own values"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a factor for each object."""
        drawn: Draws = {}
        for place, item in enumerate(draft.objects):
            factor = float(streams(item.name).uniform(*self.factor))
            draft.objects[place] = dataclasses.replace(item, damping=factor)
            drawn[item.name] = {"factor": factor}
        return drawn
