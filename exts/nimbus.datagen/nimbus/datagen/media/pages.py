"""HTML pages and Markdown cards from Jinja2 templates. Values are escaped, and a missing value is an error."""

from __future__ import annotations

import base64
import io
import re
from functools import cache
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from numpy.typing import NDArray
from PIL import Image

_SHARED = Path(__file__).with_name("templates")
"""Folder of the base page and the style sheet of all pages."""
_POLICY = Markup(
    '<meta http-equiv="Content-Security-Policy" content="'
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    '">'
)
"""Rule for browsers: a page loads and runs nothing."""
_IN_MARKDOWN = {"\\": "&#92;", "|": "&#124;", "<": "&lt;", "[": "&#91;", "]": "&#93;"}
"""Escapes for characters that end a table cell, begin a tag, or form a link or an image from another server. The
signs of an escape are none themselves, so that no backslash of a value undoes one."""
_AUTOMATIC_LINK = re.compile(r":(?=//)|\bwww(?=\.)|@(?=\w)", re.IGNORECASE)
"""Beginnings of addresses that GitHub and the Hub turn into links; an empty character is written behind them."""


def render_html(template: Path, **values: object) -> Markup:
    """Render an HTML template, which may extend and include templates of its folder and the shared ones.

    Args:
        template: Path of the template.
        values: Values of the template's variables; escaped unless they are ``Markup``.

    Raises:
        UndefinedError: The template uses a variable without a value.
    """
    return Markup(_html(template.parent).get_template(template.name).render(values))


def frame_page(page: str, *, height: str) -> str:
    """Return a frame for a page that may come from others: it loads and runs nothing, and leads to no other page.

    Args:
        page: The page.
        height: Height of the frame, in CSS.
    """
    source = escape(f"<!doctype html>{_POLICY}{page}")
    style = f"width: 100%; height: {height}; border: 0; background: white"
    return f'<iframe class="report" sandbox="" srcdoc="{source}" style="{style}"></iframe>'


def render_markdown(template: Path, **values: object) -> str:
    """Render a Markdown template; no value can end a table cell, or begin a tag, a link or an image.

    Args:
        template: Path of the template.
        values: Values of the template's variables; escaped unless they are ``Markup``.

    Raises:
        UndefinedError: The template uses a variable without a value.
    """
    return _markdown(template.parent).get_template(template.name).render(values)


def jpeg_uri(picture: NDArray[np.uint8], *, quality: int = 85, max_height: int | None = None) -> str:
    """Encode an image as a ``data:`` URI.

    Args:
        picture: (H, W, 3) sRGB image.
        quality: Quality of the JPEG, 1 to 95.
        max_height: Height to which a larger image is reduced [px]; its width is limited to four times this.
    """
    image = Image.fromarray(picture)
    if max_height:
        image.thumbnail((4 * max_height, max_height))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


@cache
def _html(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([folder, _SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["policy"] = _POLICY
    environment.filters |= {"percent": "{:.0%}".format, "tenths": "{:.1f}".format, "spaced": _spaced}
    return environment


@cache
def _markdown(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder),
        finalize=_escape_cell,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _escape_cell(value: object) -> object:
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(value.split()))
    for letter, written in _IN_MARKDOWN.items():
        text = text.replace(letter, written)
    return _AUTOMATIC_LINK.sub(r"\g<0>&#8203;", text)
