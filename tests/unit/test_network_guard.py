"""The guard of tests/conftest.py: this machine itself may be reached, others not, and every attempt is noticed."""

from __future__ import annotations

import asyncio
import socket

import pytest


def expect_refusal(forbidden_hosts, host, call):
    with pytest.raises(OSError, match="a test may not reach"):
        call()
    assert forbidden_hosts == [host]
    forbidden_hosts.clear()  # this test wanted it; any other fails


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")])
@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_connections_to_other_machines_are_refused(forbidden_hosts, family, host, method):
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        expect_refusal(forbidden_hosts, host, lambda: getattr(sock, method)((host, 80)))


def test_datagrams_to_other_machines_are_refused(forbidden_hosts):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        expect_refusal(forbidden_hosts, "192.0.2.1", lambda: sock.sendto(b"x", ("192.0.2.1", 9)))
        expect_refusal(forbidden_hosts, "192.0.2.1", lambda: sock.sendto(b"x", 0, ("192.0.2.1", 9)))


def test_names_are_not_looked_up(forbidden_hosts):
    expect_refusal(forbidden_hosts, "example.com", lambda: socket.create_connection(("example.com", 80), timeout=1))


def test_asyncio_is_guarded(forbidden_hosts):
    expect_refusal(forbidden_hosts, "192.0.2.1", lambda: asyncio.run(asyncio.open_connection("192.0.2.1", 80)))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_may_be_reached(host):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = (host, server.getsockname()[1])
        with socket.create_connection(address, timeout=5) as client, server.accept()[0] as connection:
            client.sendall(b"x")
            assert connection.recv(1) == b"x"
