"""A recorded page: what of it is around some elements, and how it is shown in one line.

Pages are Mind2Web's ``cleaned_html``: every element that can be meant has a ``backend_node_id``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from lxml import etree, html

__all__ = ["Page", "PageBroken"]

_ID: Final = "backend_node_id"
# Around a candidate: how deep below it, how many at most, and how many to each side of it.
_DEPTH, _DESCENDANTS, _SIBLINGS = 5, 50, 3
_SHOWN: Final = (
    "role", "aria_role", "type", "alt", "aria_description", "aria_label", "label", "title", "name", "placeholder",
    "value", "input_value", "input_checked", "option_selected", "text_value",
)  # fmt: skip
_VALUE_WORDS, _CHOICE_WORDS = 5, 10


class PageBroken(ValueError):
    """What should be a page is none; the message says why."""


class Page:
    """One page, as it was when something was done on it."""

    def __init__(self, text: str) -> None:
        try:
            root = html.fromstring(text, parser=html.HTMLParser(encoding="utf-8", recover=True))
        except (etree.ParserError, etree.XMLSyntaxError, ValueError) as error:
            raise PageBroken(f"cleaned_html is no HTML: {error}") from None
        self._root: Any = root
        self._by_id: dict[str, Any] = {
            element.get(_ID): element for element in root.iter(etree.Element) if element.get(_ID)
        }
        if not self._by_id:
            raise PageBroken(f"cleaned_html has no element with {_ID}")

    def has(self, node: str) -> bool:
        """Tell whether there is such an element."""
        return node in self._by_id

    def in_order(self, nodes: Collection[str]) -> list[str]:
        """Return elements in the order in which they stand on the page."""
        wanted = set(nodes)
        return [node for element in self._root.iter(etree.Element) if (node := element.get(_ID)) in wanted]

    def words_of(self, node: str) -> list[str]:
        """Return what an element says, in lower case: its attributes and all text in it."""
        element = self._by_id[node]
        said = [element.tag, *_attributes(element), *element.itertext()]
        return " ".join(said).lower().split()

    def around(self, nodes: Sequence[str]) -> str:
        """Return the page with nothing but what is around some elements; those have their place as ``id``."""
        kept = set()
        for node in nodes:
            kept |= _neighbourhood(self._by_id[node])
        return _printed(self._root, {node: place for place, node in enumerate(nodes)}, kept)

    def choice(self, node: str, place: int) -> str:
        """Return the first words of an element, as a choice shows them."""
        element = self._by_id[node]
        words = _printed(element, {node: place}, set(element.iter(etree.Element))).split()
        return " ".join(words[:_CHOICE_WORDS])


def _neighbourhood(element: Any) -> set[Any]:
    kept = {element, *element.iterancestors()}
    below = [one for one in element.iterdescendants(etree.Element) if _depth(one, element) <= _DEPTH]
    kept |= set(below[:_DESCENDANTS])
    parent = element.getparent()
    if parent is not None:
        siblings = [one for one in parent if isinstance(one.tag, str)]
        at = siblings.index(element)
        kept |= set(siblings[max(0, at - _SIBLINGS) : at + _SIBLINGS + 1])
    return kept


def _depth(element: Any, top: Any) -> int:
    depth = 0
    while element is not top:
        element, depth = element.getparent(), depth + 1
    return depth


def _printed(element: Any, places: dict[str, int], kept: set[Any]) -> str:
    place = places.get(element.get(_ID))
    name = [element.tag, *([] if place is None else [f"id={place}"]), *_attributes(element)]
    inner = [_text(element.text)]
    for child in element:
        if child in kept:
            inner.append(_printed(child, places, kept))
        inner.append(_text(child.tail))
    said = " ".join(part for part in inner if part)
    # What says nothing and was not asked for only takes room.
    if place is None and not said and len(name) == 1:
        return ""
    return f"<{' '.join(name)}> {said} </{element.tag}>" if said else f"<{' '.join(name)} />"


def _attributes(element: Any) -> list[str]:
    found = []
    for name in _SHOWN:
        words = (element.get(name) or "").lower().split()[:_VALUE_WORDS]
        value = " ".join(words)
        if value and value not in found:
            found.append(value)
    return found


def _text(text: str | None) -> str:
    return " ".join((text or "").split())
