"""Wires: protocols for policy servers, and a server for Nimbus's policies.

```
codec.py            frames: msgpack with arrays in three encodings, nothing executable
frame_structure.py  entries and levels of a frame, counted before it is decoded
websocket.py        a websocket with time limits
openpi.py           openpi's wire:  ws://HOST:PORT
groot.py            GR00T's wire:   groot://HOST:PORT
vla_eval.py         vla-eval's wire: vla-eval://HOST:PORT
name_map.py         names, sizes and order on the wire: --map FILE
conventions.py      comparison of a server's declarations with the task
remote_policy.py    a policy behind one of the wires
server.py           server of any policy, with openpi's wire
```
"""
