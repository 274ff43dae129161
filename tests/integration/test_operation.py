"""Health, readiness, models, metrics, tokens, the page, keys, CORS, request ids, logs."""

import asyncio
import json
import logging
import re

import pytest

from deepinfer_api.app import create_app
from deepinfer_api.logs import JsonFormatter, TextFormatter
from deepinfer_api.settings import ServerSettings
from deepinfer_api.testing.asgi import AsgiClient
from deepinfer_api.testing.byte_codec import byte_ids

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "hi"}]}


def get(server, path, **options):
    return asyncio.run(server.client.get(path, **options))


def test_life_of_a_server(make_server):
    server = make_server()
    services = server.app.state.services

    async def states():
        health, ready = await server.client.get("/health"), await server.client.get("/v1/ready")
        return health.status, ready.status

    assert asyncio.run(states()) == (200, 200)
    services.drain()
    assert asyncio.run(states()) == (200, 503)
    refused = asyncio.run(server.client.post(CHAT, BODY))
    assert refused.status == 503
    assert refused.headers["retry-after"]
    assert refused.json()["error"]["code"] == "draining"
    server.backend.current_step_seconds = 299.0
    assert asyncio.run(states()) == (200, 503)
    server.backend.current_step_seconds = 301.0  # B40: a watchdog bounds the time of a step
    assert asyncio.run(states()) == (503, 503)
    server.backend.current_step_seconds = 0.0
    server.backend.is_dead = True
    assert asyncio.run(states()) == (503, 503)


def test_a_loading_server_answers(make_server):
    app = create_app(None, None, ServerSettings())
    client = AsgiClient(app)

    async def run():
        paths = ("/health", "/ready", "/v1/models", "/metrics", "/")
        before = {path: (await client.get(path)).status for path in paths}
        refused = await client.post(CHAT, BODY)
        other = make_server()
        app.state.services.attach(other.backend, other.app.state.services.loaded_model().codec, default_name="late")
        after = await client.post(CHAT, BODY | {"model": "late"})
        return before, refused, after, await client.get("/v1/models")

    before, refused, after, models = asyncio.run(run())
    assert before == {"/health": 200, "/ready": 503, "/v1/models": 503, "/metrics": 200, "/": 200}
    assert (refused.status, refused.json()["error"]["code"]) == (503, "loading")
    assert after.json()["model"] == "late"
    assert models.json()["data"][0]["id"] == "late"


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_models_list(make_server, path):
    shown = get(make_server(model_name="org/model", model_aliases=("alias",)), path).json()
    assert shown["object"] == "list"
    assert (shown["has_more"], shown["first_id"], shown["last_id"]) == (False, "org/model", "org/model")
    (model,) = shown["data"]
    assert model | {"created": 0, "created_at": ""} == {
        "id": "org/model", "object": "model", "created": 0, "owned_by": "open-deepinfer", "max_model_len": 4096,
        "aliases": ["alias"], "type": "model", "display_name": "org/model", "created_at": "",
    }  # fmt: skip


def test_one_model_by_name_and_alias(make_server):
    server = make_server(model_name="org/model", model_aliases=("other/alias",))
    assert get(server, "/v1/models/org/model").json()["id"] == "org/model"
    assert get(server, "/v1/models/other/alias").json()["id"] == "org/model"
    assert get(server, "/v1/models/missing").status == 404
    answer = asyncio.run(server.client.post(CHAT, BODY | {"model": "other/alias"}))
    assert answer.json()["model"] == "org/model"


def test_metrics_follow_the_traffic(make_server):
    server = make_server("abc", backend={"num_cached_tokens": 2})

    async def run():
        await server.stream(CHAT, BODY)
        await server.client.post(CHAT, BODY | {"max_tokens": 2, "n": 2})
        await server.client.post(CHAT, BODY | {"max_tokens": 0})
        head = await server.client.request("HEAD", "/metrics")
        return head, await server.client.get("/metrics")

    head, answer = asyncio.run(run())
    assert head.status == 200
    values = dict(re.findall(r"^deepinfer:(\w+(?:\{[^}]*\})?) (\S+)$", answer.body.decode(), re.MULTILINE))
    num_prompt = len(server.backend.requests[0].prompt_token_ids)
    assert float(values['prompt_tokens_total{model_name="m"}']) == 2 * num_prompt
    assert float(values['generation_tokens_total{model_name="m"}']) == 4 + 2 + 2
    assert float(values['request_success_total{finish_reason="stop",model_name="m"}']) == 1
    assert float(values['request_success_total{finish_reason="length",model_name="m"}']) == 2
    assert float(values['time_to_first_token_seconds_count{model_name="m"}']) == 3
    assert float(values['inter_token_latency_seconds_count{model_name="m"}']) == 3 + 1 + 1
    assert float(values['e2e_request_latency_seconds_count{model_name="m"}']) == 2
    assert float(values['codec_stream_push_seconds_count{model_name="m"}']) == 4 + 2 + 2


def test_usage_reports_cached_tokens(make_server):
    server = make_server("abc", backend={"num_cached_tokens": 5})
    shown = asyncio.run(server.client.post(CHAT, BODY)).json()
    assert shown["usage"]["prompt_tokens_details"]["cached_tokens"] == 5
    assert shown["timings"]["cache_n"] == 5
    assert shown["timings"]["prompt_n"] == shown["usage"]["prompt_tokens"] - 5


def test_tokenize_and_detokenize(make_server):
    server = make_server()

    async def run():
        prompt = await server.client.post("/tokenize", {"prompt": "é<|im_end|>", "return_token_strs": True})
        messages = await server.client.post("/v1/tokenize", BODY)
        back = await server.client.post("/detokenize", {"tokens": [*byte_ids("é"), 257]})
        await server.client.post(CHAT, BODY)
        return prompt.json(), messages.json(), back.json()

    prompt, messages, back = asyncio.run(run())
    assert prompt["tokens"] == [*byte_ids("é"), 257]
    assert len(prompt["token_strs"]) == prompt["count"] == len(prompt["tokens"])
    assert messages["tokens"] == list(server.backend.requests[0].prompt_token_ids)
    assert back == {"prompt": "é<|im_end|>"}


def test_the_page_and_its_parts(make_server):
    server = make_server()
    page = get(server, "/")
    assert page.headers["content-type"].startswith("text/html")
    parts = re.findall(rb'(?:src|href)="(/static/[^"]+)"', page.body)
    assert parts
    for part in parts:
        assert get(server, part.decode()).status == 200
    assert get(server, "/static/sse.js").status == 200
    assert b"http://" not in page.body.replace(b"http://www.w3.org", b"")
    assert b"https://" not in page.body


def test_keys(make_server):
    server = make_server(api_keys=("good",))

    async def status(path, headers=None, method="GET", body=None):
        return (await server.client.request(method, path, headers=headers, body=body)).status

    async def run():
        bearer, key = {"authorization": "Bearer good"}, {"x-api-key": "good"}
        assert [await status(p) for p in ("/health", "/ready", "/", "/static/sse.js")] == [200] * 4
        assert [await status(p) for p in ("/v1/models", "/metrics", "/docs", "/openapi.json", "/nothing")] == [401] * 5
        for headers in (bearer, key):
            assert await status("/v1/models", headers) == 200
            assert await status(CHAT, headers, "POST", BODY) == 200
            assert server.backend.requests[-1].client_key == "key-0"
        assert await status(CHAT, {"authorization": "Bearer bad"}, "POST", BODY) == 401
        return await server.client.post(CHAT, BODY)

    refused = asyncio.run(run())
    assert refused.json()["error"]["code"] == "invalid_api_key"
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.headers["x-request-id"]


def test_browsers_may_ask_first(make_server):
    """The preflight carries no key."""
    server = make_server(api_keys=("good",))
    headers = {
        "origin": "https://page.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    answer = asyncio.run(server.client.request("OPTIONS", CHAT, headers=headers))
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    refused = asyncio.run(server.client.post(CHAT, BODY, headers={"origin": "https://page.example"}))
    assert refused.status == 401
    assert refused.headers["access-control-allow-origin"] == "*"


def test_only_listed_origins(make_server):
    server = make_server(cors_origins=("https://good.example",))
    good = get(server, "/v1/models", headers={"origin": "https://good.example"})
    bad = get(server, "/v1/models", headers={"origin": "https://bad.example"})
    assert good.headers["access-control-allow-origin"] == "https://good.example"
    assert "access-control-allow-origin" not in bad.headers


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [("abc-123", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("ä", False), ("", False)],
)
def test_request_ids(make_server, given, is_kept):
    server = make_server()
    answer = asyncio.run(server.client.post(CHAT, BODY, headers={"x-request-id": given}))
    assert answer.headers["x-request-id"] == answer.headers["request-id"]
    assert (answer.headers["x-request-id"] == given) == is_kept
    assert server.backend.requests[0].request_id == answer.headers["x-request-id"]


def test_one_log_line_for_each_request_without_its_text(make_server, caplog):
    server = make_server("the secret answer")
    with caplog.at_level(logging.INFO, logger="deepinfer_api"):
        asyncio.run(server.client.post(CHAT, {"messages": [{"role": "user", "content": "a secret"}], "bogus": 1},
                                       headers={"x-request-id": "id-1"}))  # fmt: skip
    (record,) = [r for r in caplog.records if r.name == "deepinfer_api.requests"]
    text, entry = TextFormatter().format(record), json.loads(JsonFormatter().format(record))
    assert "request_id=id-1" in text
    assert "ignored_fields=bogus" in text
    assert "\n" not in text
    assert entry["request_id"] == "id-1"
    assert entry["output"] == len("the secret answer") + 1
    assert entry["finish"] == "stop"
    assert "secret" not in text + str(entry)


def test_the_schema_is_served(make_server):
    schema = get(make_server(), "/openapi.json").json()
    assert "/v1/chat/completions" in schema["paths"]
    assert "requestBody" in schema["paths"]["/v1/completions"]["post"]
    assert get(make_server(), "/docs").status == 200
