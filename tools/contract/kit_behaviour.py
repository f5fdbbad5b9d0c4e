"""Behavior of the stand-in's Kit: menus, windows, widgets with their values, events, settings and one stage."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.contract.names import Contract
from tools.contract.standin import Behaviour, StandIn

_UI = "omni.ui"
_MENU = "omni.kit.menu.utils.extension_window_helper_full:MenuHelperExtensionFull"


class Subscription:
    """Subscription that lasts as long as it is referenced, like Kit's subscriptions."""


class Kit:
    """Stand-in for Kit, whose screen contents and subscriptions a test can inspect and operate."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.menus: dict[str, Callable[[], Any]] = {}
        self.windows: list[Any] = []
        self.observers: weakref.WeakKeyDictionary[Subscription, tuple[str, Callable[[Any], None]]] = (
            weakref.WeakKeyDictionary()
        )
        self.edits: weakref.WeakKeyDictionary[Subscription, tuple[Any, Callable[..., None]]] = (
            weakref.WeakKeyDictionary()
        )
        self.stage = ""
        self.usd_stage: Any = None
        self.played: list[tuple[str, Any]] = []
        self.timeline = "stopped"
        """State of the timeline: ``stopped``, ``playing`` or ``paused``."""
        self.has_pending_edit = False
        self.opening = 0
        """Number of queries for which the opening of another stage remains unfinished."""
        self.recent: list[str] = []
        """Stages in the menu File > Open Recent."""
        self._notes_recent = True
        self.refuses = ""
        """Reason why stages cannot be opened; empty if they can."""
        self.standin: StandIn | None = None
        """Stand-in of which this is a part; a test may add behavior to it."""
        self.widgets: list[Any] = []
        self._instances: dict[str, Any] = {}
        self._within: list[Any] = []

    # Actions of a test

    def show(self, menu: str) -> Any:
        """Click a menu entry; return the window that it opens, built."""
        window = self.menus[menu]()
        self.windows.append(window)
        self.build(window)
        return window

    def build(self, window: Any) -> None:
        """Draw a window's contents."""
        self.widgets.clear()
        self.rebuild(window.frame)

    def rebuild(self, frame: Any) -> None:
        """Redraw the contents of a frame."""
        gone = set(map(id, _below(frame)))
        self.widgets[:] = [widget for widget in self.widgets if id(widget) not in gone]
        frame.played_children.clear()
        self._within.append(frame)
        frame.played_build()
        self._within.pop()

    def find(self, kind: str, name: str) -> Any:
        """Return the only widget of a kind with an identifier, a name or a text."""
        found = [widget for widget in self.widgets if type(widget).__name__ == kind and name in _names(widget)]
        assert len(found) == 1, f"{len(found)} of {kind} {name}"
        return found[0]

    def press(self, name: str) -> None:
        """Click a button if it is enabled."""
        button = self.find("Button", name)
        assert button.enabled is not False, f"{name} is disabled"
        button.played_clicked()

    def edit(self, kind: str, name: str, value: Any) -> None:
        """Type a value into a field, and move the focus away."""
        model = self.find(kind, name).model
        model.set_value(value)
        for about, listener in list(self.edits.values()):
            if about is model:
                listener(model)

    def choose(self, name: str, option: str) -> None:
        """Choose one of a box's options."""
        box = self.find("ComboBox", name)
        model = box.model
        model.get_item_value_model().set_value(box.played_options_of.index(option))
        for about, listener in list(self.edits.values()):
            if about is model:
                listener(model, None)

    def dispatch(self, event: str) -> None:
        """Send an event to its subscribers."""
        for name, listener in list(self.observers.values()):
            if name == event:
                listener(None)

    # What Kit does

    def behaviour(self, make: Callable[[str], Any]) -> Behaviour:
        """Return the behavior of all functions and methods of the stand-in.

        Args:
            make: Makes an object of a class, by its definition's key.
        """

        def instance(key: str) -> Callable[..., Any]:
            return lambda *_: self._instances.setdefault(key, make(key))

        played: Behaviour = {
            "carb.settings:get_settings": instance("carb.settings._settings:ISettings"),
            "carb.eventdispatcher:get_eventdispatcher": instance("carb.eventdispatcher:IEventDispatcher"),
            "carb.eventdispatcher:IEventDispatcher.observe_event": self._observe,
            "omni.usd:get_context": instance("omni.usd:UsdContext"),
            "omni.usd:UsdContext.has_pending_edit": lambda _: self.has_pending_edit,
            "omni.usd:UsdContext.set_pending_edit": lambda _, edited: setattr(self, "has_pending_edit", edited),
            "omni.usd:UsdContext.get_stage_url": lambda _: self.stage or "anon:0x1",
            "omni.usd:UsdContext.can_open_stage": self._can_open,
            "omni.usd:UsdContext.disable_save_to_recent_files": lambda _: self._note_recent(False),
            "omni.usd:UsdContext.enable_save_to_recent_files": lambda _: self._note_recent(True),
            "omni.usd:UsdContext.open_stage_async": self._open,
            "omni.usd:UsdContext.get_stage": lambda _: self.usd_stage,
            "omni.timeline:get_timeline_interface": instance("omni.timeline:Timeline"),
            "omni.kit.app._impl.app_iface:get_app": instance("omni.kit.app._app:IApp"),
            "omni.kit.app._app:IApp.next_update_async": self._update,
            "omni.kit.async_engine.async_engine:run_coroutine": self._run,
            f"{_MENU}.menu_startup": self._add_menu,
            f"{_MENU}.menu_shutdown": self._remove_menu,
        }
        for name in ("play", "pause", "stop", "set_end_time", "set_current_time"):
            played[f"omni.timeline:Timeline.{name}"] = lambda _, *values, name=name: self._control(name, values)
        for name in ("playing", "stopped"):
            played[f"omni.timeline:Timeline.is_{name}"] = lambda _, name=name: self.timeline == name
        for name in ("string", "float", "int", "bool"):
            played[f"carb.settings._settings:ISettings.get_as_{name}"] = self._setting(name)
            played[f"carb.settings._settings:ISettings.set_{name}"] = lambda _, path, value: self.settings.update(
                {path: value}
            )
        return played | self._widgets(make)

    def _control(self, name: str, values: tuple[Any, ...]) -> None:
        self.played.append((name, values))
        self.timeline = {"play": "playing", "pause": "paused", "stop": "stopped"}.get(name, self.timeline)

    def _setting(self, kind: str) -> Callable[[Any, str], Any]:
        empty = {"string": "", "float": 0.0, "int": 0, "bool": False}[kind]
        return lambda _, path: self.settings.get(path, empty)

    def _observe(self, _: Any, *, event_name: str, on_event: Callable[[Any], None], observer_name: str) -> Any:
        held = Subscription()
        self.observers[held] = event_name, on_event
        return held

    async def _update(self, _: Any) -> float:
        self.played.append(("update", ()))
        return 0.0

    def _can_open(self, _: Any) -> bool:
        self.opening -= 1
        return self.opening < 0

    def _note_recent(self, on: bool) -> None:
        self._notes_recent = on

    async def _open(self, _: Any, path: str) -> tuple[bool, str]:
        if self.refuses:
            return False, self.refuses
        self.stage, self.has_pending_edit = path, True  # Isaac Sim adds schemas to every stage with a physics scene
        self.recent += [path] * self._notes_recent
        if Path(path).is_file():
            from pxr import Usd

            self.usd_stage = Usd.Stage.Open(path)
        return True, ""

    def _run(self, coroutine: Any) -> asyncio.Future[Any]:
        assert inspect.iscoroutine(coroutine)
        loop = asyncio.new_event_loop()
        try:
            done = loop.create_task(coroutine)
            loop.run_until_complete(done)
        finally:
            loop.close()
        return done

    def _add_menu(self, _: Any, create: Callable[[], Any], window: str, entry: str, group: str) -> None:
        self.menus[f"{group}/{entry}"] = create

    def _remove_menu(self, _: Any) -> bool:
        self.menus.clear()
        for window in self.windows:
            window.destroy()
        self.windows.clear()
        return True

    def _widgets(self, make: Callable[[str], Any]) -> Behaviour:
        def window(self: Any, title: str, **options: Any) -> None:
            self.played_frame, self.played_gone = make(f"{_UI}:Frame"), False

        def destroy(self: Any) -> None:
            self.played_gone = True

        def build(self: Any, function: Callable[[], None]) -> None:
            self.played_build = function
            if self.played_is_within:  # Kit draws it with the next frame
                owner.rebuild(self)

        def place(self: Any, *args: Any, **options: Any) -> None:
            self.played_children, self.played_is_within = [], bool(owner._within)
            self.played_args, self.played_options = args, options
            if owner._within:
                owner._within[-1].played_children.append(self)

        def widget(self: Any, *args: Any, **options: Any) -> None:
            place(self, *args, **options)
            owner.widgets.append(self)
            self.played_names = {options.get("identifier"), options.get("name"), *args[:1]}
            self.played_clicked = options.get("clicked_fn")
            self.played_model = make(f"{_UI}:AbstractValueModel")
            if type(self).__name__ == "ComboBox":
                self.played_names, self.played_options_of = {options.get("identifier")}, list(args[1:])
                self.played_items = make(f"{_UI}:AbstractItemModel")
                self.played_items.played_value_model = self.played_model
                self.played_model.played_value = args[0]
            self.enabled = options.get("enabled", True)
            if hasattr(self, "text"):
                self.text = args[0] if args else ""

        def subscribe(self: Any, listener: Callable[[Any], None]) -> Subscription:
            held = Subscription()
            owner.edits[held] = self, listener
            return held

        def set_value(self: Any, value: Any) -> None:
            self.played_value = value

        owner = self
        model = f"{_UI}:AbstractValueModel"
        played: Behaviour = {
            f"{_UI}:Container.__enter__": lambda self: (owner._within.append(self), self)[1],
            f"{_UI}:Container.__exit__": lambda self, *_: (owner._within.pop(), None)[1],
            f"{_UI}:Window.__init__": window,
            f"{_UI}:Window.frame": lambda self: self.played_frame,
            f"{_UI}:Window.deferred_dock_in": lambda *_: None,
            f"{_UI}:Window.destroy": destroy,
            f"{_UI}:Frame.__init__": place,
            f"{_UI}:Frame.set_build_fn": build,
            f"{_UI}:Frame.rebuild": owner.rebuild,
            f"{_UI}:CollapsableFrame.set_collapsed_changed_fn": lambda self, told: None,
            f"{_UI}:ItemModelHelper.model": lambda self: self.played_items,
            f"{_UI}:AbstractItemModel.get_item_value_model": lambda self, *_: self.played_value_model,
            f"{_UI}:AbstractItemModel.subscribe_item_changed_fn": subscribe,
            f"{_UI}:Widget.__init__": widget,
            f"{_UI}:ValueModelHelper.model": lambda self: self.played_model,
            f"{model}.set_value": set_value,
            f"{model}.subscribe_end_edit_fn": subscribe,
        }
        for name in ("string", "int", "float", "bool"):
            played[f"{model}.get_value_as_{name}"] = lambda self: self.played_value
        return played


@contextmanager
def played_kit() -> Iterator[Kit]:
    """Provide an importable stand-in for Kit within the context."""
    kit = Kit()
    kit.standin = standin = StandIn(Contract.load(), {})
    standin.behaviour.update(kit.behaviour(standin.make))
    with standin.installed():
        yield kit


def _below(widget: Any) -> Iterator[Any]:
    """Yield every widget in a container."""
    for child in getattr(widget, "played_children", ()):
        yield child
        yield from _below(child)


def _names(widget: Any) -> set[Any]:
    return widget.played_names
