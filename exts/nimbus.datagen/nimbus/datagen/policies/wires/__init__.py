"""Wires: protocols to servers of other policies, and a server for policies of our own.

```
codec.py          frames: msgpack with arrays, three markings of them, nothing executable
websocket.py      a websocket with time limits
openpi.py         openpi's wire:  ws://HOST:PORT
groot.py          GR00T's wire:   groot://HOST:PORT
vla_eval.py       vla-eval's:     vla-eval://HOST:PORT
name_map.py       names, sizes and order on the wire: --map FILE
conventions.py    what a server declares, against the task
remote_policy.py  a policy behind one of the wires
server.py         any policy, over openpi's wire
```
"""
