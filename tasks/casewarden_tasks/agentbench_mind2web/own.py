"""The records that come with the pack: four made-up sites and twenty tasks, in the form of Mind2Web's own.

A site has a form and what it finds. Every action of a task has the page as it was then: what was filled in before is in
it, and once the form was sent it is the page of results.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

__all__ = ["own_tasks"]


class _Field(NamedTuple):
    """``options`` make it a choice; without, it is a text."""

    label: str
    options: tuple[str, ...] = ()


class _Site(NamedTuple):
    name: str
    kind: str
    links: tuple[str, ...]
    fields: tuple[_Field, ...]
    send: str
    offer: str
    found: tuple[str, ...]
    small: tuple[str, ...]


class _Task(NamedTuple):
    """What is wanted; ``filled`` are fields and values in their order, ``taken`` is which of what is found, if any."""

    site: str
    text: str
    filled: tuple[tuple[str, str], ...]
    taken: str = ""


_SITES: Final = (
    _Site(
        "vellrail", "Travel", ("Timetables", "Fares and cards", "Stations", "Lost property", "Sign in"),
        (_Field("From station"), _Field("To station"), _Field("Day of travel"),
         _Field("Class", ("First class", "Second class", "Couchette")),
         _Field("Travellers", ("1 adult", "2 adults", "3 adults", "1 adult and 1 child")), _Field("Discount code")),
        "Find trains", "Book train",
        ("06:10 regional, 2 changes", "07:32 direct", "08:40 express, 1 change", "09:05 regional, 1 change",
         "11:15 direct", "13:50 night coach", "16:20 express, 1 change"),
        ("Conditions of carriage", "Imprint", "Press", "Careers"),
    ),
    _Site(
        "harbour-library", "Library", ("Catalogue", "My loans", "Branches", "Events", "Fees"),
        (_Field("Title or author"), _Field("Branch", ("Harbour", "Market", "Hillside", "Mobile library")),
         _Field("Medium", ("Printed book", "Large print", "Audiobook", "Film", "Sheet music")),
         _Field("Language", ("English", "Danish", "Polish", "Turkish")), _Field("Published after")),
        "Search catalogue", "Reserve copy",
        ("printed book: The Salt Path of Holm", "audiobook: The Salt Path of Holm", "large print: Winter on the Sound",
         "printed book: Winter on the Sound", "film: Bridges and Bridge Builders",
         "sheet music: Songs of the Night School"),
        ("Privacy", "Donate books", "Newsletter", "Volunteer"),
    ),
    _Site(
        "greenbasket", "Shopping", ("Offers", "Recipes", "Delivery areas", "Gift cards", "Basket"),
        (_Field("What are you looking for"), _Field("Sort by", ("Price, lowest first", "Best rated", "Newest")),
         _Field("Diet", ("Vegetarian", "Vegan", "Gluten free", "Organic only")),
         _Field("Deliver on", ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")), _Field("Postcode")),
        "Show products", "Add to basket",
        ("Rye bread, sliced, 500 g", "Rye bread, whole, 1 kg", "Oat drink, unsweetened, 1 l", "Oat drink, vanilla, 1 l",
         "Red lentils, 1 kg", "Green lentils, 500 g", "Orchard apples, bag of 6"),
        ("Complaints", "Suppliers", "Imprint", "App"),
    ),
    _Site(
        "marrow-clinic", "Health", ("Doctors", "Departments", "Test results", "Visiting hours", "Emergency"),
        (_Field("Department", ("Eye clinic", "Dentistry", "Skin clinic", "Physiotherapy", "Vaccination")),
         _Field("Reason for visit", ("First appointment", "Check-up", "Follow-up", "Prescription")),
         _Field("Date of birth"), _Field("Insurance", ("Public", "Private", "Self-payer")), _Field("Preferred week")),
        "Look for appointments", "Request appointment",
        ("Monday 08:15, Dr Ekman", "Monday 14:30, Dr Castel", "Wednesday 10:00, Dr Dahl", "Wednesday 17:45, Dr Ekman",
         "Thursday 09:20, Dr Brandt", "Friday 11:10, Dr Castel"),
        ("Patients' rights", "Parking", "Press", "Imprint"),
    ),
)  # fmt: skip
_TASKS: Final = (
    _Task("vellrail", "Look for trains from Lunde to Brask", (("From station", "Lunde"), ("To station", "Brask"))),
    _Task("harbour-library", "Find large print books by Frisk",
          (("Title or author", "Frisk"), ("Medium", "Large print"))),
    _Task("greenbasket", "Look for rye bread and see the best rated first",
          (("What are you looking for", "rye bread"), ("Sort by", "Best rated"))),
    _Task("marrow-clinic", "See the appointments for a first appointment at the eye clinic",
          (("Department", "Eye clinic"), ("Reason for visit", "First appointment"))),
    _Task("vellrail", "Book the 07:32 direct train to Corvale", (("To station", "Corvale"),), "07:32 direct"),
    _Task("harbour-library", "Reserve the audiobook of The Salt Path of Holm",
          (("Title or author", "The Salt Path of Holm"),), "audiobook: The Salt Path of Holm"),
    _Task("greenbasket", "Put a bag of orchard apples into the basket",
          (("What are you looking for", "apples"),), "Orchard apples, bag of 6"),
    _Task("marrow-clinic", "Request the Wednesday appointment with Dr Dahl in the skin clinic",
          (("Department", "Skin clinic"),), "Wednesday 10:00, Dr Dahl"),
    _Task("vellrail", "Find a second class train from Holm to Jarle for 2 adults",
          (("From station", "Holm"), ("To station", "Jarle"), ("Class", "Second class"), ("Travellers", "2 adults"))),
    _Task("harbour-library", "Which Polish films does the branch at the market have?",
          (("Branch", "Market"), ("Medium", "Film"), ("Language", "Polish"))),
    _Task("greenbasket", "Find vegan products and have them delivered on Thursday",
          (("Diet", "Vegan"), ("Deliver on", "Thursday"))),
    _Task("marrow-clinic", "Look for a follow-up in physiotherapy as a self-payer",
          (("Department", "Physiotherapy"), ("Reason for visit", "Follow-up"), ("Insurance", "Self-payer"))),
    _Task("vellrail", "Book the express train at 16:20 from Eskil, first class",
          (("From station", "Eskil"), ("Class", "First class")), "16:20 express, 1 change"),
    _Task("harbour-library", "Reserve the large print of Winter on the Sound at the branch Hillside",
          (("Title or author", "Winter on the Sound"), ("Branch", "Hillside")), "large print: Winter on the Sound"),
    _Task("greenbasket", "Add the unsweetened oat drink, organic only, to the basket",
          (("What are you looking for", "oat drink"), ("Diet", "Organic only")), "Oat drink, unsweetened, 1 l"),
    _Task("marrow-clinic", "Request a check-up in dentistry on Monday afternoon",
          (("Department", "Dentistry"), ("Reason for visit", "Check-up")), "Monday 14:30, Dr Castel"),
    _Task("vellrail", "For the 4th of May find a couchette from Aldmoor to Dunmere",
          (("From station", "Aldmoor"), ("To station", "Dunmere"), ("Day of travel", "4 May"), ("Class", "Couchette"))),
    _Task("harbour-library", "Look for Turkish sheet music published after 1990",
          (("Medium", "Sheet music"), ("Language", "Turkish"), ("Published after", "1990"))),
    _Task("greenbasket", "Have a kilogram of red lentils, lowest price first, delivered on Friday",
          (("What are you looking for", "red lentils"), ("Sort by", "Price, lowest first"), ("Deliver on", "Friday")),
          "Red lentils, 1 kg"),
    _Task("marrow-clinic", "Request the vaccination on Thursday morning with a private insurance",
          (("Department", "Vaccination"), ("Insurance", "Private")), "Thursday 09:20, Dr Brandt"),
)  # fmt: skip


@lru_cache(maxsize=1)
def own_tasks() -> tuple[dict[str, Any], ...]:
    """Return the tasks as records of Mind2Web."""
    sites = {site.name: site for site in _SITES}
    return tuple(_record(number, sites[task.site], task) for number, task in enumerate(_TASKS))


class _Step(NamedTuple):
    label: str
    op: str
    value: str
    text: str


def _record(number: int, site: _Site, task: _Task) -> dict[str, Any]:
    steps = list(_steps(site, task))
    return {
        "annotation_id": f"own-{number:02d}",
        "website": site.name,
        "domain": site.kind,
        "confirmed_task": task.text,
        "action_reprs": [step.text for step in steps],
        "actions": [_action(number, place, site, task, steps) for place in range(len(steps))],
    }


def _steps(site: _Site, task: _Task) -> Iterator[_Step]:
    options = {field.label: field.options for field in site.fields}
    for label, value in task.filled:
        op, role = ("SELECT", "combobox") if options[label] else ("TYPE", "textbox")
        yield _Step(label, op, value, f"[{role}]  {label} -> {op}: {value}")
    yield _Step(site.send, "CLICK", "", f"[button]  {site.send} -> CLICK")
    if task.taken:
        yield _Step(task.taken, "CLICK", "", f"[button]  {site.offer} ({task.taken}) -> CLICK")


def _action(number: int, place: int, site: _Site, task: _Task, steps: Sequence[_Step]) -> dict[str, Any]:
    step = steps[place]
    page = _Builder()
    filled = {one.label: one.value for one in steps[:place]}
    page.whole(site, filled, results=site.send in filled)
    (right,) = [node for node, label in page.nodes.items() if label == step.label]
    return {
        "action_uid": f"{number:02d}-{place}",
        "operation": {"original_op": step.op, "op": step.op, "value": step.value},
        "cleaned_html": "".join(page.text),
        "pos_candidates": [{"backend_node_id": right}],
        "neg_candidates": [{"backend_node_id": node} for node in page.nodes if node != right],
    }


class _Builder:
    """Writes a page; ``nodes`` map the id of what can be meant to its label."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.nodes: dict[str, str] = {}

    def whole(self, site: _Site, filled: dict[str, str], *, results: bool) -> None:
        """Write the page of a site, with what was filled in so far."""
        self.text.append(f"<html><body><header><h1>{site.name}</h1><nav><ul>")
        for link in site.links:
            self.text.append(f"<li>{self._node('a', link, link)}</li>")
        self.text.append("</ul></nav></header><main>")
        if results:
            self._results(site)
        else:
            self._form(site, filled)
        self.text.append("</main><footer><p>All information without guarantee.</p>")
        self.text += [self._node("a", text, text) for text in site.small]
        self.text.append("</footer></body></html>")

    def _form(self, site: _Site, filled: dict[str, str]) -> None:
        self.text.append("<form><h2>Search</h2>")
        for field in site.fields:
            chosen = filled.get(field.label, "")
            name = html.escape(field.label)
            self.text.append(f"<div><label>{name}</label>")
            if field.options:
                inner = "".join(_option(option, option == chosen) for option in field.options)
                self.text.append(self._node("select", field.label, None, inner, f'aria_label="{name}"'))
            else:
                shown = f'input_value="{html.escape(chosen)}"' if chosen else ""
                self.text.append(self._node("input", field.label, None, "", f'type="text" aria_label="{name}" {shown}'))
            self.text.append("</div>")
        self.text.append(f"<div>{self._node('button', site.send, site.send)}</div></form>")

    def _results(self, site: _Site) -> None:
        self.text.append("<section><h2>What we found</h2><ul>")
        for found in site.found:
            button = self._node("button", found, site.offer, "", f'aria_label="{html.escape(found)}"')
            self.text.append(f"<li><div><h3>{html.escape(found)}</h3>{button}</div></li>")
        self.text.append(f"</ul>{self._node('button', 'Change search', 'Change search')}</section>")

    def _node(self, tag: str, label: str, text: str | None, inner: str = "", attributes: str = "") -> str:
        node = str(101 + 7 * len(self.nodes))
        self.nodes[node] = label
        said = html.escape(text or "") + inner
        return f'<{tag} backend_node_id="{node}" {attributes}>{said}</{tag}>'


def _option(text: str, chosen: bool) -> str:
    return f"<option{' option_selected=true' if chosen else ''}>{html.escape(text)}</option>"
