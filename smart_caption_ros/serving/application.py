"""The web application: the page's files, the stream of events and the frames, after checks of host and token."""

import mimetypes
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from smart_caption_ros.imaging import ImageError
from smart_caption_ros.serving.access import Access
from smart_caption_ros.serving.hub import Hub
from smart_caption_ros.serving.past import attachment, past_routes

T = TypeVar("T")
MAX_BROWSERS = 100
_MAX_PATH = 1000  # Python refuses to read an integer of more than 4,300 digits
_PAGE = Path(__file__).parent / "page"
_EVENT_STREAM = "text/event-stream"
NOT_KEPT = "This frame is not kept: only one a second of the last two minutes is, while a page is open."
_SENTENCES = {404: "There is no such page.", 405: "This server answers GET alone."}
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

mimetypes.add_type("text/javascript", ".js")  # Python before 3.12 says application/javascript


def make_application(hub: Hub, access: Access, log: Path) -> Starlette:
    """Create the application for the captions of a hub and a log; it answers GET alone: no request changes anything."""

    async def page(request: Request) -> Response:
        return FileResponse(_PAGE / "index.html")

    async def events(request: Request) -> Response:
        if hub.browsers >= MAX_BROWSERS:
            raise HTTPException(503, f"{MAX_BROWSERS} browsers are connected, which is the limit.")
        if request.method == "HEAD":
            return Response(media_type=_EVENT_STREAM)
        # nginx and similar proxies would buffer the events.
        return StreamingResponse(hub.events(), media_type=_EVENT_STREAM, headers={"X-Accel-Buffering": "no"})

    async def captions(request: Request) -> Response:
        return Response(hub.captions(), media_type="application/json")

    async def frame(request: Request) -> Response:
        return Response(_kept(await hub.picture(request.path_params["number"])), media_type="image/jpeg")

    async def drawn(request: Request) -> Response:
        number = request.path_params["number"]
        try:
            return attachment(_kept(await hub.drawn(number)), "image/jpeg", f"frame-{number}.jpg")
        except ImageError as error:
            raise HTTPException(404, f"This frame cannot be drawn on: {error}.") from error

    async def past(request: Request) -> Response:
        return Response(hub.past(request.query_params.get("camera", "")), media_type="application/json")

    async def past_caption(request: Request) -> Response:
        return Response(_kept(hub.past_caption(request.path_params["number"])), media_type="application/json")

    return Starlette(
        routes=[
            Route("/", page),
            Mount("/page", StaticFiles(directory=_PAGE)),
            Route("/events", events),
            Route("/captions.json", captions),
            Route("/frames/{number:int}.jpg", frame),
            Route("/frames/{number:int}.json", past_caption),
            Route("/frames/{number:int}/drawn.jpg", drawn),
            Route("/history.json", past),
            *past_routes(log),
        ],
        middleware=[Middleware(_Gate, access=access)],
        exception_handlers={HTTPException: _explain},
    )


def _kept(content: T | None) -> T:
    """Return what the hub gave; answer with 404 if it does not keep the frame any more."""
    if content is None:
        raise HTTPException(404, NOT_KEPT)
    return content


class _Gate:
    """Refuses another host, a missing token and a long path, and adds security headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update({name: value for name, value in _HEADERS.items() if name not in headers})
            await send(message)

        request = Request(scope)
        answer = self._refusal(request)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        if not self._access.allows_host(request.headers.get("host", "")):
            return PlainTextResponse("This server has another name: see --allow-host.\n", 403)
        if len(request.scope["path"]) > _MAX_PATH:
            return PlainTextResponse("This address is too long.\n", 414)
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
            redirect, is_secure = RedirectResponse(".", 303), request.url.scheme == "https"
            redirect.set_cookie(cookie, quote(self._access.token), secure=is_secure, httponly=True, samesite="lax")
            return redirect
        return None


async def _explain(request: Request, error: Exception) -> Response:
    """Answer with the sentence of an error; starlette's own errors get a sentence of :data:`_SENTENCES`."""
    assert isinstance(error, HTTPException)
    is_standard = error.detail == HTTPStatus(error.status_code).phrase
    detail = _SENTENCES.get(error.status_code, error.detail) if is_standard else error.detail
    return PlainTextResponse(f"{detail}\n", error.status_code, headers=error.headers)
