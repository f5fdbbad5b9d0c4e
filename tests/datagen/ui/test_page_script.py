"""The studio's own script: it is added to the page, its reports are answered, and nothing else changes."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.ui.page_script import PageScript


@pytest.fixture
def script(tmp_path: Path) -> PageScript:
    (tmp_path / "own.js").write_text("1;")

    def answer(text: str) -> str:
        if text != '{"a": 1}':
            raise InputError("no report", where="page")
        return "{}"

    return PageScript(name="own", source=tmp_path / "own.js", answer=answer)


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_script_is_added_before_the_end_of_the_page(script: PageScript, encoding: str):
    page = b"<html><body>x</body></html>"
    headers = {"Content-Type": "text/html; charset=utf-8", "Content-Encoding": encoding, "Content-Length": "9"}
    response = SimpleNamespace(headers=headers, body=gzip.compress(page) if encoding == "gzip" else page)
    script.insert(response, "secret")
    assert response.body == b'<html><body>x<script defer src="/secret/own.js"></script></body></html>'
    assert headers["Content-Encoding"] == "identity" and headers["Content-Length"] == str(len(response.body))


def test_other_files_stay_as_they_are(script: PageScript):
    response = SimpleNamespace(headers={"Content-Type": "image/png"}, body=b"</body>")
    script.insert(response, "secret")
    assert response.body == b"</body>"


def test_requests_are_answered_or_left(script: PageScript):
    assert script.respond("/own.js") == (200, "text/javascript; charset=utf-8", b"1;")
    assert script.respond("/own?%7B%22a%22%3A%201%7D") == (200, "application/json", b"{}")
    assert script.respond("/") is None and script.respond("/own.css") is None
    for query in ("", "x", "x" * 5000):
        found = script.respond(f"/own?{query}")
        assert found and found[0] == 400 and found[2].count(b"\n") == 1
