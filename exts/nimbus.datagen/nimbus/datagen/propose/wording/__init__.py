"""Instructions of a goal graph in several styles and languages, and the claims that a sentence makes.

lexicon.py        words of a language from ``scenes/words``, and patterns with alternatives
names.py          unambiguous names of the things in a scene
sentences.py      wordings: spans of text with the numbers of their goals
claims.py         the goals that any sentence claims
instructions.py   the instructions of a task file
"""
