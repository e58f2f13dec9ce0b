"""JSON as data sets have it that are made here: no blanks, letters of any language as they are, a line end."""

import json


def json_bytes(document: object) -> bytes:
    return (json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
