"""Golden values of baked light."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.render.baked_light.basis import LIGHT_VERSION, bake
from nimbus.datagen.render.baked_light.light_basis import GROUPS
from nimbus.datagen.render.baked_light.weighing import weigh
from tests.golden.values import GoldenFile
from tests.support.baked_scene import LIGHT, still_scene


def test_light_is_as_its_version_says(golden: GoldenFile) -> None:
    basis = bake(still_scene())
    look = weigh(basis, LIGHT, np.linspace(0.2, 0.8, GROUPS * 3).reshape(GROUPS, 3))
    value = [len(basis.direct), *basis.direct.mean(axis=0, dtype=float), *basis.share.mean(axis=0, dtype=float)]
    value += [*look.values.mean(axis=0, dtype=float), *look.key, *look.light.sky]
    value = [value[0], *map(float, value[1:])]
    golden.check("light of a box", value, {"LIGHT_VERSION of baked light": LIGHT_VERSION}, tolerance=1e-3)
