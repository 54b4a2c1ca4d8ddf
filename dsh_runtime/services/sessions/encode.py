"""From an event to the JSON text of its payload: masked, bounded, on one line.

A payload of ordinary size is masked and encoded whole. A larger one is first cut to a window somewhat larger than the
limit, so that neither time nor memory follow the size of a giant; then it is masked, so that a secret that the limit
cuts in two is whole when the redactor looks; then it is cut to the limit.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import define
from dsh_hookspecs import JsonValue, ToolExecutionFailure, ToolExecutionResult

from dsh_runtime.services.sessions.bounds import cut_down, json_size, weighs_more
from dsh_runtime.tools.story import Story
from dsh_runtime.values.compact import dump

if TYPE_CHECKING:
    from dsh_runtime.services.sessions.events import Event

#: How far beyond the limit the redactor sees.
MARGIN: Final = 65_536
#: Above so many characters a payload is encoded in a worker thread.
LARGE: Final = 32_768
_SHORT: Final = 1_000
#: A story of so many steps is a large one.
LONG: Final = 100
#: The members that the host writes itself; of a story, that is all but the details.
_OWN: Final = frozenset(
    {"code", "cut", "deadline", "digest", "front_door", "is_error", "ms", "outcome", "pid"}
    | {"plugin", "previous", "state"}
)

_log = logging.getLogger(__name__)


class Redactor(Protocol):
    """What the service ``redact`` offers."""

    def text(self, text: str) -> str: ...
    def value(self, value: JsonValue) -> JsonValue: ...


@define
class Encoded:
    """A payload as it is written: its text, its masked members, and whether the redactor failed.

    Of a short one, the members are those alone that stand in a column of their own.
    """

    text: str
    payload: dict[str, Any]
    withheld: str | None = None


def encode(event: Event, redact: Redactor | None, limit: int, *, small: bool = False) -> Encoded:
    """Mask and encode an event. What the redactor fails on is withheld, never written as it is.

    ``small`` says that :func:`is_large` has looked.
    """
    payload = event.payload()
    story = payload.get("story")
    try:
        if type(story) is Story:
            if small and not story.detailed and limit >= LARGE:
                return _encode_told(payload, story, redact)
            payload["story"] = story.as_json()
        if not (small and limit >= LARGE) and weighs_more(payload, limit):
            return _encode_large(payload, redact, limit)
        masked = _masked(payload, redact)
        text = dump(masked)
        return Encoded(text, masked) if len(text) * 4 <= limit else _within(text, payload, masked, limit)
    except RecursionError:
        return _encode_large(payload, redact, limit)
    except Exception as error:
        return _withheld(event, error)


def is_large(event: Event) -> bool:
    """Whether encoding takes long enough to do it elsewhere: a look at those members alone that may be large."""
    members = event.__dict__
    for name in event.large:
        value = members[name]
        if value is not None and (len(value) > LONG if type(value) is Story else weighs_more(value, LARGE)):
            return True
    return False


def result_is_large(result: ToolExecutionResult, story: Sequence[JsonValue] | None, views: JsonValue) -> bool:
    """The same of a result of which no event has been made yet."""
    if weighs_more(result.content, LARGE) or (story is not None and len(story) > LONG):
        return True
    if isinstance(result, ToolExecutionFailure) and len(result.error.message) > LARGE:
        return True
    if result.meta is None and views is None:
        return False
    return weighs_more(result.meta, LARGE) or weighs_more(views, LARGE)


def key_text(text: str) -> str:
    """A name or id as it stands in its own column: short, and without lone surrogates."""
    short = text if len(text) <= _SHORT else text[:_SHORT]
    return short if short.isascii() else short.encode("utf-8", "backslashreplace").decode()


def _masked(payload: dict[str, Any], redact: Redactor | None) -> dict[str, Any]:
    """The payload as the redactor leaves it; what the host has written itself, it is not shown."""
    if redact is None:
        return payload
    theirs: dict[str, Any] = {name: value for name, value in payload.items() if name not in _OWN}
    story = theirs.get("story")
    if isinstance(story, list):
        theirs["story"] = [step["detail"] for step in story if _has_detail(step)]
    masked = redact.value(theirs)
    if masked is theirs:
        return payload
    if not isinstance(masked, dict):
        raise TypeError(f"the redactor made a {type(masked).__name__} of an object")
    if isinstance(story, list):
        masked = {**masked, "story": _with_details(story, masked.get("story"))}
    return {**{name: value for name, value in payload.items() if name in _OWN}, **masked}


def _encode_told(payload: dict[str, Any], story: Story, redact: Redactor | None) -> Encoded:
    """A small payload with a story in which there is nothing that anybody but the host has said."""
    del payload["story"]
    masked = _masked(payload, redact)
    return Encoded(f'{dump(masked)[:-1]},"story":{story.as_text()}}}', masked)


def _with_details(story: list[Any], details: Any) -> Any:
    """The steps of a story with masked details in their places."""
    if not isinstance(details, list) or len(details) != sum(map(_has_detail, story)):
        return details
    left = iter(details)
    return [{**step, "detail": next(left)} if _has_detail(step) else step for step in story]


def _has_detail(step: Any) -> bool:
    return isinstance(step, dict) and "detail" in step


def _within(text: str, payload: dict[str, Any], masked: dict[str, Any], limit: int) -> Encoded:
    """The text if its bytes keep the limit, else a shorter one."""
    if _bytes(text) <= limit:
        return Encoded(text, masked)
    return _cut_to(masked, json_size(payload), limit)


def _encode_large(payload: dict[str, Any], redact: Redactor | None, limit: int) -> Encoded:
    size = json_size(payload)
    window = cut_down(payload, 2 * (limit + MARGIN))
    return _cut_to(_masked(window, redact), size, limit)


def _cut_to(masked: dict[str, Any], size: int, limit: int) -> Encoded:
    """Cut until the bytes keep the limit; a character takes up to six of them."""
    budget = limit
    while True:
        payload = {"cut": size, **cut_down(masked, budget, tail=MARGIN)}
        text = dump(payload)
        length = _bytes(text)
        if length <= limit or budget < 64:
            return Encoded(text, payload)
        budget = min(budget - 64, int(budget * limit / length * 0.95))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _withheld(event: Event, error: Exception) -> Encoded:
    """The event without its large members, and why."""
    why = f"not recorded, for the redactor raised {type(error).__name__}"
    _log.error("the redactor failed on a record of type %r; its content is withheld", event.type, exc_info=error)
    kept = {name: value for name, value in event.payload().items() if name not in event.large}
    payload: dict[str, Any] = {**cut_down(kept, _SHORT * 8), "withheld": why}
    return Encoded(dump(payload), payload, why)
