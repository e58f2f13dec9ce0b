"""YOLOX-nano in torch equals the released graph; cells, maps and boxes agree."""

import numpy as np
import onnxruntime
import torch

from tests.frames import synthetic_images
from training.vision.yolox import STRIDES, YoloxNano, load_yolox_nano, with_classes


def test_outputs_equal_those_of_the_released_graph(data_dir):
    path = data_dir / "detectors" / "yolox_nano.onnx"
    pixels = synthetic_images(1, 416).transpose(0, 3, 1, 2).astype(np.float32)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"images": pixels})
    detector = load_yolox_nano(path)
    with torch.inference_mode():
        answers = detector.output(torch.from_numpy(pixels))
    rows = torch.cat([level.flatten(2) for level in answers.raw], dim=2).transpose(1, 2)
    np.testing.assert_allclose(rows[..., :4].numpy(), expected[..., :4], atol=1e-3)
    scores = torch.cat([level.flatten(2) for level in answers.class_scores], dim=2).transpose(1, 2)
    np.testing.assert_allclose(scores.numpy(), expected[..., 4:5] * expected[..., 5:], atol=1e-5)


def test_boxes_are_decoded_from_offsets_and_logarithms_of_the_sides():
    detector = YoloxNano(("cup",))
    raw = [torch.zeros(1, 6, 224 // stride, 224 // stride) for stride in STRIDES]
    raw[1][0, :4, 2, 3] = torch.tensor([0.25, 0.5, np.log(2), np.log(3)])
    levels = (torch.zeros(0), torch.zeros(0), torch.zeros(0))
    found = detector.raw_detections(type(detector.output(torch.zeros(1, 3, 32, 32)))(levels, raw))
    box = found.boxes_xyxy[0, 28 * 28 + 2 * 14 + 3] * 224
    # Column 3 and row 2 of the cells of 16 pixels, 2 cells wide and 3 high.
    expected = [(3 + 0.25 - 1) * 16, (2 + 0.5 - 1.5) * 16, (3 + 0.25 + 1) * 16, (2 + 0.5 + 1.5) * 16]
    torch.testing.assert_close(box, torch.tensor(expected), atol=1e-3, rtol=0)
    assert found.class_scores[0, 0, 0] == 0.25, "0.5 for an object times 0.5 for its class"


def test_known_classes_keep_their_scores_when_the_classes_change():
    frame = torch.randint(0, 256, (1, 224, 224, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    detector = YoloxNano(("cup", "bed", "dog")).eval()
    with torch.no_grad():
        for convolution in detector.convolutions():
            torch.nn.init.kaiming_normal_(convolution.weight)
    changed = with_classes(detector, ("dog", "toaster", "cup"))
    with torch.inference_mode():
        before, after = detector(frame), changed(frame)
    torch.testing.assert_close(after.boxes_xyxy, before.boxes_xyxy)
    torch.testing.assert_close(after.class_scores[..., [0, 2]], before.class_scores[..., [2, 0]])
