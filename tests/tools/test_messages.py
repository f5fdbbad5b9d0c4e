"""The list of messages contains the texts that users see, with their positions."""

from pathlib import Path

from tools.messages import KINDS, find_messages
from tools.sources import modules


def test_messages_have_file_and_line() -> None:
    messages = list(find_messages())
    assert {message.kind for message in messages} == set(KINDS)
    path = modules()["nimbus.datagen.files.strict_yaml"]
    (empty,) = [message for message in messages if message.path == path and message.text == "the file is empty"]
    assert "the file is empty" in Path(path).read_text().splitlines()[empty.line - 1]


def test_messages_show_values_as_gaps() -> None:
    texts = {message.text for message in find_messages()}
    assert "key '{…}' is given twice, first in line {…}" in texts
