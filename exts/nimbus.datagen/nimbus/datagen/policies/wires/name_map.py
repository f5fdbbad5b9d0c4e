"""Names, sizes and order on a wire, from ``--map FILE``, and their application to observations and answers.

```yaml
cameras:  # name on the wire: camera of the task
  observation/exterior_image_1_left: {camera: front, size: [224, 224], fit: pad}
state:    # name on the wire: joints of the robot, in this order
  observation/joint_position: [panda_joint1, panda_joint2]
prompt: prompt
actions:  # name on the wire: entries of our actions, in its order
  actions: [panda_joint1, panda_joint2, gripper]
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, field_validator

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.strict_yaml import Document, Keys, StrictModel
from nimbus.datagen.policies.policy import PolicyFault, PolicyObservation, PolicyTask, check_length

Pixels = Annotated[int, Field(ge=1, le=4096)]


class PictureView(StrictModel):
    """Image of a camera in the form that a server needs."""

    camera: str
    size: tuple[Pixels, Pixels] | None = Field(
        default=None, description="width and height [px]; by default those of the camera"
    )
    fit: Literal["pad", "crop", "stretch"] | None = Field(default=None, description="required for another aspect ratio")
    channels: Literal["last", "first"] = "last"

    def of(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resize a picture (H, W, 3), bilinear, padded with black."""
        height, width = picture.shape[:2]
        if self.size and self.size != (width, height):
            picture = np.asarray(self._resized(Image.fromarray(picture), self.size))
        return np.ascontiguousarray(picture.transpose(2, 0, 1)) if self.channels == "first" else picture

    def _resized(self, image: Image.Image, size: tuple[int, int]) -> Image.Image:
        bilinear = Image.Resampling.BILINEAR
        ratios = image.width / size[0], image.height / size[1]
        if self.fit == "crop":
            inner = size[0] * min(ratios), size[1] * min(ratios)
            left, top = (image.width - inner[0]) / 2, (image.height - inner[1]) / 2
            return image.resize(size, bilinear, box=(left, top, left + inner[0], top + inner[1]))
        if self.fit != "pad":
            return image.resize(size, bilinear)
        inside = int(image.width / max(ratios)), int(image.height / max(ratios))
        canvas = Image.new("RGB", size)
        canvas.paste(image.resize(inside, bilinear), ((size[0] - inside[0]) // 2, (size[1] - inside[1]) // 2))
        return canvas


class NameMap(StrictModel):
    """Names on the wire; None for the default names of the wire."""

    cameras: dict[str, PictureView] | None = None
    pictures_in: str | None = Field(default=None, description="name of the map that contains the images, if any")
    state: dict[str, tuple[str, ...]] | None = None
    velocity: dict[str, tuple[str, ...]] | None = None
    environment_state: str | None = None
    prompt: str | None = None
    actions: dict[str, tuple[str, ...]] | None = None

    @field_validator("cameras", mode="before")
    @classmethod
    def _write_out(cls, value: object) -> object:
        """Expand ``name: front`` to ``name: {camera: front}``."""
        if not isinstance(value, dict):
            return value
        return {name: {"camera": view} if isinstance(view, str) else view for name, view in value.items()}

    def over(self, other: NameMap) -> NameMap:
        """Return these names, with missing ones taken from another map."""
        own = {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
        return other.model_copy(update=own)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Observation with the names of the wire."""

    pictures: Mapping[str, NDArray[np.uint8]]
    numbers: Mapping[str, FloatArray]
    prompt: Mapping[str, str]
    pictures_in: str
    """Name of the map that contains the images; empty if they are beside the other entries."""
    step: int

    def entries(self) -> dict[str, object]:
        """Return all entries in one map."""
        pictures = {self.pictures_in: dict(self.pictures)} if self.pictures_in else dict(self.pictures)
        return {**pictures, **self.numbers, **self.prompt}


class Translation:
    """Observations and answers of one task on one wire.

    Args:
        names: Complete names.
        task: Conventions of the task.
        document: The map's file, for messages.
        where: Address of the server, for messages.

    Raises:
        InputError: A name does not exist in the task, or actions are missing.
    """

    def __init__(self, names: NameMap, task: PolicyTask, *, document: Document | None, where: str) -> None:
        self.names, self._task = names, task
        self._document, self.where = document, where
        self._check_cameras()
        self._state = self._columns("state", names.state or {}, task.state_names)
        self._velocity = self._columns("velocity", names.velocity or {}, task.joint_names)
        self._actions = self._columns("actions", names.actions or {}, task.action_names)
        given = [index for columns in self._actions.values() for index in columns]
        lacking = [name for index, name in enumerate(task.action_names) if given.count(index) != 1]
        if lacking:
            what = f"'{lacking[0]}' is given {given.count(task.action_names.index(lacking[0]))} times"
            raise self._error(("actions",), what, f"name each action once: {', '.join(task.action_names)}")

    def _error(self, keys: Keys, what: str, instead: str) -> InputError:
        if self._document is not None and keys[0] in self._document.data:
            return self._document.error(keys, what, instead=instead)
        return InputError(what, where=self.where, instead=f"{instead} (in --map FILE)")

    def _check_cameras(self) -> None:
        for name, view in (self.names.cameras or {}).items():
            keys = ("cameras", name)
            if view.camera not in self._task.cameras:
                raise self._error(
                    keys, f"no camera '{view.camera}' in the task", suggest(view.camera, self._task.cameras)
                )
            (width, height), size = self._task.cameras[view.camera], view.size
            if size and size[0] * height != size[1] * width and view.fit is None:
                what = f"'{view.camera}' has {width} x {height}, another aspect ratio than {size[0]} x {size[1]}"
                raise self._error(keys, what, "write fit: pad, crop or stretch")

    def _columns(
        self, field: str, given: Mapping[str, tuple[str, ...]], known: tuple[str, ...]
    ) -> dict[str, list[int]]:
        for name, entries in given.items():
            if wrong := [entry for entry in entries if entry not in known]:
                raise self._error((field, name), f"the robot has no '{wrong[0]}'", suggest(wrong[0], known))
        return {name: [known.index(entry) for entry in entries] for name, entries in given.items()}

    def picture_sizes(self) -> dict[str, tuple[int, int]]:
        """Width and height [px] of the images that are sent, by their names on the wire."""
        views = self.names.cameras or {}
        return {name: view.size or self._task.cameras[view.camera] for name, view in views.items()}

    def ask(self, seen: PolicyObservation) -> Question:
        """Convert an observation to the names of the wire."""
        numbers = {name: seen.state[columns] for name, columns in self._state.items()}
        numbers |= {name: seen.velocity[columns] for name, columns in self._velocity.items()}
        if self.names.environment_state:
            numbers[self.names.environment_state] = seen.environment_state
        return Question(
            pictures={name: view.of(seen.images[view.camera]) for name, view in (self.names.cameras or {}).items()},
            numbers=numbers,
            prompt={self.names.prompt: seen.instruction} if self.names.prompt else {},
            pictures_in=self.names.pictures_in or "",
            step=seen.step,
        )

    def actions(self, answer: Mapping[object, object]) -> FloatArray:
        """Convert a server's arrays to actions (K, A).

        Raises:
            PolicyFault: An array is missing, or has another width or length.
        """
        rows: FloatArray | None = None
        for name, columns in self._actions.items():
            part = answer.get(name)
            if not isinstance(part, np.ndarray) or part.dtype.kind not in "iuf":
                held = ", ".join(str(key)[:40] for key in list(answer)[:8])
                raise PolicyFault(Reason.BAD_ACTION, f"the answer has no array '{name}'; it has {held or 'nothing'}")
            part = part[None] if part.ndim == 1 and len(part) == len(columns) else part
            if part.ndim != 2 or part.shape[1] != len(columns) or (rows is not None and len(part) != len(rows)):
                length = "K" if rows is None else len(rows)
                wanted = f"({length}, {len(columns)}): {', '.join(self._task.action_names[one] for one in columns)}"
                raise PolicyFault(Reason.BAD_ACTION, f"'{name}' has shape {part.shape}, expected {wanted}")
            check_length(part)
            rows = np.empty((len(part), len(self._task.action_names))) if rows is None else rows
            rows[:, columns] = part
        return np.zeros((0, len(self._task.action_names))) if rows is None else rows
