"""``nimbus robot check FILE``: checks, prints and draws a robot; ``fetch`` downloads the wheels of its model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.files.start_folder import start_folder
from nimbus.runner.commands.options import AsJson, one_of
from nimbus.runner.commands.parser import path
from nimbus.runner.system.output import shown_path, write_json, write_out

if TYPE_CHECKING:
    from nimbus.datagen.doctor.robot_report import ArmReport, RobotReport


def command(
    action: Annotated[
        str,
        typer.Argument(
            metavar="check|fetch",
            parser=one_of(("check", "fetch")),
            help="check the file, or download the wheels with its model",
        ),
    ],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", parser=str, help="a robot file, or the name of a robot that comes with Nimbus"),
    ],
    *,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="PNG", parser=path, help="file of the image (NAME.png)")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check the file and print its content, or download its wheels."""
    if action == "fetch":
        return _fetch(file)
    picture = picture or start_folder() / f"{Path(file).stem}.png"
    report = _report(file, picture)
    if as_json:
        write_json(asdict(report) | {"picture": shown_path(picture)})
    else:
        write_out("\n".join(_lines(report)) + f"\npicture  {shown_path(picture)}\n")
    return 0


def _fetch(file: str) -> int:
    """Download the wheels of a robot that are not in the cache."""
    from nimbus.datagen.robots.robot_file import list_wheels
    from nimbus.datagen.robots.wheels import download_wheel, find_wheel

    for wheel, where in list_wheels(file).items():
        found = find_wheel(wheel)
        write_out(f"{wheel}  {found or download_wheel(wheel, where=where)}\n")
    return 0


def _report(file: str, picture: Path) -> RobotReport:
    """Return the report on a robot; simulator and renderer are loaded only if the robot is new or has changed."""
    from nimbus.datagen.doctor.robot_report import KeptReport
    from nimbus.runner.system.threads import prepare_libraries

    kept = KeptReport(file)
    report = kept.read(picture)
    if report is None:
        prepare_libraries()
        from nimbus.datagen.doctor.robot import check_robot

        report = check_robot(file, picture=picture)
        kept.write(report, picture)
    return report


def _lines(report: RobotReport) -> list[str]:
    lines = [f"{report.name}  {report.description}".rstrip(), f"{report.links} links, {report.mass:.1f} kg"]
    for arm in report.arms:
        lines += ["", *_arm_lines(arm)]
    return [*lines, *(f"note     {note}" for note in report.notes)]


def _arm_lines(arm: ArmReport) -> list[str]:
    width = max(len(joint["name"]) for joint in arm.joints)
    head = f"  {'joint':<{width}}    lower    upper  rad/s  rad/s2     N m     home"
    rows = [
        f"  {joint['name']:<{width}} {joint['lower']:8.3f} {joint['upper']:8.3f} {joint['velocity']:6.2f} "
        f"{joint['acceleration']:7.2f} {joint['effort']:7.1f} {joint['home']:8.3f}"
        for joint in arm.joints
    ]
    at = ", ".join(f"{value:.3f}" for value in arm.tool_home)
    reach = (
        f"{arm.reach[0]:.2f} to {arm.reach[1]:.2f} m ahead of the base" if arm.reach else "nowhere ahead of the base"
    )
    return [
        f"{arm.name}: {len(arm.joints)} joints",
        head,
        *rows,
        f"  tool     {arm.tool_link}; at home {at} m from the base",
        f"  gripper  {', '.join(arm.gripper_joints)}; opens {arm.opening * 1e3:.0f} mm",
        f"  reach    pointing down: {reach}",
        f"  checked  {arm.watched_pairs} pairs of links against each other",
    ]
