"""Parts of the benchmark of large data (:mod:`benchmarks.large_data`)."""
