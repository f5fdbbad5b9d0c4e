"""Questions to a language model at an OpenAI-compatible address, each answered by one JSON object.

exchange.py   one request and its reply, bounded in bytes and seconds
client.py     the ladder of reply formats, renamed parameters, repeated tries, the budget
reply.py      the JSON object in what a model wrote
records.py    questions and replies on the disk, for later runs without a network
"""
