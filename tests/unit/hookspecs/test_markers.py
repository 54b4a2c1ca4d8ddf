"""The markers: what a hookspec says of its event."""

from __future__ import annotations

import inspect

import pytest
from dsh_hookspecs import EventInfo, event_name, hook_name, hookimpl, hookspec, specs

SPECS = {name: fn for name, fn in vars(specs).items() if isinstance(getattr(fn, "dsh_event", None), EventInfo)}


def test_a_hookspec_states_its_event_and_mode() -> None:
    @hookspec(mode="waterfall", returns=(str,))
    def demo_ask_twice() -> str:
        return ""

    assert demo_ask_twice.dsh_event == EventInfo("demo/ask-twice", "waterfall", (str,))  # type: ignore[attr-defined]


def test_a_hookimpl_keeps_its_function() -> None:
    def listener() -> None: ...

    assert hookimpl(tryfirst=True)(listener) is listener


@pytest.mark.parametrize("name", SPECS)
def test_every_hook_of_the_host_is_named_after_its_event(name: str) -> None:
    info = SPECS[name].dsh_event
    assert hook_name(info.name) == name and event_name(name) == info.name


@pytest.mark.parametrize("name", SPECS)
def test_every_hook_of_the_host_is_annotated_and_explained(name: str) -> None:
    function = SPECS[name]
    signature = inspect.signature(function)
    assert function.__doc__ and signature.return_annotation is not signature.empty
    assert all(parameter.annotation is not parameter.empty for parameter in signature.parameters.values())


@pytest.mark.parametrize("name", SPECS)
def test_every_waterfall_of_the_host_has_next_and_states_its_answers_and_no_emit_does(name: str) -> None:
    info = SPECS[name].dsh_event
    waterfall = info.mode == "waterfall"
    assert ("next" in inspect.signature(SPECS[name]).parameters) == waterfall == bool(info.returns)


@pytest.mark.parametrize("name", ["tools_result", "tools_change", "tools_progress"])
def test_the_listeners_of_what_calls_tell_are_sync(name: str) -> None:
    assert SPECS[name].dsh_event.sync_only
