"""Sends one event in structured and one in binary mode with the CloudEvents SDK, and prints the statuses.

Arguments: URL of the route, token, asset key, snapshot.
"""

import sys
import urllib.request

from cloudevents.core.bindings.http import to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

url, token, asset, snapshot = sys.argv[1:5]


def event(name):
    attributes = {
        "id": name,
        "source": "urn:sdk",
        "type": "io.lakebell.snapshot.committed.v1",
        "specversion": "1.0",
        "datacontenttype": "application/json",
        "extra": "x",
    }
    return CloudEvent(attributes=attributes, data={"asset": asset, "snapshotId": snapshot})


for name, convert in (("structured", to_structured), ("binary", to_binary)):
    message = convert(event(name), JSONFormat())
    headers = {**message.headers, "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, data=message.body, headers=headers, method="POST")
    with urllib.request.urlopen(request) as answer:
        print(name, answer.status)
