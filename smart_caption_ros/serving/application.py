"""The web application: the page's files, the stream of events, the frames; behind the checks of host and token."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from smart_caption_ros.serving.access import Access
from smart_caption_ros.serving.hub import Hub

KEEP_ALIVE_S = 10.0
"""A stream without events gets a comment so often, so that browsers that left are noticed."""
MAX_BROWSERS = 100
_PAGE = Path(__file__).parent / "page"
_MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def make_application(hub: Hub, access: Access) -> Starlette:
    """Make the application of a hub's captions; GET alone, so that no request changes anything."""

    async def page(request: Request) -> Response:
        return _file("index.html")

    async def page_file(request: Request) -> Response:
        return _file(request.path_params["name"])

    async def events(request: Request) -> Response:
        if hub.browsers >= MAX_BROWSERS:
            raise HTTPException(503, f"{MAX_BROWSERS} browsers are connected, which is the limit.")
        return _EventStream(hub)

    async def captions(request: Request) -> Response:
        return Response(hub.captions(), media_type="application/json")

    async def frame(request: Request) -> Response:
        data = await hub.picture(request.path_params["number"])
        if data is None:
            raise HTTPException(404, "This frame is not kept: only those of the newest captions are.")
        return Response(data, media_type="image/jpeg")

    return Starlette(
        routes=[
            Route("/", page),
            Route("/page/{name}", page_file),
            Route("/events", events),
            Route("/captions.json", captions),
            Route("/frames/{number:int}.jpg", frame),
        ],
        middleware=[Middleware(_Gate, access=access)],
        exception_handlers={HTTPException: _explain},
    )


class _Gate:
    """Refuses requests for another host or without the token, and adds the headers of security to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        request = Request(scope)
        answer = self._refusal(request)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that does not reach the application."""
        if not self._access.allows_host(request.headers.get("host", "")):
            return PlainTextResponse("This server has another name: see --allow-host.\n", 403)
        if self._access.token is None:
            return None
        cookie = f"smart_caption_{(request.scope.get('server') or ('', 0))[1]}"
        in_query = request.query_params.getlist("token")
        scheme, _, in_header = request.headers.get("authorization", "").partition(" ")
        given = [*in_query, request.cookies.get(cookie, ""), in_header if scheme.lower() == "bearer" else ""]
        if not self._access.allows_token(given):
            return PlainTextResponse(
                "Open the address with the token that the server printed.\n",
                401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        if request.scope["path"] == "/" and self._access.allows_token(in_query):
            # Keep the token out of the address bar, the history and bookmarks.
            redirect = RedirectResponse(".", 303)
            redirect.set_cookie(cookie, quote(self._access.token), httponly=True, samesite="lax", path="/")
            return redirect
        return None


class _EventStream(Response):
    """Sends what comes into a mailbox until the browser or the server goes."""

    media_type = "text/event-stream"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        mailbox = self._hub.open_mailbox()

        async def close_when_left() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            mailbox.close()

        leaving = asyncio.create_task(close_when_left())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                mailbox.close()
            while (messages := await mailbox.take(KEEP_ALIVE_S)) is not None:
                body = b"".join(messages) or b": still here\n\n"
                # Waits while the browser does not read; the mailbox keeps only the newest meanwhile.
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:  # the browser left
            pass
        finally:
            self._hub.close_mailbox(mailbox)
            leaving.cancel()
            with suppress(asyncio.CancelledError):
                await leaving


@lru_cache
def _files() -> Mapping[str, bytes]:
    """The files of the page by name; a request can name no other file."""
    return {path.name: path.read_bytes() for path in sorted(_PAGE.iterdir()) if path.suffix in _MEDIA_TYPES}


def _file(name: str) -> Response:
    data = _files().get(name)
    if data is None:
        raise HTTPException(404, "There is no such page.")
    return Response(data, media_type=_MEDIA_TYPES[Path(name).suffix])


async def _explain(request: Request, error: Exception) -> Response:
    """Answer with the sentence of an error."""
    assert isinstance(error, HTTPException)
    known = {404: "There is no such page.", 405: "This server answers GET alone."}
    detail = (
        known.get(error.status_code, error.detail)
        if error.detail in ("Not Found", "Method Not Allowed")
        else error.detail
    )
    return PlainTextResponse(f"{detail}\n", error.status_code, headers=error.headers)
