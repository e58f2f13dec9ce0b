"""Files stay whole when several processes run the tests; this fails where they do not, without a cost."""

import pytest

ran: list[str] = []


@pytest.mark.parametrize("number", range(4))
def test_one_process_runs_all_tests_of_a_file_in_their_order(number: int, request: pytest.FixtureRequest) -> None:
    ran.append(request.node.nodeid)
    whole = [item.nodeid for item in request.session.items if item.path == request.node.path]
    assert ran == whole[: len(ran)]
