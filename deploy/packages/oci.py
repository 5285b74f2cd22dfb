"""A tar in the layout of OCI, for an image and for a chart: no daemon, no registry and no root is needed to make it."""

import gzip
import hashlib
import io
import json
import tarfile


def archive(entries, epoch):
    """Bytes of a tar with (name, content, mode) of each file; a folder has no content. Times are `epoch`, owners are root."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content, mode in entries:
            info = tarfile.TarInfo(name)
            info.mtime, info.mode = epoch, mode
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            else:
                info.size = len(content)
            tar.addfile(info, None if content is None else io.BytesIO(content))
    return out.getvalue()


def packed(data):
    """The same bytes for the same data."""
    return gzip.compress(data, 9, mtime=0)


class Layout:
    """Blobs of one manifest, and the tar that they become."""

    def __init__(self):
        self.blobs = []

    def blob(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs.append((f"blobs/sha256/{digest}", data, 0o644))
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def write(self, to, epoch, config, layers, annotations, others=(), **of_manifest):
        """Writes a tar whose only manifest has `config` and `layers`; `others` are further files of the tar."""
        oci = "application/vnd.oci.image"
        manifest = {"schemaVersion": 2, "mediaType": f"{oci}.manifest.v1+json", "config": config, "layers": layers}
        at = self.blob(manifest["mediaType"], json.dumps(manifest).encode()) | {"annotations": annotations} | of_manifest
        index = {"schemaVersion": 2, "mediaType": f"{oci}.index.v1+json", "manifests": [at]}
        with open(to, "wb") as file:
            file.write(archive([
                ("oci-layout", b'{"imageLayoutVersion":"1.0.0"}', 0o644), ("index.json", json.dumps(index).encode(), 0o644),
                *others, ("blobs", None, 0), ("blobs/sha256", None, 0), *self.blobs,
            ], epoch))
