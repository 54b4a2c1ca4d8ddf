"""Contract 2: whatever happens in whatever order, the plugins end where a simple model says, and nothing is left.

Plugins ask for services that the root or other plugins provide, mount children, hold effects of every kind. A random
sequence of wishes is made, without or with time between them; then everything settles.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import trio
import trio.testing
from attrs import frozen
from core_kit import left_over, settled
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_runtime import Context, DisposedError, Fiber, State
from dsh_runtime.core.kernel import open_kernel

ROOT_SERVICES = ("r0", "r1")
PLUGINS = 5
SERVICES = (*ROOT_SERVICES, *(f"p{n}" for n in range(PLUGINS)), *(f"c{n}" for n in range(PLUGINS)))


@frozen
class Traits:
    """What a plugin asks for and does; ``p<n>`` is what it provides, ``c<n>`` what its child provides."""

    required: frozenset[str]
    optional: frozenset[str]
    child: frozenset[str] | None
    fails: bool
    slow: bool


names = st.frozensets(st.sampled_from(SERVICES), max_size=2)
traits = st.builds(
    Traits,
    required=names,
    optional=names,
    child=st.none() | names,
    fails=st.sampled_from([False, False, False, True]),
    slow=st.booleans(),
)
slots = st.integers(0, PLUGINS - 1)
operations = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["mount", "mount", "dispose", "update", "replace"]), slots),
        st.tuples(st.sampled_from(["provide", "withdraw"]), st.sampled_from(ROOT_SERVICES)),
        st.tuples(st.just("pass"), st.integers(1, 6)),
        st.tuples(st.just("settle"), st.just(0)),
    ),
    max_size=30,
)


class World:
    """The plugins as they run, and a log of each life: what was done and what was undone."""

    def __init__(self, root: Context, plans: list[Traits]) -> None:
        self.root = root
        self.plans = plans
        self.mounted: dict[int, Fiber] = {}
        self.children: dict[int, Fiber] = {}
        self.undos: dict[str, Any] = {}
        self.lives: dict[int, list[str]] = defaultdict(list)
        self.running: dict[Fiber, int] = {}

    def plugin(self, slot: int) -> Any:
        plan = self.plans[slot]

        async def apply(ctx: Context) -> None:
            life = self.begin(ctx, f"p{slot}", slow=plan.slow)
            ctx.provide(f"p{slot}", object())
            if plan.slow:
                await trio.lowlevel.checkpoint()
            if plan.child is not None:
                self.children[slot] = ctx.plugin(self.child(slot, plan.child))
            life.append("+last")
            ctx.effect(lambda: lambda: life.append("-last"))
            if plan.fails:
                raise ValueError("made to fail")

        return _make(f"p{slot}", apply, plan.required, plan.optional)

    def child(self, slot: int, required: frozenset[str]) -> Any:
        def apply(ctx: Context) -> None:
            self.begin(ctx, f"c{slot}", slow=False)
            ctx.provide(f"c{slot}", object())

        return _make(f"c{slot}", apply, required, frozenset())

    def begin(self, ctx: Context, name: str, *, slow: bool) -> list[str]:
        """Effects of every kind: sync, generator, task, scope, async."""
        fiber = ctx.fiber
        life = self.lives[len(self.lives)]
        assert fiber not in self.running, "one life of a fiber at a time"
        self.running[fiber] = 1

        def effect(label: str) -> Any:
            life.append(f"+{label}")
            return lambda: life.append(f"-{label}")

        def over() -> None:
            del self.running[fiber]

        def steps() -> Any:
            yield effect("step 1")
            yield effect("step 2")

        async def wait() -> None:
            await trio.lowlevel.checkpoint()
            life.append("-waiting")

        async def task() -> None:
            life.append("+task")
            try:
                await trio.sleep_forever()
            finally:
                life.append("-task")

        ctx.effect(lambda: over)
        ctx.effect(lambda: effect("sync"))
        ctx.effect(steps)
        if slow:
            life.append("+waiting")
            ctx.effect(lambda: wait)
        ctx.start_soon(task)
        ctx.scope().ctx.effect(lambda: effect("scoped"))
        return life

    async def do(self, what: str, which: Any) -> None:
        fiber = self.mounted.get(which)
        if what == "mount" and fiber is None:
            self.mounted[which] = self.root.plugin(self.plugin(which), id=f"p{which}-{len(self.lives)}")
        elif what == "dispose" and fiber is not None:
            self.mounted.pop(which).dispose()
        elif what == "update" and fiber is not None:
            fiber.update(None)
        elif what == "replace" and fiber is not None and fiber.state is State.ACTIVE:
            try:
                fiber.ctx.provide(f"p{which}", object())
            except DisposedError:
                assert fiber.wants_change
        elif what == "provide":
            self.undos[which] = self.root.provide(which, object())
        elif what == "withdraw" and which in self.undos:
            self.undos.pop(which)()
        elif what == "pass":
            for _ in range(which):
                await trio.lowlevel.checkpoint()
        elif what == "settle":
            await settled(self.root)

    # What should be.

    def expected(self) -> set[str]:
        """Who is active: the least set that holds together."""
        active: set[str] = set()
        while True:
            there = active | set(self.undos)
            found = {f"p{n}" for n in self.mounted if self.plans[n].required <= there and not self.plans[n].fails}
            found |= {
                f"c{n}"
                for n in self.mounted
                if f"p{n}" in active and (child := self.plans[n].child) is not None and child <= there
            }
            if found == active:
                return active
            active = found

    def check(self) -> None:
        expected = self.expected()
        there = expected | set(self.undos)
        for slot, fiber in self.mounted.items():
            if not self.plans[slot].fails:
                assert fiber.state == ("active" if f"p{slot}" in expected else "pending")
            elif self.plans[slot].required <= there:
                assert fiber.state is State.FAILED
            else:
                assert fiber.state in (State.FAILED, State.PENDING)
            if f"p{slot}" in expected and slot in self.children:
                assert self.children[slot].state == ("active" if f"c{slot}" in expected else "pending")
        kernel = self.root.fiber.kernel
        for fiber in kernel.fibers:
            for name, entry in fiber.uses.items():
                now = kernel.provider(fiber, name)
                assert fiber.state is State.ACTIVE
                assert entry is now or not fiber.spec.inject[name], "nobody is left with a stale required service"
                assert entry is now or entry is None, "nor with a stale optional one"

    def check_lives(self) -> None:
        """Every effect is undone exactly once, last first (a task that was cancelled before it began did nothing)."""
        for life in self.lives.values():
            open_effects: list[str] = []
            for event in life:
                label = event[1:]
                if label == "task":
                    continue
                if event[0] == "+":
                    open_effects.append(label)
                else:
                    assert open_effects.pop() == label, life
            assert open_effects == [] and life.count("+task") == life.count("-task"), life


def _make(name: str, apply: Any, required: frozenset[str], optional: frozenset[str]) -> Any:
    inject = {**dict.fromkeys(sorted(optional), False), **dict.fromkeys(sorted(required), True)}
    return type("Made", (), {"name": name, "inject": inject, "apply": staticmethod(apply)})()


def in_virtual_time(main: Any) -> None:
    """Run ``main``; a deadlock is over at once, as an error."""

    async def limited() -> None:
        with trio.fail_after(1000):
            await main()

    trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))


plan_lists = st.lists(traits, min_size=PLUGINS, max_size=PLUGINS)


@settings(max_examples=150, deadline=None)
@given(plan_lists, operations)
def test_plugins_end_where_the_model_says_and_nothing_is_left(
    plans: list[Traits], wishes: list[tuple[str, Any]]
) -> None:
    async def main() -> None:
        async with open_kernel() as root:
            world = World(root, plans)
            for what, which in wishes:
                await world.do(what, which)
                if what == "settle":
                    world.check()
            await settled(root)
            world.check()
            await root.fiber.dispose()
            assert left_over(root) == {} and not world.running
            world.check_lives()
            assert trio.current_time() < 1, "nothing had to be given up at a deadline"

    in_virtual_time(main)


@settings(max_examples=80, deadline=None)
@given(plan_lists, operations, st.integers(0, 60))
def test_a_host_cancelled_at_any_point_leaves_nothing(
    plans: list[Traits], wishes: list[tuple[str, Any]], steps: int
) -> None:
    worlds: list[World] = []

    async def host() -> None:
        async with open_kernel() as root:
            world = World(root, plans)
            worlds.append(world)
            for what, which in wishes:
                await world.do(what, which)
            await settled(root)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        for world in worlds:
            assert left_over(world.root) == {} and not world.running
            world.check_lives()
        assert trio.current_time() < 1

    in_virtual_time(main)
