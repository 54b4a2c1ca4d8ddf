"""The short way from a call, and from its result, to what is written: half of the work of making and encoding events.

Nearly every record is of a call that entered or of one that succeeded, small, and without a secret. Its text is put
together here; ``None`` says that something is out of the ordinary, and has to go the long way. Both lead to the same
text.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from dsh_hookspecs import JsonValue, ToolExecution, ToolExecutionResult, ToolExecutionSuccess

from dsh_runtime.services.sessions.encode import Encoded
from dsh_runtime.tools.story import Story
from dsh_runtime.values.compact import dump

if TYPE_CHECKING:
    from dsh_runtime.services.sessions.encode import Redactor


def short_call(exec: ToolExecution, plugin: str | None, parent: str | None, redact: Redactor | None) -> Encoded | None:
    """The record of a call that entered."""
    call_id, name, arguments = exec.call_id, exec.name, exec.arguments
    if parent is not None or exec.root_call_id != call_id or arguments is None:
        return None
    said: dict[str, Any] = {"call_id": call_id, "name": name, "arguments": arguments}
    if redact is not None and redact.value(said) is not said:
        return None
    owner = "" if plugin is None else f'"plugin":{encode_basestring(plugin)},'
    text = (
        f'{{"call_id":{encode_basestring(call_id)},"name":{encode_basestring(name)},'
        f'"digest":"{exec.digest}",{owner}"arguments":{dump(arguments)}}}'
    )
    return Encoded(text, {"name": name}) if _is_sound(text) else None


def short_success(
    result: ToolExecutionResult, story: object, views: JsonValue, ms: float, redact: Redactor | None
) -> Encoded | None:
    """The record of a success."""
    if type(result) is not ToolExecutionSuccess or views is not None or result.meta is not None:
        return None
    if type(story) is not Story or story.detailed:
        return None
    content: Any = result.content
    said: dict[str, Any] = {"content": content}
    if redact is not None and redact.value(said) is not said:
        return None
    text = f'{{"outcome":"success","ms":{ms!r},"content":{dump(content)},"story":{story.as_text()}}}'
    return Encoded(text, {"outcome": "success"}) if _is_sound(text) else None


def _is_sound(text: str) -> bool:
    """Whether UTF-8 can carry a text."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True
