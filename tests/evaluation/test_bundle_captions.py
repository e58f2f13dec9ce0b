"""What the cache of the coverage benchmark holds captions of."""

from smart_caption_ros.captioning import Captioner
from smart_caption_ros.evaluation.coverage_benchmark import model_key
from smart_caption_ros.grounding import guide_words


def test_captions_of_another_guide_are_other_captions(detecting_bundle):
    captioner = Captioner.from_bundle(detecting_bundle, engine="onnxruntime-cpu")
    keys = {model_key(captioner)}
    for strength in (1.0, 2.0):
        keys.add(model_key(guide_words(captioner, "bias", strength)))
    assert len(keys) == 3
    assert model_key(guide_words(captioner)) in keys
