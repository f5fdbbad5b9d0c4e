"""Draws the labels of the bins; run it in this folder to change a label."""

from PIL import Image, ImageDraw, ImageFont

LABELS = {"recycling": (32, 92, 168), "organic": (46, 125, 50), "residual": (70, 72, 76)}


def draw_label(word: str, color: tuple[int, int, int], width: int) -> Image.Image:
    """Draw a white card with a colored band and the class in capitals."""
    image = Image.new("RGB", (width, 122), (240, 240, 236))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width, 26), fill=color)
    draw.rectangle((0, 108, width, 122), fill=color)
    draw.text((width / 2, 67), word.upper(), font=ImageFont.load_default(size=48), fill=color, anchor="mm")
    return image


if __name__ == "__main__":
    for place, (name, rgb) in enumerate(LABELS.items()):
        # Widths differ, because a renderer that hashes only samples of a texture could confuse labels of one size.
        draw_label(name, rgb, 301 + 4 * place).save(f"label_{name}.png", optimize=True)
