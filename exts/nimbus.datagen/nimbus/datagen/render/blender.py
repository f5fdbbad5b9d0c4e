"""Rendering in Blender: Cycles draws the episodes of any task, in processes of a separate interpreter."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.files.variables import variable_program
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.render.external import ExternalRenderer, ExternalSettings

VARIABLE = "NIMBUS_BLENDER_PYTHON"
"""Environment variable that names the interpreter."""
_PROGRAM = Path(__file__).with_name("blender_program.py")


class BlenderSettings(StrictModel):
    """Settings of :class:`BlenderRenderer`."""

    samples: Annotated[int, Field(ge=1, le=4096)] = 4
    """Number of samples per pixel, before denoising"""
    device: Literal["auto", "cpu", "optix", "cuda", "hip", "metal"] = "auto"
    """Device of Cycles; ``auto`` uses the first one that Blender finds, and logs it"""
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    """Number of threads of each Blender process; each render worker has one process"""
    stack: Annotated[int, Field(ge=1, le=1024)] = 4
    """Number of steps per request"""
    patience: Annotated[float, Field(gt=0, le=3600)] = 300.0
    """Time without an image after which a process is killed [s]; the first use of OptiX compiles for minutes"""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """Number of processes on which a request is tried"""


class BlenderRenderer(ExternalRenderer):
    """Renderer that sends scenes and poses to Blender, and receives its images.

    Each worker has its own Blender process. A process that exits or hangs is replaced, and its request is repeated.
    """

    version: ClassVar[int] = 4

    @classmethod
    def create(cls, context: RunContext, settings: StrictModel) -> Self:
        """Make the renderer of a run.

        Raises:
            InputError: No interpreter with Blender is named.
        """
        assert isinstance(settings, BlenderSettings)
        sent = ExternalSettings(
            command=(str(blender_python()), "-I", str(_PROGRAM)),
            stack=settings.stack,
            patience=settings.patience,
            tries=settings.tries,
            options={"samples": settings.samples, "device": settings.device, "threads": settings.threads},
        )
        return cls(sent, render_failures=context.render_failures or context.keep_failures)


def blender_python() -> Path:
    """Return the interpreter that has Blender as a module.

    Raises:
        InputError: The environment variable is not set, or does not name a program.
    """
    instead = "install requirements/blender.txt into a virtual environment of Python 3.11, and name its interpreter"
    if not (named := os.environ.get(VARIABLE, "")):
        raise InputError("Blender needs a separate Python interpreter", where=VARIABLE, instead=instead)
    if (found := shutil.which(variable_program(VARIABLE, named))) is None:
        raise InputError(f"'{named}' is not a program", where=VARIABLE, instead=instead)
    return Path(found)


register_component("render", "blender", BlenderRenderer, BlenderSettings)
