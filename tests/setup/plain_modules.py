#!/usr/bin/env python3
"""Modules of a kernel of the lab as an emulated machine loads them fastest.

    plain_modules.py <directory of the modules>

They lose their compression, their signature, and the names that the formats of their trace events have in the place of numbers.
Each takes an emulated CPU longer than the rest of loading the module: for each of those names the kernel looks through all of its
events (trace_event_update_all in kernel/trace/trace_events.c). Only programs that read tracefs's files `format` see the names.
Code, symbols and types stay as they are, and so do modules that no machine loads.
"""

import lzma
import os
import struct
import sys

# Directories of a kernel's modules that a machine loads. Most of the others are drivers of hardware that it does not have.
PARTS = ("arch", "block", "crypto", "drivers/block", "drivers/infiniband", "drivers/md", "drivers/net", "drivers/virtio", "fs",
         "lib", "net", "security")
# include/linux/module_signature.h: a signed module ends with this text, behind a structure that ends with the signature's length.
MAGIC = b"~Module signature appended~\n"
STRUCTURE = 12
# The section of those names, and a name of the same length that the kernel does not look for.
NAMES, HIDDEN = b"_ftrace_eval_map\0", b"_ftrace_eval_off\0"


def unsigned(module):
    """The module without its signature."""
    if not module.endswith(MAGIC):
        return module
    end = len(module) - len(MAGIC)
    (length,) = struct.unpack(">I", module[end - 4:end])
    return module[:end - STRUCTURE - length]


def make_plain(path):
    """Writes the plain module beside the file and takes the file's place."""
    with open(path, "rb") as file:
        module = file.read()
    name = path
    if path.endswith(".xz"):
        module, name = lzma.decompress(module), path[:-len(".xz")]
    module = unsigned(module).replace(NAMES, HIDDEN)
    with open(name + ".new", "wb") as file:
        file.write(module)
    os.rename(name + ".new", name)
    if name != path:
        os.remove(path)


def main():
    """All modules below the parts."""
    [root] = sys.argv[1:]
    for part in PARTS:
        for directory, _, names in os.walk(os.path.join(root, "kernel", part)):
            for name in names:
                if name.endswith((".ko", ".ko.xz")):
                    make_plain(os.path.join(directory, name))


if __name__ == "__main__":
    main()
