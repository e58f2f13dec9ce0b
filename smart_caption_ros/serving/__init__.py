"""A web page of live captions, on starlette and uvicorn (the extra `serve`), which are imported when a server starts.

:class:`Hub` takes captions from the threads of a feed and gives each browser an outbox with one slot for each camera,
so that a slow browser delays neither the feed nor other browsers.
"""

from smart_caption_ros.serving.access import Access, ServingError, is_loopback, make_token
from smart_caption_ros.serving.hub import Hub
from smart_caption_ros.serving.server import PageServer, TlsFiles

__all__ = ["Access", "Hub", "PageServer", "ServingError", "TlsFiles", "is_loopback", "make_token"]
