"""Asks lockd for locks of NFSv3, as a client without a monitor would (NLM version 4, X/Open XNFS chapter 14; RFC 1813, appendix II).

nlm.py SERVER FILE OWNER PROCEDURE...    each as in `nm_lock`, `nm_lock_wait`, `unlock`, `test`, `null`; prints the statuses' numbers

FILE is a path on the server, whose handle the kernel tells once a client has used the export. The port is that which rpcbind knows.
"""

import os
import socket
import struct
import sys

PROGRAM, VERSION = 100021, 4
RPCBIND = 100000, 2, 3
NUMBERS = {"null": 0, "test": 1, "unlock": 4, "nm_lock": 22, "nm_lock_wait": 22}


def opaque(content):
    return struct.pack(">I", len(content)) + content + bytes(-len(content) % 4)


class Peer:
    def __init__(self, server, port):
        self.xid = os.getpid() << 8
        self.socket = socket.create_connection((server, port))

    def call(self, program, version, procedure, arguments):
        self.xid += 1
        # AUTH_SYS as root.
        credential = struct.pack(">I", 0) + opaque(b"nlm") + struct.pack(">III", 0, 0, 0)
        call = struct.pack(">IIIIII", self.xid, 0, 2, program, version, procedure)
        call += struct.pack(">I", 1) + opaque(credential) + struct.pack(">II", 0, 0) + arguments
        self.socket.sendall(struct.pack(">I", 1 << 31 | len(call)) + call)
        length = struct.unpack(">I", self.read(4))[0] & 0x7FFFFFFF
        reply = self.read(length)
        xid, kind, accepted, _flavor, verifier, status = struct.unpack(">IIIIII", reply[:24])
        assert (xid, kind, accepted, verifier, status) == (self.xid, 1, 0, 0, 0), reply
        return reply[24:]

    def read(self, length):
        content = b""
        while len(content) < length:
            part = self.socket.recv(length - len(content))
            assert part, "the server closed the connection"
            content += part
        return content


def handle(path):
    """By the first export of a client that the kernel knows and that has the path."""
    with open("/proc/fs/nfsd/exports", encoding="latin-1") as exports:
        lines = [line.split() for line in exports if not line.startswith("#")]
    domains = [domain.split("(")[0] for export, domain, *_ in lines if path.startswith(export + "/")]
    with open("/proc/fs/nfsd/filehandle", "r+b", buffering=0) as file:
        file.write(f"{domains[0]} {path} 64\n".encode())
        return bytes.fromhex(file.read(512).decode().strip().removeprefix("\\x"))


def arguments(procedure, file, owner):
    lock = opaque(b"client") + opaque(file) + opaque(owner.encode()) + struct.pack(">IQQ", int(owner), 0, 0)
    cookie = opaque(b"cook")
    return {
        "null": b"",
        "test": cookie + struct.pack(">I", 1) + lock,
        "unlock": cookie + lock,
        # `block` and `exclusive` precede the lock; `reclaim` and the monitor's state follow it.
        "nm_lock": cookie + struct.pack(">II", 0, 1) + lock + struct.pack(">II", 0, 0),
        "nm_lock_wait": cookie + struct.pack(">II", 1, 1) + lock + struct.pack(">II", 0, 0),
    }[procedure]


def main():
    server, path, owner, *procedures = sys.argv[1:]
    file = handle(path)
    port = Peer(server, 111).call(*RPCBIND, struct.pack(">IIII", PROGRAM, VERSION, socket.IPPROTO_TCP, 0))
    lockd = Peer(server, struct.unpack(">I", port)[0])
    for procedure in procedures:
        result = lockd.call(PROGRAM, VERSION, NUMBERS[procedure], arguments(procedure, file, owner))
        print(procedure, struct.unpack(">I", result[8:12])[0] if result else "nothing", flush=True)


main()
