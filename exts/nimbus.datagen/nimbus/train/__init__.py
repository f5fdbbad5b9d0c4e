"""Training of large policies: batches for any number of ranks, checkpoints and restarts.

```
streams.py      the batches of a training run, the same for any number of ranks
sequences.py    samples as arrays: images, instruction bytes, flow-matching noise; and the fraction of padding
network.py      a vision-language-action network with a flow-matching head, padded or packed
checkpoint.py   checkpoints: safetensors and JSON, written durably
ranks.py        processes of a training run: heartbeats, and a restart of all ranks when one exits or hangs
trainer.py      one rank: DDP or FSDP2, mixed precision, gradient accumulation, averaged weights
vla_policy.py   the trained network as a policy
```

``network``, ``checkpoint``, ``trainer`` and ``vla_policy`` import torch, which the extra ``train`` installs.
"""
