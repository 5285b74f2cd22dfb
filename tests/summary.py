#!/usr/bin/env python3
"""What a run of the tests came to, from nextest's JUnit report: the slowest tests, the failed ones with what they said, and counts.

    tests/summary.py JUNIT CPU_SECONDS      (a line `<test> <seconds>` for each machine that a test booted)

Prints the summary; the last line is `<passed> <failed> <not run>` for tests/run.sh.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

SLOWEST = 10
# Of what a failed test said, from its panic on: so many lines at the beginning, and at the end.
FIRST, LAST = 3, 12


def cases(path):
    """Each test of the report: name, seconds, whether it failed, whether it ran, what it said."""
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            failed = case.find("failure") is not None or case.find("error") is not None
            said = "\n".join(case.findtext(tag) or "" for tag in ("system-out", "system-err"))
            yield case.get("name"), float(case.get("time") or 0), failed, case.find("skipped") is None, said


def cpu_seconds(path):
    """CPU seconds of the machines of each test."""
    seconds = {}
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                test, cpu = line.split()
                seconds[test] = seconds.get(test, 0.0) + float(cpu)
    except FileNotFoundError:
        pass
    return seconds


def reason(said):
    """What a failed test said, without backtraces."""
    lines, traced = [], False
    for line in said.splitlines():
        if re.match(r"\s*[Ss]tack backtrace:$", line):
            traced = True
        elif traced and not re.match(r" +(\d+: |at )", line):
            traced = False
        if not traced and line.strip() and not line.startswith("note: run with"):
            lines.append(line[:400])
    panic = next((i for i, line in enumerate(lines) if " panicked at " in line), 0)
    lines = lines[panic:]
    if len(lines) > FIRST + LAST:
        lines[FIRST:-LAST] = ["..."]
    return lines


def main():
    tests = list(cases(sys.argv[1]))
    cpu = cpu_seconds(sys.argv[2])
    ran = [test for test in tests if test[3]]
    print("The slowest (seconds, and CPU seconds of its machines):")
    for name, seconds, *_ in sorted(ran, key=lambda test: -test[1])[:SLOWEST]:
        print(f"  {seconds:7.1f} {cpu.get(name, 0):7.1f}  {name}")
    failed = [test for test in ran if test[2]]
    if failed:
        print("Failed tests:")
    for name, _, _, _, said in failed:
        print(f"  {name}:")
        for line in reason(said):
            print(f"      {line}")
        for kept in sorted(set(re.findall(r"logs are kept in \S+", said))):
            print(f"      {kept}")
    print(len(ran) - len(failed), len(failed), len(tests) - len(ran))


main()
