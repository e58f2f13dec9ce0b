"""Requests to the server of the page, over a real socket."""

import http.client
from contextlib import closing

TIMEOUT_S = 20.0


def get(server, path, method="GET", **headers):
    """Status, body and headers (in lower case) of an answer; a path is sent as it stands."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)) as connection:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode("latin-1"), {name.lower(): v for name, v in answer.getheaders()}
