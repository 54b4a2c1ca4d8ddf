"""A plugin that provides something is reloaded together with those who use it: staged, and swapped, as one."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from reload_kit import TOOL, Project, ids

from dsh_runtime import ClashError, Service, State

PROVIDER = """
class Rules:
    version = {version}

def apply(ctx):
    ctx.provide("rules", Rules())
"""
POLICY = """
from dsh_runtime import Deny, hookimpl
from rk_notes import log
import rk_notes

inject = ["rules"]

def apply(ctx):
    log.append(f"+policy with rules {{ctx.rules.version}}")

    async def check(exec, next):
        log.append((exec.call_id, {version}, ctx.rules.version))
        return await next()

    ctx.on("tools/pre-execute", check)
    ctx.effect(lambda: lambda: log.append(f"-policy with rules {{ctx.rules.version}}"))
"""


@pytest.fixture
def governed(project: Project) -> Project:
    """A tool under a policy that uses a service, the policy in front of its provider."""
    project.config("policy = ./policy.py", "rules = ./rules.py", "tool = ./tool.py")
    project.write("policy.py", POLICY, version=1)
    project.write("rules.py", PROVIDER, version=1)
    project.write("tool.py", TOOL, version=1)
    return project


async def test_a_provider_is_reloaded_with_its_consumers_and_no_call_passes_the_policy(governed: Project) -> None:
    async with governed.running() as host:
        stop = False
        calls: list[Any] = []

        async def keep_calling() -> None:
            while not stop:
                calls.append(await governed.value())

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(keep_calling)
            for version in range(2, 20):
                report = await governed.save("rules.py", PROVIDER, version=version)
                assert ids(report.reloaded) == ["policy", "rules"] and report.ok
                assert report.reloaded[0].why == "it uses the service 'rules' of 'rules'"
            stop = True
        await host.reload.rest()
        checked = [entry for entry in governed.log if isinstance(entry, tuple)]
        assert len(checked) == len(calls) > 20
        assert [rules for _, _, rules in checked] == sorted(rules for _, _, rules in checked)


async def test_the_consumer_unloads_before_its_provider_and_reads_it_to_the_end(governed: Project) -> None:
    async with governed.running() as host:
        governed.log.clear()
        await governed.save("rules.py", PROVIDER, version=2)
        await host.reload.rest()
        assert governed.log == ["+policy with rules 2", "-policy with rules 1"]


async def test_a_consumer_that_fails_with_the_new_provider_keeps_both_as_they_were(governed: Project) -> None:
    async with governed.running():
        policy, rules = governed.fiber("policy"), governed.fiber("rules")
        report = await governed.save("rules.py", PROVIDER.replace("version =", "other ="), version=2)
        assert ids(report.kept) == ["policy", "rules"]
        problem = report.kept[0].problems[0]
        assert "'Rules' object has no attribute 'version'" in problem.message
        assert problem.location.file == str(governed.folder / "policy.py")
        assert "together with 'policy', which failed" in report.kept[1].problems[0].message
        assert (governed.fiber("policy"), governed.fiber("rules")) == (policy, rules)
        assert await governed.value() == 1
        report = await governed.save("rules.py", PROVIDER, version=3)
        assert report.ok and await governed.value() == 1 and governed.log[-1][1:] == (1, 3)


async def test_a_service_that_the_new_version_no_longer_provides_is_missed_by_name(governed: Project) -> None:
    async with governed.running():
        report = await governed.save("rules.py", "def apply(ctx): ...\n")
        assert "waits for the service 'rules', which nobody provides" in report.kept[0].problems[0].message
        assert await governed.value() == 1


async def test_a_change_of_the_consumer_alone_leaves_the_provider_alone(governed: Project) -> None:
    async with governed.running():
        rules = governed.fiber("rules")
        assert ids((await governed.save("policy.py", POLICY, version=2)).reloaded) == ["policy"]
        assert governed.fiber("rules") is rules
        await governed.value()
        assert governed.log[-1][1:] == (2, 1)


async def test_who_would_use_a_new_service_is_reloaded_with_the_plugin_that_brings_it(project: Project) -> None:
    """Otherwise it would restart afterwards, and calls would find the gate closed meanwhile."""
    user = """
    from rk_notes import log
    inject = {"extra": False}

    def apply(ctx):
        log.append(ctx.extra)
    """
    project.config("user = ./user.py", "maker = ./maker.py")
    project.write("user.py", user)
    project.write("maker.py", "def apply(ctx): ...\n")
    async with project.running() as host:
        closed: list[Any] = []
        host.ctx.on("plugin/state", lambda fiber, previous: closed.append(project.kernel.closed_by))
        report = await project.save("maker.py", "def apply(ctx):\n    ctx.provide('extra', 'there')\n")
        assert ids(report.reloaded) == ["maker", "user"] and project.log == [None, "there"]
        report = await project.save("maker.py", "def apply(ctx): ...\n")
        assert ids(report.reloaded) == ["user", "maker"] and project.log[-1] is None
        await host.reload.rest()
        assert set(closed) == {None}


async def test_a_chain_of_services_is_reloaded_as_a_whole_each_on_the_new_one_before_it(project: Project) -> None:
    link = """
    from rk_notes import log
    inject = {inject}

    def apply(ctx):
        value = {value}
        log.append(("{name}", value))
        ctx.provide("{name}", value)
    """
    project.config("c = ./c.py", "b = ./b.py", "a = ./a.py")
    project.write("a.py", link, name="a", inject=[], value=1)
    project.write("b.py", link, name="b", inject=["a"], value="ctx.a + 1")
    project.write("c.py", link, name="c", inject=["b"], value="ctx.b + 1")
    async with project.running():
        project.log.clear()
        report = await project.save("a.py", link, name="a", inject=[], value=10)
        assert ids(report.reloaded) == ["c", "b", "a"]
        assert project.log == [("a", 10), ("b", 11), ("c", 12)]


async def test_listeners_of_an_event_are_reloaded_with_the_plugin_that_declares_it(project: Project) -> None:
    declares = """
    from dsh_runtime import hookspec

    class Specs:
        @staticmethod
        @hookspec(mode="emit")
        def greet_said(word{more}): ...

    def apply(ctx):
        ctx.add_hookspecs(Specs)
        ctx.provide("say", lambda *words: ctx.emit("greet/said", *words))
    """
    project.config("greet = ./greet.py", "hears = ./hears.py")
    project.write("greet.py", declares, more="")
    hears = "from rk_notes import log\n\ndef apply(ctx):\n    ctx.on('greet/said', lambda word: log.append(word))\n"
    project.write("hears.py", hears)
    async with project.running() as host:
        host.ctx.say("one")
        report = await project.save("greet.py", declares, more=", loud")
        assert ids(report.reloaded) == ["greet", "hears"]
        host.ctx.say("two", True)
        await host.reload.rest()
        host.ctx.say("three", True)
        assert project.log == ["one", "two", "three"]
        report = await project.save("greet.py", "def apply(ctx):\n    ctx.provide('say', print)\n")
        assert "'greet/said', which no hookspec declares" in report.kept[1].problems[0].message
        host.ctx.say("four", True)
        assert project.log[-1] == "four"


async def test_a_child_plugin_goes_and_comes_with_its_parent_under_its_own_id(project: Project) -> None:
    source = """
    from rk_notes import log

    def apply(ctx):
        ctx.plugin(child)

    def child(ctx):
        log.append({version})
    """
    project.config("parent = ./parent.py")
    project.write("parent.py", source, version=1)
    async with project.running() as host:
        assert (await project.save("parent.py", source, version=2)).ok
        await host.reload.rest()
        assert [fiber.id for fiber in project.kernel.fibers] == ["parent", "child"]
        assert [fiber.id for fiber in project.fiber("parent").children] == ["child"]
        assert project.log == [1, 2]


async def test_a_user_below_another_plugin_takes_that_one_along(project: Project) -> None:
    project.config("rules = ./rules.py", "parent = ./parent.py")
    project.write("rules.py", PROVIDER, version=1)
    project.write(
        "parent.py",
        """
        from rk_notes import log

        class Child:
            inject = ["rules"]

            @staticmethod
            def apply(ctx):
                log.append(ctx.rules.version)

        def apply(ctx):
            ctx.plugin(Child)
        """,
    )
    async with project.running():
        report = await project.save("rules.py", PROVIDER, version=2)
        assert ids(report.reloaded) == ["rules", "parent"] and project.log == [1, 2]


async def test_an_instance_of_a_service_that_cannot_be_there_twice_stops_first(project: Project) -> None:
    class Meter(Service):
        name = "meter"
        inject = ("rules",)

        def start(self) -> None:
            project.log.append(("start", self.ctx.rules.version))

        def stop(self) -> None:
            project.log.append(("stop", self.ctx.rules.version))

    project.config("rules = ./rules.py")
    project.write("rules.py", PROVIDER, version=1)
    async with project.running(plugins=[Meter()]) as host:
        report = await project.save("rules.py", PROVIDER, version=2)
        assert ids(report.reloaded) == ["rules", "meter"]
        assert project.log == [("start", 1), ("stop", 1), ("start", 2)]
        assert host.ctx.meter.ctx is host.ctx and project.fiber("rules").state is State.ACTIVE


SHELF = """
from dsh_runtime import Service

class Shelf(Service):
    name = "shelf"

    def put(self, key, value):
        return self.keep(key, value)

    def all(self):
        return self.kept()
"""
READER = """
from rk_notes import log
inject = ["shelf"]

def apply(ctx):
    ctx.shelf.put("{key}", {version})
    log.append(("own", dict(ctx.shelf.all())))
    log.append(("others", dict(ctx.root.get("shelf").all())))
    {then}
"""


@pytest.fixture
def shelf(project: Project) -> Project:
    """A service that keeps values, and a plugin that has it keep one."""
    project.config("shelf = ./shelf.py:Shelf", "reader = ./reader.py")
    project.write("shelf.py", SHELF)
    project.write("reader.py", READER, key="a", version=1, then="pass")
    return project


def kept(project: Project) -> Any:
    return project.host.ctx.get("shelf").all()


async def test_what_a_service_keeps_for_a_plugin_is_exchanged_with_it_in_the_swap(shelf: Project) -> None:
    async with shelf.running():
        assert kept(shelf) == {"a": 1}
        shelf.log.clear()
        assert ids((await shelf.save("reader.py", READER, key="a", version=2, then="pass")).reloaded) == ["reader"]
        assert list(shelf.log) == [("own", {"a": 2}), ("others", {"a": 1})]
        assert kept(shelf) == {"a": 2}
        assert not (await shelf.save("reader.py", READER, key="b", version=3, then="1 / 0")).ok
        assert kept(shelf) == {"a": 2}
        assert (await shelf.save("reader.py", READER, key="b", version=4, then="pass")).ok
        assert kept(shelf) == {"b": 4}
        assert ids((await shelf.save("shelf.py", SHELF + "# changed")).reloaded) == ["shelf", "reader"]
        assert kept(shelf) == {"b": 4}


async def test_a_key_that_a_service_keeps_for_another_plugin_is_refused_naming_both(shelf: Project) -> None:
    async with shelf.running() as host:
        fiber = host.ctx.plugin(_Keeper("second", "a"))
        with pytest.raises(
            ClashError, match="'second' registers the value of 'shelf' under 'a', which plugin 'reader'"
        ):
            await fiber.wait()
        assert kept(shelf) == {"a": 1}


async def test_what_is_kept_through_a_scope_hides_what_stands_above_and_goes_with_the_scope(shelf: Project) -> None:
    async with shelf.running() as host:
        keeper = _Keeper("keeper", "mine")
        await host.ctx.plugin(keeper).wait()
        scope = keeper.ctx.scope("agent")
        scope.ctx.shelf.put("a", "its own")
        assert scope.ctx.shelf.all() == {"a": "its own", "mine": "keeper"}
        assert kept(shelf) == {"a": 1, "mine": "keeper"}
        await scope.dispose()
        assert keeper.ctx.shelf.all() == {"a": 1, "mine": "keeper"}


class _Keeper:
    inject = ("shelf",)

    def __init__(self, name: str, key: str) -> None:
        self.name, self.key = name, key

    def apply(self, ctx: Any) -> None:
        self.ctx = ctx
        ctx.shelf.put(self.key, self.name)
