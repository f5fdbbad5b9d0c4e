"""Recorded questions and replies, so that a question is sent to the model only once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import Count, as_typed, read_plain
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.own_files import make_subfolder

_LIMIT = 16 << 20
"""Largest accepted record [bytes]; a reply has at most 4 MB, and JSON escapes need up to six bytes per character."""


@dataclass(frozen=True)
class ModelQuestion:
    """Question to a model."""

    system: str
    """System prompt, without the schema."""
    request: str
    """User prompt."""
    schema: dict[str, Any]
    """JSON Schema of the answer."""
    name: str = "reply"
    """Name of the schema in the request."""

    @property
    def digest(self) -> str:
        """Hash of the question, which names the file of its record."""
        return hashlib.sha256(to_json([self.system, self.request, self.schema, self.name]).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Reply:
    """Reply of a model."""

    message: dict[str, Any]
    """Field ``choices[0].message`` of the server's reply, reduced to the fields that are read."""
    finish: str
    """Field ``finish_reason`` of the server's reply."""
    model: str
    """Name of the model in the request."""
    tokens: Count
    """Number of tokens of request and reply."""


class RecordFolder:
    """Folder with one record per question: a file with the question and the reply.

    Args:
        folder: Folder of the records; created with the first record.
        is_complete: Raise an error for a question without a record, because there is no server to ask.

    Raises:
        InputError: The folder does not exist although ``is_complete`` is set.
    """

    def __init__(self, folder: Path, *, is_complete: bool = False) -> None:
        self.folder, self.is_complete = folder, is_complete
        if is_complete and not folder.is_dir():
            raise InputError(
                "the folder of recorded replies does not exist",
                where=str(folder),
                instead="give the folder of an earlier run",
            )

    def find(self, question: ModelQuestion, model: str = "") -> Reply | None:
        """Return the recorded reply to a question; None if there is none from this model.

        Args:
            question: Question whose record is read.
            model: Name of the model; ignored if ``is_complete`` is set.

        Raises:
            InputError: The record cannot be read, is a link out of the folder, or a required one is missing.
        """
        path = file_in(self.folder, self._path(question).name)
        if path.is_file():
            record = read_plain(path, limit=_LIMIT)
            reply = as_typed(Reply, record.get("reply") if isinstance(record, dict) else None, where=str(path))
            if self.is_complete or reply.model == model:
                return reply
        if self.is_complete:
            instead = "use the request, seed and Nimbus version of the run that recorded the folder"
            raise InputError("no reply to this question is recorded", where=str(path), instead=instead)
        return None

    def keep(self, question: ModelQuestion, reply: Reply) -> None:
        """Record a question and its reply.

        Raises:
            InputError: The folder is a link.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        make_subfolder(self.folder)
        text = to_json({"question": question, "reply": reply}, indent=1)
        write_atomic(self._path(question), text + "\n", durable=False, shared=True)

    def _path(self, question: ModelQuestion) -> Path:
        return self.folder / f"{question.digest}.json"
