"""Settings of all tests: property tests take the same examples on every machine, however slow it is just now."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_PASSED_OVER = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=_PASSED_OVER)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("NIMBUS_HYPOTHESIS", "same"))
