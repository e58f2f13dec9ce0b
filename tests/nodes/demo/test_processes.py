from smart_caption_ros.nodes.demo import processes


def test_a_domain_that_was_just_chosen_is_not_chosen_again_before_its_nodes_run(monkeypatch):
    monkeypatch.setattr(processes.random, "shuffle", list.sort)
    assert processes.free_domain_id() != processes.free_domain_id()
