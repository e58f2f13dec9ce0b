"""What the benchmarks that draw have in common."""


def require_matplotlib() -> None:
    """Select matplotlib's backend for files.

    Raises:
        ValueError: matplotlib is not installed; the message says what to install.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ValueError(f"--plot needs matplotlib ({error}); pip install '.[benchmarks]'") from None
    mpl.use("Agg")
