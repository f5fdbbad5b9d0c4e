"""Tasks by a language model, which only fills in an intent that becomes a goal graph or a reason.

offer.py     the kinds that a call offers
form.py      the form of an intent, as a JSON Schema for the model and as a check of what comes back
question.py  the question, with the findings of earlier rounds
source.py    a model as a source of goal graphs: it is asked until there is one, and again with what was found
"""
