"""Binding the port: at once, and with a sentence for each way it can fail."""

import errno
import socket

import pytest

from deepinfer.errors import ConfigError
from deepinfer_api.listening import bind, url_of


def test_a_free_port_is_taken_and_named():
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of(listener) == f"http://127.0.0.1:{port}"
        with pytest.raises(ConfigError, match=f"port {port} is in use on 127.0.0.1"):
            bind("127.0.0.1", port)
    with bind("127.0.0.1", port):
        pass


def test_any_address_is_shown_as_this_machine():
    with bind("0.0.0.0", 0) as listener:
        assert url_of(listener).startswith("http://127.0.0.1:")


@pytest.mark.parametrize("port", [-1, 65536])
def test_ports_out_of_range(port):
    with pytest.raises(ConfigError, match="from 0 to 65535"):
        bind("127.0.0.1", port)


def test_an_unknown_host(monkeypatch):
    def fail(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ConfigError, match="host 'nowhere' is not an address of this machine"):
        bind("nowhere", 0)


@pytest.mark.parametrize(
    ("number", "message"), [(errno.EACCES, "more rights"), (errno.EADDRNOTAVAIL, "cannot listen on 127.0.0.1:80")]
)
def test_other_failures(monkeypatch, number, message):
    def fail(self, address):
        raise OSError(number, "reason")

    monkeypatch.setattr(socket.socket, "bind", fail)
    with pytest.raises(ConfigError, match=message):
        bind("127.0.0.1", 80)
