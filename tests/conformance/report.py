"""Prints what suites made of Krafla, from their JUnit reports.

usage: report.py KNOWN.tsv REPORT.xml...

KNOWN.tsv lists the failures that are explained: class, regular expression for the spec's full name, reason. The table is
one line per area. Exits with 1 if a spec failed that is not listed, or if a report is missing or empty.
"""

import collections
import os
import re
import sys
import xml.etree.ElementTree as xml


def read_known(path):
    known = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                kind, pattern, reason = line.rstrip("\n").split("\t")
                known.append((kind, re.compile(pattern), reason))
    return known


def area_of(suite, name):
    """The area of a spec: the outermost container of Kubernetes' specs, and the suite itself elsewhere."""
    if not suite.startswith("kubernetes"):
        return suite.removesuffix("-focus").replace("-", ": ", 1)
    name = re.sub(r"^\[It\] ", "", name)
    sig = re.match(r"\[(sig-[a-z-]+)\] ", name)
    if not sig:
        return "kubernetes"
    words = name[sig.end():]
    # The container's text ends where a spec's sentence or a label starts; ginkgo joins them by spaces.
    container = re.split(r" (?=should|must|when |\[|will|validates|can |getting|lists?\b|works?\b)", words)[0]
    return f"{sig.group(1)}: {container[:60]}"


def main():
    known = read_known(sys.argv[1])
    areas = collections.defaultdict(lambda: [0, 0])
    failures, faults = [], 0
    for path in sys.argv[2:]:
        suite = os.path.basename(path).removesuffix(".xml")
        if not os.path.exists(path):
            print(f"{path} is missing: the suite did not run")
            faults += 1
            continue
        ran = 0
        for case in xml.parse(path).iter("testcase"):
            status, name = case.get("status"), case.get("name")
            if status in ("skipped", "pending"):
                continue
            if not name.startswith("[It]"):
                if status != "passed":
                    failures.append((suite, name, case))
                continue
            ran += 1
            area = areas[area_of(suite, name)]
            area[1] += 1
            if status == "passed":
                area[0] += 1
            else:
                failures.append((suite, name, case))
        if ran == 0:
            print(f"{path}: no spec ran")
            faults += 1
    print("| area | passed / ran |\n|---|---|")
    for name, (passed, ran) in sorted(areas.items()):
        print(f"| {name} | {passed}/{ran} |")
    for sig in sorted({name.split(": ")[0] for name in areas}):
        of_sig = [counts for name, counts in areas.items() if name.split(": ")[0] == sig]
        print(f"| **{sig}** | {sum(c[0] for c in of_sig)}/{sum(c[1] for c in of_sig)} |")
    print()
    for suite, name, case in sorted(failures, key=lambda failure: failure[:2]):
        full = re.sub(r"^\[It\] ", "", name)
        for kind, pattern, reason in known:
            if pattern.search(f"{suite}: {full}"):
                print(f"known: {kind}: {full}: {reason}")
                break
        else:
            faults += 1
            failure = case.find("failure")
            text = (failure.get("message") or failure.text or "") if failure is not None else case.get("status")
            print(f"FAILED: {suite}: {full}\n    {' '.join(text.split())[:400]}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
