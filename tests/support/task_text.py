"""A task file that tests modify."""

TEXT = """\
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.4, 0.5]}
objects:
  items: {library: trash, kinds: [can, pear], count: [2, 4], region: start, yaw: any, lying: 33 %}
steps:
  - for item in items:
      - pick: item
      - place: {object: item, into: "bins[item.class]"}
  - home
success:
  - for item in items:
      - inside: {object: item, container: "bins[item.class]"}
  - nothing_on_floor
cameras:
  front: {position: [1.5, 0.0, 0.9], look_at: [0.5, 0.0, 0.05], vertical_fov: 42 deg}
  wrist: {mount: hand, position: [0, 0, 0.1], wxyz: [1, 0, 0, 0], vertical_fov: 70 deg}
randomize:
  camera: {position: 5 cm}
instructions: ["Sort the trash.", "Sort {items}."]
"""


def changed(old: str, new: str) -> str:
    assert TEXT.count(old) >= 1
    return TEXT.replace(old, new, 1)


def place(line: int, part: str) -> str:
    return f"task.yaml:{line}:{TEXT.splitlines()[line - 1].index(part) + 1}: "
