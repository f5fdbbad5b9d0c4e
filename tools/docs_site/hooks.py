"""MkDocs hooks of the documentation site: generated pages, and links to files outside ``docs/``."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "exts/nimbus.datagen")]  # MkDocs imports this file alone

from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from mkdocs.structure.pages import Page  # noqa: E402

from tools.docs_site.pages import commands_page, gallery_page  # noqa: E402

GENERATED = {"commands.md": commands_page, "gallery.md": gallery_page}
"""Pages that are written at each build, by their path."""
_BOOST = {"glossary.md": 2.0, "quick-start.md": 2.0, "decisions.md": 0.3, "api/data.md": 0.3, "commands.md": 0.5}
"""Weights of pages in the search, so that guides come before references; the weight of all other pages is 1."""
_ROLE = re.compile(r":(?:meth|class|func|attr|mod|data):(?=<code>)")
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)([)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, their videos, and the files of the project that pages link to."""
    for path, write in GENERATED.items():
        files.append(File.generated(config, path, content=write()))
    for video in sorted((ROOT / "build/gallery").glob("*.mp4")):
        files.append(File.generated(config, f"videos/{video.name}", abs_src_path=str(video)))
    for page in (ROOT / "docs").rglob("*.md"):
        for target in _outside(page):
            name = _published(target)
            if target.is_file() and files.get_file_from_path(name) is None:
                files.append(File.generated(config, name, content=target.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links to files outside ``docs/`` at their published copies, and weight the page in the search."""
    if boost := _BOOST.get(page.file.src_uri):
        page.meta.setdefault("search", {"boost": boost})
    folder = (ROOT / "docs" / page.file.src_uri).parent
    depth = "../" * page.file.src_uri.count("/")

    def rewrite(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return match[0]
        if target.is_dir():
            return f"{match[1]}{depth}index.md{match[3]}"
        return f"{match[1]}{depth}{_published(target)}{match[3]}"

    return _LINK.sub(rewrite, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Remove the roles of docstrings, which Markdown shows as text."""
    return _ROLE.sub("", html)


def _outside(page: Path) -> list[Path]:
    """List the files outside ``docs/`` that a page links to."""
    targets = [(page.parent / match[2]).resolve() for match in _LINK.finditer(page.read_text())]
    return [target for target in targets if not target.is_relative_to(ROOT / "docs")]


def _published(target: Path) -> str:
    """Return the path of a project file on the site; ``.txt`` so that browsers show it."""
    name = posixpath.join("files", target.relative_to(ROOT).as_posix())
    return name if target.suffix in {".json", ".html"} else f"{name}.txt"
