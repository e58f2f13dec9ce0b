"""Select the buffers of a captioner by the policies that it declares: synchronise, release.

Modules without policies (backbones, detectors) have constant buffers: they are released, not synchronised.
"""

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from training.models.captioner import BufferPolicy


def declared_buffers(module: nn.Module) -> dict[str, Tensor]:
    """Return the buffers with a declared policy, which training may change, by name."""
    return _chosen(module, lambda policy: True)


def synchronised_buffers(module: nn.Module) -> dict[str, Tensor]:
    """Return the buffers that the first process sends to all others, by name."""
    return _chosen(module, lambda policy: policy.synchronise)


def released_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the module's ``state_dict()`` without the buffers that only training needs."""
    unreleased = _unreleased(module)
    return {name: tensor for name, tensor in module.state_dict().items() if name not in unreleased}


def load_released_tensors(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a ``state_dict()`` or the tensors of :func:`released_tensors`; other buffers keep their values.

    Raises:
        RuntimeError: tensors are missing, unknown or of another shape.
    """
    kept = _unreleased(module) - tensors.keys()
    own = {name: tensor for name, tensor in module.state_dict().items() if name in kept}
    module.load_state_dict({**tensors, **own})


def _unreleased(module: nn.Module) -> dict[str, Tensor]:
    return _chosen(module, lambda policy: not policy.release)


def _chosen(module: nn.Module, condition: Callable[[BufferPolicy], bool]) -> dict[str, Tensor]:
    policies: Mapping[str, BufferPolicy] = getattr(module, "buffer_policies", {})
    names = {name for name, policy in policies.items() if condition(policy)}
    # Training asks several times a step, and listing the buffers visits every module.
    return {name: buffer for name, buffer in module.named_buffers() if name in names} if names else {}
