"""The caption log on the page: searches as by `smart-caption log find`, pictures, and downloads of both."""

import asyncio
import math
import tempfile
import zlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from smart_caption_ros.caption_log import CaptionLogError, Highlights, LogReader, LogRow, Query
from smart_caption_ros.caption_log.results import export_csv, place_of
from smart_caption_ros.caption_log.row import NS_PER_MS
from smart_caption_ros.imaging import ImageError
from smart_caption_ros.record import CaptionRecord
from smart_caption_ros.serving.hub import drawn_jpeg
from smart_caption_ros.serving.page_json import caption_json, to_json
from smart_caption_ros.text import shortened

ROWS_A_PAGE = 60
MAX_DOWNLOADED = 1000
"""Maximum number of captions of a download, the newest ones, with their pictures."""
SEARCH_TIMEOUT_S = 5.0
_THREADS = 2  # a search of one browser does not delay the pictures of another
_MAX_MS = 2**53


def past_routes(log: Path) -> list[Route]:
    """Return the routes of a log; each request opens the file, which may be written meanwhile or created later."""
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="log")

    def answer(
        make: Callable[[LogReader, Request], Response], *, otherwise: Callable[[str], Response] | None = None
    ) -> Callable[[Request], Awaitable[Response]]:
        def read(request: Request) -> Response:
            with LogReader(log) as reader:
                return make(reader, request)

        async def endpoint(request: Request) -> Response:
            try:
                return await asyncio.get_running_loop().run_in_executor(threads, read, request)
            except CaptionLogError as error:
                if otherwise is not None:
                    return otherwise(str(error))
                raise HTTPException(400, str(error)) from error

        return endpoint

    return [
        Route("/log.json", answer(_overview, otherwise=lambda problem: _json({"problem": problem}))),
        Route("/log/captions.json", answer(_captions)),
        Route("/log/captions.csv", answer(_csv)),
        Route("/log/{number:int}.json", answer(_caption)),
        Route("/log/{number:int}.jpg", answer(_picture)),
        Route("/log/{number:int}/drawn.jpg", answer(_drawn)),
    ]


def attachment(content: bytes | str, media_type: str, name: str) -> Response:
    """Return an answer that a browser saves as a file; the name has plain letters only."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)


def query_of(parameters: QueryParams, limit: int) -> Query:
    """Translate the parameters of an address: words, camera, robot, since, until, near, radius, frame, before and
    min_calibrated_confidence.

    `before` is the id of a row; the newest rows before it are the next page.
    """
    texts = {name: parameters.get(name, "") for name in ("words", "camera", "robot", "since", "until", "near", "frame")}
    confidence = _number("min_calibrated_confidence", parameters.get("min_calibrated_confidence") or "0")
    radius_m = _number("radius", parameters.get("radius") or "2")
    query = Query.parse(**texts, radius_m=radius_m, min_calibrated_confidence=confidence, limit=limit)
    if before := parameters.get("before", ""):
        before_ns = (round(min(max(_number("before", before), 0), _MAX_MS)) - 1) * NS_PER_MS
        query = replace(query, until_ns=before_ns if query.until_ns is None else min(query.until_ns, before_ns))
    return query


def _overview(reader: LogReader, request: Request) -> Response:
    overview = reader.overview()
    return _json(
        {
            "problem": "" if overview.captions else "There is no caption in the log yet.",
            "log": reader.path.name,
            "captions": overview.captions,
            "first_ms": overview.first_ms,
            "last_ms": overview.last_ms,
            "cameras": sorted({origin.camera for origin in overview.origins}),
            "has_places": any(origin.pose_frame for origin in overview.origins),
        }
    )


def _captions(reader: LogReader, request: Request) -> Response:
    """Answer with a page of captions, the newest first, and the id before which the next page begins."""
    query = query_of(request.query_params, ROWS_A_PAGE)
    rows = reader.find(query, timeout_s=SEARCH_TIMEOUT_S)
    with_pictures = reader.with_pictures(rows)
    found = [
        _found_json(row, highlights, row.id in with_pictures)
        for row, highlights in zip(rows, reader.highlights(query, rows), strict=True)
    ]
    return _json({"captions": found, "before": rows[-1].id if len(rows) == query.limit else None})


def _found_json(row: LogRow, highlights: Highlights, has_picture: bool) -> dict[str, Any]:
    return {
        "id": row.id,
        "time_ms": row.time_ns // NS_PER_MS,
        "robot": row.robot,
        "camera": row.camera,
        "text": highlights.text,
        "reason": highlights.reason,
        "classes": highlights.classes,
        "picture": f"log/{row.id}.jpg" if has_picture else None,
    }


def _caption(reader: LogReader, request: Request) -> Response:
    row = _row(reader, request)
    caption = caption_json(_record(row), row.id, f"log/{row.id}.jpg" if row.picture else None)
    place = "" if row.pose is None else place_of(row.pose)
    return _json({**caption, "time_ms": row.time_ns // NS_PER_MS, "place": place})


def _picture(reader: LogReader, request: Request) -> Response:
    """Answer with the picture, or with 304 if the browser has it already."""
    row = _row(reader, request)
    jpeg = _picture_of(row)
    headers = {"ETag": f'"{row.id}-{zlib.crc32(jpeg)}"', "Cache-Control": "private, no-cache"}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(jpeg, media_type="image/jpeg", headers=headers)


def _drawn(reader: LogReader, request: Request) -> Response:
    row = _row(reader, request)
    try:
        return attachment(drawn_jpeg(_record(row), _picture_of(row)), "image/jpeg", f"caption-{row.id}.jpg")
    except ImageError as error:
        raise HTTPException(404, f"The picture of this caption is damaged: {error}.") from error


def _csv(reader: LogReader, request: Request) -> Response:
    query = query_of(request.query_params, MAX_DOWNLOADED)
    rows = reader.find(query, with_pictures=True, timeout_s=SEARCH_TIMEOUT_S)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "captions.csv")
        export_csv(rows, path)
        return attachment(path.read_bytes(), "text/csv", "captions.csv")


def _picture_of(row: LogRow) -> bytes:
    if row.picture is None:
        raise HTTPException(404, "The log has no picture of this caption.")
    return row.picture


def _record(row: LogRow) -> CaptionRecord:
    try:
        return row.record()
    except ValueError as error:
        raise HTTPException(404, f"This caption is damaged: {error}.") from error


def _row(reader: LogReader, request: Request) -> LogRow:
    row = reader.row(request.path_params["number"])
    if row is None:
        raise HTTPException(404, "This caption is not in the log any more.")
    return row


def _json(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise CaptionLogError(f"{name} is not a number: {shortened(text, 40)!r}")
    return number
