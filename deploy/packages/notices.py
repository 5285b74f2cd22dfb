#!/usr/bin/python3
"""Licences of the libraries in the program: notices.py TARGET prints a text, notices.py TARGET --sbom a CycloneDX list of them.

The libraries are those that cargo links for TARGET: neither what only builds the program nor what only tests it."""

import json
import os
import re
import subprocess
import sys

target, sbom = sys.argv[1], "--sbom" in sys.argv[2:]
metadata = json.loads(
    subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target,
         "--manifest-path", "agent/nfscope/Cargo.toml", "--features", "static"],
        check=True, stdout=subprocess.PIPE,
    ).stdout
)
packages = {p["id"]: p for p in metadata["packages"]}
nodes = {n["id"]: n for n in metadata["resolve"]["nodes"]}
[program] = [p["id"] for p in metadata["packages"] if p["name"] == "nfscope" and p["source"] is None]


def linked(node):
    """What it is linked with: dependencies that are neither for builds nor for tests, and no macros."""
    for dep in nodes[node]["deps"]:
        kinds = {k["kind"] for k in dep["dep_kinds"]}
        macro = any("proc-macro" in t["kind"] for t in packages[dep["pkg"]]["targets"])
        if None in kinds and not macro:
            yield dep["pkg"]


seen, todo = set(), [program]
while todo:
    node = todo.pop()
    if node not in seen:
        seen.add(node)
        todo += linked(node)
crates = sorted((packages[i] for i in seen), key=lambda p: (p["name"], p["version"]))
foreign = [p for p in crates if p["source"]]
checksums = {}
for entry in open("Cargo.lock").read().split("[[package]]"):
    fields = dict(re.findall(r'^(\w+) = "(.*)"$', entry, re.M))
    if "checksum" in fields:
        checksums[fields["name"], fields["version"]] = fields["checksum"]
# C that crates bring and that is linked in: name, version, licence.
bundled = {
    "libbpf-sys": [("libbpf", "LGPL-2.1-only OR BSD-2-Clause"), ("libelf (elfutils)", "GPL-2.0-or-later OR LGPL-3.0-or-later"), ("zlib", "Zlib")],
    "libsqlite3-sys": [("SQLite", "blessing")],
    "tikv-jemalloc-sys": [("jemalloc", "BSD-2-Clause")],
}


def reference(p):
    return f"pkg:cargo/{p['name']}@{p['version']}"


if sbom:
    def component(p):
        out = {"type": "library", "bom-ref": reference(p), "name": p["name"], "version": p["version"], "purl": reference(p)}
        if p["license"]:
            out["licenses"] = [{"expression": p["license"].replace("/", " OR ")}]
        if (p["name"], p["version"]) in checksums:
            out["hashes"] = [{"alg": "SHA-256", "content": checksums[p["name"], p["version"]]}]
        if p["repository"]:
            out["externalReferences"] = [{"type": "vcs", "url": p["repository"]}]
        if p["name"] in bundled:
            out["components"] = [
                {"type": "library", "bom-ref": f"{reference(p)}#{name}", "name": name, "licenses": [{"expression": licence}]}
                for name, licence in bundled[p["name"]]
            ]
        return out

    main = packages[program]
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": reference(main), "name": main["name"], "version": main["version"],
                                   "licenses": [{"expression": "Apache-2.0 AND GPL-2.0-only"}]}},
        "components": [component(p) for p in crates if p["id"] != program],
        "dependencies": [{"ref": reference(p), "dependsOn": sorted(reference(packages[d]) for d in linked(p["id"]))} for p in crates],
    }, indent=1))
    sys.exit()

print("Libraries in the program nfscope, with their licences. Each that offers several is used under the first that is not the GPL.\n")
texts = {}
for p in foreign:
    print(f"{p['name']} {p['version']}: {p['license'] or 'see below'}  {p['repository'] or ''}")
    for name, licence in bundled.get(p["name"], []):
        print(f"  with {name}: {licence}")
    root = os.path.dirname(p["manifest_path"])
    for folder, _, files in os.walk(root):
        for file in files:
            if re.match(r"(?i)(licen[cs]e|copying|notice|unlicense)", file) and os.path.relpath(folder, root).count("/") < 2:
                text = open(os.path.join(folder, file), errors="replace").read().strip()
                texts.setdefault(text, []).append(f"{p['name']} {p['version']}")
for text, names in sorted(texts.items(), key=lambda item: item[1]):
    print("\n" + "=" * 100 + "\n" + ", ".join(sorted(set(names))) + "\n" + "=" * 100 + "\n\n" + text)
