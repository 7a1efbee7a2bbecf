"""The controls that every audit has."""

from support.packs import CONTROLS

from casewarden_sdk.always import ALWAYS, with_always
from casewarden_sdk.contract import Control


def test_what_a_pack_lacks_is_added_and_its_own_stay():
    controls = with_always(CONTROLS)
    assert controls[: len(CONTROLS)] == tuple(CONTROLS)
    assert [control.kind for control in controls[len(CONTROLS) :]] == ["crash", "forger"]


def test_a_pack_with_none_gets_all_three():
    assert [control.kind for control in with_always(())] == ["null", "crash", "forger"]


def test_a_name_that_is_taken_gets_a_number():
    taken = [Control("forger", "fault", {"main.py": ""}, target="echo")]
    assert [control.name for control in with_always(taken)] == ["forger", "null-agent", "crashing-agent", "forger-2"]


def test_each_is_a_python_program_that_compiles():
    for control in ALWAYS:
        compile(control.files["main.py"], control.name, "exec")
