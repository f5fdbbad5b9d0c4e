"""Draws the panel from the widgets in the stand-in for Kit: ``python docs/make_kit_picture.py [OUT.png]``.

The image is not a screenshot: sizes come from the widgets' own options, and fonts and colors resemble Kit's.
"""
# The stand-in for Kit is in `tools/contract`.
# pyright: reportMissingImports=false

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

WIDTH, PAD, LINE = 460, 6, 22
BACK, FIELD, BUTTON, BAR, INK, DIM, RED = "#3a3a3a", "#212121", "#4c4c4c", "#525252", "#dcdcdc", "#9a9a9a", "#e05050"
_FONTS = ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",)


class Painter:
    """Lays out widgets from top to bottom, and those of a row side by side."""

    def __init__(self, height: int) -> None:
        from PIL import Image, ImageDraw, ImageFont

        self.image = Image.new("RGB", (WIDTH, height), BACK)
        self._draw = ImageDraw.Draw(self.image)
        found = [path for path in _FONTS if os.path.exists(path)]
        self._font: Any = ImageFont.truetype(found[0], 12) if found else ImageFont.load_default(12)

    def paint(self, widget: Any, x: float, y: float, width: float) -> float:
        """Draw a widget with its content; return its height."""
        kind, options = type(widget).__name__, widget.played_options
        if kind == "HStack":
            return self._row(widget, x, y, width)
        if kind == "CollapsableFrame":
            closed = bool(options.get("collapsed"))
            self._box(x, y, width, LINE, BAR, f"{'>' if closed else 'v'}  {widget.played_args[0]}")
            return LINE + 3 + (0 if closed else self._column(widget, x + PAD, y + LINE + 3, width - PAD))
        if kind in ("VStack", "Frame", "ScrollingFrame"):
            return self._column(widget, x, y, width)
        return self._leaf(widget, kind, options, x, y, width)

    def _column(self, widget: Any, x: float, y: float, width: float) -> float:
        start = y
        for child in widget.played_children:
            height = self.paint(child, x, y, width)
            y += height + (3 if height else 0)
        return y - start

    def _row(self, widget: Any, x: float, y: float, width: float) -> float:
        children = widget.played_children
        fixed = sum(child.played_options.get("width", 0) for child in children)
        free = [child for child in children if not child.played_options.get("width")]
        share = (width - fixed - 4 * (len(children) - 1)) / max(len(free), 1)
        for child in children:
            one = child.played_options.get("width") or share
            self.paint(child, x, y, one)
            x += one + 4
        return LINE

    def _leaf(self, widget: Any, kind: str, options: dict[str, Any], x: float, y: float, width: float) -> float:
        height = float(options.get("height") or LINE)
        value = getattr(widget.played_model, "played_value", "") if hasattr(widget, "played_model") else ""
        if kind == "Label":
            lines = self._wrapped(str(widget.text), width)
            color = RED if options.get("style") else INK
            for number, line in enumerate(lines):
                self._draw.text((x, y + 4 + 16 * number), line, fill=color, font=self._font)
            return 16.0 * len(lines) + 6 if str(widget.text) else 0.0
        if kind == "Button":
            able = widget.enabled is not False
            self._box(x, y, width, LINE, BUTTON, str(widget.text), color=INK if able else DIM)
        elif kind == "StringField" and options.get("multiline"):
            self._draw.rectangle((x, y, x + width, y + height), fill=FIELD)
            for number, line in enumerate(str(value).splitlines()[: int(height // 16)]):
                shown = self._cut(line, width - 8)
                self._draw.text((x + 4, y + 3 + 16 * number), shown, fill=INK, font=self._font)
            return height
        elif kind == "ComboBox":
            self._box(x, y, width, LINE, FIELD, widget.played_options_of[value] if widget.played_options_of else "")
            self._draw.text((x + width - 16, y + 4), "v", fill=DIM, font=self._font)
        elif kind == "ProgressBar":
            self._draw.rectangle((x, y, x + width, y + LINE), fill=FIELD)
            self._draw.rectangle((x, y, x + width * float(value or 0), y + LINE), fill="#4f7f3f")
        elif kind == "Image":
            self._picture(widget.played_args[0], x, y, width, height)
            return height
        else:
            self._box(x, y, width, LINE, FIELD, f"{value:g}" if isinstance(value, float) else str(value))
        return LINE

    def _picture(self, path: str, x: float, y: float, width: float, height: float) -> None:
        from PIL import Image

        with Image.open(path) as picture:
            shown = picture.convert("RGB")
        scale = min(width / shown.width, height / shown.height)
        shown = shown.resize((int(shown.width * scale), int(shown.height * scale)))
        self.image.paste(shown, (int(x), int(y)))

    def _box(self, x: float, y: float, width: float, height: float, fill: str, text: str, *, color: str = INK) -> None:
        self._draw.rounded_rectangle((x, y, x + width, y + height), 3, fill=fill)
        self._draw.text((x + 6, y + 4), self._cut(text, width - 10), fill=color, font=self._font)

    def _cut(self, text: str, width: float) -> str:
        while text and self._draw.textlength(text, font=self._font) > width:
            text = text[:-1]
        return text

    def _wrapped(self, text: str, width: float) -> list[str]:
        lines: list[str] = []
        for line in text.splitlines():
            while line:
                lines.append(self._cut(line, width))
                line = line[len(lines[-1]) :] if lines[-1] else ""
        return lines or [""]


def main(out: Path) -> None:
    """Open a task, select a step, enter an invalid value, show images, and draw the panel."""
    from nimbus.datagen.ui.remote.scene_preview import ScenePreview
    from nimbus.runner.system.threads import prepare_libraries
    from tests.support.desks import LocalChannel, StubLauncher
    from tools.contract.kit_behaviour import Kit
    from tools.contract.names import Contract
    from tools.contract.standin import StandIn

    prepare_libraries()
    kit = Kit()
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(kit.behaviour(standin.make))
    kit.settings |= {"/exts/nimbus.datagen/task": "sort_trash", "/exts/nimbus.datagen/poll_period": 0.0}
    out = out.absolute()
    with tempfile.TemporaryDirectory() as folder, standin.installed():
        from nimbus.datagen.kit import NimbusExtension, extension

        def channel(*_: Any) -> LocalChannel:
            os.chdir(folder)  # for a short path
            return LocalChannel(Path(), preview=ScenePreview(Path(folder)))

        extension.ProcessLauncher = lambda *_, **__: StubLauncher()  # pyright: ignore[reportAttributeAccessIssue]
        extension.ProcessChannel = channel  # pyright: ignore[reportAttributeAccessIssue]
        started = NimbusExtension()
        started.on_startup("nimbus.datagen-0.1.0")
        window = kit.show("Tools/Replicator/Nimbus")
        for button in ("open", "steps 1", "check Pictures"):
            kit.press(button)
            kit.dispatch("omni.kit.app:GLOBAL_EVENT_UPDATE")
        kit.edit("StringField", "regions.start.size", "[0.4, -0.5]")
        kit.dispatch("omni.kit.app:GLOBAL_EVENT_UPDATE")
        painter = Painter(6000)
        height = painter.paint(window.frame, PAD, PAD, WIDTH - 2 * PAD)
        painter.image.crop((0, 0, WIDTH, int(height) + 2 * PAD)).save(out)
        started.on_shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("images") / "kit_panel.png")
