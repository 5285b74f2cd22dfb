#!/usr/bin/python3
"""The chart as helm packages it, and in the layout of OCI: chart.py FOLDER TGZ TAR

`helm install NAME TGZ` takes the first. `skopeo copy oci-archive:TAR docker://REGISTRY/nfscope:VERSION` brings the second into a
registry, and `helm install NAME oci://REGISTRY/nfscope` takes it from there. Making them needs no helm, so that every host that
builds packages makes the same bytes."""

import json
import os
import sys

import yaml

from oci import Layout, archive, packed

folder, tgz, tar = sys.argv[1:]
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
with open(f"{folder}/Chart.yaml", encoding="utf-8") as file:
    chart = yaml.safe_load(file)

files = []
# Rules and dashboards are links to the folder dashboards: a package has their content.
for at, _, names in os.walk(folder, followlinks=True):
    for name in names:
        with open(f"{at}/{name}", "rb") as file:
            files.append((os.path.join(chart["name"], os.path.relpath(f"{at}/{name}", folder)), file.read(), 0o644))
# helm reads Chart.yaml of an archive first.
files.sort(key=lambda entry: (os.path.basename(entry[0]) != "Chart.yaml", entry[0]))
package = packed(archive(files, epoch))
with open(tgz, "wb") as file:
    file.write(package)

layout = Layout()
# Media types of charts: helm.sh/docs/topics/registries.
config = layout.blob("application/vnd.cncf.helm.config.v1+json", json.dumps(chart).encode())
layer = layout.blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", package)
layout.write(tar, epoch, config, [layer], {"org.opencontainers.image.ref.name": chart["version"]})
