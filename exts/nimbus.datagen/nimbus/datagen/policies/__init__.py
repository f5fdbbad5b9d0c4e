"""Policies: control of the robot in place of skills, and the environment that they act in.

```
policy.py          the interface of a policy: an episode, an observation, a chunk of actions
environment.py     physics, pictures and judge of one task, step by step
planner.py         the Plan stage in which a policy acts
open_policy.py     from the text of --policy to a policy
python_policy.py   a policy in a Python file
recorded_policy.py actions of a stored dataset
trained_policy.py  a folder with weights and conventions
image_policy.py    a small network on pictures
state_policy.py    a small network on states; state_training.py and perceptron.py train it
features.py        the scene as a vector of numbers
control_modes.py   other spellings of an action than absolute joint positions
```
"""
