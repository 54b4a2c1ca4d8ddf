"""``load_config`` reads, merges and checks, and reports everything that is wrong at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.loader.errors import ConfigError, Location
from dsh_runtime.loader.include import MAX_FILES, MAX_INCLUDE_DEPTH
from dsh_runtime.loader.load import MAX_ROWS, load_config
from dsh_runtime.loader.model import HostSettings

Write = Callable[[str, str], Path]


def problems_of(source: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(source, environ={})
    return [str(problem) for problem in caught.value.problems]


def problem_of(source: Any) -> str:
    (problem,) = problems_of(source)
    return problem


# --- what is read -------------------------------------------------------------------------------------------------


def test_rows_come_in_the_order_of_the_file_with_their_config(write: Write) -> None:
    file = write(
        "dsh.toml",
        """
[[plugin]]
id = "audit"
use = "audit"
[[plugin]]
id = "gate"
use = "./gate.py"
enabled = false
optional = true
[plugin.config]
rules = [{ tool = "rm" }]
""",
    )
    audit, gate = load_config(file).rows
    assert (audit.id, audit.use, audit.enabled, audit.optional, audit.config) == ("audit", "audit", True, False, {})
    assert (gate.id, gate.enabled, gate.optional, gate.config) == ("gate", False, True, {"rules": [{"tool": "rm"}]})
    assert gate.origin == Location(str(file), 5)
    assert gate.directory == file.parent


def test_an_empty_file_is_a_config_without_plugins(write: Write) -> None:
    config = load_config(write("dsh.toml", ""))
    assert config.rows == ()
    assert config.host == HostSettings()


def test_host_settings_replace_their_defaults(write: Write) -> None:
    host = load_config(write("dsh.toml", "[host]\npolicy_timeout = 5\nthreads = 2\npresentation = 'both'\n")).host
    assert host == HostSettings(policy_timeout=5.0, threads=2, presentation="both")


@pytest.mark.parametrize("off", [0, 0.0, False])
def test_the_policy_timeout_can_be_switched_off(off: object) -> None:
    assert load_config({"host": {"policy_timeout": off}}).host.policy_timeout is None


def test_a_mapping_works_like_a_file_without_lines() -> None:
    config = load_config(
        {"plugin": [{"id": "a", "use": "x", "config": {"t": "${env:T}", "list": (1, 2)}}]}, environ={"T": "secret"}
    )
    (row,) = config.rows
    assert row.config == {"t": "secret", "list": [1, 2]}
    assert row.directory == Path.cwd()
    assert config.where(("plugin", 0, "config", "t")) is None
    assert config.is_secret(("plugin", 0, "config", "t"))


def test_a_mapping_is_copied() -> None:
    source = {"plugin": [{"id": "a", "use": "x", "config": {"list": [1]}}]}
    config = load_config(source)
    source["plugin"][0]["config"]["list"].append(2)  # type: ignore[index]
    assert config.rows[0].config == {"list": [1]}


def test_every_value_knows_its_file_and_line(write: Write) -> None:
    file = write("dsh.toml", '[[plugin]]\nid = "a"\nuse = "x"\n[plugin.config]\nrules = [\n  { tool = "t" },\n]\n')
    config = load_config(file)
    assert config.where(("plugin", 0, "config", "rules", 0, "tool")) == Location(str(file), 6)
    assert config.where(("plugin", 0, "config", "rules", 9)) == Location(str(file), 5)
    assert config.rows[0].trace.where(("config", "rules")) == Location(str(file), 5)


def test_secrets_are_known_by_path_and_absent_from_the_repr(write: Write) -> None:
    text = '[[plugin]]\nid = "a"\nuse = "x"\nconfig = { deep = { t = "${env:T}" }, plain = "y" }\n'
    config = load_config(write("dsh.toml", text), environ={"T": "s3cret"})
    base = ("plugin", 0, "config")
    assert config.is_secret((*base, "deep", "t"))
    assert config.is_secret((*base, "deep"))
    assert not config.is_secret((*base, "plain"))
    assert "s3cret" not in repr(config)


def test_equal_rows_are_equal_wherever_they_stand(write: Write) -> None:
    row = '[[plugin]]\nid = "a"\nuse = "x"\nconfig = { a = 1 }\n'
    assert load_config(write("dsh.toml", row)).rows == load_config(write("dsh.toml", "\n\n" + row)).rows
    assert load_config(write("dsh.toml", row)).rows != load_config(write("dsh.toml", row.replace("1", "2"))).rows


def test_nothing_that_the_config_names_is_imported(write: Write) -> None:
    write("boom.py", "raise SystemExit('imported')")
    load_config(
        write("dsh.toml", '[[plugin]]\nid = "a"\nuse = "./boom.py"\n[[plugin]]\nid = "b"\nuse = "antigravity"\n')
    )
    assert "antigravity" not in sys.modules


def test_files_read_by_substitutions_are_listed(write: Write) -> None:
    token = write("token", "x\n")
    text = '[[plugin]]\nid = "a"\nuse = "x"\nconfig = { a = "${file:token}", b = "${file:token}" }\n'
    config = load_config(write("dsh.toml", text))
    assert config.value_files == (str(token),)
    assert config.rows[0].config == {"a": "x", "b": "x"}


# --- what is refused ----------------------------------------------------------------------------------------------


def test_all_problems_are_reported_together_with_their_lines(write: Write) -> None:
    file = write(
        "dsh.toml",
        """hosts = 1
[host]
thread = 4
threads = "4"
[[plugin]]
id = "bad id"
use = "x"
[[plugin]]
id = "a"
use = 3
enabled = "yes"
config = [1]
[[plugin]]
id = "b"
uze = "${env:NOPE}"
""",
    )
    assert problems_of(file) == [
        f"{file}:15: plugin[2].uze: environment variable 'NOPE' is not set; set it before the start",
        f"{file}:1: hosts: a config file has no key 'hosts'; did you mean 'host'?",
        f"{file}:3: host.thread: [host] has no setting 'thread'; did you mean 'threads'?",
        f"{file}:4: host.threads: expected a whole number from 1 to 10000; got a string, '4'",
        (
            f"{file}:6: plugin[0].id: 'id' must be 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter "
            "or digit, and stand there in full; got a string, 'bad id'"
        ),
        (
            f"{file}:10: plugin[1].use: 'use' must be an entry-point name, 'package.module:attr' or './file.py'; "
            "got an integer, 3"
        ),
        f"{file}:11: plugin[1].enabled: 'enabled' must be true or false; got a string, 'yes'",
        f"{file}:12: plugin[1].config: 'config' must be a table; got an array; write it as [plugin.config]",
        (
            f"{file}:13: plugin[1]: plugin 'b' does not say what to use; add use = an entry-point name, "
            "'package.module:attr' or './file.py'"
        ),
    ]


def test_two_plugins_with_one_id_are_refused_with_both_lines(write: Write) -> None:
    row = '[[plugin]]\nid = "a"\nuse = "x"\n'
    file = write("dsh.toml", row * 2)
    assert problem_of(file) == (
        f"{file}:5: plugin[1].id: two plugins have the id 'a' (line 1 and line 4); rename one or remove it"
    )


def test_a_plugin_table_in_single_brackets_is_refused_with_the_remedy(write: Write) -> None:
    assert "write each plugin as [[plugin]]" in problem_of(write("dsh.toml", '[plugin]\nid = "a"\n'))


@pytest.mark.parametrize("key", ["id", "use"])
def test_names_take_no_substitution(key: str) -> None:
    row = {"id": "a", "use": "x", key: "${env:PATH}"}
    with pytest.raises(ConfigError, match="in full"):
        load_config({"plugin": [row]}, environ={"PATH": "x"})


@pytest.mark.parametrize("bad", ["", "-a", ".a", "a/b", "a b", "é", "a" * 65, 3, None, ["a"], "a\n"])
def test_bad_ids_are_refused(bad: object) -> None:
    assert "'id' must be" in problem_of({"plugin": [{"id": bad, "use": "x"}]})


@pytest.mark.parametrize("good", ["a", "A-1", "a.b_c", "0", "a" * 64])
def test_good_ids_are_taken(good: str) -> None:
    assert load_config({"plugin": [{"id": good, "use": "x"}]}).rows[0].id == good


def test_a_row_without_id_is_refused() -> None:
    assert "has no 'id'" in problem_of({"plugin": [{"use": "x"}]})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("policy_timeout", True),
        ("policy_timeout", -1),
        ("policy_timeout", float("nan")),
        ("teardown_timeout", False),
        ("teardown_timeout", float("inf")),
        ("drain_timeout", 10**400),
        ("start_timeout", "1"),
        ("max_depth", 0),
        ("max_depth", 1.0),
        ("threads", True),
        ("presentation", "Native"),
        ("presentation", ["native"]),
        ("approval", 1),
    ],
)
def test_bad_host_settings_are_refused_with_what_was_expected(name: str, bad: object) -> None:
    problem = problem_of({"host": {name: bad}})
    assert problem.startswith(f"host.{name}: expected ")


def test_a_secret_is_not_quoted_by_a_refusal() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"host": {"presentation": "${env:T}"}}, environ={"T": "s3cret"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("source", [{"plugin": 3}, {"plugin": [3]}, {"host": 3}, {"include": "x"}, {"include": [3]}])
def test_wrong_shapes_are_refused(source: dict[str, object]) -> None:
    problem_of(source)


def test_a_mapping_with_a_key_that_is_no_string_is_refused() -> None:
    assert "no string" in problem_of({"host": {1: 2}})


def test_a_mapping_that_contains_itself_is_refused() -> None:
    endless: dict[str, object] = {}
    endless["config"] = endless
    assert "contains itself" in problem_of(endless)


def test_the_number_of_plugins_is_bounded() -> None:
    rows = [{"id": f"p{i}", "use": "x"} for i in range(MAX_ROWS + 1)]
    assert "at most 1000 plugins" in problem_of({"plugin": rows})


def test_a_hostile_key_cannot_break_the_line_of_its_message(write: Write) -> None:
    file = write("dsh.toml", '"a\\nb\\u001b[31m" = 1\n')
    assert problem_of(file) == f"{file}:1: \"a\\nb\\u001b[31m\": a config file has no key 'a\\nb\\x1b[31m'; " + (
        "known: host, include, pins, plugin"
    )


# --- includes and merging -----------------------------------------------------------------------------------------


def ids(source: Path) -> list[str]:
    return [row.id for row in load_config(source).rows]


def row(row_id: str, rest: str = 'use = "x"') -> str:
    return f'[[plugin]]\nid = "{row_id}"\n{rest}\n'


def test_included_plugins_come_first_in_the_order_of_the_includes(write: Write) -> None:
    write("sub/one.toml", row("one"))
    write("two.toml", 'include = ["sub/one.toml"]\n' + row("two"))
    write("three.toml", row("three"))
    file = write("dsh.toml", 'include = ["two.toml", "three.toml"]\n' + row("own"))
    assert ids(file) == ["one", "two", "three", "own"]
    assert [Path(source).name for source in load_config(file).sources] == [
        "one.toml",
        "two.toml",
        "three.toml",
        "dsh.toml",
    ]


def test_a_row_overrides_an_included_one_in_place_key_by_key(write: Write) -> None:
    base = write(
        "base.toml",
        row("a", 'use = "./a.py"\noptional = true\nconfig = { keep = 1, deep = { x = 1, y = 2 }, list = [1, 2] }')
        + row("b"),
    )
    file = write(
        "dsh.toml",
        'include = ["base.toml"]\n' + row("c") + row("a", "enabled = false\nconfig = { deep = { y = 3 }, list = [4] }"),
    )
    config = load_config(file)
    assert [r.id for r in config.rows] == ["a", "b", "c"]
    overridden = config.rows[0]
    assert overridden.use == "./a.py"
    assert overridden.optional
    assert not overridden.enabled
    assert overridden.config == {"keep": 1, "deep": {"x": 1, "y": 3}, "list": [4]}
    assert overridden.origin == Location(str(base), 1)
    assert config.where(("plugin", 0, "config", "keep")) == Location(str(base), 5)
    assert config.where(("plugin", 0, "config", "deep", "y")) == Location(str(file), 8)


def test_a_relative_file_starts_where_the_file_that_names_it_stands(write: Write) -> None:
    included = write("sub/base.toml", row("a", 'use = "./a.py"') + row("b", 'use = "./b.py"'))
    file = write("dsh.toml", 'include = ["sub/base.toml"]\n' + row("b", 'use = "./own.py"'))
    assert [r.directory for r in load_config(file).rows] == [included.parent, file.parent]


def test_a_substituted_file_is_relative_to_the_file_that_names_it(write: Write) -> None:
    write("sub/token", "inner")
    write("token", "outer")
    write("sub/base.toml", row("a", 'use = "x"\nconfig = { t = "${file:token}" }'))
    file = write("dsh.toml", 'include = ["sub/base.toml"]\n' + row("b", 'use = "x"\nconfig = { t = "${file:token}" }'))
    assert [r.config["t"] for r in load_config(file).rows] == ["inner", "outer"]


def test_an_override_with_a_plain_value_is_no_longer_secret(write: Write) -> None:
    write("base.toml", row("a", 'use = "x"\nconfig = { t = "${env:T}" }'))
    file = write("dsh.toml", 'include = ["base.toml"]\n' + row("a", 'config = { t = "plain" }'))
    assert not load_config(file, environ={"T": "x"}).is_secret(("plugin", 0, "config", "t"))


def test_host_tables_merge_and_the_including_file_wins(write: Write) -> None:
    write("base.toml", "[host]\nthreads = 3\nmax_depth = 7\n")
    file = write("dsh.toml", 'include = ["base.toml"]\n[host]\nthreads = 4\n')
    assert load_config(file).host == HostSettings(threads=4, max_depth=7)


def test_a_file_that_is_included_twice_is_read_once(write: Write) -> None:
    write("d.toml", row("d", 'use = "x"\nconfig = { v = 1 }'))
    write("b.toml", 'include = ["d.toml"]\n' + row("d", "config = { v = 2 }"))
    write("c.toml", 'include = ["d.toml"]\n' + row("c"))
    config = load_config(write("dsh.toml", 'include = ["b.toml", "c.toml"]\n'))
    assert [(r.id, r.config) for r in config.rows] == [("d", {"v": 2}), ("c", {})]


def test_a_circle_of_includes_is_refused_with_its_members(write: Write) -> None:
    write("a.toml", 'include = ["b.toml"]\n')
    b = write("b.toml", '\ninclude = ["dsh.toml"]\n')
    problem = problem_of(write("dsh.toml", 'include = ["a.toml"]\n'))
    assert problem.startswith(f"{b}:2: include[0]: ")
    assert "(dsh.toml -> a.toml -> b.toml -> dsh.toml)" in problem


def test_a_file_that_includes_itself_is_refused(write: Write) -> None:
    assert "circle" in problem_of(write("dsh.toml", 'include = ["./dsh.toml"]\n'))


def test_includes_that_nest_too_deep_are_refused(write: Write) -> None:
    for level in range(MAX_INCLUDE_DEPTH + 1):
        write(f"{level}.toml", f'include = ["{level + 1}.toml"]\n')
    write(f"{MAX_INCLUDE_DEPTH + 1}.toml", "")
    assert "nest deeper than 16" in problem_of(write("dsh.toml", 'include = ["0.toml"]\n'))


def test_a_missing_include_is_refused_where_it_is_named(write: Write) -> None:
    file = write("dsh.toml", 'include = [\n"nothing.toml"]\n')
    assert problem_of(file).startswith(
        f"{file}:2: include[0]: included file '{file.parent / 'nothing.toml'}' does not exist"
    )


def test_an_include_with_a_hostile_name_is_refused(write: Write) -> None:
    for name in ("a\\u0000b", "x" * 5000, "."):
        assert "does not exist" in problem_of(write("dsh.toml", f'include = ["{name}"]\n'))


def test_the_number_of_files_is_bounded(write: Write) -> None:
    for index in range(MAX_FILES):
        write(f"{index}.toml", "")
    names = ", ".join(f'"{index}.toml"' for index in range(MAX_FILES))
    assert f"more than {MAX_FILES} files" in problem_of(write("dsh.toml", f"include = [{names}]\n"))


def test_problems_of_included_files_are_reported_with_those_of_the_including_one(write: Write) -> None:
    broken = write("broken.toml", "a = = 1\n")
    wrong = write("wrong.toml", "hots = 1\n")
    file = write("dsh.toml", 'include = ["broken.toml", "wrong.toml"]\nhost = 3\n')
    starts = [problem.partition(": ")[0] for problem in problems_of(file)]
    assert sorted(starts) == sorted([f"{broken}:1:5", f"{wrong}:1", f"{file}:2"])


def test_an_override_of_a_row_that_nobody_defined_is_refused(write: Write) -> None:
    assert "does not say what to use" in problem_of(write("dsh.toml", row("a", "enabled = false")))


# --- properties ---------------------------------------------------------------------------------------------------

tables = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just("${env:X}"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["plugin", "host", "include", "id", "use", "config", "threads"]), inner)
    ),
    max_leaves=10,
)


@given(tables)
def test_any_mapping_is_loaded_or_refused(source: object) -> None:
    try:
        load_config(source if isinstance(source, dict) else {"plugin": source}, environ={"X": "y"})
    except ConfigError as error:
        assert error.problems


@given(st.text("[]{}=.\"'#\n, abiduse1$:") | st.text())
def test_any_text_is_loaded_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text(text, encoding="utf-8", newline="")
    try:
        load_config(file, environ={})
    except ConfigError as error:
        assert all(problem.location or not problem.path for problem in error.problems)
