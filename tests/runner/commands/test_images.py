"""``--images``: a run and later commands, with an MP4 for each camera, and without cameras."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.verify import verify
from nimbus.runner.cli import main
from tests.support.runs import TINY, run


@pytest.mark.slow
def test_a_run_in_video_is_verified_made_again_exported_and_rerendered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    assert run("--episodes", "1", "--images", "video", "--format", "lerobot", out=data) == 0
    assert sorted(path.suffix for path in (data / "episodes").iterdir()) == [".hdf5", ".mp4", ".mp4"]
    assert read_info(data).inputs["images"] == "video"
    assert len(list((data / "lerobot").rglob("*.mp4"))) == 2
    capsys.readouterr()
    assert main(["verify", str(data), "--recompute", "1"]) == 0
    assert "1 layouts and plans, equal" in " ".join(capsys.readouterr().out.split())
    assert run("--episodes", "2", out=data) == 2
    assert "holds a dataset made with another images (video, now lossless)" in capsys.readouterr().err
    (path,) = (data / "episodes").glob("*.hdf5")
    again = tmp_path / "again"
    assert main(["rerender", str(data), path.stem, "--images", "both", "--out", str(again)]) == 0
    assert verify(again).problems == ()
    with EpisodeFile(path) as one, EpisodeFile(again / "episodes" / path.name) as other:
        assert one.videos == other.videos, "the same pictures, told by their hash before and after the encoder"
        assert other.provenance.settings["images"] == "both"
        assert "observations/images/front" in other.file and "observations/images/front" not in one.file


def test_an_odd_camera_is_refused_before_anything_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = tmp_path / "odd.yaml"
    task.write_text(TINY.read_text().replace("size: [64, 48]", "size: [63, 48]", 1))
    assert run("--images", "video", out=tmp_path / "data", task=task) == 2
    told = capsys.readouterr().err
    assert (
        "camera 'front' is 63 x 48: H.264 needs an even width and height; make the dataset with size: [64, 48]" in told
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_run_without_images_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    assert run("--episodes", "1", "--images", "none", "--format", "lerobot", out=data) == 0
    info = read_info(data)
    assert info.inputs["images"] == "none" and info.cameras == {}
    assert not [path for path in info.features if path.startswith(("observations/images", "labels"))]
    assert (data / "report.html").is_file() and not list((data / "lerobot").rglob("*.mp4"))
    capsys.readouterr()
    assert main(["verify", str(data), "--recompute", "1"]) == 0
    assert "1 layouts and plans, equal" in " ".join(capsys.readouterr().out.split())
    assert main(["certify", str(data)]) == 0
    assert capsys.readouterr().out.count("the episodes have no pictures") == 2
    assert main(["view", str(data), "--sheet", str(tmp_path / "sheet.png")]) == 2
    assert "the dataset has no images; a run without cameras or with --images none" in capsys.readouterr().err
    assert run("--episodes", "2", out=data) == 2
    assert "holds a dataset made with another images (none, now lossless)" in capsys.readouterr().err
    (path,) = (data / "episodes").iterdir()
    assert main(["rerender", str(data), path.stem, "--out", str(tmp_path / "seen")]) == 0
    with EpisodeFile(path) as one, EpisodeFile(tmp_path / "seen" / "episodes" / path.name) as other:
        assert one.cameras == () and other.cameras == ("front", "wrist")
        assert one.array("executed_action").tobytes() == other.array("executed_action").tobytes()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--images", "video"), "--images video: there are no cameras: nothing would be rendered; leave it out"),
        (("--images", "nothing"), "unknown 'nothing'; did you mean 'none'?"),
    ],
)
def test_images_of_no_camera_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    task = tmp_path / "bare.yaml"
    text = TINY.read_text()
    start = text.index("cameras:")
    end = next(place for place in range(start + 8, len(text)) if text[place] == "\n" and text[place + 1] != " ")
    task.write_text(text[:start] + "cameras: {}" + text[end:])
    assert run(*words, out=tmp_path / "data", task=task) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_rerender_refuses_to_make_no_pictures(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path, *_) = sorted((tiny / "episodes").glob("*.hdf5"))
    assert main(["rerender", str(tiny), path.stem, "--images", "none", "--out", str(tiny / "seen")]) == 2
    assert "--images none: rendering needs cameras; write --images lossless" in capsys.readouterr().err
