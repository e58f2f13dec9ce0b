"""Every registered family fulfils the contract of :mod:`training.models.captioner`."""

import gc

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

from export.captioner_graph import loop_form, static_form
from export.tensorrt import unsupported_by_tensorrt
from smart_caption_ros.captioning.vocabulary import SPECIAL, Vocabulary
from tests.export.graphs import assert_same_beams, hypotheses, session_of
from tests.plain_beam_search import FORBIDDEN, plain_beam_search
from tests.tiny_graphs import BEAMS, TRACED, tiny_traced
from tests.tiny_model import padded_logits, tiny_captioner, tiny_captions, tiny_visual
from training.configs.schema import PhaseConfig
from training.data.prefix_trees import prefix_trees
from training.decoding.beam_search import SearchSettings, beam_search
from training.engine.buffers import released_tensors
from training.engine.trained_captioner import TrainedCaptioner
from training.models import FAMILIES
from training.models.captioner import PADDING_ID, BufferPolicy, Step, Visual
from training.objectives.objective import TrainingCaptions
from training.objectives.self_critical import SelfCritical, self_critical_loss

MAX_WORDS = 10
FINISHED = SearchSettings(BEAMS, MAX_WORDS, stop="all")
QUICK = "ensemble"
"""The family whose graphs the quick tests compare, too: an LSTM beside an attentive decoder that takes boxes."""


@pytest.fixture(params=FAMILIES)
def family(request):
    return str(request.param)


@pytest.fixture
def captioner(family):
    return tiny_captioner(family)


def part(visual, images):
    return Visual(*(None if field is None else field[images] for field in visual))


def decode_in_parts(captioner, visual, words, lengths):
    """Decode words (B, G, T) in one call for each of ``lengths``, with the state and mask that beam search keeps."""
    batch, group, _ = words.shape
    encoded = captioner.encode(visual)
    state = captioner.initial_state(encoded, group)
    past = torch.zeros(batch, group, 0, dtype=torch.bool)
    position, steps = 0, []
    for length in lengths:
        steps.append(captioner.decode(words[..., position : position + length], position, past, state, encoded))
        state, position = steps[-1].state, position + length
        own = torch.eye(group, dtype=torch.bool).repeat_interleave(length, dim=1)
        past = torch.cat([past, own.expand(batch, -1, -1)], dim=2)
    return Step(torch.cat([s.logits for s in steps], 2), torch.cat([s.attention for s in steps], 2), state)


def teacher_forced(captioner, visual, words):
    """Log probabilities (B, G, T) of captions without begin tokens, among the allowed words, 0 after the end."""
    begin = torch.full_like(words[..., :1], Vocabulary.begin_id)
    logits = padded_logits(captioner, visual, torch.cat([begin, words[..., :-1]], dim=2)).clone()
    logits[..., list(FORBIDDEN)] = -torch.inf
    after = ((words == Vocabulary.end_id).cumsum(-1) - (words == Vocabulary.end_id).int()).bool()
    return logits.log_softmax(-1).gather(-1, words[..., None])[..., 0].masked_fill(after, 0.0)


# -- decoding ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [[1] * 9, [4, 1, 4], [1, 8]], ids=str)
def test_stepping_equals_teacher_forcing(captioner, lengths):
    visual, words = tiny_visual(3, 7, seed=1, ragged=True), tiny_captions(3, 4, seed=1)[..., :9]
    with torch.inference_mode():
        whole = decode_in_parts(captioner, visual, words, [9])
        parts = decode_in_parts(captioner, visual, words, lengths)
        logits = padded_logits(captioner, visual, words)
    real = words != PADDING_ID
    torch.testing.assert_close(whole.logits[real], logits[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(parts.logits[real], logits[real], atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(parts.attention[real], whole.attention[real], atol=1e-5, rtol=1e-5)


def test_the_nodes_of_a_prefix_tree_have_the_logits_of_the_padded_captions(captioner):
    visual, words = tiny_visual(3, 7, seed=1, ragged=True), tiny_captions(3, 4, seed=1)
    words[:, 1] = torch.where(words[:, 1] == Vocabulary.end_id, 9, words[:, 0])  # captions that begin alike
    words[2, 3] = PADDING_ID  # fewer captions than the others
    with torch.inference_mode():
        padded = padded_logits(captioner, visual, words[..., :-1])
        tree, next_words = prefix_trees(words.numpy())
        found = next_words.by_caption(next_words.select(captioner(visual, tree).flatten(0, 1)))
    assert tree.words.shape[1] < words[0, :, :-1].numel() / 1.5
    expected = padded.gather(-1, words[..., 1:, None])[..., 0].where(words[..., 1:] != PADDING_ID, 0.0)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


# -- search ------------------------------------------------------------------------------------------------------


@pytest.fixture
def searched(captioner):
    visual = tiny_visual(6, 7, seed=6, ragged=True)
    with torch.inference_mode():
        return visual, beam_search(captioner, visual, FINISHED)


def test_beams_equal_those_of_a_plain_search(captioner, searched):
    visual, found = searched
    lengths = set()
    for image in range(6):
        expected = plain_beam_search(captioner, part(visual, slice(image, image + 1)), BEAMS, MAX_WORDS)
        for beam, reference in enumerate(expected):
            length = len(reference.words)
            assert found.words[image, beam, :length].tolist() == reference.words
            assert not found.words[image, beam, length:].any()
            assert found.scores[image, beam].item() == pytest.approx(reference.score, abs=1e-4)
            assert found.log_probabilities[image, beam, :length].tolist() == pytest.approx(
                reference.log_probabilities, abs=1e-4
            )
            lengths.add(length)
    assert len(lengths) > 2
    assert len({str(beams) for beams in found.words.tolist()}) == 6  # captions depend on the image


def test_attention_of_beams_is_that_of_teacher_forcing(captioner, searched):
    visual, found = searched
    begin = torch.full_like(found.words[..., :1], Vocabulary.begin_id)
    words = torch.cat([begin, found.words[..., :-1]], dim=2)
    with torch.inference_mode():
        expected = decode_in_parts(captioner, visual, words, [MAX_WORDS]).attention
    real = found.words != PADDING_ID
    torch.testing.assert_close(found.attention[real], expected[real], atol=1e-5, rtol=1e-5)
    sums = found.attention.sum(-1)[real]
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)
    assert not found.attention[(~visual.mask)[:, None, None].expand_as(found.attention)].any()


def test_padded_tokens_change_nothing(captioner):
    visual, words = tiny_visual(4, 7, seed=7, ragged=True), tiny_captions(4, 2, seed=7)
    changed = visual._replace(
        tokens=torch.where(visual.mask[..., None], visual.tokens, 1e3),
        boxes_xyxy=torch.where(visual.mask[..., None], visual.boxes_xyxy, 0.5),
    )
    with torch.inference_mode():
        torch.testing.assert_close(
            padded_logits(captioner, changed, words), padded_logits(captioner, visual, words), atol=1e-5, rtol=1e-5
        )


def test_captions_of_the_maximum_length_can_be_decoded(captioner):
    visual, longest = tiny_visual(1, 3, seed=8), captioner.max_words or 60
    words = torch.full((1, 1, longest), 4)
    with torch.inference_mode():
        assert padded_logits(captioner, visual, words).isfinite().all()
        assert beam_search(captioner, visual, SearchSettings(2, longest, stop="never")).words.shape == (1, 2, longest)


# -- export ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[pytest.param(name, marks=() if name == QUICK else pytest.mark.long) for name in TRACED])
def traced(request):
    return tiny_traced(str(request.param))


def test_both_forms_have_the_beams_of_torch_and_the_loop_ends_with_the_best_caption(traced):
    captioner, graphs = traced
    several = tiny_visual(3, 9, seed=24, ragged=True)
    with torch.inference_mode():
        finished = beam_search(captioner, several, FINISHED)
    static = static_form(graphs, MAX_WORDS, tokens=9, batch=3)
    assert_same_beams(hypotheses(session_of(static), several), finished)
    assert not unsupported_by_tensorrt(static)
    session, lengths = session_of(loop_form(graphs, MAX_WORDS)), set()
    best = hypotheses(session, several).words[:, 0]
    assert torch.equal(best, finished.words[:, 0, : best.shape[1]])
    for seed in range(24, 30):
        visual = tiny_visual(1, 7, seed, ragged=True)
        with torch.inference_mode():
            expected = beam_search(captioner, visual, SearchSettings(BEAMS, MAX_WORDS))
        assert_same_beams(hypotheses(session, visual), expected)
        lengths.add(expected.words.shape[2])
    assert len(lengths) > 1


# -- weights and buffers -----------------------------------------------------------------------------------------


def test_a_saved_captioner_computes_the_same_logits(family, captioner, tmp_path):
    words = (*SPECIAL, *(f"w{index}" for index in range(4, 30)))
    TrainedCaptioner(family, captioner, None, Vocabulary(words), {"name": family}).save(tmp_path / "best.safetensors")
    loaded = TrainedCaptioner.load(tmp_path / "best.safetensors").captioner
    assert loaded.config == captioner.config
    visual, captions = tiny_visual(2, 5, seed=9), tiny_captions(2, 2, seed=9)
    with torch.inference_mode():
        assert torch.equal(padded_logits(loaded, visual, captions), padded_logits(captioner, visual, captions))


def test_policies_are_of_buffers_and_decide_what_is_released(captioner):
    buffers, released = dict(captioner.named_buffers()), released_tensors(captioner)
    assert set(captioner.buffer_policies) <= set(buffers)
    for name in buffers:
        assert (name in released) == captioner.buffer_policies.get(name, BufferPolicy()).release, name
    assert released.keys() >= dict(captioner.named_parameters()).keys()


# -- training ----------------------------------------------------------------------------------------------------


def caption_loss(captioner, visual, words):
    """Mean over images of the sum over words, so that the loss of a batch is the mean of those of its parts."""
    tree, next_words = prefix_trees(words.numpy())
    chosen = next_words.select(captioner(visual, tree).flatten(0, 1).float().log_softmax(-1))
    return -(chosen * next_words.weights).sum() / len(words)


def gradients(captioner, loss):
    captioner.zero_grad()
    loss.backward()
    found = {name: parameter.grad for name, parameter in captioner.named_parameters()}
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def test_every_parameter_learns_and_the_gradient_is_finite(captioner):
    padded = tiny_visual(3, 6, seed=11, ragged=True), tiny_captions(3, 2, seed=11)
    found = gradients(captioner, caption_loss(captioner, *padded))
    assert found.keys() == dict(captioner.named_parameters()).keys()
    assert all(gradient.isfinite().all() for gradient in found.values())
    sizes = {name: gradient.abs().max().item() for name, gradient in found.items()}
    still = [name for name, size in sizes.items() if size < 1e-6 * max(sizes.values())]
    # The softmax over the keys cancels what is added to the scores of all of them.
    assert [name for name in still if not name.endswith(("key.bias", "spatial.bias"))] == []


def test_its_captions_are_those_that_it_has_learnt(family, captioner):
    seen = tiny_visual(8, 6, seed=0), tiny_captions(8, 2, seed=0)
    fresh = FAMILIES[family](captioner.config)
    with torch.no_grad():
        assert caption_loss(captioner, *seen) < caption_loss(fresh, *seen) / 2


def test_the_gradient_of_a_self_critical_step_is_that_of_teacher_forcing(captioner):
    random = np.random.default_rng(0)
    words = (*SPECIAL, *(f"w{index}" for index in range(4, 30)))
    corpus = [[[words[w] for w in random.integers(4, 30, 5)] for _ in range(3)] for _ in range(4)]
    phase = PhaseConfig("scst", 1, 1e-5, objective="self_critical", beam_size=BEAMS)
    captions = TrainingCaptions(corpus, Vocabulary(words), MAX_WORDS, MAX_WORDS)
    objective = SelfCritical(captions, phase)
    visual, images = tiny_visual(4, 6, seed=12, ragged=True), np.arange(4)
    outcome = objective(captioner, visual, images)
    found = gradients(captioner, outcome.loss)
    with torch.no_grad():
        captions = beam_search(captioner, visual, FINISHED).words
    rewards = torch.from_numpy(objective.reward(images, captions.numpy())).float()
    assert rewards.std(dim=1).max() > 1e-3
    loss = self_critical_loss(teacher_forced(captioner, visual, captions), rewards)
    expected = gradients(captioner, loss)
    torch.testing.assert_close(outcome.loss, loss, atol=1e-5, rtol=1e-4)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-5, rtol=1e-3)


def test_the_loss_in_bfloat16_differs_by_less_than_5_percent(captioner):
    visual, words = tiny_visual(3, 6, seed=13, ragged=True), tiny_captions(3, 2, seed=13)
    exact = caption_loss(captioner, visual, words)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = caption_loss(captioner, visual, words)
        found = beam_search(captioner, visual, FINISHED)
    assert rounded.item() == pytest.approx(exact.item(), rel=0.05)
    assert found.scores.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients(captioner, rounded).values())


def batch_of_processes():
    return tiny_visual(4, 6, seed=14, ragged=True), tiny_captions(4, 2, seed=14)


def one_of_two_processes(rank, rendezvous, captioners, folder):
    """Write each captioner's gradient on half of the batch, added up over both processes."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=2)
    visual, words = batch_of_processes()
    own = slice(2 * rank, 2 * rank + 2)
    for family, captioner in captioners.items():
        wrapped = DistributedDataParallel(captioner, broadcast_buffers=False)
        caption_loss(wrapped, part(visual, own), words[own]).backward()
        torch.save({name: p.grad for name, p in captioner.named_parameters()}, folder / f"{family}_{rank}.pt")
    del wrapped  # the group's threads end with the last reference to it: see Processes.close
    gc.collect()
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def gradients_of_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    captioners = {family: tiny_captioner(family) for family in FAMILIES}
    multiprocessing.spawn(one_of_two_processes, (f"file://{folder}/rendezvous", captioners, folder), nprocs=2)
    return folder


def test_two_processes_have_the_gradient_of_one(family, captioner, gradients_of_processes):
    expected = gradients(captioner, caption_loss(captioner, *batch_of_processes()))
    rounding = 1e-6 * max(gradient.abs().max().item() for gradient in expected.values())
    for rank in range(2):
        found = torch.load(gradients_of_processes / f"{family}_{rank}.pt")
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(found[name], gradient, atol=rounding, rtol=1e-4)
