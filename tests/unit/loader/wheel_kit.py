"""Wheels as an installer leaves them, written by hand: modules, metadata, and a RECORD with their hashes."""

from __future__ import annotations

import base64
import hashlib
import json
import textwrap
from collections.abc import Mapping
from pathlib import Path


def record_hash(data: bytes) -> str:
    """A hash as a RECORD gives it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def install_wheel(
    site: Path, name: str, files: Mapping[str, str], *, entry: str, version: str = "1.0", editable: Path | None = None
) -> None:
    """Install a distribution with the entry point ``name = entry``; an editable one lists no modules."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[dsh.plugins]\n{name} = {entry}\n",
    }
    lines = []
    for path, text in {**({} if editable else files), **metadata}.items():
        data = textwrap.dedent(text).encode()
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(data)
        lines.append(f"{path},{record_hash(data)},{len(data)}")
    by_installer = {f"{info}/INSTALLER": "by-hand\n", f"{info}/direct_url.json": json.dumps({"url": str(site)})}
    for path, text in by_installer.items():
        (site / path).write_text(text)
        lines.append(f"{path},{record_hash(text.encode())},{len(text)}")
    record = "\n".join([*lines, f"../../bin/{name},sha256=x,1", f"{info}/RECORD,,"])
    (site / info / "RECORD").write_text(record + "\n")
    if editable is not None:
        for path, text in files.items():
            (editable / path).parent.mkdir(parents=True, exist_ok=True)
            (editable / path).write_text(textwrap.dedent(text))
