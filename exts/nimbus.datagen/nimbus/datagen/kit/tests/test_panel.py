"""Inside Isaac Sim: the menu opens the window, and the window goes away with the extension."""

from __future__ import annotations

import omni.kit.app
import omni.kit.test
import omni.kit.ui_test

from nimbus.datagen.kit.extension import NimbusExtension


class TestPanel(omni.kit.test.AsyncTestCase):
    """The panel in a real Kit."""

    async def test_the_menu_shows_the_panel(self) -> None:
        """Click the entry; the window is there, with its buttons."""
        await omni.kit.ui_test.menu_click(f"{NimbusExtension.MENU_GROUP}/{NimbusExtension.WINDOW_NAME}")
        await omni.kit.app.get_app().next_update_async()
        window = omni.kit.ui_test.find(NimbusExtension.WINDOW_NAME)
        self.assertIsNotNone(window)
