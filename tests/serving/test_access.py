"""Who may see the page."""

import pytest

from smart_caption_ros.serving import Access, ServingError, is_loopback, make_token


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("LocalHost", True), ("0.0.0.0", False), ("::", False),
     ("192.168.1.7", False), ("robot.local", False), ("", False)],
)  # fmt: skip
def test_only_addresses_of_this_machine_alone_are_loopback(host, own):
    assert is_loopback(host) is own


@pytest.mark.parametrize(
    "header",
    ["localhost", "localhost:9000", "127.0.0.1:8080", "192.168.1.7:8080", "[::1]:8080", "[fe80::1]", "robot",
     "Robot.LOCAL:80",
     "localhost.", "bot.example:8080"],
)  # fmt: skip
def test_addresses_and_names_of_the_machine_are_allowed(header, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "robot")
    assert Access(names=["Bot.example"]).allows_host(header)


@pytest.mark.parametrize(
    "header",
    ["", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:80:80",
     "localhost:http", "a b", "[::1", "::1", "user@localhost", "1.2.3.4.5", "[evil.example]:80"],
)  # fmt: skip
def test_other_names_are_refused_because_another_site_could_use_them(header):
    assert not Access().allows_host(header)


def test_tokens_differ_and_are_long_and_are_not_printed_by_accident():
    first, second = make_token(), make_token()
    assert first != second
    assert len(first) >= 32
    assert first not in repr(Access(first))


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with a space in it!", "ünüsual-characters", "x" * 20 + "\n"])
def test_a_token_that_is_easy_to_guess_or_to_garble_is_refused_in_a_sentence(token):
    with pytest.raises(ServingError, match="at least 16 characters"):
        Access(token)
