"""The server of the page over real sockets: what it answers, whom it refuses, and that nobody waits for others."""

import http.client
import json
import math
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

import cv2
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("uvicorn", reason="needs the extra serve")

from smart_caption_ros.imaging import decode_image_bytes
from smart_caption_ros.record import CaptionRecord, LazyImage
from smart_caption_ros.serving import Access, Hub, PageServer, ServingError, TlsFiles, make_token
from smart_caption_ros.serving.application import NOT_KEPT
from smart_caption_ros.serving.hub import KEPT_PICTURES, MAX_PICTURE_PX
from tests.serving.captions import live_caption, picture
from tests.serving.serving_requests import TIMEOUT_S, get

TOKEN = make_token()


@pytest.fixture(scope="module")
def hub():
    return Hub("a test")


@pytest.fixture(scope="module")
def server(hub):
    with PageServer(hub, Access()) as running:
        yield running


@pytest.fixture(scope="module")
def locked():
    with PageServer(Hub(), Access(TOKEN)) as running:
        yield running


class Browser:
    def __init__(self, server, **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
        self.connection.request("GET", "/events", headers=headers)
        self.answer = self.connection.getresponse()

    def next(self, name):
        """The data of the next event of this name."""
        event = ""
        while line := self.answer.readline().decode():
            if line.startswith("event: "):
                event = line[7:].strip()
            elif line.startswith("data: ") and event == name:
                return json.loads(line[6:])
        raise EOFError("the stream ended")

    def close(self):
        self.answer.close()
        self.connection.close()


@contextmanager
def browsing(server):
    with closing(Browser(server)) as browser:
        yield browser


def wait_until(condition):
    end_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end_s, "did not come about in time"
        time.sleep(0.005)


def newest(server, camera, name=""):
    """The caption of a camera as soon as it has one, of the frame of this name."""
    found = {}

    def is_there():
        found.update(json.loads(get(server, "/captions.json")[1])["captions"].get(camera, {}))
        return bool(found) and found["image"] == name

    wait_until(is_there)
    return found


def test_the_page_its_files_and_nothing_else_are_served(server):
    status, body, headers = get(server, "/")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    files = set(re.findall(r'(?:href|src)="(page/[^"]+)"', body))
    assert {"page/page.css", "page/main.js"} <= files
    imported = set(re.findall(r'from "\./([a-z]+\.js)"', get(server, "/page/main.js")[1]))
    assert len(imported) > 3
    for name in [*files, *(f"page/{script}" for script in imported)]:
        assert get(server, f"/{name}")[0] == 200, name
    assert get(server, "/page/main.js")[2]["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "path",
    ["/page/../server.py", "/page/%2e%2e/server.py", "/page/..%2fserver.py", "/../../etc/passwd", "//etc/passwd",
     "/page//etc/passwd", "/page/", "/page/main.py", "/nothing", "/frames/1.png", "/frames/-1.jpg", "/frames/x.jpg",
     "/frames/99999999999999999999999.jpg", "/frames/../page/main.js", "/docs", "/openapi.json"],
)  # fmt: skip
def test_any_other_path_is_not_found_in_a_sentence(server, path):
    status, body, headers = get(server, path)
    assert status == 404
    assert headers["content-type"].startswith("text/plain")
    assert body in ("There is no such page.\n", f"{NOT_KEPT}\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_a_request_that_could_change_something_is_refused(server, method):
    status, body, _ = get(server, "/", method, **{"Content-Length": "0"})
    assert (status, body) == (405, "This server answers GET alone.\n")


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/captions.json", "/nothing", "/frames/0.jpg"])
def test_every_answer_allows_scripts_of_this_server_alone_and_no_frame_around_it(server, path):
    headers = get(server, path)[2]
    policy = dict(directive.strip().partition(" ")[::2] for directive in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[directive] for directive in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert "unsafe" not in headers["content-security-policy"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize("path", ["/", "/events", "/captions.json", "/page/main.js", "/frames/1.jpg", "/nothing"])
def test_without_the_token_or_with_a_wrong_one_nothing_is_answered(locked, path):
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Basic {TOKEN}"}, {"Cookie": "a=b"}):
        status, body, answered = get(locked, path, **headers)
        assert (status, body) == (401, "Open the address with the token that the server printed.\n")
        assert answered["www-authenticate"] == "Bearer"
    for wrong in (TOKEN[:-1], "%C3%A9"):
        assert get(locked, f"{path}?token={wrong}")[0] == 401


def test_the_token_is_accepted_in_a_header_a_query_or_a_cookie(locked):
    assert get(locked, "/captions.json", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert get(locked, f"/captions.json?token={TOKEN}")[0] == 200
    assert get(locked, "/captions.json", Cookie=f"smart_caption_{locked.port}={TOKEN}")[0] == 200


def test_the_printed_address_leaves_the_token_in_a_cookie_and_not_in_the_address_bar(locked):
    status, _, headers = get(locked, f"/?token={TOKEN}")
    assert status == 303
    assert headers["location"] == "."
    cookie = headers["set-cookie"]
    assert {"httponly", "samesite=lax", "path=/"} <= {attribute.strip().lower() for attribute in cookie.split(";")}
    assert get(locked, "/", Cookie=cookie.split(";")[0])[0] == 200


def test_a_name_that_another_site_could_use_is_refused_before_the_token_is_looked_at(locked):
    for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{locked.port}"}, {"Host": ""}):
        status, body, _ = get(locked, f"/?token={TOKEN}", **headers)
        assert (status, body) == (403, "This server has another name: see --allow-host.\n")
    assert get(locked, f"/captions.json?token={TOKEN}", Host="localhost:9000")[0] == 200


def test_a_browser_gets_what_is_known_and_then_every_caption(server, hub):
    hub.publish(live_caption("a cup beside a lamp", camera="first"))
    newest(server, "first")
    with browsing(server) as browser:
        hello = browser.next("hello")
        assert hello["description"] == "a test"
        assert "first" in hello["cameras"]
        (*_, coverage, age_ms) = hello["history"]["first"][-1]
        assert (coverage, age_ms) == (0.5, 100.0)
        known = browser.next("caption")
        assert known["text"] == "a cup beside a lamp"
        hub.publish(live_caption("a lamp beside a cup", camera="first"))
        caption = browser.next("caption")
        assert caption["number"] > known["number"]
    assert CaptionRecord.from_json(caption).caption == live_caption("a lamp beside a cup").caption
    assert caption["named_objects"] == [[0], []]


def test_a_line_end_in_a_caption_stays_inside_its_event(server, hub):
    text = "two\n\nevent: hello\ndata: {}\r\n lines \u2028 here"
    with browsing(server) as browser:
        hub.publish(live_caption(text, camera="lines"))
        while (caption := browser.next("caption"))["camera"] != "lines":
            pass
    assert caption["text"] == text


def test_numbers_that_json_lacks_close_no_page():
    hub, number = Hub(), math.nan
    with PageServer(hub, Access()) as server:
        hub.publish(live_caption(coverage=number, age_s=number))
        newest(server, "front")
        with browsing(server) as browser:
            assert browser.next("hello")["history"]["front"][0][1:] == [None, None]
            caption = browser.next("caption")
            assert (caption["coverage"], caption["age_ms"]) == (None, None)
            hub.update_status({"cameras": {"front": {"rate_hz": number}}})
            while (cameras := browser.next("status")["cameras"]) == {}:
                pass
            assert cameras == {"front": {"rate_hz": None}}


def test_a_frame_is_encoded_once_for_all_and_only_if_somebody_asks(server, hub):
    before = hub.pictures_encoded
    for name, shade in (("dark", 40), ("light", 200)):
        hub.publish(replace(live_caption(camera="shades", shade=shade), name=name))
        caption = newest(server, "shades", name)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(get(server, f"/{caption['picture']}"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for status, *_ in answers} == {200}
    assert len({body for _, body, _ in answers}) == 1
    decoded = cv2.imdecode(np.frombuffer(answers[0][1].encode("latin-1"), np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_allclose(decoded, picture(200), atol=3)
    assert hub.pictures_encoded == before + 1


def test_the_last_two_minutes_are_kept_a_frame_a_second_while_a_browser_is_connected():
    hub = Hub()
    with PageServer(hub, Access()) as server:
        before = replace(live_caption("a lamp"), received_monotonic_s=time.monotonic() - 3)
        hub.publish(before)
        wait_until(lambda: json.loads(hub.past("front"))["moments"])
        with browsing(server) as browser:
            browser.next("hello")
            for second, name in enumerate(["first", "too soon", "second"]):
                at_s = before.received_monotonic_s + 1 + second / 2
                hub.publish(replace(live_caption("a cup beside a lamp"), name=name, received_monotonic_s=at_s))
                newest(server, "front", name)
            wait_until(lambda: len(json.loads(hub.past("front"))["moments"]) == 3)
        moments = json.loads(get(server, "/history.json?camera=front")[1])["moments"]
        assert [moment["text"] for moment in moments] == ["a lamp", *["a cup beside a lamp"] * 2]
        assert [round(moment["age_s"] - moments[-1]["age_s"]) for moment in moments] == [2, 1, 0]
        captions = [json.loads(get(server, f"/frames/{moment['number']}.json")[1]) for moment in moments]
        assert [caption["image"] for caption in captions] == ["", "first", "second"]
        assert captions[0]["picture"] is None, "nobody looked"
        status, body, headers = get(server, f"/frames/{moments[1]['number']}/drawn.jpg")
        assert (status, headers["content-disposition"].split(";")[0]) == (200, "attachment")
        assert decode_image_bytes(body.encode("latin-1")).shape[0] > picture().shape[0]
        assert get(server, f"/{captions[2]['picture']}")[0] == 200
        for path in (f"/frames/{moments[0]['number']}/drawn.jpg", "/frames/99.json", "/frames/99/drawn.jpg"):
            assert get(server, path)[1] == f"{NOT_KEPT}\n"
        assert json.loads(get(server, "/history.json?camera=nosuch")[1]) == {"moments": []}


def test_a_large_frame_is_scaled_down_and_an_old_one_is_gone(server, hub):
    live = live_caption(camera="large")
    large = np.zeros((1080, 1920, 3), np.uint8)
    image = LazyImage.of_pixels(large)
    live = replace(live, image=image, caption=replace(live.caption, image_size=(1920, 1080)))
    numbers = []
    for name in map(str, range(KEPT_PICTURES + 1)):
        hub.publish(replace(live, name=name))
        numbers.append(newest(server, "large", name)["number"])
    assert get(server, f"/frames/{numbers[0]}.jpg")[0] == 404
    status, body, _ = get(server, f"/frames/{numbers[-1]}.jpg")
    assert status == 200
    decoded = cv2.imdecode(np.frombuffer(body.encode("latin-1"), np.uint8), cv2.IMREAD_COLOR)
    assert decoded.shape == (540, MAX_PICTURE_PX, 3)


def test_a_browser_that_reads_nothing_delays_neither_the_feed_nor_another_browser():
    hub = Hub()
    long = "a cup " + "very " * 1000 + "far away"
    with PageServer(hub, Access()) as server, closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: hub.browsers == 1)
        with browsing(server) as browser:
            wait_until(lambda: hub.browsers == 2)
            for number in range(20):
                hub.publish(live_caption(long, age_s=number))
                while browser.next("caption")["age_ms"] != 1000.0 * number:
                    pass
            slow.settimeout(TIMEOUT_S)
            received = b""
            while b'"age_ms":19000.0' not in received:
                received += slow.recv(1 << 20)
        events = re.findall(rb"event: missed\ndata: (.*)\n", received)
        got = set(re.findall(rb'"number":(\d+)', received))
    missed = json.loads(events[-1])["front"]
    assert missed > 0
    assert len(got) + missed == 20


@pytest.mark.parametrize(
    ("limit", "seconds", "read_bytes"),
    [
        pytest.param(
            "server._STALLED_S",
            1,
            0,
            marks=pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux"),
        ),
        ("connections.STALLED_S", 0.5, 1),
    ],
    ids=["nothing", "too little"],
)
def test_a_browser_that_reads_too_slowly_is_disconnected(monkeypatch, limit, seconds, read_bytes):
    monkeypatch.setattr(f"smart_caption_ros.serving.{limit}", seconds)
    hub = Hub()
    with PageServer(hub, Access()) as server, closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: hub.browsers == 1)

        def is_gone():
            hub.publish(live_caption("a cup " + "very " * 1000 + "far away"))
            if read_bytes:
                slow.recv(read_bytes)
            time.sleep(0.02)
            return hub.browsers == 0

        wait_until(is_gone)


def test_a_stream_asks_proxies_to_keep_nothing_back_and_browsers_that_leave_are_forgotten(server, hub):
    wait_until(lambda: hub.browsers == 0)
    with browsing(server) as browser:
        wait_until(lambda: hub.browsers == 1)
        assert browser.answer.getheader("X-Accel-Buffering") == "no"
    wait_until(lambda: hub.browsers == 0)


def test_more_browsers_than_the_limit_are_refused_in_a_sentence(server, hub, monkeypatch):
    monkeypatch.setattr("smart_caption_ros.serving.application.MAX_BROWSERS", 1)
    with browsing(server):
        wait_until(lambda: hub.browsers == 1)
        assert get(server, "/events")[:2] == (503, "1 browsers are connected, which is the limit.\n")


def test_a_server_that_stops_ends_open_streams_and_frees_its_port():
    hub = Hub()
    with PageServer(hub, Access()) as server:
        browser = Browser(server)
        browser.next("hello")
        server.close()
        with pytest.raises(EOFError):
            browser.next("nothing")
        browser.close()
    hub.publish(live_caption())  # the feed may go on for a moment
    with PageServer(Hub(), Access(), port=server.port) as again:
        assert get(again, "/")[0] == 200


def half_request(server):
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(b"GET / HTTP/1.1\r\nHost: local")
    return client


def test_half_requests_keep_nobody_out(monkeypatch):
    monkeypatch.setattr("smart_caption_ros.serving.connections.MAX_CONNECTIONS", 20)
    with PageServer(Hub(), Access()) as server, ExitStack() as stack:
        with browsing(server) as browser:
            browser.next("hello")
            clients = [stack.enter_context(closing(half_request(server))) for _ in range(100)]
            assert get(server, "/")[0] == 200
            browser.next("status")
        for client in clients[:70]:
            client.settimeout(2.0)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b"", "the oldest gave way"


def test_a_request_whose_header_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr("smart_caption_ros.serving.connections.HEADER_TIMEOUT_S", 0.3)
    with PageServer(Hub(), Access()) as server, closing(half_request(server)) as client:
        client.settimeout(TIMEOUT_S)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
        with browsing(server) as browser:
            browser.next("hello")
            time.sleep(0.5)
            assert get(server, "/captions.json")[0] == 200, "a stream is a complete request"


def test_nonsense_does_not_fill_the_log(caplog):
    with PageServer(Hub(), Access()) as server:
        for _ in range(50):
            with closing(socket.create_connection(("127.0.0.1", server.port))) as client:
                client.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
                client.recv(100)
        assert get(server, "/")[0] == 200
    lines = [line for line in caplog.text.splitlines() if line]
    assert len(lines) <= 3


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_with_a_certificate_the_page_is_served_over_https_alone(tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    with PageServer(Hub(), Access(TOKEN), tls=TlsFiles(certificate, key)) as server:
        assert server.url == f"https://127.0.0.1:{server.port}/"
        context = ssl.create_default_context(cafile=str(certificate))
        with closing(http.client.HTTPSConnection("localhost", server.port, context=context)) as connection:
            connection.request("GET", f"/?token={TOKEN}")
            answer = connection.getresponse()
            assert answer.status == 303
            assert "secure" in answer.headers["set-cookie"].lower()
        with pytest.raises((http.client.HTTPException, OSError)):
            get(server, "/")


def test_a_certificate_that_is_none_is_reported_in_a_sentence(tmp_path):
    (tmp_path / "cert.pem").write_text("no certificate")
    for name, reason in (("cert.pem", ".+"), ("missing.pem", "No such file")):
        with pytest.raises(ServingError, match=rf"the certificate .*{name} cannot be used: {reason}"):
            PageServer(Hub(), Access(), tls=TlsFiles(tmp_path / name))


def test_a_port_that_is_taken_is_reported_in_a_sentence(server):
    with pytest.raises(ServingError, match=rf"^port {server.port} of 127.0.0.1 is taken by another program; .*--port"):
        PageServer(Hub(), Access(), port=server.port)


def test_without_the_packages_of_the_server_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    with pytest.raises(ServingError, match=r"needs uvicorn, .*pip install 'smart_caption_ros\[serve\]'"):
        PageServer(Hub(), Access())
