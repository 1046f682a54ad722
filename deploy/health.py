#!/usr/bin/python3 -I
"""The health check of the image: asks the service in this container whether it is up.

PLAUDIT_HEALTH_URL names another address, such as https://127.0.0.1:7717/healthz with --tls-cert. The certificate is not checked: it is
not made for the loopback address, and nothing secret is sent.
"""

import os
import ssl
import sys
import urllib.request

url = os.environ.get("PLAUDIT_HEALTH_URL", "http://127.0.0.1:7717/healthz")
context = ssl._create_unverified_context() if url.startswith("https:") else None
try:
    # Not through a proxy that the environment names.
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)]
    urllib.request.build_opener(*handlers).open(url, timeout=4).read()
except OSError as error:
    sys.exit(f"{url}: {error}")
