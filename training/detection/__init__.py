"""Labels, sampling and loss of the detector beside the backbone; :mod:`training.engine.tasks.detection` trains it."""
