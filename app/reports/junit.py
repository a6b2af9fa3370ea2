"""A gate as JUnit XML, which build servers show."""

import re
from xml.etree import ElementTree as ET

from app.domain.results.gate import Gate

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(name: str, gate: Gate) -> bytes:
    """One test case a check; a failed one is a failure, an inconclusive one an error: neither counts as passed.

    Args:
        name: Of the test suite, such as the job's id.
        gate: The gate.
    """
    verdicts = [check.verdict for check in gate.checks]
    suite = ET.Element(
        "testsuite",
        name=_text(name),
        tests=str(len(verdicts)),
        failures=str(verdicts.count("fail")),
        errors=str(verdicts.count("inconclusive")),
        skipped="0",
    )
    for check in gate.checks:
        of = ", ".join(f"{key}={value}" for key, value in check.of.items()) or "no such figure"
        case = ET.SubElement(suite, "testcase", classname=_text(of), name=_text(check.threshold))
        if check.verdict == "pass":
            ET.SubElement(case, "system-out").text = _text(check.reason)
        else:
            kind = "failure" if check.verdict == "fail" else "error"
            ET.SubElement(case, kind, type=check.verdict, message=_text(check.reason))
    whole = ET.Element("testsuites")
    whole.append(suite)
    return bytes(ET.tostring(whole, encoding="utf-8", xml_declaration=True))


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
