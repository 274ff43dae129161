"""The server as a process: draining, signals, the command line against it."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from deepinfer.cli.http_client import HttpClient, ServerError
from deepinfer.cli.main import main
from deepinfer_api.testing.byte_codec import EOS_ID, byte_ids
from deepinfer_api.testing.loopback import serve_on_loopback

BODY = {"messages": [{"role": "user", "content": "hi"}], "stream": True}


def ask(url, body=BODY):
    async def run():
        return [event.data async for event in HttpClient(url).stream("/v1/chat/completions", body)]

    return asyncio.run(run())


def text_of(events):
    return "".join(c["delta"].get("content") or "" for event in events for c in event.get("choices") or ())


def slow(request):
    for byte in byte_ids("slow"):
        yield [byte]
        yield 0.15
    yield [EOS_ID]


def test_draining_finishes_what_runs_and_refuses_what_comes(make_server):
    server = make_server(slow)
    with serve_on_loopback(server.app) as running:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(text_of(ask(running.url))))
        thread.start()
        while not server.backend.active:
            time.sleep(0.005)
        running.server.begin_drain()
        with pytest.raises(ServerError, match="503: the server is shutting down"):
            ask(running.url)
        thread.join(10)
        assert answers == ["slow"]
        running.thread.join(10)
        assert not running.thread.is_alive()


def test_the_drain_timeout_ends_the_rest_with_an_error_event(make_server):
    def endless(request):
        while True:
            yield byte_ids("x")
            yield 0.02

    server = make_server(endless, drain_timeout_seconds=0.3, backend={"max_model_len": 10**6})
    with serve_on_loopback(server.app) as running:
        failures = []

        def run():
            with pytest.raises(ServerError, match="shutting down") as caught:
                ask(running.url)
            failures.append(caught.value)

        thread = threading.Thread(target=run)
        thread.start()
        while not server.backend.active:
            time.sleep(0.005)
        running.server.begin_drain()
        thread.join(10)
        assert len(failures) == 1
        running.thread.join(10)
        assert not running.thread.is_alive()
    assert server.backend.active == {}


PROGRAM = """
import sys
from deepinfer_api.app import create_app
from deepinfer_api.backends.scripted import ScriptedBackend
from deepinfer_api.listening import bind, url_of
from deepinfer_api.server import DrainingServer
from deepinfer_api.settings import ServerSettings
from deepinfer_api.testing.byte_codec import byte_ids, make_byte_codec

def endless(request):
    while True:
        yield byte_ids("x")
        yield 0.02

backend = ScriptedBackend(endless, max_model_len=10**6)
app = create_app(backend, make_byte_codec(), ServerSettings(model_name="m", drain_timeout_seconds=30))
listener = bind("127.0.0.1", 0)
print(url_of(listener), flush=True)
DrainingServer(app).run(sockets=[listener])
print("ended", flush=True)
"""


@pytest.mark.parametrize(("number", "is_busy"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_signals(number, is_busy):
    """An idle server ends at the first signal, a busy one at the second."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().strip()
        while asyncio.run(HttpClient(url).get_json("/ready"))["status"] != "ok":
            time.sleep(0.05)
        failures = []
        if is_busy:

            def run():
                with pytest.raises(ServerError) as caught:
                    ask(url)
                failures.append(str(caught.value))

            thread = threading.Thread(target=run)
            thread.start()
            time.sleep(0.3)
        process.send_signal(number)
        if is_busy:
            time.sleep(0.3)
            assert process.poll() is None
            process.send_signal(number)
        out, err = process.communicate(timeout=20)
        if is_busy:
            thread.join(10)
            assert "shutting down" in failures[0]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert out.strip() == "ended"
    assert "Traceback" not in err


def run_cli(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    captured = capsys.readouterr()
    return caught.value.code, captured.out, captured.err


def test_generate_and_bench_against_a_server(make_server, capsys):
    server = make_server("An answer.")
    with serve_on_loopback(server.app) as running:
        code, out, _ = run_cli(capsys, "generate", "hi", "--url", running.url, "--system", "s", "--temperature", "0")
        assert (code, out) == (0, "An answer.\n")
        code, out, _ = run_cli(capsys, "generate", "hi", "--url", running.url, "--raw", "--json", "--max-tokens", "3")
        shown = json.loads(out)
        assert (shown["text"], shown["finish_reason"], shown["usage"]["completion_tokens"]) == ("An ", "length", 3)
        code, out, _ = run_cli(
            capsys, "bench", "--url", running.url, "--concurrency", "1", "--concurrency", "3", "--num-requests", "3",
            "--prompt-tokens", "20", "--shared-tokens", "10", "--max-tokens", "4", "--json",
        )  # fmt: skip
        rows = json.loads(out)["rows"]
        assert code == 0
        assert [(row["num_clients"], row["num_requests"], row["num_failed"]) for row in rows] == [(1, 3, 0), (3, 3, 0)]
        assert all(row["num_output_tokens"] == 12 for row in rows)
        assert all(row["ttft_ms"]["p50"] > 0 for row in rows)
        code, out, _ = run_cli(
            capsys, "bench", "--url", running.url, "--num-requests", "1", "--chat", "--max-tokens", "2"
        )
        assert code == 0
        assert "TTFT" in out


def test_a_failing_server_makes_bench_fail(make_server, capsys):
    def script(request):
        yield RuntimeError("broken")

    with serve_on_loopback(make_server(script).app) as running:
        code, out, _ = run_cli(
            capsys, "bench", "--url", running.url, "--warmup", "0", "--num-requests", "1", "--concurrency", "1"
        )
    assert code == 1
    assert "1 of 1 failed: the server answered 500" in " ".join(out.split())


def test_chat_keeps_the_conversation(make_server, capsys, monkeypatch):
    from rich.console import Console

    server = make_server("Yes.")
    lines = iter(["", "/help", "/retry", "first", "second", "/retry", "/clear", "third", "/exit"])
    monkeypatch.setattr(Console, "input", lambda self, prompt: next(lines))
    with serve_on_loopback(server.app) as running:
        code, out, _ = run_cli(capsys, "chat", "--url", running.url, "--system", "Be brief.", "--timings")
    assert code == 0
    assert out.count("Yes.") == 4
    assert "there is no answer yet" in out
    assert "tokens/s" in out
    prompts = [bytes(i for i in r.prompt_token_ids if i < 256).decode() for r in server.backend.requests]
    first = "system\nBe brief.\nuser\nfirst\nassistant\n"
    second = "system\nBe brief.\nuser\nfirst\nassistant\nYes.\nuser\nsecond\nassistant\n"
    assert prompts == [first, second, second, "system\nBe brief.\nuser\nthird\nassistant\n"]
