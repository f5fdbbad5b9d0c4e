"""Training of large policies: batches for any number of ranks, checkpoints, and restarts of ranks.

```
streams.py      the batches of a training, the same for any number of ranks
sequences.py    samples as arrays: pictures, bytes of the instruction, noise of the flow; and measured padding
network.py      a vision-language-action network with a flow-matching head, padded or packed
checkpoint.py   what a training goes on from: safetensors and JSON, written durably
ranks.py        processes of a training: heartbeats, and a new start of all when one exits or hangs
trainer.py      one rank: DDP or FSDP2, mixed precision, accumulation, average of the weights
vla_policy.py   the trained network as a policy
```

``network``, ``checkpoint``, ``trainer`` and ``vla_policy`` import torch: ``pip install 'nimbus-datagen[train]'``.
"""
