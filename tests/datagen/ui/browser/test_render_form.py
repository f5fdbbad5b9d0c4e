"""Each kind of control is an element of the page, and persists while other elements change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from nimbus.datagen.ui.browser.render_form import BrowserForm
from nimbus.datagen.ui.form import Control, FormSection, button, buttons
from tests.support.studio.controls import inputs, use

viser = pytest.importorskip("viser")

CONTROLS = (
    Control(id="name", kind="text", label="name", value="a"),
    Control(id="words", kind="lines", label="words", value="a\nb"),
    Control(id="whole", kind="lines", label="whole", value="all", confirm="take it"),
    Control(id="count", kind="number", label="count", value=1, limits=(0, 9, 1)),
    Control(id="share", kind="number", label="share", value=0.5, limits=(0.0, 1.0, 0.1)),
    Control(id="bounds", kind="range", label="bounds", value=[0.0, 1.0]),
    Control(id="robot", kind="choice", label="robot", value="x", options=("", "x", "y")),
    Control(id="steps", kind="rows", label="select", value=0, options=("1. for all", "2.     pick_it")),
    buttons("move", "move", {"up": lambda: None, "down": lambda: None}),
    button("add", "add one", lambda: None),
    Control(id="note", kind="note", label="Two *lines*\nof ``some_text``"),
)
USES: dict[str, tuple[str, Any, Any]] = {
    "name": ("name", "b", "b"),
    "words": ("words", "c", "c"),
    "whole": ("take it", None, "all"),
    "count": ("count", 3, 3),
    "share": ("share", 0.7, 0.7),
    "bounds": ("bounds", (0.2, 0.4), [0.2, 0.4]),
    "robot": ("robot", "y", "y"),
    "steps": ("select", "2.     pick_it", 1),
    "move": ("move", "down", "down"),
    "add": ("add one", None, None),
}
"""Label of the element, value sent by the browser, and value received by the form."""


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    server = viser.ViserServer(host="127.0.0.1", port=8350, verbose=False)
    yield server
    server.stop()


class Page:
    """A form with one folder, and a record of the reported uses."""

    def __init__(self, gui: Any) -> None:
        self.gui, self.used = gui, []
        gui.reset()
        self.form = BrowserForm(gui, gui.add_folder("all"), places={}, use=lambda *use: self.used.append(use))

    def show(self, *controls: Control, used: str = "") -> None:
        self.form.show([FormSection(title="form", controls=controls)], used=used)

    def element(self, label: str) -> Any:
        return inputs(self.gui)["form", label]

    @property
    def texts(self) -> list[str]:
        """Return the texts that are not inputs, from top to bottom."""
        (folder,) = (
            one for one in self.gui._container_handle_from_uuid.values() if getattr(one, "label", "") == "form"
        )
        children = sorted(folder._children.values(), key=lambda child: child.order)
        return [child.content for child in children if hasattr(child, "content")]


@pytest.fixture
def page(server: Any) -> Page:
    page = Page(server.gui)
    page.show(*CONTROLS)
    return page


@pytest.mark.parametrize("name", USES)
def test_use_of_an_element_is_reported(page: Page, name: str):
    label, sent, expected = USES[name]
    use(page.element(label), sent)
    assert page.used == [(name, expected)]


def test_every_kind_is_rendered(page: Page):
    assert {control.kind for control in CONTROLS} >= {"text", "lines", "choice", "number", "range", "rows", "note"}
    assert {label for _, label in inputs(page.gui)} == {*(label for label, _, _ in USES.values()), "whole"}
    assert page.texts == ["**1\\. for all**  \n2\\. &emsp;pick\\_it", "Two \\*lines\\*  \nof `some_text`"]


def test_new_values_are_shown_and_not_reported(page: Page):
    changed = {"name": "z", "share": 0.9, "bounds": [0.1, 0.2], "robot": "y", "steps": 1}
    page.show(*(replace(control, value=changed.get(control.id, control.value)) for control in CONTROLS))
    assert page.element("name").value == "z"
    assert page.element("bounds").value == (0.1, 0.2)
    assert page.element("select").value == "2.     pick_it"
    assert page.texts[0].endswith("**2\\. &emsp;pick\\_it**")
    assert page.used == []


def test_element_in_use_is_left_alone(page: Page):
    element = page.element("name")
    use(element, " typed ")
    page.show(replace(CONTROLS[0], value="typed", problem="wrong"), *CONTROLS[1:], used="name")
    assert page.element("name") is element and element.value == " typed "
    assert "**wrong**" in page.texts
    page.show(replace(CONTROLS[0], value="typed"), *CONTROLS[1:])
    assert page.element("name") is element and element.value == " typed "
    assert "**wrong**" not in page.texts
    page.show(*CONTROLS)
    assert element.value == "a"


def test_choice_in_use_shows_the_value_of_the_form(page: Page):
    use(page.element("robot"), "y")
    page.show(*CONTROLS, used="robot")
    assert page.element("robot").value == "x"


def test_controls_are_added_removed_and_kept_in_order(page: Page):
    element = page.element("name")
    new = Control(id="new", kind="text", label="new", value="")
    page.show(new, CONTROLS[0], replace(CONTROLS[6], options=("x", "z")))
    assert {label for _, label in inputs(page.gui)} == {"new", "name", "robot"}
    assert page.element("name") is element
    assert page.element("new").order < element.order < page.element("robot").order
    assert page.element("robot").options == ("x", "z")
