"""From a checkpoint to a bundle: read, trace, optimise, describe, write, check."""

from export.bundle import write_bundle
from export.graphs import make_graphs
from export.manifest import describe
from export.options import ExportOptions
from export.source import load_source
from export.verify import check_of
from smart_caption_ros.captioning import Bundle
from training.engine.trained_captioner import TrainedCaptioner


def export_bundle(options: ExportOptions, trained: TrainedCaptioner | None = None) -> Bundle:
    """Export a trained captioner as a bundle.
    ``trained``: in place of the one in the checkpoint of the options.

    Raises:
        ExportError: an option does not fit, the bundle cannot be written, or it disagrees with torch.
        CheckpointError: the checkpoint is missing or malformed.
        BundleError: the bundle with the vision graph is missing or wrong.
        EngineError: ONNX Runtime cannot load a graph.
        ValueError: the captioner breaks its contract.
    """
    source = load_source(options, trained)
    made = make_graphs(source, options)
    return write_bundle(
        options.bundle,
        made.graphs,
        source.trained.vocabulary,
        describe(source, options, made),
        check=check_of(source, options),
        parameters=made.parameters,
        replace=options.replace,
    )
