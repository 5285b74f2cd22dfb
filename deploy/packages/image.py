#!/usr/bin/python3
"""An image for containers, in the layout of OCI, as a tar: image.py ARCHITECTURE VERSION PROGRAM TAR

It has one file, the static program: nothing to update beside it, no shell. No daemon and no root is needed to make it.
`podman load -i TAR`, `docker load -i TAR` and `skopeo copy oci-archive:TAR ...` take it."""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

architecture, version, program, to = sys.argv[1:]
architecture = {"x86_64": "amd64", "aarch64": "arm64"}[architecture]
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


def entry(tar, name, data=None, mode=0o644):
    info = tarfile.TarInfo(name)
    info.mtime, info.mode = epoch, mode
    if data is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    else:
        info.size = len(data)
    tar.addfile(info, None if data is None else io.BytesIO(data))


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data, mode in files:
            entry(tar, name, data, mode)
    return out.getvalue()


blobs = []


def blob(kind, data):
    digest = hashlib.sha256(data).hexdigest()
    blobs.append((f"blobs/sha256/{digest}", data, 0o644))
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}


layer = archive([("usr", None, 0), ("usr/bin", None, 0), ("usr/bin/nfscope", open(program, "rb").read(), 0o755),
                 ("etc", None, 0), ("etc/nfscope", None, 0), ("run", None, 0)])
packed = gzip.compress(layer, 9, mtime=0)
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
layer_at = blob("layer.v1.tar+gzip", packed)
config_at = blob("config.v1+json", json.dumps(config).encode())
manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config_at, "layers": [layer_at]}
manifest_at = blob("manifest.v1+json", json.dumps(manifest).encode())
manifest_at["annotations"] = {"io.containerd.image.name": f"localhost/nfscope:{version}", "org.opencontainers.image.ref.name": version}
manifest_at["platform"] = {"architecture": architecture, "os": "linux"}
index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest_at]}
# What `docker load` reads where it does not know the layout.
docker = [{"Config": config_at["digest"].replace("sha256:", "blobs/sha256/"), "RepoTags": [f"localhost/nfscope:{version}"],
           "Layers": [layer_at["digest"].replace("sha256:", "blobs/sha256/")]}]
with open(to, "wb") as file:
    file.write(archive([
        ("oci-layout", b'{"imageLayoutVersion":"1.0.0"}', 0o644), ("index.json", json.dumps(index).encode(), 0o644),
        ("manifest.json", json.dumps(docker).encode(), 0o644), ("blobs", None, 0), ("blobs/sha256", None, 0), *blobs,
    ]))
