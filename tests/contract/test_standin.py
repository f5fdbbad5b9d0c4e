"""What the stand-in does not have, or nobody plays, raises: no test passes because something silently did nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contract.kit_behaviour import Kit, played_kit


@pytest.fixture
def kit() -> Iterator[Kit]:
    """Kit's modules can be imported."""
    with played_kit() as kit:
        yield kit


def test_names_that_kit_does_not_have_raise_in_the_stand_in(kit: Kit):
    import omni.ui as ui  # pyright: ignore[reportMissingImports]
    import omni.usd  # pyright: ignore[reportMissingImports]

    with pytest.raises(AttributeError, match="contract"):
        ui.Buton  # noqa: B018
    with pytest.raises(AttributeError, match="contract"):
        omni.usd.get_context().get_stag()
    with pytest.raises(AttributeError, match="contract"):
        ui.Label("a").txt = "b"
    with pytest.raises(TypeError, match="colour"):
        ui.Label("a", colour="red")
    with pytest.raises(ModuleNotFoundError):
        import omni.isaac.core  # noqa: F401  # pyright: ignore[reportMissingImports]
    with pytest.raises(NotImplementedError, match="nobody plays .*close_stage here: it must not pass for done"):
        omni.usd.get_context().close_stage()
