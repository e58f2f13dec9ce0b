"""Boxes of words where visual tokens stand before the grid, and where the graph sees a part of the frame."""

import math

import numpy as np
import pytest

from smart_caption_ros.captioning import Bundle, Captioner
from smart_caption_ros.captioning.bundle import VISION_GRAPH
from smart_caption_ros.engines import create_engine
from tests.engines.small_graphs import changed_manifest
from tests.frames import blobs


class _Graph:
    def __init__(self, graph, change):
        self._graph, self._change = graph, change

    def run(self, inputs):
        return self._change(self._graph.run(inputs))

    outputs = ()  # the graph declares a token less

    def __getattr__(self, name):
        return getattr(self._graph, name)


class Planting:
    """An engine that puts a token before the grid, and all attention on one token."""

    place: int

    def __init__(self):
        self._engine = create_engine("onnxruntime-cpu", 1)

    def load(self, path, content=None):
        return _Graph(self._engine.load(path, content), self._add_token if path.name == VISION_GRAPH else self._plant)

    def _add_token(self, outputs):
        tokens = outputs["tokens"]
        return {**outputs, "tokens": np.concatenate([tokens.mean(axis=1, keepdims=True), tokens], axis=1)}

    def _plant(self, outputs):
        attention = np.zeros_like(outputs["attention"])
        assert attention.shape[-1] == 50
        attention[..., self.place] = 1
        return {**outputs, "attention": attention}

    def __getattr__(self, name):
        return getattr(self._engine, name)


@pytest.fixture
def planting():
    return Planting()


def captioner_of(bundle, engine, **preprocessing):
    with changed_manifest(bundle) as manifest:
        manifest["tokens"]["before_grid"] = 1
        manifest["preprocessing"] |= preprocessing
    return Captioner(Bundle.load(bundle), engine)


def test_attention_on_a_cell_gives_its_box_and_on_a_class_token_none(bundle_copy, planting):
    captioner = captioner_of(bundle_copy, planting)
    frame = blobs(0, 70, 140)
    for cell in range(49):
        planting.place = 1 + cell
        row, column = divmod(cell, 7)
        words = captioner.caption(frame).words
        assert words
        for word in words:
            assert word.box_xyxy == pytest.approx((20 * column, 10 * row, 20 * column + 20, 10 * row + 10), abs=1e-4)
    planting.place = 0
    assert all(math.isnan(edge) for word in captioner.caption(frame).words for edge in word.box_xyxy)


def test_the_boxes_of_a_cropped_frame_are_those_of_the_crop(bundle_copy, planting):
    """Of 640 x 480 with the shorter side at 256 and 224 cut out, the crop is 420 pixels wide and high."""
    captioner = captioner_of(bundle_copy, planting, interpolation="bicubic", shorter_side=256)
    planting.place = 1
    words = captioner.caption(blobs(1, 480, 640)).words
    scale = 480 / 256
    left, top, side = 58 * 640 / 341, 16 * scale, 32 * scale
    for word in words:
        assert word.box_xyxy == pytest.approx((left, top, left + side, top + side), rel=2e-3)
