"""`smart-caption serve`."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smart_caption_ros.cli.caption_feed import FeedOptions, open_feed
from smart_caption_ros.cli.options import LogOption, Option
from smart_caption_ros.cli.terminal import WRONG_USAGE, log_to_terminal, report_error

if TYPE_CHECKING:
    from smart_caption_ros.serving import Access, PageServer, TlsFiles

TOKEN_VARIABLE = "SMART_CAPTION_TOKEN"


@dataclass(frozen=True)
class ServeOptions(FeedOptions):
    host: Annotated[str, Option(help="Address to listen on; any but this machine's own needs a token.")] = "127.0.0.1"
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8080
    token: Annotated[
        str | None,
        Option(help=f"Secret that browsers must show; also ${TOKEN_VARIABLE}. A random one where one is needed."),
    ] = None
    token_file: Annotated[
        Path | None, Option(help="File with the secret, which other users then do not see in the list of processes.")
    ] = None
    certificate: Annotated[Path | None, Option(help="PEM file of a certificate, for HTTPS.")] = None
    key: Annotated[Path | None, Option(help="PEM file of its private key, if that is another one.")] = None
    allow_host: Annotated[
        list[str] | None, Option(help="Another name of this machine that browsers may use; several times for several.")
    ] = None
    loop: Annotated[bool, Option("--loop", help="Start --source again at its end.")] = False
    log: LogOption = None


def serve(*, options: ServeOptions) -> None:
    """Show live captions on a web page, of ROS topics or of --source, until Ctrl-C."""
    from smart_caption_ros.caption_log import LogReader
    from smart_caption_ros.serving import Hub, PageServer, ServingError
    from smart_caption_ros.serving.feeding import pass_on
    from smart_caption_ros.signals import EndSignals

    log_to_terminal()
    if options.log is not None and options.log.exists():  # it may also be created later
        LogReader(options.log).close()
    try:
        access = _access(options)
        domain = os.environ.get("ROS_DOMAIN_ID", "0")
        hub = Hub(", ".join(options.source or []) or f"ROS 2 domain {domain}")
        server = PageServer(hub, access, options.host, options.port, _tls(options), options.log)
    except ServingError as error:
        report_error(str(error))
        raise typer.Exit(WRONG_USAGE) from None
    try:
        opened = open_feed(options, "caption_page", loop=options.loop, are_images_wanted=lambda: hub.browsers > 0)
        # The signals end the loop and not the process, so that the browsers' streams are ended as well.
        with EndSignals() as ending, server, opened as feed:
            print(_address_sentence(server, access.token), flush=True)
            pass_on(feed, hub, lambda: ending.arrived)
    finally:
        server.close()


def _access(options: ServeOptions) -> "Access":
    """Decide who may see the page; raises ServingError for a malformed token, OSError for its file."""
    from smart_caption_ros.serving import Access, is_loopback, make_token

    if options.token is not None and options.token_file is not None:
        raise typer.BadParameter("Give one of --token and --token-file.", param_hint="--token-file")
    token = options.token if options.token is not None else os.environ.get(TOKEN_VARIABLE) or None
    if options.token_file is not None:
        token = options.token_file.read_text(encoding="utf-8-sig", errors="replace").strip()
    if token is None and not is_loopback(options.host):
        token = make_token()
    return Access(token, options.allow_host or ())


def _tls(options: ServeOptions) -> "TlsFiles | None":
    from smart_caption_ros.serving import TlsFiles

    if options.certificate is None:
        if options.key is not None:
            raise typer.BadParameter("It needs --certificate.", param_hint="--key")
        return None
    return TlsFiles(options.certificate, options.key)


def _address_sentence(server: "PageServer", token: str | None) -> str:
    address = server.url + (f"?token={token}" if token else "")
    elsewhere = ""
    if server.host in ("0.0.0.0", "::"):
        elsewhere = f" here, or with {socket.gethostname()} or this machine's address in place of the host elsewhere"
    return f"Open {address}{elsewhere} (Ctrl-C ends)"
