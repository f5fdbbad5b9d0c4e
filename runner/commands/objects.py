"""``nimbus objects``: lists object libraries, or the kinds of one with size, mass and grasps, also as an image."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.runner.commands.parser import path
from nimbus.runner.commands.table import align, leading_comment
from nimbus.runner.system.output import write_out

if TYPE_CHECKING:
    from PIL import Image


def command(
    library_name: Annotated[
        str | None,
        typer.Argument(
            metavar="LIBRARY", parser=str, help="a library's name, the path of its file, or a folder of meshes"
        ),
    ] = None,
    *,
    robot: Annotated[
        str, typer.Option("--robot", metavar="NAME", parser=str, help="robot for whose gripper grasps are counted")
    ] = "panda",
    picture: Annotated[
        Path | None, typer.Option("--sheet", metavar="OUT.png", parser=path, help="draw every kind into an image")
    ] = None,
) -> int:
    """Print the libraries, or the kinds of one library; with ``--sheet``, also draw the kinds."""
    from nimbus.datagen.objects.libraries import open_library
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.runner.media.object_sheet import sheet, table_rows

    if not library_name:
        if picture:
            instead = "write nimbus objects LIBRARY --sheet OUT.png"
            raise InputError("a sheet shows one library", where="--sheet", instead=instead)
        write_out("".join(f"{line}\n" for line in _libraries()))
        return 0
    library = open_library(library_name)
    if picture:
        _save(sheet(library), picture)
    rows = [("kind", "class", "variants", "size [mm]", "mass [g]", "pieces", f"grasps ({robot})")]
    rows += list(table_rows(library, load_robot(robot, where="--robot").gripper.shape))
    write_out("".join(f"{line}\n" for line in align(rows)))
    return 0


def _libraries() -> Iterator[str]:
    from nimbus.datagen.files.scene_files import scene_folder, scene_names
    from nimbus.datagen.objects.libraries import open_library

    for name in scene_names("objects"):
        about = leading_comment(scene_folder("objects") / f"{name}.yaml")
        yield f"{name:<12} {len(open_library(name).kinds):>3} kinds  {about}"


def _save(picture: Image.Image, path: Path) -> None:
    try:
        picture.save(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be written: {error}", where=str(path), instead="give a path that ends in .png"
        ) from None
