"""Names that authors of skills, conditions and randomizers import.

```python
from nimbus.datagen.plugin import Field, Metres, ObjectReference, Reason, Skill, SkillFailure, Workcell, register
```

Building blocks of motions are in ``nimbus.datagen.execute.toolkit``; the draft of a layout and ``LayoutRandomization``,
the base class of a randomizer, are in ``nimbus.datagen.randomize.base``.
"""

from __future__ import annotations

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.arrays import FloatArray, Quaternion
from nimbus.datagen.episode.trajectory import (
    Outcome,
    Reason,
)
from nimbus.datagen.errors import (
    InputError,
    suggest,
)
from nimbus.datagen.files.quantities import (
    Kelvin,
    Metres,
    Radians,
    Range,
    Ratio,
    Seconds,
)
from nimbus.datagen.geometry.transforms import (
    make_transform,
    quat_from_axis_angle,
    quat_from_matrix,
    quat_multiply,
    quat_to_matrix,
)
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import (
    ContainerReference,
    FixtureReference,
    GivenUp,
    JointedReference,
    ObjectReference,
    ObjectsReference,
    PlaceReference,
    PoseReference,
    Predicate,
    Reference,
    RegionReference,
    Skill,
    SkillFailure,
    SupportReference,
    each,
)
from nimbus.datagen.tasks.workcell_interface import Workcell, World

__all__ = [
    "AfterValidator",
    "ContainerReference",
    "Field",
    "FixtureReference",
    "FloatArray",
    "GivenUp",
    "InputError",
    "JointedReference",
    "Kelvin",
    "Metres",
    "ObjectReference",
    "ObjectsReference",
    "Outcome",
    "PlaceReference",
    "PoseReference",
    "Predicate",
    "PydanticCustomError",
    "Quaternion",
    "Radians",
    "Range",
    "Ratio",
    "Reason",
    "Reference",
    "RegionReference",
    "Seconds",
    "Skill",
    "SkillFailure",
    "Streams",
    "SupportReference",
    "Workcell",
    "World",
    "each",
    "quat_from_matrix",
    "model_validator",
    "quat_multiply",
    "suggest",
    "make_transform",
    "register",
    "quat_from_axis_angle",
    "quat_to_matrix",
]
