"""Contract 3.2, 3.6: the order of listeners, against an oracle that walks the plan of the plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import trio
from attrs import field, frozen
from core_kit import Specs, settled
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_runtime import Context, hookimpl
from dsh_runtime.core.kernel import open_kernel

SCOPES = {None: None, "top": None, "low": "top", "side": "top"}
BANDS = {"first": -1, "ordinary": 0, "last": 1}


@frozen
class Hook:
    """A ``@hookimpl`` function; hooks have the scope of their plugin."""

    label: str
    band: str


@frozen
class On:
    """A ``ctx.on``, for a scope or for none; ``late`` ones come when everything has been applied."""

    label: str
    band: str
    scope: str | None
    late: bool


@frozen
class Plan:
    """A plugin: hooks, then listeners and children as they come."""

    hooks: tuple[Hook, ...] = ()
    actions: tuple[Any, ...] = ()
    fibers: list[Any] = field(factory=list, eq=False)


labels = st.integers(0, 10**9).map(str)
hooks = st.builds(Hook, labels, st.sampled_from(["first", "ordinary", "last"]))
listeners = st.builds(On, labels, st.sampled_from(["first", "ordinary"]), st.sampled_from(list(SCOPES)), st.booleans())
leaves = st.builds(Plan, st.lists(hooks, max_size=3).map(tuple), st.lists(listeners, max_size=4).map(tuple))
plans = st.recursive(
    leaves,
    lambda inner: st.builds(
        Plan, st.lists(hooks, max_size=2).map(tuple), st.lists(listeners | inner, max_size=4).map(tuple)
    ),
    max_leaves=8,
)


def oracle(forest: list[Plan], scope: str | None) -> list[str]:
    """Band, then the place in the tree, then the sequence within the plugin, late listeners at its end."""
    chain = [None]
    while scope is not None:
        chain.append(scope)
        scope = SCOPES[scope]
    walked = [entry for plan in forest for entry in walk(plan)]
    return [label for band, of, label in sorted(walked, key=lambda entry: BANDS[entry[0]]) if of in chain]


def walk(plan: Plan) -> Iterator[tuple[str, str | None, str]]:
    for hook in plan.hooks:
        yield hook.band, None, hook.label
    for action in plan.actions:
        if isinstance(action, Plan):
            yield from walk(action)
        elif not action.late:
            yield action.band, action.scope, action.label
    for action in plan.actions:
        if isinstance(action, On) and action.late:
            yield action.band, action.scope, action.label


class Planned:
    """A plugin that does what its plan says."""

    name = "planned"

    def __init__(self, plan: Plan, heard: list[str]) -> None:
        self._plan = plan
        self._heard = heard
        for n, hook in enumerate(plan.hooks):
            mark = hookimpl(specname="demo_seen", tryfirst=hook.band == "first", trylast=hook.band == "last")
            setattr(self, f"hook_{n}", mark(self._listener(hook.label)))

    def _listener(self, label: str) -> Any:
        return lambda what: self._heard.append(label)

    def apply(self, ctx: Context) -> None:
        self._plan.fibers[:] = [ctx.fiber]
        for action in self._plan.actions:
            if isinstance(action, Plan):
                ctx.plugin(Planned(action, self._heard))
            elif not action.late:
                self.listen(ctx, action)

    def listen(self, ctx: Context, on: On) -> None:
        where = ctx if on.scope is None else ctx.scope(on.scope).ctx
        where.on("demo/seen", self._listener(on.label), prepend=on.band == "first")


def every(forest: list[Plan]) -> Iterator[Plan]:
    for plan in forest:
        yield plan
        yield from every([action for action in plan.actions if isinstance(action, Plan)])


@settings(max_examples=120, deadline=None)
@given(st.lists(plans, max_size=4), st.data())
def test_listeners_run_by_band_then_position_then_sequence(forest: list[Plan], data: st.DataObject) -> None:
    heard: list[str] = []

    async def main() -> None:
        async with open_kernel() as root:
            root.add_hookspecs(Specs)
            for scope, parent in SCOPES.items():
                if scope is not None:
                    root.scope(scope, parent)
            for plan in forest:
                root.plugin(Planned(plan, heard))
            await settled(root)
            await reload(root)
            for plan in data.draw(st.permutations(list(every(forest)))):
                register_late(plan)
            for scope in SCOPES:
                heard.clear()
                root.emit("demo/seen", "x", 1, scope=scope)
                assert heard == oracle(forest, scope)

    async def reload(root: Context) -> None:
        """A reloaded plugin keeps its place."""
        mounted = [plan.fibers[0] for plan in forest]
        for fiber in data.draw(st.lists(st.sampled_from(mounted), max_size=3)) if mounted else ():
            await fiber.update(None)
        await settled(root)

    def register_late(plan: Plan) -> None:
        fiber = plan.fibers[0]
        for action in plan.actions:
            if isinstance(action, On) and action.late:
                fiber.spec.source.listen(fiber.ctx, action)

    trio.run(main)


async def test_a_child_sits_where_it_was_mounted(root: Context) -> None:
    heard: list[str] = []
    root.add_hookspecs(Specs)

    def apply(ctx: Context) -> None:
        ctx.on("demo/seen", lambda: heard.append("before"))
        ctx.plugin(lambda ctx: ctx.on("demo/seen", lambda: heard.append("child")))
        ctx.on("demo/seen", lambda: heard.append("after"))

    root.plugin(apply)
    await settled(root)
    root.emit("demo/seen", "x", 1)
    assert heard == ["before", "child", "after"]


async def test_prepend_goes_in_front_of_everything_that_is_not_in_its_band(root: Context) -> None:
    heard: list[str] = []
    root.add_hookspecs(Specs)
    for name in ("a", "b"):
        root.on("demo/seen", _append(heard, name))
        root.on("demo/seen", _append(heard, f"first {name}"), prepend=True)
    root.emit("demo/seen", "x", 1)
    assert heard == ["first a", "first b", "a", "b"]


def _append(heard: list[str], name: str) -> Any:
    return lambda: heard.append(name)
