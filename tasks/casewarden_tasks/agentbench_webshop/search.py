"""The shop's search: BM25 over all that a product says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import bm25s
import numpy
import Stemmer

from .products import Product

__all__ = ["Search"]

_WORD: Final = re.compile(r"[a-z0-9]+")
_TOP: Final = 50


class Search:
    """An index of a catalogue. Equal scores keep the catalogue's order, so the same words find the same, always."""

    def __init__(self, products: Mapping[str, Product]) -> None:
        self._asins = list(products)
        self._stem = Stemmer.Stemmer("english").stemWords
        self._index = bm25s.BM25()
        self._index.index([self._words(_text(product)) for product in products.values()], show_progress=False)

    def find(self, keywords: str) -> list[str]:
        """Return the asins of the best 50 that have any of the words."""
        known = [word for word in self._words(keywords) if word in self._index.vocab_dict]
        if not known:
            return []
        scores = self._index.get_scores(known)
        best = numpy.argsort(-scores, kind="stable")[:_TOP]
        return [self._asins[place] for place in best if scores[place] > 0]

    def _words(self, text: str) -> list[str]:
        return list(self._stem(_WORD.findall(text.lower())))


def _text(product: Product) -> str:
    options = (value for values in product.options.values() for value in values)
    return " ".join((product.title, product.description, *product.features, product.category, *options))
