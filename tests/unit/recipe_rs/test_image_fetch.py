"""Download of images: limits, redirects, and which destinations are connected to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recipe_rs import ImageError, ReqwestImageFetcher


def open_fetcher(max_bytes: int = 1 << 20) -> ReqwestImageFetcher:
    """A fetcher that connects to this machine."""
    return ReqwestImageFetcher.with_max_bytes(max_bytes).with_destination_filter(lambda host, address: True)


def failure(fetch: Callable[[str], bytes], url: str) -> tuple[str | None, bool | None]:
    with pytest.raises(ImageError) as error:
        fetch(url)
    return error.value.kind, error.value.is_retryable


def test_a_body_is_returned(image_server: str, png: Callable[..., bytes]) -> None:
    assert open_fetcher().fetch(f"{image_server}/png") == png(100, 60)
    assert open_fetcher().fetch(f"{image_server}/png/with space?q=\N{SNOWMAN}#part") == png(100, 60)


def test_five_redirects_are_followed_and_no_more(image_server: str) -> None:
    assert open_fetcher().fetch(f"{image_server}/redirects/5")[:4] == b"\x89PNG"
    assert failure(open_fetcher().fetch, f"{image_server}/redirects/6") == ("Fetch", True)


@pytest.mark.parametrize("target", ["ftp!example.org/a", "file!/etc/passwd", "gopher!localhost/"])
def test_a_redirect_leads_to_no_other_scheme(image_server: str, target: str) -> None:
    kind, _ = failure(open_fetcher().fetch, f"{image_server}/to/{target}")
    assert kind == "Fetch"


@pytest.mark.parametrize(("status", "is_retryable"), [(404, False), (429, False), (500, True), (503, True)])
def test_a_status_of_failure_is_an_error(image_server: str, status: int, is_retryable: bool) -> None:
    assert failure(open_fetcher().fetch, f"{image_server}/status/{status}") == ("FetchStatus", is_retryable)


@pytest.mark.parametrize("path", ["long", "unsized"])
def test_size_is_limited_with_and_without_a_declared_length(image_server: str, path: str) -> None:
    assert len(open_fetcher(2000).fetch(f"{image_server}/{path}/2000")) == 2000
    assert failure(open_fetcher(2000).fetch, f"{image_server}/{path}/2001") == ("ImageTooLarge", False)


def test_a_body_that_breaks_off_is_an_error(image_server: str) -> None:
    assert failure(open_fetcher().fetch, f"{image_server}/broken") == ("Fetch", True)


def test_nothing_listens(unused_port: int) -> None:
    assert failure(open_fetcher().fetch, f"http://127.0.0.1:{unused_port}/") == ("Fetch", True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0"])
def test_this_machine_is_refused_by_default(image_server: str, host: str) -> None:
    port = image_server.rpartition(":")[2]
    assert failure(ReqwestImageFetcher().fetch, f"http://{host}:{port}/png") == ("DestinationRejected", False)


def test_the_filter_sees_every_hop(image_server: str) -> None:
    seen: list[tuple[str, str]] = []

    def allow(host: str, address: str) -> bool:
        seen.append((host, address))
        return True

    port = image_server.rpartition(":")[2]
    fetcher = ReqwestImageFetcher().with_destination_filter(allow)
    fetcher.fetch(f"{image_server}/to/http!localhost:{port}/png")
    assert seen[0] == ("127.0.0.1", "127.0.0.1")
    assert ("localhost", "127.0.0.1") in seen


def test_a_redirect_to_a_refused_destination_is_not_followed(image_server: str) -> None:
    port = image_server.rpartition(":")[2]
    fetcher = ReqwestImageFetcher().with_destination_filter(lambda host, address: host == "127.0.0.1")
    assert fetcher.fetch(f"{image_server}/png")
    url = f"{image_server}/to/http!localhost:{port}/png"
    assert failure(fetcher.fetch, url) == ("DestinationRejected", False)


def test_a_proxy_of_the_environment_is_not_used(image_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert open_fetcher().fetch(f"{image_server}/png")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("answer", [lambda host, address: 1, lambda host, address: 1 / 0, lambda host: True])
def test_an_answer_that_is_no_bool_refuses(image_server: str, answer: Callable[[str, str], bool]) -> None:
    fetcher = ReqwestImageFetcher().with_destination_filter(answer)
    assert failure(fetcher.fetch, f"{image_server}/png") == ("DestinationRejected", False)


def test_a_filter_must_be_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        ReqwestImageFetcher().with_destination_filter(3)  # type: ignore[arg-type]
