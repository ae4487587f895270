"""The parts of the benchmark; each has `measure(options)`, which returns raw times and the numbers made of them."""
