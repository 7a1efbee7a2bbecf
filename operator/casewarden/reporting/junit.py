"""A run as JUnit XML. A rejected case is a failure, one that could not be assessed an error; nothing is skipped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import UTC, datetime

from casewarden.core.usage import usage_in_words
from casewarden.reporting.run import ReportedCase, ReportedRun
from casewarden_sdk.contract import PASSED

__all__ = ["to_junit"]

_WORDS = {True: "pass", False: "fail", None: "none"}
_NOT_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def to_junit(runs: Sequence[ReportedRun]) -> bytes:
    """Return one suite for each run, one test case for each of its cases."""
    root = ET.Element("testsuites", name="casewarden")
    totals = [0, 0, 0]
    for run in runs:
        failures = sum(case.is_assessed and case.status != PASSED for case in run.cases)
        errors = sum(not case.is_assessed for case in run.cases)
        totals = [totals[0] + len(run.cases), totals[1] + failures, totals[2] + errors]
        ends = [case.ended_at for case in run.cases if case.ended_at is not None]
        suite = ET.SubElement(
            root, "testsuite", name=_xml(run.title), tests=str(len(run.cases)), failures=str(failures),
            errors=str(errors), skipped="0", time=f"{sum(case.seconds or 0.0 for case in run.cases):.3f}",
        )  # fmt: skip
        if ends:
            suite.set("timestamp", datetime.fromtimestamp(max(ends), UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        properties = ET.SubElement(suite, "properties")
        facts = {
            "task": run.task, "candidate": run.candidate, "uid": run.uid, "evidence": run.digest,
            "valid": str(run.is_valid).lower(), "score": run.score.get("score"),
            "models": None if run.usage is None else usage_in_words(run.usage),
        }  # fmt: skip
        for name, value in facts.items():
            if value is not None:
                ET.SubElement(properties, "property", name=name, value=_xml(str(value)))
        for case in run.cases:
            _case(suite, run, case)
    for name, value in zip(("tests", "failures", "errors"), totals, strict=True):
        root.set(name, str(value))
    ET.indent(root)
    text: str = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _case(suite: ET.Element, run: ReportedRun, case: ReportedCase) -> None:
    name = f"{case.key.case_id}[seed={case.key.seed}]"
    if int(run.spec.get("repeats", 1)) > 1:
        name = name.removesuffix("]") + f",repeat={case.key.repeat}]"
    found = ET.SubElement(
        suite, "testcase", classname=_xml(f"{run.task}.{case.key.case_id}"), name=_xml(name),
        time=f"{case.seconds or 0.0:.3f}",
    )  # fmt: skip
    if case.status == PASSED:
        return
    failed = sorted(key for key, check in case.checks.items() if check is False)
    said = case.error or (f"failed: {', '.join(failed)}" if failed else case.status)
    kind = "failure" if case.is_assessed else "error"
    ET.SubElement(found, kind, message=_xml(said), type=_xml(case.reason or case.status)).text = _xml(
        f"{case.status}; checks: "
        + ", ".join(f"{key} {_WORDS[check]}" for key, check in case.checks.items())
        + f"; attempts: {case.attempts}\n{case.error or ''}"
    )


def _xml(text: str) -> str:
    """Replace what no XML document may hold."""
    return _NOT_XML.sub("\ufffd", text)
