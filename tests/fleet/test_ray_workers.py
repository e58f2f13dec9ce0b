"""Clusters that cannot be used; `tests/cli/test_describe_bags.py` has one that works."""

import socket

import pytest

from smart_caption_ros.fleet.ray_workers import RayWorkers
from smart_caption_ros.sources import SourceError


@pytest.mark.parametrize("address", ["cluster", "ray://head", "head:port", ":6379", "head:123456"])
def test_a_malformed_address_is_refused(address):
    with pytest.raises(SourceError, match="must be local, auto, HOST:PORT or ray://HOST:PORT"):
        RayWorkers(address)


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_an_address_where_nothing_answers_is_refused_at_once(prefix):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"{prefix}127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(SourceError, match=f"there is no Ray cluster at {address}: Connection refused"):
        RayWorkers(address)
