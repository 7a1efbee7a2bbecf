"""An API server that is small enough to read and strict enough to catch a client's mistakes, with faults on demand."""

from .kubelet import Kubelet
from .server import FakeApi

__all__ = ["FakeApi", "Kubelet"]
