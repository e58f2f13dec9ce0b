"""The published Object Relation Transformer written out plainly, by its published names, without dropout."""

import math

import torch


def random_state(layers, width, token_width, inner, heads, words):
    """A state dict of the published names with random values; ids go from 0 to ``words``."""
    shapes = {"att_embed.0.weight": (width, token_width), "att_embed.0.bias": (width,)}

    def linear(name, rows, columns):
        shapes.update({f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)})

    def norm(name):
        shapes.update({f"{name}.a_2": (width,), f"{name}.b_2": (width,)})

    for side, attentions in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "src_attn"))):
        for layer in range(layers):
            name = f"model.{side}.layers.{layer}"
            for attention in attentions:
                for place in range(4):
                    linear(f"{name}.{attention}.linears.{place}", width, width)
            for head in range(heads if side == "encoder" else 0):
                linear(f"{name}.self_attn.WGs.{head}", 1, 64)
            linear(f"{name}.feed_forward.w_1", inner, width)
            linear(f"{name}.feed_forward.w_2", width, inner)
            for place in range(len(attentions) + 1):
                norm(f"{name}.sublayer.{place}.norm")
        norm(f"model.{side}.norm")
    shapes["model.tgt_embed.0.lut.weight"] = (words + 1, width)
    linear("model.generator.proj", words + 1, width)
    state = {name: torch.randn(shape) / math.sqrt(shape[-1]) for name, shape in shapes.items()}
    state |= {name: 1 + 0.3 * torch.randn(width) for name in shapes if name.endswith("a_2")}
    position, place = torch.arange(60.0)[:, None], torch.arange(0, width, 2)
    angles = position * torch.exp(-place * math.log(10000.0) / width)
    state["model.tgt_embed.1.pe"] = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[None]
    return state


def log_probabilities(state, heads, layers, tokens, boxes, words, *, extra_skip):
    """Log probabilities (T, V) of an image's tokens (N, d_in) with boxes (N, 4), fractions, and published ids (T,)."""

    def linear(name, x):
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(name, x):
        deviation = x.std(dim=-1, keepdim=True) + 1e-6
        return state[f"{name}.a_2"] * (x - x.mean(dim=-1, keepdim=True)) / deviation + state[f"{name}.b_2"]

    def attend(name, x, others, mask, bias):
        query, key, value = (
            linear(f"{name}.linears.{place}", of).unflatten(-1, (heads, -1)).transpose(0, 1)
            for place, of in enumerate((x, others, others))
        )
        scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        if bias is not None:
            scores = scores + torch.stack(bias)
        mixed = (scores.softmax(dim=-1) @ value).transpose(0, 1).flatten(1)
        return linear(f"{name}.linears.3", mixed + others if bias is not None and extra_skip else mixed)

    def feed_forward(name, place, x):
        hidden = linear(f"{name}.feed_forward.w_1", norm(f"{name}.sublayer.{place}.norm", x)).relu()
        return x + linear(f"{name}.feed_forward.w_2", hidden)

    geometry = _geometry(boxes)
    x = linear("att_embed.0", tokens).relu()
    for layer in range(layers):
        name = f"model.encoder.layers.{layer}"
        weights = [linear(f"{name}.self_attn.WGs.{head}", geometry)[..., 0].relu() for head in range(heads)]
        normed = norm(f"{name}.sublayer.0.norm", x)
        x = x + attend(f"{name}.self_attn", normed, normed, None, [w.clamp(min=1e-6).log() for w in weights])
        x = feed_forward(name, 1, x)
    memory = norm("model.encoder.norm", x)
    y = state["model.tgt_embed.0.lut.weight"][words] * math.sqrt(memory.shape[-1])
    y = y + state["model.tgt_embed.1.pe"][0, : len(words)]
    causal = torch.ones(len(words), len(words), dtype=torch.bool).tril()
    for layer in range(layers):
        name = f"model.decoder.layers.{layer}"
        normed = norm(f"{name}.sublayer.0.norm", y)
        y = y + attend(f"{name}.self_attn", normed, normed, causal, None)
        y = y + attend(f"{name}.src_attn", norm(f"{name}.sublayer.1.norm", y), memory, None, None)
        y = feed_forward(name, 2, y)
    return linear("model.generator.proj", norm("model.decoder.norm", y)).log_softmax(dim=-1)


def _geometry(boxes):
    """Embedding (N, N, 64) of the relative geometry of boxes."""
    x0, y0, x1, y1 = boxes.T
    w, h = x1 - x0 + 1, y1 - y0 + 1
    cx, cy = (x0 + x1) / 2, (y0 + y1) / 2
    relative = torch.stack(
        [
            ((cx[:, None] - cx) / w[:, None]).abs().clamp(min=1e-3).log(),
            ((cy[:, None] - cy) / h[:, None]).abs().clamp(min=1e-3).log(),
            (w[:, None] / w).log(),
            (h[:, None] / h).log(),
        ],
        dim=-1,
    )
    waves = 1 / 1000 ** (torch.arange(8) / 8)
    angles = (100 * relative[..., None] * waves).flatten(2)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
