"""Instructions of a goal graph in several styles and languages, and the claims that a sentence makes.

lexicon.py        words of a language, from ``scenes/words``; patterns with alternatives
names.py          names of the things of a scene that can mean one of them only
sentences.py      wordings: spans with the numbers of their goals
claims.py         the goals that a sentence names, from a template or not
instructions.py   the instructions of a task file
"""
