"""README and docs are true: what they show is run, what they list is all there is, where they point there is something.

``docs_kit`` states the convention of code blocks. Commands that begin with ``python3 dev.py``, ``pytest`` or ``tox``
are not run, since they would run this test again; that ``dev.py`` knows them is tested instead.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from dsh_hookspecs import specs

import dsh_runtime
from dsh_runtime.loader.settings import HostSettings, table_of

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
from docs_kit import Reader, blocks_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "hookspecs" / "README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]
WITH_BLOCKS = [page for page in PAGES if blocks_of(page)]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_everything_that_a_page_shows_works(page: Path, tmp_path: Path) -> None:
    """Files, programs, commands and what they print."""
    folder = tmp_path / "folder"
    folder.mkdir()
    Reader(folder).follow(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Links within the repository name a file, and a heading of it where they name one."""
    broken = []
    for link in LINK.findall(page.read_text("utf-8")):
        if link.startswith(("https://", "http://")):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in headings_of(target)):
            broken.append(link)
    assert broken == []


def headings_of(page: Path) -> list[str]:
    """The anchors of a page's headings."""
    lines = [line.lstrip("# ") for line in page.read_text("utf-8").splitlines() if line.startswith("#")]
    return [re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_dev_py_knows_the_commands_that_a_page_names(page: Path) -> None:
    """They are not run here; what they are called is checked all the same."""
    named = set(re.findall(r"python3 dev\.py (\w+)", page.read_text("utf-8")))
    known = set(re.findall(r"python3 dev\.py (\w+)", (ROOT / "dev.py").read_text("utf-8")))
    assert named <= known


def test_the_site_has_every_page() -> None:
    """``docs/index.rst`` names each page of docs, from which ``tox -e site`` builds."""
    index = (ROOT / "docs" / "index.rst").read_text("utf-8")
    named = set(re.findall(r"^   ([\w-]+)$", index, re.MULTILINE))
    assert named == {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert "decisions/0*" in index


@pytest.mark.parametrize("name", ["hooks.md", "lifecycle.md"])
def test_a_generated_page_is_what_its_generator_gives(name: str) -> None:
    """If this fails, run ``python docs/generate.py``."""
    generated = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    assert (ROOT / "docs" / name).read_text("utf-8") == generated[name]


def test_the_hook_reference_names_every_hookspec() -> None:
    """None is left out by the generator."""
    text = (ROOT / "docs" / "hooks.md").read_text("utf-8")
    declared = [value.dsh_event.name for value in vars(specs).values() if hasattr(value, "dsh_event")]
    assert len(declared) > 5
    assert [event for event in declared if f"## {event}\n" not in text] == []


def test_the_config_reference_lists_every_host_setting_with_its_default() -> None:
    """A row per setting, no more and no fewer."""
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `([^`]*)` \|", text, re.MULTILINE))
    assert rows == dict(settings_of(HostSettings))


def settings_of(cls: type, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every setting of a table by its name, with its default; those of a table inside it as ``log.path``."""
    for setting in attrs.fields(cls):
        table = table_of(setting)
        if table is None:
            yield prefix + setting.name, toml_of(setting.default)
        else:
            yield from settings_of(table, f"{prefix}{setting.name}.")


def toml_of(value: object) -> str:
    """A default as a config file would have it."""
    if isinstance(value, bool) or value is None:
        return str(bool(value)).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_the_table_of_codes_is_complete() -> None:
    """Every code that the runtime gives stands in the table; what else does is a code of a plugin that is here."""
    text = (ROOT / "docs" / "order-and-failing-closed.md").read_text("utf-8")
    listed = {code for row in re.findall(r"^\| (`[A-Z_]+`.*?) \|", text, re.MULTILINE) for code in codes_in(row)}
    package = Path(str(dsh_runtime.__file__)).parent
    hookspecs = Path(str(specs.__file__)).parent
    given: set[str] = set()
    for source in (*package.rglob("*.py"), *hookspecs.glob("*.py")):
        found = re.findall(r'code(?:: [^=]+)?\s*=\s*"([A-Z_]+)"|\("(APPROVAL_[A-Z]+)",', source.read_text("utf-8"))
        given |= {code for pair in found for code in pair if code}
    assert given - {"MY_CODE"} <= listed  # a docstring's example
    plugins = "".join(source.read_text("utf-8") for source in (ROOT / "plugins").glob("*/src/**/*.py"))
    assert {code for code in listed - given if f'"{code}"' not in plugins} == set()


def codes_in(row: str) -> list[str]:
    return re.findall(r"`([A-Z_]+)`", row)
