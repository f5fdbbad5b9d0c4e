"""Episode files: schema, encoding, decoding and content hashes."""
