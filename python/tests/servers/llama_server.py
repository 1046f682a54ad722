"""llama.cpp's own HTTP server, as xllamacpp brings it in a wheel: `python llama_server.py MODEL.gguf PORT`."""

from __future__ import annotations

import sys
import threading

import xllamacpp

if __name__ == "__main__":
    settings = xllamacpp.CommonParams()
    settings.model.path = sys.argv[1]
    settings.hostnames = ["127.0.0.1"]
    settings.port = int(sys.argv[2])
    settings.n_ctx = 16384
    settings.n_parallel = 4
    # Threads that wait for each other spin, which takes long where others work as well.
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.warmup = False
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    threading.Event().wait()
