"""Tasks from a language model: the model fills in an intent, which becomes a goal graph or is refused with a reason.

offer.py     the kinds that a request offers to the model
form.py      the form of an intent: a JSON Schema for the model, and the check of its reply
question.py  the request's text, with the findings of earlier rounds
source.py    the model as a source of goal graphs: it is asked again, with findings, until a graph is valid
"""
