"""Rows of globs, and how far they cover a value: not at all, in part, or as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, Protocol

from attrs import frozen
from dsh_hookspecs import JsonValue

from dsh_plugin_permission_gate._forms import fold, path_forms, posix_normal, text_forms
from dsh_plugin_permission_gate._glob import Glob, GlobError, compile_glob


class Cover(IntEnum):
    """How much of what was looked at is matched: a deny needs a part, an allow needs the whole."""

    NONE = 0
    PART = 1
    WHOLE = 2


#: The members as plain names: each call looks several times, and an attribute of an enum costs four names.
NONE: Final = Cover.NONE
PART: Final = Cover.PART
WHOLE: Final = Cover.WHOLE


class ValueGlobs(Protocol):
    """Globs that are held against a value of the arguments."""

    @property
    def sources(self) -> Sequence[str]: ...
    def cover(self, value: JsonValue) -> Cover: ...


@frozen
class Globs:
    """Globs of which any may match a text.

    Those that come down to fixed texts are looked up together, which is what keeps a call cheap; ``others`` are the
    rest.
    """

    sources: tuple[str, ...]
    wholes: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    parts: tuple[str, ...]
    others: tuple[Glob, ...]

    def match(self, text: str) -> bool:
        """Whether one of the globs covers the whole text."""
        if text in self.wholes or text.startswith(self.starts) or text.endswith(self.ends):
            return True
        for part in self.parts:
            if part in text:
                return True
        return bool(self.others) and any(glob.matches(text) for glob in self.others)


@frozen
class TextGlobs:
    """Globs held against a value as text."""

    _globs: Globs

    @property
    def sources(self) -> Sequence[str]:
        return self._globs.sources

    def cover(self, value: JsonValue) -> Cover:
        if isinstance(value, str):
            return WHOLE if self._globs.match(value) else NONE
        return _level([self._globs.match(form) for form in text_forms(value)])


@frozen
class PathGlobs:
    """Globs held against every form of a file's name; ``_folded`` are the same globs, levelled as those forms are."""

    _exact: Globs
    _folded: Globs

    @property
    def sources(self) -> Sequence[str]:
        return self._exact.sources

    def cover(self, value: JsonValue) -> Cover:
        exact, folded = path_forms(value)
        hits = [self._exact.match(form) for form in exact]
        if folded is not exact or self._folded is not self._exact:
            hits += [self._folded.match(form) for form in folded]
        return _level(hits)


def together(covers: Iterable[Cover]) -> Cover:
    """The cover of several values that a rule looks at in one place: none if there are none."""
    seen = set(covers)
    if len(seen) > 1:
        return PART
    return seen.pop() if seen else NONE


def _level(hits: Sequence[bool]) -> Cover:
    if False not in hits:
        return WHOLE
    return PART if True in hits else NONE


def globs(sources: Iterable[str]) -> Globs:
    """Compile a row of globs; raise :class:`GlobError` for the first that is none."""
    compiled = [compile_glob(source) for source in sources]
    fixed = [anchor for glob in compiled for anchor in glob.anchors]
    return Globs(
        sources=tuple(glob.source for glob in compiled),
        wholes=frozenset(anchor.text for anchor in fixed if anchor.where == "whole"),
        starts=tuple(anchor.text for anchor in fixed if anchor.where == "start"),
        ends=tuple(anchor.text for anchor in fixed if anchor.where == "end"),
        parts=tuple(anchor.text for anchor in fixed if anchor.where == "anywhere"),
        others=tuple(glob for glob in compiled if not glob.anchors),
    )


def text_globs(sources: Iterable[str]) -> TextGlobs:
    return TextGlobs(globs(sources))


def path_globs(sources: Sequence[str]) -> PathGlobs:
    """Compile globs for names of files; raise :class:`GlobError` where one is not in normal form."""
    for source in sources:
        _assert_normal(source)
    exact, folded = globs(sources), globs(fold(source) for source in sources)
    return PathGlobs(exact, exact if exact == folded else folded)


def _assert_normal(source: str) -> None:
    normal = posix_normal(source.replace("\\", "/"))
    if normal != source:
        raise GlobError(f"path glob {source!r} is not in normal form, so no name would match it; write {normal!r}")
