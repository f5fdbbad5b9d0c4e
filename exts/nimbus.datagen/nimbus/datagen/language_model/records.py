"""Recorded questions and replies: an answered question is not asked again, and needs no network."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import Count, as_typed, read_plain
from nimbus.datagen.files.codec import to_json

_LIMIT = 16 << 20
"""Largest accepted record [bytes]; a reply has at most 4 MB, and JSON writes some letters as six."""


@dataclass(frozen=True)
class ModelQuestion:
    """Instructions and a request, with the JSON Schema of the answer."""

    system: str
    request: str
    schema: dict[str, Any]
    name: str = "reply"
    """Name of the schema, for the server."""

    @property
    def digest(self) -> str:
        """Name of its record."""
        return hashlib.sha256(to_json([self.system, self.request, self.schema, self.name]).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Reply:
    """Message of a model, as its server sent it."""

    message: dict[str, Any]
    finish: str
    """``finish_reason``."""
    model: str
    """Name of the queried model."""
    tokens: Count


class RecordFolder:
    """Folder with one file per question, which holds the question and the reply.

    Args:
        folder: Folder of the records, created with the first one.
        is_complete: Treat a question without a record as an error, because there is no server.
    """

    def __init__(self, folder: Path, *, is_complete: bool = False) -> None:
        self.folder, self.is_complete = folder, is_complete
        if is_complete and not folder.is_dir():
            raise InputError("no folder of replies", where=str(folder), instead="give the folder of an earlier run")

    def find(self, question: ModelQuestion, model: str = "") -> Reply | None:
        """Return the recorded reply to a question; None if the model was not asked.

        Raises:
            InputError: The record cannot be read, or a required one is missing.
        """
        path = self._path(question)
        if path.is_file():
            record = read_plain(path, limit=_LIMIT)
            reply = as_typed(Reply, record.get("reply") if isinstance(record, dict) else None, where=str(path))
            if self.is_complete or reply.model == model:
                return reply
        if self.is_complete:
            instead = "give the words, seed and version of the run that asked"
            raise InputError("no reply to this question is stored", where=str(path), instead=instead)
        return None

    def keep(self, question: ModelQuestion, reply: Reply) -> None:
        """Write a question and its reply."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = to_json({"question": question, "reply": reply}, indent=1)
        write_atomic(self._path(question), text + "\n", durable=False, shared=True)

    def _path(self, question: ModelQuestion) -> Path:
        return self.folder / f"{question.digest}.json"
