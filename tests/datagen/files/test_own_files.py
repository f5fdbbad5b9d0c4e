"""Changes in a folder that another user may have made: no link is followed, no name leads out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.own_files import (
    create_file,
    has_links,
    link_file,
    make_subfolder,
    own_path,
    remove_file,
    remove_tree,
    write_new,
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file that lies elsewhere, and that nothing may touch."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mine.txt").write_text("mine")
    (tmp_path / "data").mkdir()
    return tmp_path / "home" / "mine.txt"


OUT = ("/etc/passwd", "../mine", "stage/../../mine", "stage//a", "", ".", "a\0", "stage/", "a\\b")


@pytest.mark.parametrize("name", OUT)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str):
    with pytest.raises(InputError, match="no path in it"):
        own_path(tmp_path, name)


@given(name=st.text(alphabet="./a\\\0b", max_size=12))
def test_any_other_name_stays_inside(name: str):
    folder = Path("/data/set")
    try:
        path = own_path(folder, name)
    except InputError:
        return
    assert path.is_relative_to(folder) and ".." not in path.parts and path != folder


def test_names_through_links_are_refused(tmp_path: Path, mine: Path):
    (tmp_path / "data" / "stage").symlink_to(mine.parent)
    with pytest.raises(InputError, match="this is a link"):
        own_path(tmp_path / "data", "stage/mine.txt")
    with pytest.raises(InputError, match="this is a link"):
        make_subfolder(tmp_path / "data" / "stage")


@pytest.mark.parametrize("is_broken", [False, True])
def test_new_files_are_no_links(tmp_path: Path, mine: Path, is_broken: bool):
    link = tmp_path / "data" / "new"
    link.symlink_to(mine.with_name("none") if is_broken else mine)
    for write in (create_file, lambda path: write_new(path, b"theirs"), lambda path: link_file(mine, path)):
        with pytest.raises(FileExistsError):
            write(link)
    assert mine.read_text() == "mine" and [*mine.parent.iterdir()] == [mine]


@pytest.mark.parametrize("shared", [False, True])
def test_replaced_links_lose_their_place(tmp_path: Path, mine: Path, shared: bool):
    page = tmp_path / "data" / "report.html"
    for name in ("report.html", "report.html.tmp", ".report.html.1-2.tmp"):
        (page.parent / name).symlink_to(mine)
    write_atomic(page, "page", durable=False, shared=shared)
    assert page.read_text() == "page" and not page.is_symlink() and mine.read_text() == "mine"


def test_removal_ends_at_links(tmp_path: Path, mine: Path):
    (tmp_path / "data" / "deep").mkdir()
    for name in ("file", "folder", "deep/folder"):
        (tmp_path / "data" / name).symlink_to(mine if name == "file" else mine.parent)
    remove_file(tmp_path / "data" / "file")
    remove_tree(tmp_path / "data" / "folder")
    remove_tree(tmp_path / "data" / "deep")
    remove_tree(tmp_path / "data" / "none")
    assert mine.read_text() == "mine" and not [*(tmp_path / "data").iterdir()]


def test_links_are_found_at_every_depth(tmp_path: Path, mine: Path):
    assert not has_links(tmp_path)
    (tmp_path / "data" / "deep").mkdir()
    (tmp_path / "data" / "deep" / "link").symlink_to(mine)
    assert has_links(tmp_path)
