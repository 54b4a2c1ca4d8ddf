"""One program's run: the host's half of the conversation, from the program's text to its end.

Strategy: one task at a time reads everything that comes from the worker, through one ``epoll`` of its three
descriptors; what it hears is handled at once, without waiting. Who has heard a sub-call carries it out itself, there
and then, and leaves the reading to another task if the call has to wait for something. Any more that came with it have
tasks of their own. A sub-call is taken in when few enough are under way and their values take up little enough room;
until then it waits here, and a program that sends more than its share is not read any further.
"""

from __future__ import annotations

import contextlib
import contextvars
import select
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import trio
from attrs import frozen

from dsh_runtime.code_mode.interface import CodeProgram, SubReply
from dsh_runtime.code_mode.runtime.child.wire import max_cost
from dsh_runtime.code_mode.runtime.config import CodeRuntimeConfig
from dsh_runtime.code_mode.runtime.endings import Ending, Gone, Stopped
from dsh_runtime.code_mode.runtime.frames import (
    Dialogue,
    Failed,
    GivenUp,
    Inbox,
    Ready,
    Returned,
    SubCall,
    Unfit,
    Violation,
    program_frame,
    reply_frame,
)
from dsh_runtime.code_mode.runtime.noticing import noticing
from dsh_runtime.code_mode.runtime.outbox import Outbox
from dsh_runtime.code_mode.runtime.output import Output
from dsh_runtime.code_mode.runtime.worker import Worker

_CHUNK: Final = 65_536
_PIECES: Final = 8
#: Every so many rounds it is looked whether there is something else than the channel.
_ROUNDS: Final = 8
#: How many sub-calls are under way at once, and how many messages are handled before others get a turn.
_MAX_UNDER_WAY: Final = 100
_AT_A_TIME: Final = 64
#: The least that is waited before the clock is looked at again, while people are asked.
_LEAST_WAIT: Final = 0.05


@frozen(eq=False)
class Errand:
    """A sub-call that has been taken in, and how it is carried out; its scope is cancelled when it is given up."""

    call: SubCall
    scope: trio.CancelScope
    start: Callable[[], Awaitable[SubReply]]


class Conversation:
    """Talks with one worker until there is an ending."""

    def __init__(self, worker: Worker, program: CodeProgram, config: CodeRuntimeConfig) -> None:
        self._worker = worker
        self._program = program
        self._config = config
        self._outbox = Outbox(worker.channel, self._on_backlog)
        self._inbox = Inbox(config.frame_bytes)
        self._dialogue = Dialogue(config.frame_bytes, config.sub_calls, greeted=True)
        self.output = Output(worker.output, config.output_bytes)
        self._ending: Ending | None = None
        self._scope = trio.CancelScope()
        self._waiting: deque[SubCall] = deque()
        self._under_way: dict[int, trio.CancelScope] = {}
        self._held = 0
        self._budget = 2 * max_cost(config.frame_bytes)
        self._reading = True
        #: Tasks that have carried a sub-call out, and are going to read when it is their turn.
        self._readers = trio.lowlevel.ParkingLot()
        self._own: Errand | None = None
        self._is_hearing = False
        self._rounds = 0
        self._handed_over = False
        self._outbox.send(program_frame(program.code))

    def abort(self) -> None:
        """Somebody has aborted the run."""
        self._end(Stopped("aborted", "the run was aborted"))

    def _end(self, ending: Ending) -> None:
        """There is an ending: nothing runs any more, and nothing more is heard."""
        if self._ending is not None:
            return
        self._ending = ending
        if not isinstance(ending, Gone):  # that one has a last word
            self._worker.kill()
        self._program.bridge.close()
        self._scope.cancel()
        self._readers.unpark_all()
        with contextlib.suppress(OSError, ValueError):
            trio.lowlevel.notify_closing(self._worker.poll)

    async def hold(self) -> Ending:
        """Run the program to its end; when this returns, no sub-call is under way and the program is killed."""
        self._context = contextvars.copy_context()
        async with trio.open_nursery() as self._tasks:
            try:
                await self._attend()
                if isinstance(self._ending, Gone):
                    await self._worker.last_words()
            finally:
                self._worker.kill()
                self._waiting.clear()
                self._end(Stopped("aborted", "the run was cancelled"))
                own, self._own = self._own, None
                if own is not None:  # it has been taken in, and has to come to rest
                    self._start(self._carry, own)
        assert self._ending is not None
        return self._ending

    async def _attend(self) -> None:
        began = trio.current_time()
        while self._ending is None:
            left = began + self._config.wall_time + self._program.people_time() - trio.current_time()
            if left <= 0:
                return self._end(Stopped("timeout", f"the program took more than {self._config.wall_time:g} s"))
            with trio.CancelScope(deadline=trio.current_time() + max(left, _LEAST_WAIT)) as self._scope:
                await self._until_ended()
        return None

    async def _until_ended(self) -> None:
        """Read until there is a sub-call; from then on others do, and this task has but the clock to look at."""
        if not self._handed_over:
            own = await self._next_errand()
            if own is None:
                return
            self._handed_over = True
            self._start(self._serve, own)
        await trio.sleep_forever()

    async def _serve(self, own: Errand | None = None) -> None:
        """Read, when it is this task's turn, and carry out what it has heard; if that waits, another one reads."""
        task = trio.lowlevel.current_task()
        relieved = False

        def relieve() -> None:
            nonlocal relieved
            relieved = True
            if not self._readers.unpark():
                self._start(self._serve)

        while own is not None or (own := await self._next_errand()) is not None:
            relieved = False
            await noticing(self._carry(own), relieve)
            if self._ending is not None:
                return
            own = None
            task.context = self._context.copy()  # from the next step on: a sub-call finds nothing of another's
            if relieved:
                await self._readers.park()

    def _start(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Start a task that finds nothing of a sub-call's context."""
        self._context.run(self._tasks.start_soon, function, *arguments)

    async def _next_errand(self) -> Errand | None:
        """Read until there is a sub-call to be carried out by this task, or an ending."""
        while self._ending is None:
            with contextlib.suppress(trio.ClosedResourceError):  # so ``_end`` wakes who reads
                await self._hear()
            own, self._own = self._own, None
            if own is not None:
                return own
        return None

    async def _hear(self) -> None:
        await self._worker.readable()
        self._rounds += 1
        # Most of the time it is the channel, so that is tried first; the others have their turn now and then.
        if self._rounds % _ROUNDS == 0 or not self._reading or self._outbox.watched or not self._on_channel():
            self._look_around()
        self._is_hearing = True
        try:
            while self._ending is None and not self._heard_all():
                await trio.lowlevel.checkpoint()
        finally:
            self._is_hearing = False

    def _look_around(self) -> None:
        for descriptor, events in self._worker.poll.poll(0):
            if descriptor == self._worker.output:
                self._on_output()
            elif descriptor == self._worker.control.fileno():
                self._worker.hear_warden()
            else:
                if events & select.EPOLLOUT:
                    self._outbox.flush()
                if events & ~select.EPOLLOUT and (self._reading or events & select.EPOLLHUP):
                    self._on_channel()

    def _on_output(self) -> None:
        self.output.read()
        if self.output.too_much:
            self._end(Stopped("output-limit", ""))
        elif self.output.ended:
            self._worker.poll.unregister(self.output.descriptor)

    def _on_channel(self) -> bool:
        """Take in what has come, of a large frame several pieces at once; whether there was anything."""
        for piece in range(_PIECES):
            try:
                data = self._worker.channel.recv(_CHUNK)
            except BlockingIOError:
                return piece > 0
            except OSError:
                data = b""
            if not data:
                self._end(Gone())
                break
            self._inbox.feed(data)
            if len(data) < _CHUNK:
                break
        return True

    def _heard_all(self) -> bool:
        """Handle some of the messages that have come; whether that was all of them."""
        try:
            for _ in range(_AT_A_TIME):
                body = self._inbox.next()
                if body is None:
                    return True
                self._heard(self._dialogue.hear(body))
        except Violation as violation:
            self._end(Stopped("crashed", f"the program broke the rules of its channel: {violation}"))
        return self._ending is not None

    def _heard(self, message: object) -> None:
        match message:
            case SubCall():
                self._waiting.append(message)
                self._held += message.cost
                self._admit()
            case GivenUp(number):
                self._give_up(number)
            case Returned() | Failed():
                self._end(message)
            case Ready() | Unfit():
                raise AssertionError("a dialogue hears these before it expects a program")

    def _admit(self) -> None:
        """Take in the sub-calls that there is room for, in their order."""
        while (
            self._waiting
            and len(self._under_way) < _MAX_UNDER_WAY
            and self._outbox.backlog <= self._budget
            and self._ending is None
        ):
            self._take_in(self._waiting.popleft())
        self._watch_channel()

    def _take_in(self, call: SubCall) -> None:
        scope = self._under_way[call.id] = trio.CancelScope()
        errand = Errand(call, scope, self._program.bridge.enter(call.name, call.arguments))
        if self._is_hearing and self._own is None:
            self._own = errand
        else:
            self._start(self._carry, errand)

    async def _carry(self, errand: Errand) -> None:
        call, reply = errand.call, None
        try:
            with errand.scope:
                reply = await errand.start()
        finally:
            del self._under_way[call.id]
            self._held -= call.cost
        if self._ending is None:
            if reply is not None:
                self._outbox.send(reply_frame(call.id, reply, self._config.frame_bytes))
            self._admit()

    def _give_up(self, number: int) -> None:
        """The program does not wait for a sub-call any more: one that has not been taken in never was."""
        scope = self._under_way.get(number)
        if scope is not None:
            scope.cancel()
            return
        for call in self._waiting:
            if call.id == number:
                self._waiting.remove(call)
                self._held -= call.cost
                return

    def _on_backlog(self) -> None:
        if self._ending is None:
            self._admit()

    def _watch_channel(self) -> None:
        """Look for what can be done: read while there is room, write while there is something."""
        reading = self._held <= self._budget
        writing = self._outbox.backlog > 0
        if (reading, writing) != (self._reading, self._outbox.watched):
            self._reading, self._outbox.watched = reading, writing
            events = (select.EPOLLIN if reading else 0) | (select.EPOLLOUT if writing else 0)
            self._worker.poll.modify(self._worker.channel, events)
