"""Views: what a UI needs to show a call or its result, neutral of any UI.

A tool's ``present_call(args)`` gives a pending view, its ``present_result(args, result)`` a completed one. The tag
``card`` tells a UI how to draw it; a UI that does not know a card shows the raw content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from attrs import Attribute, field, frozen
from attrs.validators import deep_iterable, ge, in_, instance_of, optional

from dsh_hookspecs._json import Content, JsonValue

ToolCallKind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "fetch", "other"]

_text = instance_of(str)
_maybe_text = optional(_text)
_kind = optional(in_(get_args(ToolCallKind)))


def _count(instance: object, attribute: Attribute[Any], value: object) -> None:
    if type(value) is not int or value < 0:
        raise ValueError(f"{type(instance).__name__}.{attribute.name} is a count (an int, 0 or more), not {value!r}")


def _line(instance: object, attribute: Attribute[Any], value: object) -> None:
    if type(value) is not int or value < 1:
        raise ValueError(f"{type(instance).__name__}.{attribute.name} is a line number (an int from 1), not {value!r}")


def _blocks(instance: object, attribute: Attribute[Any], value: object) -> None:
    good = isinstance(value, (list, tuple)) and all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in value
    )
    if not good:
        raise ValueError(f"{type(instance).__name__}.{attribute.name} is a list of blocks that each have a 'type'")


def _texts(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(items)


@frozen
class FileLocation:
    """A file, and perhaps a line (from 1), that a call reads or changes."""

    path: str = field(validator=_text)
    line: int | None = field(default=None, validator=optional(_line))


def _locations(items: Iterable[FileLocation]) -> tuple[FileLocation, ...]:
    return tuple(items)


@frozen
class FileDiff:
    """One change of one file; ``old_text`` is ``None`` for a new file."""

    path: str = field(validator=_text)
    old_text: str | None = field(validator=_maybe_text)
    new_text: str = field(validator=_text)


def _diffs(items: Iterable[FileDiff]) -> tuple[FileDiff, ...]:
    return tuple(items)


@frozen
class ReadLine:
    """One line of a file window: its number (from 1) and its text without the line ending."""

    number: int = field(validator=_line)
    text: str = field(validator=_text)


def _lines(items: Iterable[ReadLine]) -> tuple[ReadLine, ...]:
    return tuple(items)


@frozen
class SearchMatch:
    """One matching line."""

    line_number: int = field(validator=_line)
    line: str = field(validator=_text)


def _matches(items: Iterable[SearchMatch]) -> tuple[SearchMatch, ...]:
    return tuple(items)


@frozen
class SearchFile:
    """The matches of one file."""

    path: str = field(validator=_text)
    matches: Sequence[SearchMatch] = field(converter=_matches, validator=deep_iterable(instance_of(SearchMatch)))


def _files(items: Iterable[SearchFile]) -> tuple[SearchFile, ...]:
    return tuple(items)


@frozen
class WebSource:
    """One source that a web search found."""

    url: str = field(validator=_text)
    title: str | None = field(default=None, validator=_maybe_text)
    snippet: str | None = field(default=None, validator=_maybe_text)
    published_at: str | None = field(default=None, validator=_maybe_text)


def _sources(items: Iterable[WebSource]) -> tuple[WebSource, ...]:
    return tuple(items)


@frozen
class GenericCall:
    """The default card of a pending call."""

    card: ClassVar[str] = "generic"
    title: str = field(validator=_text)
    kind: ToolCallKind | None = field(default=None, validator=_kind)
    raw_input: JsonValue = None
    content: Content | None = field(default=None, validator=optional(_blocks))
    locations: Sequence[FileLocation] = field(
        default=(), converter=_locations, validator=deep_iterable(instance_of(FileLocation)), kw_only=True
    )


@frozen
class TerminalCall:
    """A command that is about to run."""

    card: ClassVar[str] = "terminal"
    title: str = field(validator=_text)
    description: str | None = field(default=None, validator=_maybe_text)
    cwd: str | None = field(default=None, validator=_maybe_text)


@frozen
class DiffCall:
    """A change that is about to be made."""

    card: ClassVar[str] = "diff"
    title: str = field(validator=_text)
    diffs: Sequence[FileDiff] = field(converter=_diffs, validator=deep_iterable(instance_of(FileDiff)))
    locations: Sequence[FileLocation] = field(
        default=(), converter=_locations, validator=deep_iterable(instance_of(FileLocation)), kw_only=True
    )


@frozen
class GenericResult:
    """The default card of a completed call."""

    card: ClassVar[str] = "generic"
    title: str | None = field(default=None, validator=_maybe_text)
    content: Content | None = field(default=None, validator=optional(_blocks))


@frozen
class TerminalResult:
    """What a command printed and how it ended."""

    card: ClassVar[str] = "terminal"
    title: str | None = field(default=None, validator=_maybe_text)
    output: str | None = field(default=None, validator=_maybe_text)
    exit_code: int | None = field(default=None, validator=optional(instance_of(int)))
    signal: str | None = field(default=None, validator=_maybe_text)


@frozen
class DiffResult:
    """The change that was made."""

    card: ClassVar[str] = "diff"
    diffs: Sequence[FileDiff] = field(converter=_diffs, validator=deep_iterable(instance_of(FileDiff)))
    title: str | None = field(default=None, validator=_maybe_text)


@frozen
class SearchResult:
    """What a search found: grouped ``files`` for shape ``matches``, flat ``paths`` for shape ``paths``.

    ``truncated`` and ``total`` say whether the view holds everything, so that no UI passes a part off as the whole.
    """

    card: ClassVar[str] = "search"
    shape: Literal["matches", "paths"] = field(validator=in_(("matches", "paths")))
    truncated: bool = field(validator=instance_of(bool))
    total: int = field(validator=_count)
    files: Sequence[SearchFile] = field(
        default=(), converter=_files, validator=deep_iterable(instance_of(SearchFile)), kw_only=True
    )
    paths: Sequence[str] = field(default=(), converter=_texts, validator=deep_iterable(instance_of(str)), kw_only=True)
    title: str | None = field(default=None, validator=_maybe_text)


@frozen
class ReadResult:
    """A window of a file; ``offset`` is the first line that was asked for, kept when ``lines`` is empty."""

    card: ClassVar[str] = "read"
    path: str = field(validator=_text)
    offset: int = field(validator=[instance_of(int), ge(1)])
    lines: Sequence[ReadLine] = field(converter=_lines, validator=deep_iterable(instance_of(ReadLine)))
    total_lines: int = field(validator=_count)
    title: str | None = field(default=None, validator=_maybe_text)
    lang: str | None = field(default=None, validator=_maybe_text)
    content: Content | None = field(default=None, validator=optional(_blocks))


@frozen
class WebSearchResult:
    """What a web search found."""

    card: ClassVar[str] = "web"
    kind: ClassVar[str] = "search"
    sources: Sequence[WebSource] = field(converter=_sources, validator=deep_iterable(instance_of(WebSource)))
    truncated: bool = field(validator=instance_of(bool))
    answer: str | None = field(default=None, validator=_maybe_text)
    title: str | None = field(default=None, validator=_maybe_text)


@frozen
class WebFetchResult:
    """What a web fetch gave."""

    card: ClassVar[str] = "web"
    kind: ClassVar[str] = "fetch"
    url: str = field(validator=_text)
    status_code: int = field(validator=instance_of(int))
    truncated: bool = field(validator=instance_of(bool))
    title: str | None = field(default=None, validator=_maybe_text)


ToolCallView: TypeAlias = GenericCall | TerminalCall | DiffCall
ToolResultView: TypeAlias = (
    GenericResult | TerminalResult | DiffResult | SearchResult | ReadResult | WebSearchResult | WebFetchResult
)
