"""The health check of the container: exit code 0 while /healthz says that the gateway is alive, else 1 and why.

It uses the standard library only, and no proxy. The port is APP__METRICS__PORT.
"""

from __future__ import annotations

import http.client
import os
import sys

SECONDS = 5


def main(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        print(answer.read(1000).decode(errors="replace").strip())
    except (OSError, http.client.HTTPException) as error:
        print(f"no answer at port {port}: {error}")
        return 1
    finally:
        connection.close()
    return int(answer.status != http.client.OK)


if __name__ == "__main__":
    sys.exit(main(int(os.environ["APP__METRICS__PORT"])))
