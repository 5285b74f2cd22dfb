#!/usr/bin/env python3
"""Makes the USDT probes of a running program known to DTrace 2.0.7 of Debian, as its daemon dtprobed would.

usage: publish.py PROGRAM PID

The daemon needs CUSE, which many kernels lack. The program must be linked without PIE, so that its probes are at the addresses of
the file. `dtrace -G` wrote them into the section .note.usdt; the files below /run/dtrace are what dtrace(8) reads of a process
(format 3, private to that release)."""
import os
import struct
import subprocess
import sys

RUN = "/run/dtrace"
FORMAT = 3
# Kinds of records in such a file.
PROVIDER, PROBE, SITE, NATIVE_ARGS, TRANSLATED_ARGS, ARG_MAP = 0, 1, 2, 5, 6, 7


def section(elf, name):
    """The bytes of a section."""
    for line in subprocess.check_output(["readelf", "-SW", elf], text=True).splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == name:
            start, size = int(words[4], 16), int(words[5], 16)
            with open(elf, "rb") as file:
                file.seek(start)
                return file.read(size)
    sys.exit(f"{elf} has no section {name}")


def string(data, at):
    """A string that ends with a zero, and where the next thing begins."""
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def aligned(n):
    return (n + 3) & ~3


def notes(data):
    """Name and description of each note."""
    at = 0
    while at < len(data):
        name_size, size, _ = struct.unpack_from("<III", data, at)
        name = data[at + 12 : at + 12 + name_size].rstrip(b"\0").decode()
        start = at + 12 + aligned(name_size)
        yield name, data[start : start + size]
        at = start + aligned(size)


def read_site(data):
    """One place of a probe in the text: provider, probe, address, address of the function, places of its arguments."""
    address, function = struct.unpack_from("<QQ", data)
    provider, at = string(data, 16)
    probe, at = string(data, at)
    arguments = string(data, at + 1)[0] if data[at] else ""
    return provider, probe.replace("__", "-"), address, function, arguments


def read_provider(data):
    """Types of the arguments of a provider's probes: native ones, translated ones, and which of the former make the latter."""
    provider, at = string(data, 0)
    at = aligned(at) + 20
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    probes = {}
    for _ in range(count):
        probe, at = string(data, at)
        native, translated, origin = [], [], []
        left, at = data[at], at + 1
        for _ in range(left):
            kind, at = string(data, at)
            native.append(kind)
        left, at = data[at], at + 1
        for _ in range(left):
            kind, at = string(data, at)
            translated.append(kind)
            origin.append(data[at])
            at += 1
        at = aligned(at)
        probes[probe] = native, translated, origin
    return provider, probes


def record(kind, content):
    return struct.pack("<QQ", 16 + len(content), kind) + content


def strings(*all_of_them):
    return b"".join(s.encode() + b"\0" for s in all_of_them)


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def main(elf, pid):
    sites, providers = [], {}
    for name, data in notes(section(elf, ".note.usdt")):
        if name == "usdt":
            sites.append(read_site(data))
        elif name == "prov":
            provider, probes = read_provider(data)
            providers.setdefault(provider, {}).update(probes)
    symbols = {}
    for line in subprocess.check_output(["nm", elf], text=True).splitlines():
        words = line.split()
        if len(words) == 3:
            symbols[int(words[0], 16)] = words[2]
    status = os.stat(elf)
    mapping = f"{status.st_dev}-{status.st_ino}"
    process = f"{RUN}/stash/dof-pid/{pid}"
    for path in (f"{process}/{mapping}/raw", f"{process}/{mapping}/dh", f"{RUN}/stash/dof/{mapping}"):
        write(path, b"")
    write(f"{process}/next-gen", b"\0")
    write(f"{process}/exec-mapping", mapping.encode())
    os.symlink(mapping, f"{process}/0")
    write(f"{process}/{mapping}/parsed/version", struct.pack("<Q", FORMAT))
    module = os.path.basename(elf)
    for provider, probe, function in {(s[0], s[1], s[3]) for s in sites}:
        native, translated, origin = providers[provider][probe]
        here = [s for s in sites if (s[0], s[1], s[3]) == (provider, probe, function)]
        name = symbols.get(function, f"f{function:x}")
        content = struct.pack("<Q", FORMAT)
        content += record(PROVIDER, struct.pack("<Q", len(providers[provider])) + strings(provider))
        counts = struct.pack("<QQQ", len(here), len(native), len(translated))
        content += record(PROBE, counts + strings(module, name, probe))
        if native:
            content += record(NATIVE_ARGS, strings(*native))
        if translated:
            content += record(TRANSLATED_ARGS, strings(*translated)) + record(ARG_MAP, bytes(origin))
        for _, _, address, _, arguments in here:
            content += record(SITE, struct.pack("<QI", address, 0) + strings(arguments))
        write(f"{process}/{mapping}/parsed/{provider}:{module}:{name}:{probe}", content)
        write(f"{RUN}/probes/{pid}/{provider}{pid}/{module}/{name}/{probe}", content)


main(sys.argv[1], int(sys.argv[2]))
