"""The listening socket. Imports nothing heavy, so that a port in use is known before anything slow begins."""

from __future__ import annotations

import errno
import socket

from deepinfer.errors import ConfigError


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; bound before anything slow, so that a port in use is known at once.

    Raises:
        ConfigError: the address does not exist, or the port is in use or forbidden.
    """
    if not 0 <= port <= 65535:
        raise ConfigError(f"port must be from 0 to 65535, but is {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"host {host!r} is not an address of this machine: {error}") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} is in use on {host}; choose another with --port") from error
        if error.errno == errno.EACCES:
            raise ConfigError(f"port {port} needs more rights than this process has; choose one above 1023") from error
        raise ConfigError(f"cannot listen on {host}:{port}: {error}") from error
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where a browser on this machine finds the server."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
