"""A judge that counts the calls in flight: it answers only when no further call arrives."""

from __future__ import annotations

import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Gate:
    """Keeps every call back until so many are there and no other has come for a while, and then lets all pass."""

    def __init__(self, judge: str, wanted: int, *, quiet: float = 3.0, patience: float = 200.0) -> None:
        self.judge, self.wanted, self.quiet, self.patience = judge, wanted, quiet, patience
        self.most = self.now = 0
        self._open = threading.Event()
        self._full = threading.Condition()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["content-length"]))
                with gate._full:
                    gate.now += 1
                    gate.most = max(gate.most, gate.now)
                    gate._full.notify_all()
                gate._open.wait()
                kept = {"content-type": self.headers["content-type"]}
                place = gate.judge.removesuffix("/v1") + self.path
                with urllib.request.urlopen(urllib.request.Request(place, asked, kept)) as answer:
                    body = answer.read()
                with gate._full:
                    gate.now -= 1
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        for work in (self._server.serve_forever, self._watch):
            threading.Thread(target=work, daemon=True).start()

    def _watch(self) -> None:
        with self._full:
            self._full.wait_for(lambda: self.now >= self.wanted, self.patience)
            while self._full.wait(self.quiet):
                pass
        self._open.set()

    def close(self) -> None:
        """Ends it."""
        self._open.set()
        self._server.shutdown()
        self._server.server_close()
