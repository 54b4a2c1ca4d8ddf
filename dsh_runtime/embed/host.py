"""The embedded host, and the sessions in which its callers make calls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import trio
from dsh_hookspecs import AbortController, AbortSignal, HarnessError, ToolExecutionResult

from dsh_runtime.embed.thread import Inside, TrioThread
from dsh_runtime.loader.host import ConfigSource, Host, open_host
from dsh_runtime.tools.definition import ToolExecutionInput

T = TypeVar("T")
_CLOSING = "the host is closing"


class HostClosedError(HarnessError):
    """The embedded host is not open."""

    default_code = "HOST_CLOSED"


class EmbeddedHost:
    """A host in a thread of its own, for any number of threads and asyncio tasks.

    ``config`` and ``plugins`` are those of :func:`dsh_runtime.open_host`, whose errors opening raises. A context
    manager (``with``, or ``async with`` under asyncio); closing aborts what still runs and waits for it.
    """

    def __init__(self, config: ConfigSource = None, *, plugins: Iterable[Any] = ()) -> None:
        self._config = config
        self._plugins = tuple(plugins)
        self._thread: TrioThread | None = None
        self._host: Host | None = None
        self._calls: set[AbortController] = set()
        self._default: Session | None = None

    # Opening and closing.

    def __enter__(self) -> Self:
        self._start().result()
        self._default = self.session("embedded host")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if self._thread is not None:
            self._thread.join()

    async def __aenter__(self) -> Self:
        opened = self._start()
        try:
            await asyncio.shield(asyncio.wrap_future(opened))
            self._default = await self.asession("embedded host")
        except asyncio.CancelledError:
            opened.add_done_callback(lambda _: self._stop())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if self._thread is not None:
            await _outlasting(asyncio.get_running_loop().run_in_executor(None, self._thread.join), lambda: None)

    # Tools.

    def tools(self, session: Session | None = None) -> list[dict[str, Any]]:
        """Name, description and parameters of every tool that a session sees."""
        return self._run(self._schemas, session).result()

    async def atools(self, session: Session | None = None) -> list[dict[str, Any]]:
        """:meth:`tools`, under asyncio."""
        return await asyncio.wrap_future(self._run(self._schemas, session))

    # Calls.

    def call(
        self,
        name: str,
        arguments: Any = None,
        *,
        session: Session | None = None,
        call_id: str | None = None,
        signal: AbortSignal | None = None,
    ) -> ToolExecutionResult:
        """Make one call and wait for its result. An interrupt aborts the call, waits for it to rest, and goes on."""
        controller, future = self._begin(name, arguments, session, call_id, signal)
        try:
            return future.result()
        except BaseException:
            controller.abort("the caller was interrupted")
            concurrent.futures.wait([future])
            raise

    async def acall(
        self,
        name: str,
        arguments: Any = None,
        *,
        session: Session | None = None,
        call_id: str | None = None,
        signal: AbortSignal | None = None,
    ) -> ToolExecutionResult:
        """:meth:`call`, under asyncio. Cancelling the task aborts the call, and is felt when that has come to rest."""
        controller, future = self._begin(name, arguments, session, call_id, signal)
        return await _outlasting(asyncio.wrap_future(future), lambda: controller.abort("the caller was cancelled"))

    # Sessions.

    def session(self, label: str = "embedded", *, parent: Session | None = None) -> Session:
        """Open a session: a scope of its own, and a session of the log where there is one."""
        return self._run(self._open, label, parent).result()

    async def asession(self, label: str = "embedded", *, parent: Session | None = None) -> Session:
        """:meth:`session`, under asyncio."""
        return await asyncio.wrap_future(self._run(self._open, label, parent))

    # Inside the host's thread.

    async def _main(self, inside: Inside) -> None:
        async with open_host(self._config, plugins=self._plugins) as host:
            self._host = host
            await inside.ready()

    async def _open(self, label: str, parent: Session | None) -> Session:
        assert self._host is not None
        scope = self._host.ctx.scope(parent=parent.key if parent is not None else None)
        sessions = self._host.ctx.get("sessions")
        logged = await sessions.open_session(scope.key, label=label, front_door="embed") if sessions else None
        return Session(self, scope, logged)

    async def _schemas(self, session: Session | None) -> list[dict[str, Any]]:
        assert self._host is not None
        return self._host.ctx.tools.schemas(self._key(session))  # type: ignore[no-any-return]

    async def _call(self, call: ToolExecutionInput, controller: AbortController) -> ToolExecutionResult:
        assert self._host is not None
        try:
            result: ToolExecutionResult = await self._host.ctx.tools.execute(call)
        finally:
            self._calls.discard(controller)
        return result

    # Between the threads.

    def _start(self) -> concurrent.futures.Future[None]:
        if self._thread is not None:
            raise RuntimeError("an EmbeddedHost is opened once; make a new one")
        self._thread = TrioThread(self._main, "dsh-runtime host")
        return self._thread.start()

    def _stop(self) -> None:
        if self._thread is None:
            return
        self._thread.inside.run_sync(self._abort_all)
        self._thread.stop()

    def _abort_all(self) -> None:
        for controller in tuple(self._calls):
            controller.abort(_CLOSING)

    def _begin(
        self, name: str, arguments: Any, session: Session | None, call_id: str | None, signal: AbortSignal | None
    ) -> tuple[AbortController, concurrent.futures.Future[ToolExecutionResult]]:
        controller = AbortController()
        fused = controller.signal if signal is None else AbortSignal.any([controller.signal, signal])
        call = ToolExecutionInput(
            call_id if call_id is not None else f"embed-{os.urandom(8).hex()}",
            name,
            {} if arguments is None else arguments,
            fused,
            agent=self._key(session),
        )
        self._calls.add(controller)
        try:
            return controller, self._run(self._call, call, controller)
        except BaseException:
            self._calls.discard(controller)
            raise

    def _key(self, session: Session | None) -> Any:
        chosen = session if session is not None else self._default
        return chosen.key if chosen is not None else None

    def _run(self, fn: Callable[..., Awaitable[T]], *args: Any) -> concurrent.futures.Future[T]:
        try:
            if self._thread is None:
                raise RuntimeError("it has not been opened")
            return self._thread.inside.run(fn, *args)
        except RuntimeError as error:
            raise HostClosedError(f"the embedded host is not open ({error}); use it inside its 'with'") from None


class Session:
    """Whoever makes calls through the host: a scope, and where there is a log, a session of it."""

    def __init__(self, host: EmbeddedHost, scope: Any, logged: Any) -> None:
        self.key = scope.key
        self._host = host
        self._scope = scope
        self._logged = logged

    def close(self) -> None:
        """End the session; later calls of it are refused."""
        self._host._run(self._close).result()

    async def aclose(self) -> None:
        """:meth:`close`, under asyncio."""
        await asyncio.wrap_future(self._host._run(self._close))

    def configure(self, setup: Callable[[Any], object]) -> None:
        """Run ``setup(ctx)`` with the session's own context in the host's thread: register, restrict, guard."""
        self._host._run(self._configure, setup).result()

    async def aconfigure(self, setup: Callable[[Any], object]) -> None:
        """:meth:`configure`, under asyncio."""
        await asyncio.wrap_future(self._host._run(self._configure, setup))

    async def _configure(self, setup: Callable[[Any], object]) -> None:
        setup(self._scope.ctx)

    async def _close(self) -> None:
        with trio.CancelScope(shield=True):
            await self._scope.dispose()
            if self._logged is not None:
                await self._logged.close()


async def _outlasting(future: asyncio.Future[T], give_up: Callable[[], object]) -> T:
    """Await a future that is not to be abandoned: cancelled, say so, wait for it all the same, then pass that on."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if future.cancelled():
                raise
            if cancelled is None:
                give_up()
            cancelled = error
        except Exception:
            break
    if cancelled is not None:
        raise cancelled
    return future.result()
