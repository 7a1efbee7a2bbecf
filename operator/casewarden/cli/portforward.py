"""A port of a pod on this machine, by the API server's own port-forward over WebSocket: kubectl is not needed.

Each connection to the local port is one WebSocket. A message begins with its channel: 0 is data, 1 is errors; the
first message of each channel is the port's number and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from casewarden.adapters.kube.connection import Connection
from casewarden.adapters.proxies import proxy_for
from casewarden.cli.failure import Failure

__all__ = ["forwarded"]

_PROTOCOL = "v4.channel.k8s.io"
_PIECE = 16 << 10
_DATA, _ERROR = 0, 1


@asynccontextmanager
async def forwarded(connection: Connection, namespace: str, pod: str, port: int) -> AsyncIterator[int]:
    """Yield the number of a local port that leads to ``port`` of the pod for as long as the context is open."""
    url = f"{connection.server}/api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={port}"
    problems: list[str] = []
    connector = aiohttp.TCPConnector(limit=0, ssl=connection.ssl())
    async with aiohttp.ClientSession(connector=connector, proxy=proxy_for(connection.server)) as session:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            headers = {}
            if connection.token and (value := await connection.token.header()):
                headers["Authorization"] = value
            try:
                async with session.ws_connect(
                    url, protocols=(_PROTOCOL,), headers=headers, max_msg_size=0, timeout=_CLOSING
                ) as socket:
                    await _carry(socket, reader, writer, problems)
            except (aiohttp.ClientError, OSError) as error:
                problems.append(str(error))
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            local: int = server.sockets[0].getsockname()[1]
            try:
                yield local
            except (aiohttp.ClientError, OSError) as error:
                why = problems[-1] if problems else str(error)
                raise Failure(f"port-forward to pod {namespace}/{pod} failed: {why}") from None


_CLOSING = aiohttp.ClientWSTimeout(ws_close=2.0)


async def _carry(
    socket: aiohttp.ClientWebSocketResponse,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    problems: list[str],
) -> None:
    sending = asyncio.create_task(_send(socket, reader))
    opened: set[int] = set()
    try:
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel not in opened:
                opened.add(channel)
            elif channel == _DATA:
                writer.write(data)
                await writer.drain()
            elif channel == _ERROR and data:
                problems.append(data.decode("utf-8", "replace"))
                return
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError, aiohttp.ClientError, OSError):
            await sending


async def _send(socket: aiohttp.ClientWebSocketResponse, reader: asyncio.StreamReader) -> None:
    while piece := await reader.read(_PIECE):
        await socket.send_bytes(bytes([_DATA]) + piece)
    await socket.close()
