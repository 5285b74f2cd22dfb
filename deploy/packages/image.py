#!/usr/bin/python3
"""An image for containers, in the layout of OCI, as a tar: image.py ARCHITECTURE VERSION PROGRAM TAR

It has one file, the static program: nothing to update beside it, no shell.
`podman load -i TAR`, `docker load -i TAR` and `skopeo copy oci-archive:TAR ...` take it."""

import hashlib
import json
import os
import sys
import time

from oci import Layout, archive, packed

architecture, version, program, to = sys.argv[1:]
architecture = {"x86_64": "amd64", "aarch64": "arm64"}[architecture]
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))

with open(program, "rb") as file:
    layer = archive([("usr", None, 0), ("usr/bin", None, 0), ("usr/bin/nfscope", file.read(), 0o755),
                     ("etc", None, 0), ("etc/nfscope", None, 0), ("run", None, 0)], epoch)
config = {
    "created": created, "architecture": architecture, "os": "linux",
    "config": {
        "Entrypoint": ["/usr/bin/nfscope"], "Cmd": ["agent"], "ExposedPorts": {"9943/tcp": {}},
        "Labels": {"org.opencontainers.image.title": "nfscope", "org.opencontainers.image.version": version,
                   "org.opencontainers.image.licenses": "Apache-2.0 AND GPL-2.0-only"},
    },
    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    "history": [{"created": created, "created_by": "deploy/packages/image.py"}],
}
layout = Layout()
layer_at = layout.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed(layer))
config_at = layout.blob("application/vnd.oci.image.config.v1+json", json.dumps(config).encode())
name = f"localhost/nfscope:{version}"
# What `docker load` reads where it does not know the layout.
docker = [{"Config": config_at["digest"].replace("sha256:", "blobs/sha256/"), "RepoTags": [name],
           "Layers": [layer_at["digest"].replace("sha256:", "blobs/sha256/")]}]
layout.write(to, epoch, config_at, [layer_at],
             {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": version},
             others=[("manifest.json", json.dumps(docker).encode(), 0o644)],
             platform={"architecture": architecture, "os": "linux"})
