"""File operations in a folder that another user may have prepared: no link is followed, and no name leads out of the
folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.files import own_files
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.own_files import (
    copy_new,
    create_file,
    default_folder,
    has_links,
    link_file,
    make_place,
    make_subfolder,
    open_shared,
    own_path,
    refuse_links,
    refuse_other_owner,
    remove_file,
    remove_tree,
    write_new,
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a file outside of the folder, which must stay unchanged."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mine.txt").write_text("mine")
    (tmp_path / "data").mkdir()
    return tmp_path / "home" / "mine.txt"


OUT = ("/etc/passwd", "../mine", "stage/../../mine", "stage//a", "", ".", "a\0", "stage/", "a\\b")


@pytest.mark.parametrize("name", OUT)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str):
    with pytest.raises(InputError, match="not a path in this folder"):
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


def test_a_place_has_its_folders_and_none_is_a_link_or_file(tmp_path: Path, mine: Path):
    data = tmp_path / "data"
    for _ in range(2):
        make_place(data, "a/b/c").write_text("c")
    assert (data / "a" / "b" / "c").read_text() == "c" and make_place(data, "top") == data / "top"
    (data / "link").symlink_to(mine.parent)
    with pytest.raises(InputError, match="this is a link"):
        make_place(data, "link/new/file")
    with pytest.raises(InputError, match="this is a file"):
        make_place(data, "a/b/c/file")
    with pytest.raises(InputError, match="not a path in this folder"):
        make_place(data, "../home/new")
    assert [*mine.parent.iterdir()] == [mine]


@pytest.mark.parametrize(("mode", "links"), [(0o644, 2), (0o666, 1)])
def test_a_file_that_others_can_change_is_copied(tmp_path: Path, mode: int, links: int):
    """They would change the copy, too, even in a private folder."""
    source = tmp_path / "theirs"
    source.write_text("content")
    source.chmod(mode)
    copy_new(source, tmp_path, "mine", may_link=True)
    assert source.stat().st_nlink == links


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only the superuser can give a file away")
def test_a_file_of_another_user_is_copied(tmp_path: Path):
    source = tmp_path / "theirs"
    source.write_text("content")
    os.chown(source, 65534, 65534)
    copy_new(source, tmp_path, "mine", may_link=True)
    assert source.stat().st_nlink == 1 and (tmp_path / "mine").stat().st_uid == 0


@pytest.mark.parametrize("may_link", [False, True])
def test_a_copy_replaces_nothing_and_stays_below(tmp_path: Path, mine: Path, may_link: bool):
    data, new = tmp_path / "data", tmp_path / "new"
    new.write_text("new")
    copy_new(new, data, "videos/front/file", may_link=may_link)
    assert (data / "videos" / "front" / "file").read_text() == "new"
    (data / "link").symlink_to(mine)
    for name in ("videos/front/file", "link"):
        with pytest.raises(InputError, match=f"two files would be named '{name}'"):
            copy_new(new, data, name, may_link=may_link)
    with pytest.raises(InputError, match="not a path in this folder"):
        copy_new(new, data, "videos/../../home/file", may_link=may_link)
    assert [*mine.parent.iterdir()] == [mine] and mine.read_text() == "mine"


def test_a_shared_file_keeps_its_content_and_is_no_link(tmp_path: Path, mine: Path):
    for letter in (b"a", b"b"):
        descriptor = open_shared(tmp_path / "data" / "lock")
        os.lseek(descriptor, 0, os.SEEK_END)
        os.write(descriptor, letter)
        os.close(descriptor)
    assert (tmp_path / "data" / "lock").read_bytes() == b"ab"
    for target in (mine, mine.with_name("none")):
        link = tmp_path / "data" / target.name
        link.symlink_to(target)
        with pytest.raises(InputError, match="this is a link"):
            open_shared(link)
    assert [*mine.parent.iterdir()] == [mine]


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


def test_folders_with_pipes_are_not_continued(tmp_path: Path):
    """A pipe as ``metrics.jsonl`` of a training run held its process forever."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").touch()
    refuse_links(tmp_path)
    os.mkfifo(tmp_path / "deep" / "metrics.jsonl")
    with pytest.raises(InputError, match="metrics.jsonl: is neither a file nor a folder"):
        refuse_links(tmp_path)


def test_folders_of_other_users_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    refuse_other_owner(tmp_path)
    monkeypatch.setattr(own_files, "is_own", lambda path: False)
    refuse_other_owner(tmp_path / "not there")
    with pytest.raises(InputError, match="it belongs to another user"):
        refuse_other_owner(tmp_path)


@pytest.mark.parametrize("link", ["out", "out/run_t"])
def test_a_default_folder_is_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str):
    """The current folder may be of others; only a folder that the user names may be a link."""
    monkeypatch.chdir(tmp_path)
    assert default_folder("run_t") == tmp_path / "out/run_t"
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(tmp_path)
    with pytest.raises(InputError, match=f"^{link}: this is a link, .* --out out/run_t$"):
        default_folder("run_t")
