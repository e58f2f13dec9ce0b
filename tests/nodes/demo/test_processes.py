import socket

from smart_caption_ros.nodes.demo import processes


def test_a_domain_is_not_chosen_again_before_its_nodes_run_or_while_any_of_them_runs(monkeypatch):
    monkeypatch.setattr(processes.random, "shuffle", list.sort)
    first, domain_id = processes.free_domain_id(), processes.free_domain_id()
    assert first != domain_id
    processes._chosen.pop().close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second_process:
        second_process.bind(("", 7400 + 250 * domain_id + 12))
        assert processes.free_domain_id() != domain_id
