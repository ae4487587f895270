"""Speed: Thaw and what people use instead, on the same work, in one run. See docs/results/performance.md."""
