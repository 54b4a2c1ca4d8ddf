"""Whether a host runs programs: what ``[host.code]`` means, and the host's own plugins that it mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, fields

from dsh_runtime.loader.errors import ConfigProblem
from dsh_runtime.loader.model import HostConfig

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.loader.settings import CodeSettings, Presentation

RUNTIME: Final = "code-runtime"
CODE_MODE: Final = "code-mode"
_PRESENTATION: Final = ("host", "presentation")


def runs_programs(config: HostConfig) -> bool:
    """Whether Code Mode is on: as the config says, else where its table stands or the presentation needs it."""
    stated = any(path[:2] == ("host", "code") for path in config.trace.places)
    return config.host.code.enabled and (stated or config.host.presentation != "native")


def mount_code_mode(ctx: Context, settings: CodeSettings) -> dict[str, Fiber]:
    """Mount the runtime, unless a plugin of the config is to provide one, and what makes a tool of it."""
    from dsh_runtime.code_mode.config import CodeModeConfig
    from dsh_runtime.code_mode.service import CodeMode

    fibers = {}
    if settings.runtime == "subprocess":
        from dsh_runtime.code_mode.runtime.config import CodeRuntimeConfig
        from dsh_runtime.code_mode.runtime.service import SubprocessRuntime

        runtime = SubprocessRuntime(_part_of(settings, CodeRuntimeConfig))
        fibers[RUNTIME] = ctx.plugin(runtime, id=RUNTIME)
    code_mode = CodeMode(_part_of(settings, CodeModeConfig))
    fibers[CODE_MODE] = ctx.plugin(code_mode, id=CODE_MODE)
    return fibers


def presentation_problems(config: HostConfig) -> list[ConfigProblem]:
    """In the modes that need programs, a host that runs none has nothing to show a model."""
    mode = config.host.presentation
    if mode == "native" or config.host.code.enabled:
        return []
    text = (
        f"presentation = '{mode}' shows a model the tool 'run_code', which [host.code] enabled = false switches off; "
        "use 'native', or leave Code Mode on"
    )
    return [ConfigProblem(_PRESENTATION, text, config.where(_PRESENTATION))]


def for_people(config: HostConfig) -> HostConfig:
    """The same config for a host whose tools a person calls, or looks at, by hand.

    Where models see programs alone, the tools can be called all the same; no interpreter is kept ready for a program
    that nobody is going to run.
    """
    host = config.host
    presentation: Presentation = "both" if host.presentation == "code" and host.code.enabled else host.presentation
    return evolve(config, host=evolve(host, presentation=presentation, code=evolve(host.code, spares=0)))


def for_program(config: HostConfig) -> HostConfig:
    """The same config for a host that is to run one program of a person's."""
    return for_people(evolve(config, host=evolve(config.host, presentation="both")))


def _part_of(settings: CodeSettings, cls: type[Any]) -> Any:
    """The settings that a part of Code Mode knows; names and meaning are the same."""
    return cls(**{attribute.name: getattr(settings, attribute.name) for attribute in fields(cls)})
