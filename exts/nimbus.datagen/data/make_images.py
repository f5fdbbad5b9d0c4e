"""Draws the images of the extension manager: ``icon.png``, and ``preview.png`` from a rendered episode."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw

HERE = Path(__file__).parent
EPISODE = HERE.parents[2] / "docs/images/sort_trash.png"
FIRST_CAMERA = 0.4435
"""Fraction of the sheet's width that the first camera's images occupy."""
INK, SKY = (28, 36, 48), (236, 241, 246)
ITEMS = ((225, 87, 60), (240, 178, 50), (88, 160, 96))


def icon(size: int = 256) -> Image.Image:
    """Draw a cloud from which three objects of different shape fall into their places."""
    scale = 4
    unit = size * scale / 256
    image = Image.new("RGBA", (size * scale, size * scale), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)

    def box(x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
        return x * unit, y * unit, (x + width) * unit, (y + height) * unit

    draw.rounded_rectangle(box(8, 8, 240, 240), radius=44 * unit, fill=INK)
    for puff in (box(52, 66, 76, 76), box(92, 40, 88, 88), box(148, 70, 62, 62)):
        draw.ellipse(puff, fill=SKY)
    draw.rounded_rectangle(box(52, 98, 158, 44), radius=22 * unit, fill=SKY)
    draw.ellipse(box(62, 162, 34, 34), fill=ITEMS[0])
    draw.rounded_rectangle(box(112, 162, 34, 34), radius=5 * unit, fill=ITEMS[1])
    points = [(179, 160), (198, 196), (160, 196)]
    draw.polygon([(x * unit, y * unit) for x, y in points], fill=ITEMS[2])
    for x in (58, 108, 158):
        draw.rounded_rectangle(box(x, 208, 42, 7), radius=3 * unit, fill=SKY)
    return image.resize((size, size), Image.Resampling.LANCZOS)


def preview(width: int = 640, height: int = 360) -> Image.Image:
    """Draw the first camera's images of two episodes."""
    image = Image.new("RGB", (width, height), INK)
    shown = Image.open(EPISODE).convert("RGB")
    shown = shown.crop((0, 0, round(FIRST_CAMERA * shown.width), shown.height))
    scale = min(width / shown.width, height / shown.height)
    shown = shown.resize((round(scale * shown.width), round(scale * shown.height)), Image.Resampling.LANCZOS)
    image.paste(shown, ((width - shown.width) // 2, (height - shown.height) // 2))
    return image


if __name__ == "__main__":
    icon().save(HERE / "icon.png", optimize=True)
    preview().save(HERE / "preview.png", optimize=True)
