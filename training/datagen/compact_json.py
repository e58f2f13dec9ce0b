"""Compact JSON for the files of generated data sets."""

import json


def json_bytes(document: object) -> bytes:
    """Encode a document as one line of UTF-8 without spaces and without escaped letters."""
    return (json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
