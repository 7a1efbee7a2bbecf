"""Evaluates agents on Kubernetes and shows that the evaluation itself can be trusted."""

__version__ = "0.1.0"
