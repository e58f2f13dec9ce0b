"""The page in a real browser."""

from contextlib import suppress

import pytest


@pytest.fixture(scope="module")
def shared_page(browser):
    """A page for many tests, because a new one takes most of the time of a test."""
    return browser.new_context().new_page()


@pytest.fixture
def open_page(browser, shared_page):
    """Opens the page of a server; at the end, nothing went wrong in it and no request went to another server."""
    sync_api = pytest.importorskip("playwright.sync_api")
    urls = []
    wrong = []
    servers = []
    listeners = {
        "request": lambda request: urls.append(request.url),
        "console": lambda message: wrong.append(message.text),
        "pageerror": lambda error: wrong.append(str(error)),
        "dialog": lambda dialog: (wrong.append(dialog.message), dialog.dismiss()),
    }

    def opened(server, query="", alone=False, interrupted=False):
        """
        Args:
            server: whose page.
            query: follows its address.
            alone: opens a page for this test, whose clock the test may set.
            interrupted: whether failed requests are right.
        """
        page = shared_page
        if alone:
            page = browser.new_context().new_page()
            page.clock.install()
        page.set_default_timeout(20_000)
        for event, listener in listeners.items():
            if event != "console" or not interrupted:
                page.on(event, listener)
        servers.append(server.url)
        page.goto(server.url + query)
        sync_api.expect(page.locator("#connection")).to_contain_text("Connected")
        return page

    yield opened
    if shared_page.url.startswith("http"):
        shared_page.evaluate("localStorage.clear()")
        shared_page.emulate_media(color_scheme="light")
        shared_page.set_viewport_size({"width": 1280, "height": 720})
        shared_page.goto("about:blank")
    for event, listener in listeners.items():
        with suppress(KeyError):  # the test opened a page of its own
            shared_page.remove_listener(event, listener)
    assert urls
    assert [url for url in urls if not url.startswith((*servers, "about:"))] == []
    assert wrong == []
