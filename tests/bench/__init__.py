"""The benchmark of speed: Thaw and what people use instead, on the same work, in one run. See docs/performance.md."""
