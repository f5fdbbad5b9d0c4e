from __future__ import annotations

import base64
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from jinja2 import UndefinedError
from markupsafe import Markup
from PIL import Image

from nimbus.datagen.media.pages import jpeg_uri, render_html, render_markdown


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "page.html.j2"
    path.write_text(
        '{% extends "base.html.j2" %}{% block content %}{{ name | spaced }} {{ share | percent }}{% endblock %}'
    )
    return path


def test_a_page_holds_its_style_and_escapes_values(template: Path):
    page = render_html(template, title="<t>", subtitle=Markup("<i>s</i>"), name="a_<b>", share=0.25)
    assert "<h1>&lt;t&gt;</h1>" in page and "<i>s</i>" in page and "a &lt;b&gt; 25%" in page
    assert "--paper:" in page and page.count("<style>") == 1


def test_a_missing_value_is_an_error(template: Path):
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        render_html(template, title="", subtitle="", share=0.5)


def test_markdown_values_stay_in_their_cell(tmp_path: Path):
    path = tmp_path / "card.md.j2"
    path.write_text("| {{ text }} | {{ count }} | {{ known }} |\n")
    text = render_markdown(path, text="a|b\\|c\n<script>", count=3, known=Markup("<!-- x -->"))
    assert text == "| a&#124;b&#92;&#124;c &lt;script> | 3 | <!-- x --> |\n"


@pytest.mark.parametrize("address", ["https://host/a", "HTTP://host", "www.host.org", "WWW.host.org", "me@host.org"])
def test_markdown_values_become_no_link(tmp_path: Path, address: str):
    """GitHub and the Hub turn addresses in a text into links."""
    path = tmp_path / "card.md.j2"
    path.write_text("{{ text }}")
    text = render_markdown(path, text=address)
    assert text.replace("&#8203;", "") == address and text.count("&#8203;") == 1
    assert not any(begin in text.lower() for begin in ("://", "www.", "@host"))
    assert render_markdown(path, text="ratio 3:2, a/b @ 5 Hz") == "ratio 3:2, a/b @ 5 Hz"


@pytest.mark.parametrize(("max_height", "size"), [(None, (80, 40)), (10, (20, 10))])
def test_a_picture_becomes_an_address(max_height: int | None, size: tuple[int, int]):
    head, _, data = jpeg_uri(np.zeros((40, 80, 3), np.uint8), max_height=max_height).partition(",")
    assert head == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == size


@pytest.mark.parametrize("words", [["--help"], ["tasks"]])
def test_commands_without_pages_load_no_templates(words: list[str]):
    code = """
import sys
from nimbus.runner.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.exit("jinja2" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code, *words], capture_output=True).returncode == 0
