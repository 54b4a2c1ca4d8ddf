"""The service ``system_prompt``: collects what plugins have to tell a model, for whoever runs one.

Sections stand in the order of their plugins. One that is made through a scope's context is that scope's own, and takes
the place of the section of the same title above it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final, TypeAlias

from attrs import frozen
from dsh_hookspecs import HarnessError

from dsh_runtime.core.context import Context
from dsh_runtime.core.events import describe_function, is_async
from dsh_runtime.core.services import Service

SECTION: Final = "prompt-section"
Undo: TypeAlias = Callable[[], Any]
#: A section's text, or what gives it for a scope (``None`` for the host): ``None`` where there is nothing to say.
SectionText: TypeAlias = str | Callable[[Hashable | None], str | None]


class PromptError(HarnessError):
    """A section cannot be registered, or has failed to give its text."""

    default_code = "PROMPT_INVALID"


@frozen
class PromptSection:
    """A section as a model gets to read it, and the plugin that it comes from."""

    title: str
    text: str
    plugin: str


@frozen(eq=False)
class _Source:
    title: str
    text: SectionText
    plugin: str


class SystemPrompt(Service):
    """Sections by title; what is registered through a scope's context is that scope's own."""

    name: ClassVar[str] = "system_prompt"

    def section(self, title: str, text: SectionText) -> Undo:
        """Contribute a section; give back the undo. A second one of the same title in one layer is refused.

        ``text`` may be a sync function, which gets the scope that is asked for each time that it is.
        """
        owner = f"plugin {self.ctx.fiber.id!r}"
        if not isinstance(title, str) or not title.strip() or "\n" in title:
            raise PromptError(f"{owner} gives a section the title {title!r:.80}; a title is one line that is not empty")
        if not isinstance(text, str) and (not callable(text) or is_async(text)):
            raise PromptError(f"{owner} gives the section {title!r} {text!r:.80}; give a text, or a sync function")
        return self.ctx.register(SECTION, _Source(title, text, self.ctx.fiber.id), key=title)

    def sections(self, scope: Hashable | None = None) -> list[PromptSection]:
        """What the model of a scope is to read, in order. A section that fails is an error that names its plugin."""
        kernel = self.ctx.fiber.kernel
        chain = kernel.scopes.chain(scope)
        found: dict[Hashable, Any] = {}
        for layer in (None, *reversed(chain)):
            found.update({entry.key: entry for entry in kernel.ledger.group(SECTION, layer)})
        entries = sorted(found.values(), key=lambda entry: entry.order)
        made = ((entry.value, _text_of(entry.value, scope)) for entry in entries)
        return [PromptSection(source.title, text, source.plugin) for source, text in made if text]

    def text(self, scope: Hashable | None = None) -> str:
        """The sections as one text, each below its title."""
        return "\n\n".join(f"# {section.title}\n\n{section.text}" for section in self.sections(scope))


def _text_of(source: _Source, scope: Hashable | None) -> str:
    if isinstance(source.text, str):
        return source.text
    name, place = describe_function(source.text)
    where = f"plugin {source.plugin!r}, section {source.title!r} ({name}{place})"
    try:
        text = source.text(scope)
    except Exception as error:
        raise PromptError(f"{where} raised {type(error).__name__}: {error}", code="PROMPT_FAILED") from error
    if text is not None and not isinstance(text, str):
        raise PromptError(f"{where} gave {text!r:.80}; give a text, or None", code="PROMPT_FAILED")
    return text or ""


def install(ctx: Context) -> None:
    """Give a kernel the service ``system_prompt``, as the host's own."""
    service = SystemPrompt()
    service.ctx = ctx
    service.start()
    ctx.provide("system_prompt", service)
