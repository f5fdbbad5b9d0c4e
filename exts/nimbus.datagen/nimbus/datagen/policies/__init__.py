"""Policies: control of the robot in place of skills, and the environment that they act in.

```
policy.py          the interface of a policy: an episode, an observation, a chunk of actions
environment.py     physics, images and success conditions of one task, step by step
planner.py         Plan stage in which a policy acts
open_policy.py     opens the policy that --policy names
python_policy.py   a policy in a Python file
recorded_policy.py actions of a stored dataset
trained_policy.py  a folder with weights and conventions
image_policy.py    a small network on images
state_policy.py    a small network on states; state_training.py and perceptron.py train it
features.py        the scene as a feature vector
control_modes.py   representations of actions other than absolute joint positions
```
"""
