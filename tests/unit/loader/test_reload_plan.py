"""What a reload decides before it does anything: imports of a source, who is concerned, what comes afresh, the edit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.reload.edit import compare, named
from dsh_runtime.loader.reload.graph import Module, ModuleGraph
from dsh_runtime.loader.reload.imports import imports_of
from dsh_runtime.loader.reload.plan import Candidate, Plan, make_plan

IMPORTS = {
    "import a.b as c, d": {"a.b", "d"},
    "from a import b, c": {"a", "a.b", "a.c"},
    "from a import *": {"a"},
    "from . import b": {"pack.sub", "pack.sub.b"},
    "from .. import b": {"pack", "pack.b"},
    "from ..a.b import c": {"pack.a.b", "pack.a.b.c"},
    "from ..... import b": set(),
    "def f():\n    async def g():\n        import a": {"a"},
    "class C:\n    import a": {"a"},
    "try:\n    import a\nexcept E:\n    import b\nelse:\n    import c\nfinally:\n    import d": {"a", "b", "c", "d"},
    "try:\n    pass\nexcept* E:\n    import b": {"b"},
    "match x:\n    case 1:\n        import a\n    case _:\n        import b": {"a", "b"},
    "while x:\n    import a\nelse:\n    import b": {"a", "b"},
    "with x:\n    import a": {"a"},
    "if x: import a; import b": {"a", "b"},
    "if TYPE_CHECKING:\n    import a\nelse:\n    import b": {"b"},
    "if typing.TYPE_CHECKING:\n    import a": set(),
    "if not TYPE_CHECKING:\n    import a": {"a"},
    '"""\nimport a\n"""\nx = "import b"': set(),
    "import (": set(),
    "\x00": set(),
}


@pytest.mark.parametrize("source", IMPORTS)
def test_every_import_statement_counts_but_those_for_type_checkers(source: str) -> None:
    assert imports_of(source.encode(), "pack.sub") == IMPORTS[source]


def test_a_source_that_nests_too_deep_for_the_parser_imports_nothing() -> None:
    assert imports_of(b"(" * 10_000, "pack") == frozenset()


def graph(edges: dict[str, str], fixed: str = "") -> ModuleGraph:
    """A graph of modules with names of one letter: each imports those behind the colon."""
    return ModuleGraph(
        {name: Module(name, f"/{name}.py", name not in fixed, frozenset(imports)) for name, imports in edges.items()}
    )


def plan(edges: dict[str, str], changed: str = "", fixed: str = "", **more: Any) -> Plan:
    """The plan for plugins whose ids are the capitals of their root modules."""
    users = more.pop("users", {})
    plugins = more.pop("plugins")
    candidates = [Candidate(root.upper(), root, users=users.get(root, {}), **more.pop(root, {})) for root in plugins]
    return make_plan(candidates, graph(edges, fixed), set(changed), more.pop("asked", {}), more.pop("together", ()))


def groups(plan: Plan) -> list[tuple[str, str]]:
    """Of each group the plugins, and the modules that come afresh."""
    return [("".join(group.ids), "".join(sorted(group.afresh))) for group in plan.groups]


def test_what_imports_a_changed_module_comes_afresh_and_what_it_imports_does_not() -> None:
    assert groups(plan({"a": "x", "x": "y", "y": "z", "z": ""}, "y", plugins="a")) == [("A", "axy")]


def test_plugins_that_share_what_has_changed_are_one_group_and_others_are_apart() -> None:
    edges = {"a": "x", "b": "x", "c": "z", "d": "", "x": "", "z": ""}
    assert groups(plan(edges, "xz", plugins="abcd")) == [("AB", "abx"), ("C", "cz")]


def test_users_of_a_service_come_along_and_theirs() -> None:
    edges = dict.fromkeys("abcd", "")
    made = plan(edges, "c", plugins="abcd", users={"c": {"B": "s"}, "b": {"A": "t"}})
    assert groups(made) == [("ABC", "abc")]
    assert made.groups[0].why["A"] == "it uses the service 't' of 'B'"


def test_a_plugin_that_refuses_or_a_fixed_module_takes_its_group_to_a_restart() -> None:
    edges = {"a": "x", "b": "x", "c": "e", "x": "", "e": ""}
    made = plan(edges, "xe", "e", plugins="abc", a={"refuses": "it says so"})
    assert not made.groups
    assert made.restart == {
        "A": "it says so",
        "B": "it is reloaded together with 'A', which needs one",
        "C": "/e.py changed, which cannot be imported afresh",
    }


def test_a_circle_of_imports_comes_afresh_as_a_whole() -> None:
    assert groups(plan({"a": "xy", "x": "y", "y": "x"}, "x", plugins="a")) == [("A", "axy")]


def test_plugins_of_one_edit_are_one_group() -> None:
    made = plan(dict.fromkeys("abc", ""), plugins="abc", asked={"A": "edit", "C": "edit"}, together=["C", "gone", "A"])
    assert groups(made) == [("AC", "ac")]


LETTERS = "abcdefgh"
edges_of = st.fixed_dictionaries({name: st.text(LETTERS, max_size=3) for name in LETTERS})


users_of = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("abcd"))


@given(edges_of, st.text("abcd", max_size=2), st.text(LETTERS, max_size=2), users_of)
def test_every_plan_is_complete_closed_and_touches_nobody_else(
    edges: dict[str, str], asked: str, changed: str, users: dict[str, str]
) -> None:
    """Whoever rests on a change is in one group, and what comes afresh is nobody else's."""
    uses = {provider: {user.upper(): "s"} for provider, user in users.items() if user != provider}
    made = plan(edges, changed, plugins="abcd", asked={one.upper(): "asked" for one in asked}, users=uses)
    modules = graph(edges)
    closures = {root.upper(): modules.closure(root) for root in "abcd"}
    planned = [plugin for group in made.groups for plugin in group.ids]
    expected = {plugin for plugin, closure in closures.items() if closure & set(changed) or plugin.lower() in asked}
    while more := {user for plugin in expected for user in uses.get(plugin.lower(), {}) if user not in expected}:
        expected |= more
    assert len(planned) == len(set(planned)) and set(planned) == expected
    afresh = frozenset().union(*(group.afresh for group in made.groups))
    for plugin in closures.keys() - expected:
        assert not closures[plugin] & afresh
    for group in made.groups:
        inside = frozenset().union(*(closures[plugin] for plugin in group.ids))
        assert group.afresh == inside & afresh
        for name in inside:
            stale = name not in group.afresh and (name in changed or set(edges[name]) & group.afresh)
            assert not stale, "nothing old holds something that comes afresh"
    for one in made.groups:
        assert not any(one.afresh & other.afresh for other in made.groups if other is not one)


def config(tmp_path: Path, text: str) -> Any:
    """A config of that text."""
    path = tmp_path / "dsh.toml"
    path.write_text(text)
    return load_config(path)


def test_an_edit_knows_rows_by_their_ids_and_settings_by_their_paths(tmp_path: Path) -> None:
    old = config(tmp_path, '[[plugin]]\nid = "a"\nuse = "greet"\n[[plugin]]\nid = "b"\nuse = "greet"\n')
    new = config(
        tmp_path,
        '[host]\nthreads = 3\n[host.log]\nenabled = false\n[[plugin]]\nid = "c"\nuse = "greet"\n'
        '[[plugin]]\nid = "b"\nuse = "greet"\noptional = true\n[[plugin]]\nid = "d"\nuse = "greet"\nenabled = false\n',
    )
    edit = compare(old, new)
    assert (list(edit.added), list(edit.removed), list(edit.changed)) == (["c"], ["a"], ["b"])
    assert edit.settings == (("host", "threads"), ("host", "log", "enabled"))
    assert named(edit.fixed) == "[host] log.enabled"
    assert not compare(new, new).touched and not compare(new, new).settings
