"""Step-by-step instructions for a path, made of provable claims.

claims.py     the claim of a step: a turn, a room, a thing that is passed, the end
grammar.py    sentences of claims, and the claims of sentences
glimpse.py    things that a camera sees along a path, by rays, before anything is drawn
events.py     claims that hold along a path through a scene
compose.py    the instruction of an episode, as its layout stores it
proof.py      check of stored claims against the stored episode, without its scene
reworded.py   sentences of a language model in place of the grammar's
"""
