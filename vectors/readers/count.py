"""Reads every codec vector and counts them by result: python3 count.py [VECTORS]"""
import json, sys
from collections import Counter
from pathlib import Path

def expand(parts):
    """Bytes from hex, or from a list of hex and repetitions."""
    parts = [parts] if isinstance(parts, str) else parts
    texts = (part if isinstance(part, str) else part["bytes"] * part["repeat"] for part in parts)
    return b"".join(map(bytes.fromhex, texts))

root = Path(sys.argv[1] if len(sys.argv) > 1 else "vectors")
results = {rule["id"]: rule["result"] for rule in json.loads((root / "rules.json").read_text())}
cases, size = Counter(), Counter()
for path in sorted(root.glob("codec/*.json")):
    file = json.loads(path.read_text())
    for case in file["cases"]:
        lowest, _, highest = case["versions"].partition("-")
        for version in range(int(lowest), int(highest or lowest) + 1):
            whole = expand(case.get("bytes", {}).get(str(version), ""))
            # Some cases are prefixes of their bytes: "0-12,14" are their lengths.
            ends = [len(whole)]
            if str(version) in case.get("cuts", {}):
                ranges = (part.partition("-") for part in case["cuts"][str(version)].split(","))
                ends = [end for low, _, high in ranges for end in range(int(low), int(high or low) + 1)]
            for end in ends:
                # To test a codec: file["message"], version and case["part"] say what whole[:end] is, case["value"] is due.
                cases[results[case["rule"]]] += 1
                size[results[case["rule"]]] += end
for result in sorted(cases):
    print(f"{result}: {cases[result]} cases, {size[result]} bytes")
