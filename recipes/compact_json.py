"""Compact JSON, the format of the generated data sets' files."""

import json


def json_bytes(document: object) -> bytes:
    """Encode a document as one line of UTF-8 without spaces and without escaped letters."""
    return (json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
