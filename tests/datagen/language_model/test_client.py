"""A client against a real server on loopback: replies in all their forms, faults, limits, replay."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from nimbus.datagen.language_model.client import BudgetSpent, LanguageModel, Limits
from nimbus.datagen.language_model.exchange import KEY, Address
from nimbus.datagen.language_model.records import ModelQuestion, RecordFolder, Reply
from nimbus.datagen.language_model.reply import Answer, read_object
from tests.support.refusals import refusal
from tests.support.scripted_server import ScriptedServer, Step, say, send, serving

SCHEMA = {
    "type": "object",
    "properties": {"fruit": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["fruit", "count"],
    "additionalProperties": False,
}
QUESTION = ModelQuestion("You name fruit.", "Name one.", SCHEMA)
FOUND = {"fruit": "pear", "count": 2}
TEXT = json.dumps(FOUND)
QUICK = Limits(tries=6, seconds=3.0, first_wait=0.01, longest_wait=1.0)
SECRET = "sk-secret-0123456789"


def model(url: str, folder: Path, limits: Limits = QUICK) -> LanguageModel:
    """Return a model that keeps its replies in a folder."""
    return LanguageModel(RecordFolder(folder), Address.from_environment(url), "tiny", limits)


def ask(steps: Sequence[Step], folder: Path, limits: Limits = QUICK) -> tuple[Answer, ScriptedServer]:
    """Query a scripted server, and read its recorded replies without it."""
    with serving(steps) as server:
        answer = model(server.url, folder, limits).ask(QUESTION)
    assert LanguageModel(RecordFolder(folder, is_complete=True)).ask(QUESTION) == answer
    return answer, server


def hang(handler: BaseHTTPRequestHandler) -> None:
    """Send nothing for longer than the client waits."""
    time.sleep(4.0)


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Send an endless header one byte at a time, each byte within the time limit for a read."""
    for _ in range(25):
        handler.wfile.write(b"H")
        time.sleep(0.2)


def stream(handler: BaseHTTPRequestHandler) -> None:
    """Send a body without an end."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b" " * (1 << 16))


def refuse(what: str) -> Step:
    """Make a step with a request that the server does not support."""
    return send(json.dumps({"error": {"message": what}}), 400)


READ = {
    "plain": [say(TEXT)],
    "fenced": [say(f"Here it is:\n```json\n{TEXT}\n```\nDone {{so}}.")],
    "reasoning channel": [say(None, reasoning_content=f"Let me see.\n{TEXT}")],
    "think tags": [say(f'<think>{{"fruit": "fig"}} or {{</think>{TEXT}')],
    "end of thoughts alone": [say(f'maybe {{"fruit": 1}}</think>{TEXT}')],
    "parts": [say([{"type": "text", "text": TEXT}])],
    "envelope": [say(json.dumps({"reply": FOUND}))],
    "control characters": [say(TEXT.replace('"count"', '\t"count"'))],
    "no schema support": [refuse("response_format.json_schema is not supported"), say(TEXT)],
    "neither": [refuse("unknown field response_format"), refuse("unknown field response_format"), say(TEXT)],
    "two renamed parameters": [
        refuse("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        refuse("Unsupported value: 'temperature' does not support 0.7"),
        say(TEXT),
    ],
    "429": [send("slow down", 429, {"Retry-After": "0.01"}), say(TEXT)],
    "503 twice": [send("", 503), send("", 503), say(TEXT)],
    "hang": [hang, say(TEXT)],
    "drip": [drip, say(TEXT)],
    "endless stream": [stream, say(TEXT)],
    "cut body": [send(TEXT, length=5000), say(TEXT)],
    "HTML": [send("<html><body>Please log in</body></html>"), say(TEXT)],
    "no choices": [send('{"choices": []}'), say(TEXT)],
    "length": [say(TEXT[:12], finish="length"), say(TEXT)],
    "schema ignored": [say("A pear, I should think."), say(TEXT)],
}


@pytest.mark.parametrize("steps", READ.values(), ids=READ)
def test_reply_is_read(steps: list[Step], tmp_path: Path):
    answer, server = ask(steps, tmp_path)
    assert answer == Answer(FOUND)
    assert len(server.requests) == len(steps)


FAULTY = {
    "prose": ([say("A pear, I should think.")], "contains no JSON object", 3),
    "refusal": ([say(None, refusal="I cannot help with fruit.")], "refused: I cannot help with fruit", 1),
    "length twice": ([say(TEXT[:12], finish="length")], "token limit", 2),
    "two values": ([say(f"{TEXT} {TEXT}")], "two JSON objects", 3),
    "unfinished": ([say('{"fruit": {"a": 1}, ')], "no complete JSON object", 3),
    "key twice": ([say('{"count": 1, "count": 2}')], "a key occurs twice", 3),
    "deep": ([say('{"a":' * 5000)], "nested too deeply", 3),
    "surrogate": ([say('{"fruit": "\\ud800"}')], "surrogate", 3),
    "surrogate of the server": ([say("\ud800")], "no JSON object", 3),
    "not a number": ([say('{"count": NaN}')], "NaN", 3),
    "many braces": ([say("{" * 100_000)], "no complete JSON object", 3),
    "empty": ([say("")], "is empty", 3),
    "filtered": ([say("", finish="content_filter")], "content filter", 1),
}


@pytest.mark.parametrize(("steps", "fault", "count"), FAULTY.values(), ids=FAULTY)
def test_unreadable_reply_is_a_fault(steps: list[Step], fault: str, count: int, tmp_path: Path):
    answer, server = ask(steps, tmp_path)
    assert fault in answer.fault and not answer.value
    assert len(server.requests) == count


STOPPED = {
    "401": ([send(json.dumps({"error": {"message": f"bad key {SECRET}"}}), 401)], "status 401: bad key …", 1),
    "403": ([send("no", 403)], "status 403: no", 1),
    "404": ([send('{"detail": "Not Found"}', 404)], "ends in /v1", 1),
    "redirect": ([send("", 301, {"Location": "http://127.0.0.1:1/v1"})], "http://127.0.0.1:1/v1", 1),
    "refuses all": ([refuse("no")], "status 400: no", 3),
    "long pause": ([send("", 429, {"Retry-After": "3600"})], "a wait of 3600 s", 1),
    "never there": ([send("", 500)], "no answer after 6 tries: status 500", 6),
    "no text": ([send(b"\xff\xfe")], "not UTF-8 text", 6),
}


@pytest.mark.parametrize(("steps", "line", "count"), STOPPED.values(), ids=STOPPED)
def test_hopeless_server_stops_in_one_line(
    steps: list[Step], line: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(KEY, SECRET)
    with serving(steps) as server:
        assert line in (said := refusal(model(server.url, tmp_path).ask, QUESTION))
    assert SECRET not in said and len(server.requests) == count


def test_further_questions_to_a_silent_server_are_sent_once(tmp_path: Path):
    with serving([send("", 503)] * 7 + [say(TEXT)]) as server:
        asked = model(server.url, tmp_path)
        counts = []
        for _ in range(2):
            refusal(asked.ask, QUESTION)
            counts.append(len(server.requests))
        answer = asked.ask(QUESTION)
    assert counts == [6, 7] and answer.value and len(server.requests) == 8


def test_server_that_is_gone_stops(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    assert "Connection refused" in refusal(model(url, tmp_path).ask, QUESTION)


def test_refused_parameters_stay_away(tmp_path: Path):
    _, server = ask(READ["two renamed parameters"], tmp_path)
    first, *_, last = server.requests
    assert {"max_tokens", "temperature"} <= first.keys() and first["response_format"]["json_schema"]["strict"]
    assert "max_completion_tokens" in last and not {"max_tokens", "temperature"} & last.keys()


def test_cut_reply_doubles_limit_once(tmp_path: Path):
    _, server = ask(FAULTY["length twice"][0], tmp_path)
    assert [request["max_tokens"] for request in server.requests] == [4096, 8192]


def test_key_is_sent_and_nowhere_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY, SECRET)
    answer, server = ask([say(json.dumps({"fruit": SECRET, "count": 1}))], tmp_path)
    assert server.keys == [f"Bearer {SECRET}"]
    kept = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "fruit" in kept and SECRET not in kept + repr(answer) + repr(Address.from_environment(server.url))


def test_kept_reply_is_not_asked_again(tmp_path: Path):
    with serving([say(TEXT)]) as server:
        for _ in range(2):
            assert model(server.url, tmp_path).ask(QUESTION).value == FOUND
        assert len(server.requests) == 1
        other = LanguageModel(RecordFolder(tmp_path), Address.from_environment(server.url), "other", QUICK)
        other.ask(QUESTION)
        assert len(server.requests) == 2


def test_replay_lacks_a_reply(tmp_path: Path):
    records = RecordFolder(tmp_path, is_complete=True)
    assert "no reply to this question is recorded" in refusal(LanguageModel(records).ask, QUESTION)
    assert "the folder of recorded replies does not exist" in refusal(RecordFolder, tmp_path / "none", is_complete=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"reply": {"message": 3}}', '{"reply": ' * 900])
def test_broken_record_is_refused(text: str, tmp_path: Path):
    (tmp_path / f"{QUESTION.digest}.json").write_text(text)
    assert QUESTION.digest in refusal(LanguageModel(RecordFolder(tmp_path, is_complete=True)).ask, QUESTION)


def test_budget_ends_questions(tmp_path: Path):
    limits = Limits(budget=150)
    with serving([say(TEXT)]) as server:
        asked = model(server.url, tmp_path, limits)
        asked.ask(QUESTION)
        asked.ask(ModelQuestion("You name fruit.", "Name another.", SCHEMA))
        assert asked.spent == 200 and server.requests[1]["max_tokens"] == 50
        with pytest.raises(BudgetSpent, match="budget of 150 tokens is spent"):
            asked.ask(ModelQuestion("You name fruit.", "Name a third.", SCHEMA))
        assert asked.ask(QUESTION).value == FOUND


def test_name_of_only_model_is_asked(tmp_path: Path):
    with serving([say(TEXT)]) as server:
        LanguageModel(RecordFolder(tmp_path), Address.from_environment(server.url), "", QUICK).ask(QUESTION)
    assert server.requests[0]["model"] == "tiny"


@pytest.mark.parametrize(
    "url",
    ["", "localhost:80", "ftp://a/v1", "http://", "http://a:99999/v1", "http://[::1/v1", "http://a b/", "file:///x"],
)
def test_address_is_no_address(url: str):
    assert "is not the address of a server" in refusal(Address.from_environment, url)


def test_address_keeps_secrets_apart(monkeypatch: pytest.MonkeyPatch):
    for url in ("http://user:secret@127.0.0.1/v1", "https://example.org/v1?api_key=secret"):
        assert KEY in (line := refusal(Address.from_environment, url)) and "secret" not in line
    monkeypatch.setenv(KEY, SECRET)
    assert "unencrypted" in refusal(Address.from_environment, "http://example.org/v1")
    assert Address.from_environment("https://example.org/v1/").url == "https://example.org/v1"
    monkeypatch.setenv(KEY, "two\nlines")
    assert "not plain ASCII" in refusal(Address.from_environment, "https://example.org/v1")


def test_unfinished_thoughts_take_linear_time():
    """Searching for the end of each opening brace would take ten minutes for this reply."""
    text = "<think>" * 100_000 + '{"fruit": "fig", "count": 1}</thinking>'
    assert read_object(text, keys=["fruit"]).fault == "the reply is empty"
    text = "<think>a</think><reasoning>{}</reasoning>" + '{"fruit": "fig", "count": 1}'
    assert read_object(text, keys=["fruit"]).value == {"fruit": "fig", "count": 1}


def test_replies_are_not_kept_through_a_link(tmp_path: Path):
    """A library from another user may have a link in place of the folder of replies."""
    (tmp_path / "replies").symlink_to(tmp_path)
    kept = RecordFolder(tmp_path / "replies")
    assert "this is a link" in refusal(kept.keep, QUESTION, Reply({}, "stop", "tiny", 1))
