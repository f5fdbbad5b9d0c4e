"""Whether every object that may be drawn can be built, and has a mass that the robot can carry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nimbus.datagen.doctor.finding import finding_from_error, make_finding
from nimbus.datagen.errors import Diagnostic, InputError

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case

_HEAVY = 3.0
"""[kg] More than the arms that come with Nimbus carry."""


def check_assets(case: Case) -> Iterator[Diagnostic]:
    """Build the first variant of each kind, at each end of its sizes."""
    picked = {group for _, group in case.picks()}
    for group in case.task.objects:
        heavy: dict[str, float] = {}
        for kind in case.kinds(group):
            for scale in case.scales(group):
                try:
                    mass = case.library(group).model(kind, 0, scale).mass
                except InputError as error:
                    yield finding_from_error("assets", error)
                    continue
                if group in picked and mass > _HEAVY:
                    heavy[kind] = mass
        if heavy:
            kind, mass = max(heavy.items(), key=lambda entry: entry[1])
            field = "scale" if case.task.objects[group].scale is not None else "kinds"
            what = f"'{kind}' weighs up to {mass:.1f} kg, an arm carries {_HEAVY:g} kg"
            lightest = [name for name in case.kinds(group) if name not in heavy]
            instead = (
                f"write kinds: [{', '.join(lightest[:8])}]" if lightest else "choose lighter kinds, or a smaller scale"
            )
            yield make_finding("assets", case.task, ("objects", group, field), what, instead=instead)
