"""The shop's search: BM25 over all that a product says of itself, by tantivy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import tantivy

from .products import Product

__all__ = ["Search"]

_WORD: Final = re.compile(r"[a-z0-9]+")
_TOP: Final = 50
_HEAP_BYTES: Final = 20_000_000


class Search:
    """An index of a catalogue, in memory. Equal scores keep the catalogue's order: the same words find the same."""

    def __init__(self, products: Mapping[str, Product]) -> None:
        self._asins = list(products)
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="en_stem")
        builder.add_unsigned_field("place", stored=True)
        self._index = tantivy.Index(builder.build())
        # More threads would make more segments, and the order of equal scores their race.
        writer = self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        for place, product in enumerate(products.values()):
            document = tantivy.Document()
            document.add_text("text", _text(product))
            document.add_unsigned("place", place)
            writer.add_document(document)
        writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def find(self, keywords: str) -> list[str]:
        """Return the asins of the best 50 that have any of the words."""
        # Words alone: what a query language would read into other characters, nobody asked for.
        words = _WORD.findall(keywords.lower())
        if not words:
            return []
        hits = self._searcher.search(self._index.parse_query(" ".join(words), ["text"]), _TOP).hits
        return [self._asins[int(self._searcher.doc(address)["place"][0])] for _, address in hits]


def _text(product: Product) -> str:
    options = (value for values in product.options.values() for value in values)
    return " ".join((product.title, product.description, *product.features, product.category, *options))
