"""What the streams of this plugin have in common."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class ClosingStream:
    """The part of a stream that the SDK needs beside its one verb."""

    async def aclose(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()
