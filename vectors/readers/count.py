"""Counts the codec vectors and their bytes by result: python3 count.py [VECTORS]"""
import json, sys
from collections import Counter
from pathlib import Path

def numbers(ranges):  # "0-2,5" as 0, 1, 2, 5
    for low, _, high in (part.partition("-") for part in ranges.split(",")):
        yield from range(int(low), int(high or low) + 1)

def expand(repeat, bytes, base=16, **counter):  # hex, each _ of which is a digit of a number that counts up
    if "_" not in bytes:
        return bytes * repeat
    digits, first = f"0{bytes.count('_')}{'d' if base == 10 else 'x'}", counter.get("from", 0)
    return "".join(bytes.replace("_", "{}").format(*format(first + n, digits)) for n in range(repeat))

root, counts = Path(sys.argv[1] if len(sys.argv) > 1 else "vectors"), Counter()
results = {rule["id"]: rule["result"] for rule in json.loads((root / "rules.json").read_text())}
for file in (json.loads(path.read_text()) for path in root.glob("codec/*.json")):
    for case in file["cases"]:
        result = results[case["rule"]]
        for version in numbers(case["versions"]):
            parts = case.get("bytes", {}).get(str(version), "")
            parts = [parts] if isinstance(parts, str) else parts
            whole = bytes.fromhex("".join(p if isinstance(p, str) else expand(**p) for p in parts))
            for end in numbers(case.get("cuts", {}).get(str(version), str(len(whole)))):
                # To test a codec: file["message"], version and case.get("part", "body") say what whole[:end] is, case["value"] is due.
                counts.update({f"{result} cases": 1, f"{result} bytes": end})
for name, count in sorted(counts.items()):
    print(f"{name}: {count}")
