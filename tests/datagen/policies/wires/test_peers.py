"""Tests with the clients and servers of other projects, in a separate interpreter that an environment variable names.

Without the variable, the tests use recorded frames from the peers' serializers: openpi-client 0.1.2
(``msgpack_numpy.packb``, equal in openpi @15a9616) and vla-eval 0.8.0 (``protocol.messages.pack_message``). GR00T's
frames follow ``MsgSerializer`` of ``gr00t/policy/server_client.py`` in Isaac-GR00T @38624df; its package is in no
registry. Frames of N1.7 (@626af89) are those of msgpack-numpy 0.4.8.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.policies.wires.codec import GROOT_N17, OPENPI, VLA_EVAL
from tests.datagen.policies.wires.test_remote_policy import begun
from tests.support.policy_servers import TASK, Chooser, episode, observation, served

ACTIONS = np.arange(6, dtype=np.float32).reshape(2, 3)
OPENPI_FRAME = (
    "82a7616374696f6e7384c40b5f5f6e6461727261795f5fc3c40464617461c418000000000000803f00000040000040400000"
    "80400000a040c4056474797065a33c6634c4057368617065920203a26d73cb3ff8000000000000"
)
VLA_EVAL_FRAME = (
    "84a474797065a6616374696f6ea77061796c6f616481a7616374696f6e7384ab5f5f6e6461727261795f5fc3a464617461c4"
    "18000000000000803f0000004000004040000080400000a040a56474797065a33c6634a57368617065920203a373657103a9"
    "74696d657374616d70cb3ff8000000000000"
)
GROOT_FRAME = (
    "9281a361726d85c4026e64c3c40474797065a33c6634c4046b696e64c400c405736861706593010203c40464617461c4180000"
    "00000000803f0000004000004040000080400000a04081a26d73cb3ff8000000000000"
)
OPENPI_CLIENT = """
import sys
import numpy as np
from openpi_client import msgpack_numpy
from openpi_client.websocket_client_policy import WebsocketClientPolicy
with open(sys.argv[2], "rb") as file:
    observation = msgpack_numpy.unpackb(file.read())
client = WebsocketClientPolicy(sys.argv[1])
assert client.get_server_metadata()["checkpoint"] == "chooser"
sys.stdout.buffer.write(client.infer(observation)["actions"].tobytes())
"""
OPENPI_SERVER = """
import numpy as np
from openpi_client import msgpack_numpy
from websockets.sync.server import serve

def talk(connection):
    packer = msgpack_numpy.Packer()
    connection.send(packer.pack({"checkpoint": "c", "rate": 15.0, "scale": np.float32(2)}))
    for frame in connection:
        seen = msgpack_numpy.unpackb(frame)
        total = sum(int(seen["observation.images." + name].sum()) for name in ("front", "wrist"))
        answer = {"actions": np.tile(seen["observation.state"][:3], (4, 1)) + total}
        connection.send(packer.pack(answer | {"server_timing": {"infer_ms": np.float64(1.5)}}))

with serve(talk, "127.0.0.1", 0, compression=None, max_size=None) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
"""
VLA_EVAL_SERVER = """
import anyio
import numpy as np
from vla_eval.model_servers.predict import PredictModelServer
from vla_eval.model_servers.serve import serve_async
from vla_eval.specs import IMAGE_RGB, LANGUAGE, RAW

class Server(PredictModelServer):
    def get_action_spec(self):
        return {"action": RAW}

    def get_observation_spec(self):
        return {"front": IMAGE_RGB, "language": LANGUAGE}

    def predict(self, obs, ctx):
        total = sum(int(picture.sum()) for picture in obs["images"].values()) % 1000
        return {"actions": np.tile(obs["state"][:3], (4, 1)) + total}

async def main():
    async with anyio.create_task_group() as group:
        print(await group.start(serve_async, Server(), "127.0.0.1", 0), flush=True)

anyio.run(main)
"""


def interpreter(name: str) -> str:
    path = os.environ.get(name, "")
    if not path:
        pytest.skip(f"{name} names no interpreter with the peer's package")
    return path


@pytest.fixture
def start() -> Any:
    started: list[subprocess.Popen[str]] = []

    def begin(python: str, program: str) -> int:
        process = subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout
        return int(process.stdout.readline())

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_openpi_frames_are_read():
    found: Any = OPENPI.unpack(bytes.fromhex(OPENPI_FRAME))
    np.testing.assert_array_equal(found["actions"], ACTIONS)
    assert found["ms"] == 1.5 and OPENPI.pack({"actions": ACTIONS, "ms": 1.5})[:80] == bytes.fromhex(OPENPI_FRAME)[:80]


def test_vla_eval_frames_are_read():
    found: Any = VLA_EVAL.unpack(bytes.fromhex(VLA_EVAL_FRAME))
    np.testing.assert_array_equal(found["payload"]["actions"], ACTIONS)
    assert VLA_EVAL.pack(found) == bytes.fromhex(VLA_EVAL_FRAME)


def test_groot_frames_are_read():
    found: Any = GROOT_N17.unpack(bytes.fromhex(GROOT_FRAME))
    np.testing.assert_array_equal(found[0]["arm"], ACTIONS[None])
    assert GROOT_N17.pack(found) == bytes.fromhex(GROOT_FRAME)


def test_openpi_client_gets_our_answers(tmp_path: Path):
    python = interpreter("NIMBUS_OPENPI_PYTHON")
    local, seen = Chooser(), observation()
    local.reset(episode())
    with served() as address:
        policy = begun(address)
        policy.reset(episode())
        sent: list[bytes] = []
        policy._wire._socket.send = lambda frame, seconds: sent.append(frame)
        policy._wire._socket.receive = lambda seconds: OPENPI.pack({"actions": np.zeros((4, len(TASK.action_names)))})
        policy.act(seen)
        policy.close()
        (tmp_path / "frame").write_bytes(sent[0])
        line = [python, "-c", OPENPI_CLIENT, address, str(tmp_path / "frame")]
        done = subprocess.run(line, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == local.act(seen).tobytes()


def test_openpi_server_answers_us(start: Any):
    policy = begun(f"ws://127.0.0.1:{start(interpreter('NIMBUS_OPENPI_PYTHON'), OPENPI_SERVER)}")
    policy.reset(episode())
    seen = observation()
    total = sum(int(picture.sum()) for picture in seen.images.values())
    np.testing.assert_array_equal(policy.act(seen), np.tile(seen.state[:3], (4, 1)) + total)
    policy.close()


def test_vla_eval_server_answers_us(start: Any):
    policy = begun(f"vla-eval://127.0.0.1:{start(interpreter('NIMBUS_VLA_EVAL_PYTHON'), VLA_EVAL_SERVER)}")
    for index in range(2):
        policy.reset(episode(index))
        seen = observation(8 * index)
        total = sum(int(picture.sum()) for picture in seen.images.values()) % 1000
        wanted = (np.tile(seen.state[:3], (4, 1)) + total).astype(np.float32)
        np.testing.assert_array_equal(policy.act(seen), wanted)
    policy.close()
