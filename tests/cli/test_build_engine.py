"""`smart-caption bundle build` on a machine without TensorRT; tests/engines/test_gpu.py has the rest."""


def test_without_tensorrt_one_sentence_says_where_it_comes_from(run, tiny_bundle, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorrt", None)
    result = run("bundle", "build", tiny_bundle)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("smart-caption: tensorrt cannot be imported")
    assert "pip install 'smart_caption_ros[tensorrt]'" in result.stderr
    assert result.stderr.count("\n") == 1
