"""Benchmarks: each a function that returns figures; `make bench` runs them and keeps the results as JSON."""
