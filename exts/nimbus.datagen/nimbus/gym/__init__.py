"""Gymnasium environments of all tasks: importing this module registers ``nimbus/NAME-v0``; extra ``gym``.

```python
import gymnasium
import nimbus.gym

env = gymnasium.make("nimbus/sort_trash-v0")
observation, info = env.reset(seed=3)  # is evaluation layout 3
```
"""

from __future__ import annotations

import nimbus.runner  # noqa: F401  sets the limits of threads, before NumPy is imported
from nimbus.datagen.files.installation import add_extra

try:
    import gymnasium
except ImportError as error:
    raise ImportError(f"nimbus.gym needs Gymnasium; {add_extra('gym')}") from error

from nimbus.datagen.tasks.task import task_names
from nimbus.gym.environment import NimbusEnv
from nimbus.gym.vector_environment import NimbusVectorEnv

ANY_TASK = "nimbus/any-v0"
"""Name of the environment that takes the task as its argument: ``gymnasium.make(ANY_TASK, task="mine.yaml")``."""
_ONE, _MANY = "nimbus.gym.environment:NimbusEnv", "nimbus.gym.vector_environment:NimbusVectorEnv"
if ANY_TASK not in gymnasium.registry:
    gymnasium.register(ANY_TASK, entry_point=_ONE, vector_entry_point=_MANY)
for _name in task_names():
    if (_id := f"nimbus/{_name}-v0") not in gymnasium.registry:
        gymnasium.register(_id, entry_point=_ONE, vector_entry_point=_MANY, kwargs={"task": _name})

__all__ = ["ANY_TASK", "NimbusEnv", "NimbusVectorEnv"]
