#!/usr/bin/env python3
"""Fault-injecting OpenAI-compatible mock judge. Loopback only, standard library only.

  python3 mock_judge.py --port 0 --ledger ledger.jsonl [--latency-ms 20] [--mix ok=90,http500=5,rst_mid=5] [--seed 1]

* Prints one line "LISTENING <port>" when ready.
* Picks a fault: path /f/<mode>/v1/chat/completions, else a marker [[fault:<mode>]] in the prompt,
  else the --mix table (chosen by sha256(seed, sample, attempt), so a run can be repeated exactly).
* The sample is named by a marker [[sample:<id>]] in the prompt. The right score of a sample is a pure
  function of its id (score_of), so a checker can tell a score that went to the wrong sample.
* Ledger: one JSON line per request, with the right score of its sample, written and flushed BEFORE the reply, with "billed": true for every
  request a real provider would charge for (generation was done), even when the reply is then broken.
"""
import argparse, asyncio, gzip, hashlib, json, os, re, socket, struct, sys, time

def score_of(sid): return int(hashlib.sha256(sid.encode("utf-8", "surrogatepass")).hexdigest()[:6], 16) % 101 / 100.0
ITEMS = {}
def items_of(text):
    """The right verdicts about the items that plaudit's prompt lists, or none: a criterion that says "zebra" is met."""
    text = text.replace("\\n", "\n").rpartition("# Criteria")[2].partition("# Verdict")[0]
    listed = re.findall(r"^(item_\w+): (.*(?:\n  .*)*)", text, re.M)
    return {label: {"reason": "Seen.", "verdict": "yes" if "zebra" in criterion else "no"} for label, criterion in listed}
def right(sid, **more): return json.dumps(ITEMS.get(sid) or dict({"score": score_of(sid)}, **more))
def body_ok(sid, **kw):
    c = right(sid, sample=sid)
    m = {"role": "assistant", "content": c}; m.update(kw.pop("msg", {}))
    d = {"id": "chatcmpl-1", "object": "chat.completion", "model": "mock", "choices": [{"index": 0, "message": m, "finish_reason": "stop"}],
         "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
    d.update(kw); return d
def content(sid, text): return body_ok(sid, msg={"content": text})
BIG = {}
def big(k):
    if k not in BIG:
        BIG[k] = gzip.compress(b" " * (64 << 20)) if k == "gz" else b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"v" * 100) for i in range(5000)) + b"Content-Length: 2\r\n\r\n{}"
    return BIG[k]
def items_table(items):
    """Replies about items that say too little, too much, or something else."""
    each = lambda change: json.dumps({label: change(one) for label, one in items.items()})
    some = dict(list(items.items())[1:]); yes = lambda one: dict(one, verdict="yes"); whole = json.dumps(items)
    return {"half": json.dumps(some), "more": json.dumps(dict(items, item_99={"reason": "", "verdict": "yes"})),
        "twice": "{" + ", ".join(f'"{label}": {json.dumps(yes(one))}, "{label}": {json.dumps(one)}' for label, one in items.items()) + "}",
        "bool": each(lambda one: dict(one, verdict=one["verdict"] == "yes")), "word": each(lambda one: dict(one, verdict="met")), "case": each(lambda one: dict(one, verdict=one["verdict"].upper())),
        "null": each(lambda one: dict(one, verdict=None)), "bare": each(lambda one: one["verdict"]), "list": json.dumps([one["verdict"] for one in items.values()]),
        "two": each(yes) + "\n" + whole, "numbered": "\n".join(f"{at}. yes" for at in range(1, 9)), "outer": json.dumps({"verdicts": items}), "said": "criterion 3: met, all of them are met", "not_asked": each(lambda one: dict(one, verdict="not applicable"))}
# mode -> (billed, kind, arg)
def table(sid, other, want=None):
    S = score_of(sid); J = lambda o: json.dumps(o).encode()
    ch = lambda **k: J(body_ok(sid, choices=[dict({"index": 0, "message": {"role": "assistant", "content": right(sid)}, "finish_reason": "stop"}, **k)]))
    return {
    "ok": (1, "http", (200, J(body_ok(sid)), {})),
    # transport
    "rst_now": (0, "rst", b""), "rst_headers": (0, "rst", b"HTTP/1.1 200 OK\r\nContent-Le"),
    "rst_mid": (1, "rst_mid", J(body_ok(sid))), "fin_mid": (1, "fin_mid", J(body_ok(sid))), "fin_now": (0, "fin", b""),
    "hang": (1, "hang", None), "hang_after_headers": (1, "hang", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{"),
    "loris_headers": (0, "drip", b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 600), "loris_body": (1, "drip_body", J(body_ok(sid))),
    "not_http": (0, "raw", b"SSH-2.0-OpenSSH_9.2\r\n"), "http09": (0, "raw", b"<html>hello</html>"), "tls_alert": (0, "raw", b"\x15\x03\x01\x00\x02\x02\x28"),
    "bad_chunk": (1, "raw", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n"),
    "short_length": (1, "raw", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n" + J(body_ok(sid))),
    "two_lengths": (1, "raw", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\n" + J(body_ok(sid))),
    "desync": (1, "desync", (J(body_ok(sid)), J(body_ok(other)))),
    "header_bomb": (0, "raw", big("hdr") if want == "header_bomb" else b""),
    "continue_flood": (0, "flood", b"HTTP/1.1 100 Continue\r\n\r\n"),
    # status codes
    "http400": (0, "http", (400, b'{"error":{"message":"bad request","type":"invalid_request_error"}}', {})), "http401": (0, "http", (401, b'{"error":{"message":"Incorrect API key provided: sk-THISISASECRET"}}', {})),
    "http403": (0, "http", (403, b"{}", {})), "http404": (0, "http", (404, b"{}", {})), "http413": (0, "http", (413, b"{}", {})), "http422": (0, "http", (422, b"{}", {})),
    "context_len": (0, "http", (400, b'{"error":{"code":"context_length_exceeded","message":"too long"}}', {})),
    "http429": (0, "http", (429, b'{"error":{"type":"rate_limit"}}', {"Retry-After": "1"})), "http429_none": (0, "http", (429, b"{}", {})),
    "http429_date": (0, "http", (429, b"{}", {"Retry-After": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 2))})),
    "http429_huge": (0, "http", (429, b"{}", {"Retry-After": "86400"})), "http429_neg": (0, "http", (429, b"{}", {"Retry-After": "-5"})),
    "http429_junk": (0, "http", (429, b"{}", {"Retry-After": "soon"})), "http429_quota": (0, "http", (429, b'{"error":{"code":"insufficient_quota"}}', {})),
    "http500": (0, "http", (500, b"oops", {})), "http502": (0, "http", (502, b"<html>bad gateway</html>", {"Content-Type": "text/html"})), "http503": (0, "http", (503, b"{}", {"Retry-After": "1"})), "http504": (1, "http", (504, b"{}", {})), "http529": (0, "http", (529, b"{}", {})),
    "redirect_meta": (0, "http", (302, b"", {"Location": "http://169.254.169.254/latest/meta-data/"})), "redirect_loop": (0, "http", (307, b"", {"Location": "/v1/chat/completions"})), "http204": (1, "http", (204, b"", {})),
    # bodies
    "empty": (1, "http", (200, b"", {})), "html200": (1, "http", (200, b"<html>login</html>", {"Content-Type": "text/html"})), "err200": (0, "http", (200, b'{"error":{"message":"overloaded","code":503}}', {})),
    "trunc_json": (1, "http", (200, J(body_ok(sid))[:-20], {})), "trail_json": (1, "http", (200, J(body_ok(sid)) + b"}}", {})), "bom": (1, "http", (200, b"\xef\xbb\xbf" + J(body_ok(sid)), {})),
    "bad_utf8": (1, "http", (200, J(body_ok(sid)).replace(b"mock", b"mo\xff\xfeck"), {})), "lone_surrogate": (1, "http", (200, J(content(sid, "x")).replace(b'"x"', b'"\\ud800 {\\"score\\": 1}"'), {})),
    "nul": (1, "http", (200, J(content(sid, "\x00\x00")), {})), "deep": (1, "http", (200, b"[" * 200000, {})), "deep_content": (1, "http", (200, J(content(sid, "[" * 50000)), {})),
    "no_choices": (1, "http", (200, b'{"id":"x"}', {})), "choices_empty": (1, "http", (200, J(body_ok(sid, choices=[])), {})), "choices_null": (1, "http", (200, J(body_ok(sid, choices=None)), {})), "choices_obj": (1, "http", (200, J(body_ok(sid, choices={"0": 1})), {})),
    "content_null": (1, "http", (200, J(content(sid, None)), {})), "content_empty": (1, "http", (200, J(content(sid, "")), {})), "content_space": (1, "http", (200, J(content(sid, " \n ")), {})), "content_list": (1, "http", (200, J(content(sid, [{"type": "text", "text": right(sid)}])), {})), "content_int": (1, "http", (200, J(content(sid, 1)), {})),
    "finish_length": (1, "http", (200, ch(finish_reason="length"), {})), "finish_length_null": (1, "http", (200, J(body_ok(sid, choices=[{"index": 0, "message": {"role": "assistant", "content": None, "reasoning_content": "hmm score 1"}, "finish_reason": "length"}])), {})), "finish_filter": (1, "http", (200, ch(finish_reason="content_filter"), {})),
    "refusal_field": (1, "http", (200, J(body_ok(sid, msg={"content": None, "refusal": "I can't help with that."})), {})), "refusal_text": (1, "http", (200, J(content(sid, "I'm sorry, but I can't evaluate this content.")), {})),
    "score_nan": (1, "http", (200, J(content(sid, '{"score": NaN}')), {})), "score_inf": (1, "http", (200, J(content(sid, '{"score": 1e999}')), {})), "score_str": (1, "http", (200, J(content(sid, '{"score": "0.7"}')), {})), "score_bool": (1, "http", (200, J(content(sid, '{"score": true}')), {})),
    "score_null": (1, "http", (200, J(content(sid, '{"score": null}')), {})), "score_range": (1, "http", (200, J(content(sid, '{"score": 11}')), {})), "score_neg": (1, "http", (200, J(content(sid, '{"score": -1}')), {})), "score_frac": (1, "http", (200, J(content(sid, "8/10")), {})), "score_word": (1, "http", (200, J(content(sid, "eight out of ten")), {})),
    "score_dup": (1, "http", (200, J(content(sid, '{"score": 0.1, "score": 0.9}')), {})), "score_two": (1, "http", (200, J(content(sid, 'Score: 2\nWait, actually Score: 9')), {})), "score_missing": (1, "http", (200, J(content(sid, '{"rationale":"fine"}')), {})), "score_prose_first": (1, "http", (200, J(content(sid, 'The 1st response has 3 flaws. {"score": %s}' % S)), {})), "score_fence": (1, "http", (200, J(content(sid, "```json\n{\"score\": %s}\n```" % S)), {})),
    "wrong_sample": (1, "http", (200, J(body_ok(other)), {})), "tool_call": (1, "http", (200, J(body_ok(sid, msg={"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}]})), {})), "two_choices": (1, "http", (200, J(body_ok(sid, choices=body_ok(other)["choices"] + body_ok(sid)["choices"])), {})),
    # verdicts about items
    **{f"items_{name}": (1, "http", (200, J(content(sid, text)), {})) for name, text in items_table(ITEMS.get(sid) or {}).items()},
    "big10m": (1, "big", 10 << 20), "endless": (1, "big", 1 << 40), "gzip_bomb": (1, "http", (200, big("gz") if want == "gzip_bomb" else b"", {"Content-Encoding": "gzip"})), "gzip_lie": (1, "http", (200, J(body_ok(sid)), {"Content-Encoding": "gzip"})), "ctype_text": (1, "http", (200, J(body_ok(sid)), {"Content-Type": "text/plain"})), "latin1": (1, "http", (200, J(body_ok(sid)), {"Content-Type": "application/json; charset=latin-1"})),
    "usage_missing": (1, "http", (200, J({k: v for k, v in body_ok(sid).items() if k != "usage"}), {})), "usage_huge": (1, "http", (200, J(body_ok(sid, usage={"prompt_tokens": 10**30, "completion_tokens": -5})), {})), "sse_unasked": (1, "http", (200, b"data: " + J(body_ok(sid)) + b"\n\ndata: [DONE]\n\n", {"Content-Type": "text/event-stream"})),
    }
class S:
    n = 0; attempts = {}; inflight = 0; peak = 0
async def handle(r, w, a):
    try:
        while True:
            head = await r.readuntil(b"\r\n\r\n")
            line = head.split(b"\r\n", 1)[0].decode("latin1")
            m = re.search(rb"content-length: *(\d+)", head, re.I); body = await r.readexactly(int(m.group(1))) if m else b""
            S.n += 1; n = S.n; path = line.split(" ")[1] if " " in line else "/"
            text = body.decode("utf-8", "replace")
            try: text = json.dumps(json.loads(text), ensure_ascii=False)
            except Exception: pass
            sid = (re.search(r"\[\[sample:([^\]]*)\]\]", text) or [0, "?"])[1]; other = sid + "-other"
            ITEMS[sid] = items_of(text); ITEMS[other] = {k + "x": dict(v, verdict="no" if v["verdict"] == "yes" else "yes") for k, v in ITEMS[sid].items()}
            S.attempts[sid] = at = S.attempts.get(sid, 0) + 1
            fm = re.search(r"^/f/([a-z0-9_]+)/", path) or re.search(r"\[\[fault:([a-z0-9_]+)\]\]", text)
            if fm: mode = fm[1]
            else:
                x = int(hashlib.sha256(f"{a.seed}|{sid}|{at}".encode("utf-8", "replace")).hexdigest()[:8], 16) / 2**32 * sum(v for _, v in a.mix); mode = "ok"
                for k, v in a.mix:
                    x -= v
                    if x < 0: mode = k; break
            ok = (1, "http", (200, json.dumps(body_ok(sid)).encode(), {}))
            billed, kind, arg = ok if mode == "ok" else table(sid, other, mode).get(mode, ok)
            key = hashlib.sha256(body).hexdigest()[:32]
            idem = (re.search(rb"idempotency-key: *(\S+)", head, re.I) or [0, b""])[1].decode("latin1")
            S.inflight += 1; S.peak = max(S.peak, S.inflight)
            try:
                if a.latency: await asyncio.sleep(a.latency / 1000)
                a.led.write(json.dumps({"n": n, "t": round(time.time(), 4), "sample": sid, "attempt": at, "mode": mode, "billed": bool(billed), "score": score_of(sid), "key": key, "idem": idem, "peak": S.peak}) + "\n"); a.led.flush()
                sock = w.get_extra_info("socket")
                def reset(): sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); w.transport.abort()
                if kind == "http":
                    st, b, h = arg; hs = {"Content-Type": "application/json", "Content-Length": str(len(b)), "x-request-id": f"req-{n}"}; hs.update(h)
                    w.write(f"HTTP/1.1 {st} X\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in hs.items()) + b"\r\n" + b); await w.drain(); continue
                if kind == "rst": w.write(arg); await w.drain(); await asyncio.sleep(.02); reset(); return
                if kind in ("rst_mid", "fin_mid"):
                    w.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(arg) + arg[:len(arg) // 2]); await w.drain(); await asyncio.sleep(.02)
                    if kind == "rst_mid": reset()
                    return
                if kind == "fin": return
                if kind == "hang":
                    if arg: w.write(arg); await w.drain()
                    await r.read(); return
                if kind in ("drip", "drip_body"):
                    d = arg if kind == "drip" else b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(arg) + arg
                    for i in range(len(d)): w.write(d[i:i + 1]); await w.drain(); await asyncio.sleep(a.drip)
                    return
                if kind == "raw": w.write(arg); await w.drain(); return
                if kind == "flood":
                    for _ in range(2_000_000): w.write(arg); await w.drain()
                    return
                if kind == "desync":
                    b, evil = arg; w.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(b) + b + b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(evil) + evil); await w.drain(); continue
                if kind == "big":
                    w.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"); left = arg; c = b"x" * 65536
                    while left > 0: w.write(b"10000\r\n" + c + b"\r\n"); await w.drain(); left -= 65536
                    w.write(b"0\r\n\r\n"); await w.drain(); return
            finally: S.inflight -= 1
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError): pass
    finally:
        try: w.close()
        except Exception: pass
async def main():
    p = argparse.ArgumentParser(); p.add_argument("--port", type=int, default=0); p.add_argument("--ledger", default=os.devnull); p.add_argument("--latency-ms", dest="latency", type=float, default=0); p.add_argument("--drip", type=float, default=1.0); p.add_argument("--mix", default="ok=1"); p.add_argument("--seed", default="1"); p.add_argument("--list", action="store_true")
    a = p.parse_args()
    if a.list: print("\n".join(table("x", "y"))); return
    a.mix = [(k, float(v)) for k, v in (x.split("=") for x in a.mix.split(","))]; a.led = open(a.ledger, "a")
    s = await asyncio.start_server(lambda r, w: handle(r, w, a), "127.0.0.1", a.port, limit=1 << 26)
    print("LISTENING", s.sockets[0].getsockname()[1], flush=True)
    async with s: await s.serve_forever()
if __name__ == "__main__":
    try: asyncio.run(main())
    except KeyboardInterrupt: pass
