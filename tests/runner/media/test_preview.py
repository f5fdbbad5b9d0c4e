from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.media import preview
from nimbus.runner.media.preview import camera_order, write_previews
from tests.support.synthetic import failure, make_rendered, write_dataset


def test_previews_are_a_sheet_with_a_row_an_episode_and_a_video_an_episode(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    stored = write_dataset(folder, [make_rendered(index) for index in range(3)])
    files = write_previews(folder, sheet_episodes=3, video_episodes=2)
    assert [path.name for path in files] == ["contact_sheet.png"] + [f"{item.episode_id}.mp4" for item in stored[:2]]
    with Image.open(files[0]) as three:
        height, width = three.height, three.width
        assert len(three.convert("RGB").getcolors(1 << 20) or ()) > 1000
    write_previews(folder, sheet_episodes=1, video_episodes=0)
    with Image.open(files[0]) as one:
        assert (one.width, one.height) == (width, (height - 20) // 3 + 20)


def test_a_video_is_h264_that_browsers_play_and_shows_each_camera(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (stored,) = write_dataset(folder, [make_rendered(width=64, height=48)])
    _, video = write_previews(folder)
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.average_rate == 15
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
    assert len(pictures) == stored.step_count
    with EpisodeFile(folder / stored.path) as episode:
        for left, camera in ((0, "front"), (64, "wrist")):
            seen = pictures[10][:48, left : left + 64].astype(int)
            assert np.abs(seen - episode.frames(camera, 10, 11).rgb[0]).mean() < 8
    content = video.read_bytes()
    assert 0 < content.find(b"moov") < content.find(b"mdat")


def test_an_odd_picture_size_is_no_obstacle(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [make_rendered(width=33, height=25)])
    assert len(write_previews(tmp_path / "data")) == 2


def test_a_dataset_without_pictures_has_no_previews(tmp_path: Path) -> None:
    blind = replace(make_rendered(0), observations=iter(()), labels=None)
    write_dataset(tmp_path / "data", [blind, make_rendered(1, outcome=failure())])
    assert write_previews(tmp_path / "data") == []


def test_no_more_episodes_are_opened_than_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path / "data", [make_rendered(index, steps=4) for index in range(5)])
    opened: list[Path] = []

    class Counted(EpisodeFile):
        def __init__(self, path: Path | str) -> None:
            opened.append(Path(path))
            super().__init__(path)

    monkeypatch.setattr(preview, "EpisodeFile", Counted)
    assert len(write_previews(tmp_path / "data", sheet_episodes=2, video_episodes=1)) == 2
    assert len(set(opened)) == 2


def test_cameras_fixed_in_the_world_come_first(tmp_path: Path) -> None:
    (stored,) = write_dataset(tmp_path / "data", [make_rendered()])
    with EpisodeFile(tmp_path / "data" / stored.path) as episode:
        assert camera_order(episode) == ["front", "wrist"]


def test_links_in_the_dataset_are_not_drawn_over(tmp_path: Path) -> None:
    """A foreign dataset may contain links to the user's files at the paths of the images."""
    (mine := tmp_path / "mine.png").write_text("mine")
    (stored,) = write_dataset(tmp_path / "data", [make_rendered(steps=4)])
    (tmp_path / "data" / "preview").mkdir()
    for name in ("contact_sheet.png", f"{stored.episode_id}.mp4"):
        (tmp_path / "data" / "preview" / name).symlink_to(mine)
    assert len(write_previews(tmp_path / "data")) == 2 and mine.read_text() == "mine"
    (tmp_path / "data" / "card.png").symlink_to(mine)
    assert preview.write_view_sheet(open_view(tmp_path / "data"), tmp_path / "data" / "card.png")
    assert mine.read_text() == "mine" and not (tmp_path / "data" / "card.png").is_symlink()


def test_preview_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [make_rendered(steps=4)])
    (tmp_path / "home").mkdir()
    (tmp_path / "data" / "preview").symlink_to(tmp_path / "home")
    with pytest.raises(InputError, match="this is a link"):
        write_previews(tmp_path / "data")
    assert not list((tmp_path / "home").iterdir())
