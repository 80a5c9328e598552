#!/usr/bin/env python3
"""Start MiniStack with three corrections. GATEWAY_PORT, BIND_HOST and the rest come from the environment.

1. TCP_NODELAY on its Lambda Runtime API: without it every warm invocation waits about 40 ms, Nagle's algorithm against
   delayed acknowledgement.
2. REST APIs get the path as it was sent, as on AWS. MiniStack hands on the decoded one, in which an asset key's %2F
   has become a separator.
3. MaximumConcurrency of an event source mapping may come from a template's parameter, which is a string; the poller
   compares it with a number and stops.
"""

import socketserver

socketserver.StreamRequestHandler.disable_nagle_algorithm = True

from ministack import app  # noqa: E402  (the setting above must come first)
from ministack.services.cloudformation import provisioners  # noqa: E402

_handle_execute_api_request = app._handle_execute_api_request


async def handle_execute_api_request(host, path, method, headers, body, query_params, raw_path=None, **rest):
    """Hand a REST API the undecoded path; leave HTTP APIs, which decode it on AWS too, as they are."""
    if raw_path is not None and path.startswith("/restapis/"):
        path = raw_path
    return await _handle_execute_api_request(
        host, path, method, headers, body, query_params, raw_path=raw_path, **rest
    )


app._handle_execute_api_request = handle_execute_api_request


def with_number(handler):
    """Have a mapping's handler see its concurrency as a number."""

    def handle(*args):
        for properties in args:
            scaling = properties.get("ScalingConfig") if isinstance(properties, dict) else None
            if scaling and "MaximumConcurrency" in scaling:
                scaling["MaximumConcurrency"] = int(scaling["MaximumConcurrency"])
        return handler(*args)

    return handle


mapping_handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::EventSourceMapping"]
for operation in ("create", "update"):
    mapping_handlers[operation] = with_number(mapping_handlers[operation])

if __name__ == "__main__":
    app.main()
