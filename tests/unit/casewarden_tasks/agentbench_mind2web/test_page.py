"""Pages: what is kept around an element, and how it is printed."""

from __future__ import annotations

import pytest

from casewarden_tasks.agentbench_mind2web.page import Page, PageBroken

PAGE = """
<html><body>
  <nav><a backend_node_id="1" aria_label="Home of the shop">Home</a><b>far</b></nav>
  <form>
    <p>one</p><p>two</p><p>three</p><p>four</p>
    <label>From</label><input backend_node_id="2" type="text" placeholder="From" value=""/>
    <select backend_node_id="3" name="class">
      <option>First</option><option option_selected="true">Second</option></select>
  </form>
</body></html>
"""


def test_an_element_is_shown_with_what_it_is_in_and_three_siblings_to_each_side() -> None:
    assert Page(PAGE).around(["2"]) == (
        "<html> <body> <form> <p> three </p> <p> four </p> <label> From </label> <input id=0 text from /> "
        "<select class> </select> </form> </body> </html>"
    ).replace("<select class> </select>", "<select class />")


def test_several_have_their_places_as_ids_in_the_order_that_is_given() -> None:
    page = Page(PAGE)
    assert page.in_order(["3", "1", "nowhere"]) == ["1", "3"]
    shown = page.around(["1", "3"])
    assert "<a id=0 home of the shop> Home </a>" in shown
    assert "<select id=1 class> <option> First </option> <option true> Second </option> </select>" in shown


def test_a_choice_is_ten_words_at_most() -> None:
    text = " ".join(f"w{number}" for number in range(20))
    page = Page(f'<div><p backend_node_id="7">{text}</p></div>')
    assert page.choice("7", 3) == "<p id=3> w0 w1 w2 w3 w4 w5 w6 w7"


def test_what_is_deep_below_or_too_much_is_left_out() -> None:
    deep = '<div backend_node_id="1">' + "<div>" * 6 + "deep" + "</div>" * 6 + "</div>"
    assert "deep" not in Page(f"<body>{deep}</body>").around(["1"])
    wide = '<ul backend_node_id="1">' + "".join(f"<li>n{number}</li>" for number in range(60)) + "</ul>"
    shown = Page(f"<body>{wide}</body>").around(["1"])
    assert "n49" in shown
    assert "n50" not in shown


@pytest.mark.parametrize("text", ["", "   ", "<p>nothing that can be meant</p>"])
def test_what_is_no_page_is_refused(text: str) -> None:
    with pytest.raises(PageBroken):
        Page(text)
