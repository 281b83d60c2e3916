"""One client's connection: bytes to requests, answers to bytes, strictly in order.

Knows no API. Frames are views of a buffer that all connections share: what is not served at once is
copied. While a request waits for its answer the next ones are queued, up to a limit, so that a peer
that goes is noticed. Whoever does not read its answers is not read from either.
"""

from __future__ import annotations

import logging
import os
from asyncio import BufferedProtocol
from collections import deque
from itertools import islice

from ottla.protocol.frames import FrameReader
from ottla.protocol.wire import Buffer, ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Transport
    from collections.abc import Awaitable, Callable

    from ottla.broker.server import Server

logger = logging.getLogger(__name__)

# A turn of the loop serves so many requests of one connection; then it is another's turn.
_REQUESTS_PER_TURN = 64
# What a peer may send ahead while one of its requests waits.
_QUEUED_BYTES_MAX = 64 << 10
# Below it joining the pieces of an answer costs less than a call that takes them apart.
_JOINED_BYTES_MAX = 16 << 10
_PIECES_MAX = 512
# More than the transport's high-water mark, so that it tells when it has sent it.
_HANDED_ON_BYTES = 64 << 10
_HIGH_WATER_BYTES = 32 << 10


class Connection(BufferedProtocol):
    """Served by `server.serve`, which answers a frame with the pieces to send, or None to send
    nothing, or an awaitable of either."""

    __slots__ = (
        "_answer",
        "_fd",
        "_gone",
        "_has_begun",
        "_is_collecting",
        "_is_draining",
        "_is_ending",
        "_is_paused",
        "_peer_is_slow",
        "_peer_sent_all",
        "_queue",
        "_queued_bytes",
        "_reader",
        "_server",
        "_transport",
        "_unsent",
        "dialled",
        "is_closed",
        "last_active_ms",
        "listener",
        "peer_host",
    )

    def __init__(self, server: Server, listener: str) -> None:
        self._server = server
        self.listener = listener
        self._reader = FrameReader(
            server.receive_buffer,
            size_max=server.request_size_max,
            buffers=server.frame_buffers,
        )
        self._transport: Transport | None = None
        self._fd = -1
        self._answer: Awaitable[list[Buffer] | None] | None = None
        self._queue: deque[Buffer] = deque()
        self._queued_bytes = 0
        self._unsent: deque[memoryview] = deque()
        self._is_paused = False
        self._peer_is_slow = False
        self._peer_sent_all = False
        self._has_begun = False  # a frame that is not whole yet
        self._is_collecting = False  # answers that leave together
        self._is_draining = False
        self._is_ending = False  # once what was written is sent
        self._gone: dict[Callable[[], None], None] = {}
        self.is_closed = False
        self.last_active_ms = 0
        self.peer_host = ""
        self.dialled: tuple[str, int] = ("", 0)
        """Where this peer reached us."""

    def __repr__(self) -> str:
        return f"Connection({self.listener}, peer={self.peer_host})"

    # what handlers may ask of it

    def on_close(self, callback: Callable[[], None]) -> None:
        """To be called when the peer has gone, or sends no more: nobody should wait for it."""
        if self.is_closed or self._peer_sent_all or self._is_draining:
            self._server.loop.call_soon(callback)
        else:
            self._gone[callback] = None

    def forget(self, callback: Callable[[], None]) -> None:
        self._gone.pop(callback, None)

    def close(self, reason: str | None = None) -> None:
        """Ends it once what was written is sent."""
        if reason is not None:
            logger.info("connection.closed peer=%s reason=%s", self.peer_host, reason)
        self._queue.clear()
        self._queued_bytes = 0
        self._is_ending = True
        if not self._is_collecting:
            self._end()

    def _end(self) -> None:
        transport = self._transport
        if transport is None:
            return
        if self._unsent:
            # Read no more: what a peer still says is nothing that it may stay for.
            self._pause_or_resume()
        else:
            transport.close()

    @property
    def is_waiting(self) -> bool:
        """It is our turn: a peer is not idle that waits for us."""
        return self._answer is not None or (bool(self._queue) and not self._peer_is_slow)

    @property
    def is_ending(self) -> bool:
        """Nothing more is served; at most some answers are still to be read by the peer."""
        return self._is_ending

    def drain(self) -> None:
        """Serves nothing more; closes once the request that is under way is answered."""
        self._is_draining = True
        self._queue.clear()
        self._queued_bytes = 0
        self._tell_gone()
        if self._answer is None:
            self.close()

    def abort(self, reason: str) -> None:
        """Ends it at once, whatever was still to be sent."""
        logger.warning("connection.aborted peer=%s reason=%s", self.peer_host, reason)
        if self._transport is not None:
            self._transport.abort()

    # what the loop calls

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self.peer_host = _host(transport.get_extra_info("peername"))
        sockname = transport.get_extra_info("sockname")
        self.dialled = (sockname[0], sockname[1]) if sockname else ("", 0)
        socket = transport.get_extra_info("socket")
        self._fd = socket.fileno() if socket is not None else -1
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES, low=0)
        self._server.opened(self, socket)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        self._transport = None
        self._queue.clear()
        self._unsent.clear()
        self._tell_gone()
        self._server.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, count: int) -> None:
        if self._is_ending:
            return
        self.last_active_ms = self._server.now_ms
        reader = self._reader
        try:
            frames = reader.received(count)
        except ProtocolError as error:
            self.close(error.reason)
            return
        if reader.waits_for_more:
            self._server.holds(self, reader.held_bytes)
            self._has_begun = True
        elif self._has_begun:
            self._server.holds(self, 0)
            self._has_begun = False
        if len(frames) == 1 and not (
            self._has_begun or self._answer is not None or self._queue or self._peer_is_slow
        ):
            # The usual case: one request, and nobody before it.
            self._serve_one(frames[0])
        elif frames or self._answer is not None:
            self._serve(frames)

    def eof_received(self) -> bool:
        """A peer that sends no more may still want its answers."""
        self._peer_sent_all = True
        self._tell_gone()
        return self._answer is not None or bool(self._queue) or bool(self._unsent)

    def pause_writing(self) -> None:
        self._peer_is_slow = True
        self._pause_or_resume()

    def resume_writing(self) -> None:
        """Not at once: a transport that is written to or closed from here, and so loses its
        connection, loses it twice, which asyncio does not survive."""
        self._server.loop.call_soon(self._on_room)

    def _on_room(self) -> None:
        transport = self._transport
        if transport is None:
            return
        self._peer_is_slow = False
        # A peer that reads is not idle.
        self.last_active_ms = self._server.now_ms
        if self._unsent:
            self._push(transport)
            if self._peer_is_slow:
                self._server.owes(self, self._owed_bytes(transport))
                return
        self._server.drained(self)
        self._go_on()

    # serving

    def _serve_one(self, frame: Buffer) -> None:
        if self._is_draining or self._is_ending:
            return
        answer = self._server.serve(self, frame)
        if isinstance(answer, list):
            self._send(answer)
        elif answer is not None:
            self._wait_for(answer)

    def _serve(self, frames: list[memoryview]) -> None:
        """Serves what can be, and keeps the rest."""
        done = 0
        if not self._queue and not self._peer_is_slow:
            done = self._serve_some(frames)
        if self._is_ending:
            self._end()
        elif done < len(frames) and not self._serves_no_more:
            self._keep(frames[done:])
            if self._answer is None:
                self._server.loop.call_soon(self._go_on)
        self._pause_or_resume()

    def _serve_some(self, frames: list[memoryview]) -> int:
        """How many. What ends the connection here comes after the answers to what was before."""
        done = 0
        answers: list[Buffer] = []
        answers_bytes = 0
        self._is_collecting = True
        for frame in frames[:_REQUESTS_PER_TURN]:
            if self._answer is not None or self._peer_is_slow or self._serves_no_more:
                break
            done += 1
            answer = self._server.serve(self, frame)
            if isinstance(answer, list):
                answers += answer
                answers_bytes += sum(map(len, answer))
                if answers_bytes > _HANDED_ON_BYTES:
                    # Whether the peer reads them is known only once they are sent.
                    self._send(answers)
                    answers, answers_bytes = [], 0
            elif answer is not None:
                self._wait_for(answer)
        self._is_collecting = False
        if answers:
            self._send(answers)
        return done

    @property
    def _serves_no_more(self) -> bool:
        return self._is_ending or self._is_draining or self.is_closed

    def _keep(self, frames: list[memoryview]) -> None:
        for frame in frames:
            kept = bytearray(frame)
            self._queue.append(kept)
            self._queued_bytes += len(kept)

    def _go_on(self) -> None:
        """Serves what was kept, as far as it goes."""
        left = _REQUESTS_PER_TURN
        while self._queue and self._answer is None and not self._peer_is_slow and left:
            left -= 1
            frame = self._queue.popleft()
            self._queued_bytes -= len(frame)
            self._serve_one(frame)
        if self.is_closed:
            return
        if self._answer is None and self._queue and not left:
            self._server.loop.call_soon(self._go_on)
        if self._peer_sent_all and self._answer is None and not self._queue:
            self.close()
            return
        self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        transport = self._transport
        if transport is None or self._peer_sent_all:
            return
        is_ahead = self._queued_bytes + self._reader.held_bytes > _QUEUED_BYTES_MAX
        has_enough = self._peer_is_slow or (self._answer is not None and is_ahead)
        has_enough |= (self._answer is None and bool(self._queue)) or self._is_ending
        if has_enough != self._is_paused and not transport.is_closing():
            self._is_paused = has_enough
            if has_enough:
                transport.pause_reading()
            else:
                transport.resume_reading()

    # answering

    def _wait_for(self, answer: Awaitable[list[Buffer] | None]) -> None:
        self._answer = answer
        self._server.wait_for(answer, self._answered)

    def _answered(self, pieces: list[Buffer] | None) -> None:
        """The request that waited is done; None sends nothing."""
        self._answer = None
        if self.is_closed:
            return
        self.last_active_ms = self._server.now_ms
        if pieces is not None:
            self._send(pieces)
        if self._is_draining:
            self.close()
        elif self._queue or self._is_paused or self._peer_sent_all:
            self._go_on()

    def _send(self, pieces: list[Buffer]) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._unsent:
            self._unsent.extend(memoryview(each) for each in pieces if each)
        elif (
            self._fd < 0
            or transport.get_write_buffer_size()
            or sum(map(len, pieces)) <= _JOINED_BYTES_MAX
        ):
            transport.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        else:
            self._unsent.extend(memoryview(each) for each in pieces if each)
            self._push(transport)
        if self._peer_is_slow:
            self._server.owes(self, self._owed_bytes(transport))

    def _push(self, transport: Transport) -> None:
        """Sends what the kernel takes. The transport gets a little of the rest, and so calls
        `resume_writing` when there is room again: all of it would be copied, and moved about."""
        unsent = self._unsent
        try:
            while unsent:
                pieces = list(islice(unsent, _PIECES_MAX))
                sent = os.writev(self._fd, pieces)
                is_full = sent < sum(map(len, pieces))
                _drop(unsent, sent)
                if is_full:
                    break
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            unsent.clear()
            transport.abort()
            return
        while unsent and transport.get_write_buffer_size() <= _HIGH_WATER_BYTES:
            first = unsent[0][:_HANDED_ON_BYTES]
            transport.write(bytes(first))
            _drop(unsent, len(first))
        if self._is_ending and not unsent:
            transport.close()

    def _owed_bytes(self, transport: Transport) -> int:
        return transport.get_write_buffer_size() + sum(map(len, self._unsent))

    def _tell_gone(self) -> None:
        callbacks, self._gone = self._gone, {}
        for callback in callbacks:
            callback()


def _drop(pieces: deque[memoryview], count: int) -> None:
    """Takes so many bytes off the front."""
    while count:
        size = len(pieces[0])
        if size > count:
            pieces[0] = pieces[0][count:]
            return
        count -= size
        pieces.popleft()


def _host(peername: object) -> str:
    return str(peername[0]) if isinstance(peername, tuple) and peername else ""
