"""Parser of a command line with Typer; its errors are one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption
from typer.main import get_command

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.scene_files import literal_path
from nimbus.runner.system.output import write_out

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter

_HELP = ("-h", "--help")


@dataclass(frozen=True)
class DatasetAddress:
    """Address of a dataset in a store; the command gets the path of the dataset's working copy instead."""

    text: str
    """Address, as given on the command line."""
    may_be_empty: bool = False
    """True if only the status of the run is needed; the dataset may then have no episode yet."""


def path(text: str) -> Path:
    """Parse a path; an empty one is refused, because an unset variable would mean the current folder."""
    if not text:
        raise ValueError("expected a path, found ''")
    return literal_path(Path(text))


def new_path(text: str) -> Path:
    """Parse the path of an output; libraries that write it need UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"expected a path in UTF-8, found {ascii(text)[:80]}") from None
    return path(text)


def place_text(text: str) -> str:
    """Parse the path of an output, or its address in a store."""
    return text if "://" in text else str(path(text))


class OneLineCommand(TyperCommand):
    """Typer command that reports a usage error as an ``InputError``; flags cannot be abbreviated.

    Only the parser of each parameter reads values: building a Pydantic model first would take time.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the words of a command line.

        Raises:
            InputError: A word is invalid or missing.
            typer.Exit: The help was requested, and has been printed.
        """
        args = list(self._with_empty_values(args))
        if self._check_flags(ctx, args):
            write_out(f"{ctx.get_help()}\n")
            raise typer.Exit
        words, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        for param in self.params:
            ctx.params[param.name] = _value(ctx, param, words.get(param.name))
        if missing := [_name(param) for param in self.params if param.required and words.get(param.name) is None]:
            raise InputError(f"the following arguments are required: {', '.join(missing)}", instead=_see(ctx))
        if rest:
            raise InputError(f"unexpected '{rest[0]}'", instead=_see(ctx))
        return []

    def invoke(self, ctx: Context) -> int:
        """Run the command; datasets in stores are opened first.

        Raises:
            InputError: There is no such dataset, or the store does not answer.
        """
        for name, value in ctx.params.items():
            if isinstance(value, DatasetAddress) and name == "folder":
                from nimbus.datagen.store.remote.working_copy import open_dataset

                ctx.params[name] = open_dataset(value.text, may_be_empty=value.may_be_empty)
        return super().invoke(ctx)

    def _with_empty_values(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words, with an empty word after each flag whose optional value is omitted."""
        optional = {name for param in self.params if _is_option(param) and _is_optional(param) for name in param.opts}
        for word, after in zip_longest(words, words[1:]):
            yield word
            if word in optional and (after is None or _is_flag(after)):
                yield ""

    def _check_flags(self, ctx: Context, words: Sequence[str]) -> bool:
        """Refuse unknown flags, and flags without a value, for which Typer would take the next flag.

        Returns:
            True if the help is requested.
        """
        options = {name: param for param in self.params if _is_option(param) for name in param.opts}
        rest = list(words)
        while rest and (word := rest.pop(0)) != "--":
            flag, equals, text = word.partition("=")
            if flag in _HELP:
                return True
            if flag not in options:
                if word.startswith("-") and len(word) > 1:
                    known = [*options, _HELP[-1]]
                    raise InputError("unknown flag", where=flag, instead=suggest(flag, known))
                continue
            count = 0 if getattr(options[flag], "is_flag", False) else options[flag].nargs
            if equals:
                if not count:
                    raise InputError(f"takes no value, found '{text}'", where=flag, instead=f"write {flag} alone")
                continue
            if len(rest) < count or any(map(_is_flag, rest[:count])):
                wanted = "one argument" if count == 1 else f"{count} arguments"
                raise InputError(f"expected {wanted}", where=flag, instead=_see(ctx))
            del rest[:count]
        return False


def parse(function: Callable[..., int], words: Sequence[str], *, name: str, meaning: str) -> Context | None:
    """Parse the words of a command; print its help and return None if they request it.

    Args:
        function: Function whose signature has the flags.
        words: Words after the command's name.
        name: Name of the command.
        meaning: First line of its help.

    Raises:
        InputError: A word is invalid or missing.
    """
    # Without Rich: its import takes longer than everything else that the help of a command needs.
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"help_option_names": list(_HELP)}
    text = f"{meaning[0].upper()}{meaning[1:]}."
    app.command(name, cls=OneLineCommand, help=text, context_settings=settings)(function)
    try:
        return get_command(app).make_context(f"nimbus {name}", list(words))
    except typer.Exit:
        return None


def _value(ctx: Context, param: Parameter, words: str | Sequence[str] | bool | None) -> object:
    """Convert the words given for a parameter: one, several, or none."""
    parser = _parser(param)
    if words is None:
        return param.default
    if parser is None or isinstance(words, bool):
        return words
    try:
        if isinstance(words, str):
            return parser(words)
        values = [parser(word) for word in words]
    except ValueError as error:
        raise InputError(str(error), where=_name(param), instead=_see(ctx)) from None
    return tuple(values) if param.nargs > 1 else values


def _parser(param: Parameter) -> Callable[[str], object] | None:
    """Return the parser of a parameter's value; None for a flag without a value, and for a text."""
    assert isinstance(param, (TyperOption, TyperArgument))
    return param.type_descriptor.parameter_info.parser


def _is_flag(word: str) -> bool:
    # Negative numbers and expressions with spaces are values, not flags.
    return len(word) > 1 and word[0] == "-" and " " not in word and not re.fullmatch(r"-\d+|-\d*\.\d+", word)


def _is_option(param: Parameter) -> bool:
    return isinstance(param, TyperOption)


def _is_optional(param: Parameter) -> bool:
    """Return True if a flag's value may be omitted; the name of the value is then in brackets."""
    return (param.metavar or "").startswith("[")


def _name(param: Parameter) -> str:
    return param.opts[0] if _is_option(param) else param.metavar or param.name


def _see(ctx: Context) -> str:
    return f"see {ctx.command_path} --help"
