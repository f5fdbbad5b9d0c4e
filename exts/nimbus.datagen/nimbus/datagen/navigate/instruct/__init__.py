"""Step-by-step instructions for a path; every step makes a claim that can be checked.

claims.py     claims of steps: a turn, a room entered, an object passed, the end
grammar.py    generation of sentences from claims, and parsing of claims from sentences
glimpse.py    estimate of the objects that a camera sees along a path, by rays before rendering
events.py     search for claims that hold along a path through a scene
compose.py    instruction of an episode, as stored in its layout
proof.py      check of stored claims against the stored episode, without its scene
reworded.py   rewording of the steps by a language model
"""
