"""How Sphinx makes a site of these pages: ``tox -e site``.

The sources are the pages as they are, wherever they stand in the repository, so that links work in both places. What
Sphinx warns of (a broken link, a page that no index names) fails the build.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

project = "dsh-runtime"
author = "The dsh-runtime authors"
release = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
root_doc = "docs/index"
include_patterns = [
    "docs/index.rst",
    "docs/*.md",
    "docs/decisions/*.md",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "hookspecs/README.md",
    "plugins/*/README.md",
    "bench/README.md",
]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

html_theme = "furo"
html_title = "dsh-runtime"
html_copy_source = False
html_show_sourcelink = False
