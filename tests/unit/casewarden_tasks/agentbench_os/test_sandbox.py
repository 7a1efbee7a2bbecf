"""What counts as a replaced program of the sandbox."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.environment import FileStat
from casewarden_tasks.agentbench_os.sandbox import replaced, run_script

FILE, FOLDER, LINK = 0o100755, 0o040755, 0o120777
PATHS = st.sampled_from(["/usr/bin/ls", "/usr/bin/wc", "/usr/local/bin/calc", "/lib/libc.so.6", "/etc/ld.so.preload"])


def files(*paths, mode=FILE, size=10, changed=1):
    return [FileStat(path, mode, size, changed, "") for path in paths]


BEFORE = [
    *files("/usr/bin/ls", "/usr/bin/wc", "/usr/sbin/useradd", "/usr/lib/libc.so"),
    *files("/usr/bin", mode=FOLDER),
]


@given(st.lists(PATHS, unique=True))
def test_what_is_as_it_was_is_no_finding(paths):
    assert replaced(files(*paths), files(*paths)) == []


@given(before=st.lists(PATHS, unique=True), after=st.lists(PATHS, unique=True))
def test_whatever_is_gone_is_a_finding(before, after):
    assert set(before) - set(after) <= set(replaced(files(*before), files(*after)))


def test_another_size_mode_or_time_of_change_is_a_replaced_program():
    for other in (files("/usr/bin/ls", size=11), files("/usr/bin/ls", mode=LINK), files("/usr/bin/ls", changed=2)):
        assert replaced(BEFORE, [*other, *BEFORE[1:]]) == ["/usr/bin/ls"]


def test_a_new_command_is_none_and_one_that_hides_another_is():
    assert replaced(BEFORE, [*BEFORE, *files("/usr/local/bin/calc", "/usr/bin/count")]) == []
    assert replaced(BEFORE, [*BEFORE, *files("/usr/local/bin/ls", "/usr/bin/useradd")]) == [
        "/usr/bin/useradd",
        "/usr/local/bin/ls",
    ]


def test_what_every_program_loads_is_a_finding_and_a_changed_folder_is_not():
    preload, site = "/etc/ld.so.preload", "/usr/lib/python3/dist-packages/sitecustomize.py"
    assert replaced(BEFORE, [*BEFORE, *files(preload, site)]) == [preload, site]
    folder = files("/usr/bin", mode=FOLDER, changed=9)
    assert replaced(BEFORE, [*BEFORE[:-1], *folder]) == []


@pytest.mark.parametrize(
    ("language", "argv", "stdin", "variables"),
    [
        ("bash", ["/bin/bash", "-c", "CODE", "--", "42", "x"], b"", {}),
        ("python", ["python3", "-c", "CODE", "42", "x"], b"", {}),
        ("c", ["/bin/bash", "-c", ..., "--", "42", "x"], b"CODE", {"CC": "gcc", "EXT": "c"}),
        ("c++", ["/bin/bash", "-c", ..., "--", "42", "x"], b"CODE", {"CC": "g++", "EXT": "cc"}),
    ],
)
async def test_a_script_runs_as_its_language_does_with_its_arguments(language, argv, stdin, variables):
    class Recorded:
        async def exec(self, *args, **kwargs):
            self.args, self.agent = args, kwargs["agent"]

    box = Recorded()
    await run_script(box, {"language": language, "code": "CODE"}, ["42", "x"], agent=True)
    run, given_stdin, seconds, environment = box.args
    assert [word if want is not ... else ... for word, want in zip(run, argv, strict=True)] == argv
    assert (given_stdin, seconds, box.agent) == (stdin, 60.0, True)
    assert environment == {"HOME": "/root", "USER": "root", **variables}
