"""Questions to a language model behind an OpenAI-compatible API; each answer is one JSON object.

exchange.py   one HTTP request and its reply, limited in size and time
client.py     choice of the reply format and parameters, retries, the token budget
reply.py      extraction of the JSON object from a reply
records.py    recorded questions and replies, for later runs without a network
refusal.py    error replies of servers
"""
