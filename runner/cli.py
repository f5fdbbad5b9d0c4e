"""The command line: flags are parsed and checked before anything heavy is imported."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from nimbus.datagen.errors import InputError, single_line, suggest
from nimbus.runner.ask_flags import add_ask_commands
from nimbus.runner.data_flags import add_cut, add_data_commands, add_folder, add_json, add_proof
from nimbus.runner.flags import one_of, price, stack, whole, workers
from nimbus.runner.system.crash import report_crash
from nimbus.runner.system.standard_streams import drop_output, open_closed_streams, output_complaint
from nimbus.runner.usd_flags import add_usd_commands

SIMULATORS = ("newton", "isaacsim")
PLANNERS = ("ompl", "curobo")
DEVICES = ("cpu", "cuda")
ROLES = ("dynamic", "fixed")
IMAGES = ("lossless", "video", "both")
FORMATS = ("lerobot", "lerobot-v2.1", "robomimic", "aloha", "shards")

INTERRUPTED = 130

_EXIT_CODES = """exit codes: 0 done; 1 ended short or found a fault; 2 bad input, said in one line; 130 interrupted
(Ctrl-C, SIGTERM); 70 a bug in Nimbus, with a traceback (one in a skill of your own: 1, with its place)"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are ``InputError``s and whose flags cannot be abbreviated."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options, allow_abbrev=False)  # pyright: ignore[reportArgumentType]

    def error(self, message: str) -> NoReturn:
        raise InputError(message.removeprefix("argument "), instead=f"see {self.prog} --help")


def _refuse_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Answer an unknown flag with the nearest one."""
    if flags := [word.split("=")[0] for word in words if word.startswith("-")]:
        known = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
        raise InputError("unknown flag", where=flags[0], instead=suggest(flags[0], known))
    if words:
        raise InputError(f"unexpected '{words[0]}'", instead=f"see {parser.prog} --help")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; ``args.command`` is the one that was given, ``args.parser`` its own parser."""
    parser = _Parser(prog="nimbus", description="A short task file in, a verified set of robot demonstrations out.")
    parser.epilog = _EXIT_CODES
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=_Parser)

    def add(name: str, meaning: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=meaning, description=meaning[0].upper() + meaning[1:] + ".")
        command.set_defaults(parser=command)
        return command

    _add_run(add("run", "make a dataset, or continue the one in the folder"))
    for name, meaning in (
        ("report", "show what a run made: yield, reasons, stage times"),
        ("verify", "read a dataset again and check all of it"),
        ("hash", "print one hash over a dataset's episodes and their data"),
    ):
        command = add(name, meaning)
        add_folder(command)
        command.add_argument("--json", action="store_true", help="print JSON")
        if name == "hash":
            command.add_argument(
                "--fields", type=int, metavar="N", help="only the fields of field schema N (that of the dataset)"
            )
        if name == "report":
            _add_price(command)
            command.add_argument(
                "--yields", type=Path, metavar="FILE", help="write what was kept, value by value, as CSV"
            )
        if name == "verify":
            command.add_argument(
                "--recompute",
                type=whole(0, 10**7),
                default=2,
                metavar="N",
                help="layouts and plans made again from their seeds and compared (2)",
            )
            _add_skills(command)
    scale = add("scale", "give a run that goes on more or fewer workers, or other roles")
    add_folder(scale)
    scale.add_argument("split", type=workers, metavar="PxR", help="planners and renderers, or auto: as there are cores")
    _add_export(add("export", "write the stored episodes in a format that training code reads"))
    add_data_commands(add)
    add_ask_commands(add, add_skills=_add_skills)
    _add_replay(add("replay", "execute stored actions in physics again and compare the outcome"))
    add_usd_commands(add, add_skills=_add_skills)
    _add_rerender(add("rerender", "show stored motions anew: pixels, labels and wording, into another dataset"))
    _add_robot(add("robot", "check a robot file: limits, tool, gripper, reach, collisions with itself, a picture"))
    for name, meaning in (
        ("tasks", "list the tasks that come with Nimbus"),
        ("skills", "list the skills and conditions that a task file can use"),
        ("schema", "print the JSON Schema of a task file"),
    ):
        command = add(name, meaning)
        _add_skills(command)
        if name == "skills":
            command.add_argument("names", nargs="*", metavar="NAME", help="say everything about these")
    _add_studio(add("studio", "edit a task in a browser: its fields, its scene, layouts, runs, datasets"))
    _add_objects(add("objects", "list object libraries, or the kinds of one with size, mass and grasps"))
    return parser


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("--task", required=True, metavar="NAME", help="a task's name, or the path of its file")
    command.add_argument("--episodes", type=whole(1, 10**7), default=10, metavar="N", help="how many (10)")
    command.add_argument("--seed", type=whole(0, 2**63 - 1), default=0, metavar="S", help="of the whole run (0)")
    command.add_argument(
        "--variants", type=whole(1, 1000), default=1, metavar="V", help="visual variants rendered of each plan (1)"
    )
    command.add_argument("--out", type=Path, metavar="DIR", help="folder of the dataset (out/<task>)")
    command.add_argument(
        "--format", type=one_of(FORMATS), metavar="NAME", help="export at the end to DIR/NAME: lerobot, aloha, …"
    )
    _add_images(command)
    command.add_argument(
        "--keep-failures", action="store_true", help="render failed attempts too and store them apart, in failures/"
    )
    add_proof(command)
    command.add_argument("--sim", type=one_of(SIMULATORS), default="newton", metavar="NAME", help="newton, isaacsim")
    command.add_argument("--planner", type=one_of(PLANNERS), default="ompl", metavar="NAME", help="ompl, curobo")
    command.add_argument(
        "--workers", type=workers, metavar="PxR", help="planners and renderers, which keep their roles (auto)"
    )
    command.add_argument(
        "--roles", type=one_of(ROLES), metavar="NAME", help="dynamic: workers change roles as it pays; fixed"
    )
    command.add_argument("--serial", action="store_true", help="everything in this process")
    command.add_argument(
        "--coupled", action="store_true", help="in this process, and no stage decoupled: a baseline to measure against"
    )
    _add_price(command)
    _add_device(command)
    _add_skills(command)


def _add_images(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--images",
        type=one_of(IMAGES),
        default=IMAGES[0],
        metavar="HOW",
        help="lossless: in the episode's file, bit for bit; video: H.264, an MP4 for each camera; both (lossless)",
    )


def _add_price(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--price-per-hour", type=price, metavar="X", help="of this machine; the report tells what an episode costs"
    )


def _add_export(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument("--to", type=one_of(FORMATS), default=FORMATS[0], metavar="FORMAT", help=", ".join(FORMATS))
    command.add_argument("--out", type=Path, required=True, metavar="OUT", help="folder of the export")
    add_cut(command)
    command.add_argument(
        "--keep-failures",
        action="store_true",
        help="failed attempts that the run kept too, labelled, behind the episodes",
    )
    add_json(command)


def _add_replay(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument("ids", nargs="*", metavar="ID", help="episodes (all)")
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_skills(command)


def _add_robot(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", type=one_of(("check",)), metavar="check", help="what to do")
    command.add_argument("file", metavar="FILE", help="a robot file, or the name of a robot that comes with Nimbus")
    command.add_argument("--picture", type=Path, metavar="PNG", help="where the picture goes (NAME.png)")
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_rerender(command: argparse.ArgumentParser) -> None:
    add_folder(command)
    command.add_argument("ids", nargs="+", metavar="ID", help="episodes")
    command.add_argument(
        "--task", metavar="NAME", help="take cameras, visual ranges and wording from this task (its own)"
    )
    command.add_argument(
        "--variant", type=whole(0, 10**6), metavar="N", help="draw this variant's look and wording (its own)"
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the new dataset")
    _add_images(command)
    _add_device(command)
    _add_skills(command)


def _add_objects(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "library", nargs="?", metavar="LIBRARY", help="a library's name, the path of its file, or a folder of meshes"
    )
    command.add_argument("--robot", default="panda", metavar="NAME", help="whose gripper is to hold them (panda)")
    command.add_argument("--sheet", type=Path, metavar="OUT.png", help="draw every kind into a picture")


def _add_studio(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "task",
        nargs="?",
        default="sort_trash",
        metavar="TASK",
        help="a task's name, or the path of its file (sort_trash)",
    )
    command.add_argument("--port", type=whole(1, 65535), default=8080, metavar="N", help="or the next free one (8080)")
    command.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen; others can then change files (127.0.0.1)",
    )
    command.add_argument(
        "--sharpness",
        type=whole(10, 200),
        metavar="PERCENT",
        help="of the screen's pixels along each side that the scene is drawn with (100; 40 where there is no GPU)",
    )
    _add_skills(command)


def _add_device(command: argparse.ArgumentParser) -> None:
    command.add_argument("--device", type=one_of(DEVICES), default="cpu", metavar="NAME", help="cpu, cuda")
    command.add_argument("--stack", type=stack, metavar="K", help="time steps rendered in one launch (auto)")


def _add_skills(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--skills", type=Path, action="append", default=[], metavar="DIR", help="a folder with skills of your own"
    )


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse and check a command line; one that begins with a flag is a ``run``.

    Raises:
        InputError: Something in it is wrong.
    """
    parser = build_parser()
    if words and words[0].startswith("--") and words[0] not in ("--help", "--version"):
        words = ["run", *words]
    if words and not words[0].startswith("-"):
        known = next(action.choices for action in parser._actions if action.dest == "command")
        if words[0] not in (known or ()):
            raise InputError(f"unknown command '{words[0]}'", instead=suggest(words[0], known or ()))
    args, rest = parser.parse_known_args(words)
    _refuse_unknown(getattr(args, "parser", parser), rest)
    if args.command == "run" and args.out is None:
        args.out = Path("out") / Path(args.task).stem
    return args


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    open_closed_streams()
    try:
        code = _obey(parse_arguments(sys.argv[1:] if words is None else words))
        sys.stdout.flush()
        return code
    except InputError as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        sys.stderr.write(single_line(f"{error}{notes}") + "\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away
        drop_output()
        return 1
    except Exception as error:
        if line := output_complaint(error):
            sys.stderr.write(line + "\n")
            return 1
        return report_crash(error, in_full="--serial" in (sys.argv if words is None else words))


def _obey(args: argparse.Namespace) -> int:
    if args.version:
        from nimbus.datagen.version import nimbus_version

        sys.stdout.write(f"nimbus {nimbus_version()}\n")
        return 0
    if args.command is None:
        build_parser().print_help()
        return 0
    _check_current_folder()
    return importlib.import_module(f"nimbus.runner.{args.command.replace('-', '_')}").command(args)


def _check_current_folder() -> None:
    try:
        os.getcwd()
    except OSError as error:
        what = f"cannot be used: {error.strerror}"
        raise InputError(what, where="the current folder", instead="change to one that is there") from None
