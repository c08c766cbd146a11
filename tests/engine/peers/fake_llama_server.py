"""A program that speaks as llama.cpp's server does, well or badly: FOLDER BEHAVIOUR [options].

It notes its process id, its options, its environment and every request in FOLDER.
"""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

HELP = """
-t,    --threads N             number of CPU threads
-c,    --ctx-size N            size of the prompt context
-m,    --model FNAME           model path to load
--port PORT                    port to listen
--device <dev1,dev2,..>        none = don't offload
--spec-draft-model, -md, --model-draft FNAME
                               draft model for speculative decoding
--spec-type none,draft-simple,ngram-simple,ngram-mod
                               comma-separated list of types
"""

folder, behaviour, *options = Path(sys.argv[1]), *sys.argv[2:]


def note(kind: str, what: object) -> None:
    with (folder / kind).open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def reply(request: dict) -> dict:
    count = request["n_predict"]
    tokens = [(sum(request["prompt"]) + at) % 50 for at in range(count)]
    speculative = "--spec-type" in options
    if "ngram-mod" in options:
        tokens[1] += 1
    return {
        "content": "some text",
        "tokens": tokens,
        "stop_type": "limit",
        "timings": {
            "prompt_n": len(request["prompt"]),
            "prompt_ms": 100.0,
            "predicted_n": count,
            "predicted_ms": (count - 1) * (5.0 if speculative else 10.0),
            **({"draft_n": 8, "draft_n_accepted": 3} if speculative else {}),
        },
    }


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(503 if behaviour == "never ready" else 200, b'{"status": "ok"}')

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note("requests", {"path": self.path, "body": request})
        match behaviour:
            case "dies when asked":
                print("the model went away", flush=True)
                os._exit(3)
            case "refuses":
                self.answer(400, b'{"error": "no room"}')
            case "speaks no JSON":
                self.answer(200, b"\xff<html>")
            case "leaves out the tokens":
                self.answer(200, json.dumps({**reply(request), "tokens": []}).encode())
            case "answers a list":
                self.answer(200, b"[1]")
            case _:
                self.answer(200, json.dumps(reply(request)).encode())

    def answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if options == ["--help"]:
    print("usage: pastry" if behaviour == "is something else" else HELP)
elif options == ["--version"]:
    print("version: 0.5 (build 4711, commit abc)", file=sys.stderr)
else:
    if behaviour == "ignores signals":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("processes", os.getpid())
    note("options", options)
    note("environment", sorted(os.environ))
    if behaviour == "dies at once":
        sys.exit("no such model")
    port = int(options[options.index("--port") + 1])
    HTTPServer(("127.0.0.1", port), Handler).serve_forever()
