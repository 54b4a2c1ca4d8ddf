"""A server over stdin and stdout that does what its first argument says, without the SDK: peers are not always polite.

The second argument is the path of a file: a JSON list of tools, read anew for every list.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HOW, TOOLS = sys.argv[1], Path(sys.argv[2])
_lock = threading.Lock()
_cancelled: list[Any] = []
_told: list[Any] = []


def send(message: Any) -> None:
    with _lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(request: Any, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": False}


def initialize(request: Any) -> None:
    if HOW == "mute":
        return
    if HOW == "dies-at-once":
        sys.exit(3)
    answer(
        request,
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "rude", "version": "1"},
        },
    )


def list_tools(request: Any) -> None:
    if HOW == "lists-in-circles":
        answer(request, {"tools": [], "nextCursor": "again"})
        return
    if HOW == "pages":
        page = int(request.get("params", {}).get("cursor", 0))
        answer(request, {"tools": json.loads(TOOLS.read_text())[page : page + 1], "nextCursor": str(page + 1)})
        return
    answer(request, {"tools": json.loads(TOOLS.read_text())})


def call(request: Any) -> None:
    name, arguments = request["params"]["name"], request["params"].get("arguments") or {}
    if name == "echo":
        answer(request, text(json.dumps(arguments)))
    elif name == "answer":
        answer(request, arguments["result"])
    elif name == "twice":
        answer(request, text("first"))
        answer(request, text("second"))
    elif name == "never":
        pass
    elif name == "cancelled":
        answer(request, {**text("x"), "structuredContent": {"cancelled": _cancelled}})
    elif name == "die":
        os._exit(1)
    elif name == "rubbish":
        for _ in range(50):
            sys.stdout.write("not json\n[1]\n")
        answer(request, text("still here"))
    elif name == "too-much-rubbish":
        sys.stdout.write("not json\n" * 1000)
        sys.stdout.flush()
    elif name == "long":
        answer(request, text("x" * arguments["bytes"]))
    elif name == "flood-stderr":
        sys.stderr.write("noise\n" * 20_000)
        sys.stderr.flush()
        answer(request, text("flooded"))
    elif name == "environ":
        answer(request, {**text("x"), "structuredContent": dict(os.environ)})
    elif name == "progress":
        token = request["params"]["_meta"]["progressToken"]
        for done in (1, 2):
            params = {"progressToken": token, "progress": done, "total": 2, "message": f"step {done}"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        answer(request, text("done"))
    elif name == "raw":
        sys.stdout.write(arguments["text"].replace("$ID", json.dumps(request["id"])) * arguments.get("times", 1))
        sys.stdout.flush()
    elif name == "told":
        answer(request, {**text("x"), "structuredContent": {"told": _told}})
    elif name == "change":
        TOOLS.write_text(json.dumps(arguments["tools"]))
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        answer(request, text("changed"))
    elif name == "pid":
        answer(request, {**text("x"), "structuredContent": {"pid": os.getpid()}})
    elif name == "child":
        child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        answer(request, {**text("x"), "structuredContent": {"pid": child.pid}})
    else:
        error = {"code": -32602, "message": f"no tool {name}"}
        send({"jsonrpc": "2.0", "id": request["id"], "error": error})


def main() -> None:
    if HOW == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    handlers = {"initialize": initialize, "tools/list": list_tools, "tools/call": call}
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "notifications/cancelled":
            _cancelled.append(message["params"]["requestId"])
        elif method in handlers:
            handlers[method](message)
        elif method is None:
            _told.append(message)
        elif "id" in message and HOW != "mute":
            error = {"code": -32601, "message": "Method not found"}
            send({"jsonrpc": "2.0", "id": message["id"], "error": error})
    while HOW == "stubborn":
        time.sleep(1)


main()
