"""`response_format` and `structured_outputs` over HTTP: forms that hold, and refusals that name the place."""

import asyncio
import json
import re
from dataclasses import replace

import httpx
import pytest

from deepinfer.config import CacheConfig, EngineConfig, SchedulerConfig
from deepinfer.engine.async_engine import AsyncEngine
from deepinfer.engine.build import make_engine_core
from deepinfer.executor.scripted import ScriptedExecutor, make_scripted_model_config
from deepinfer_api.app import create_app
from deepinfer_api.backends.engine import EngineBackend
from deepinfer_api.settings import ServerSettings
from deepinfer_api.testing.byte_codec import EOS_ID, VOCAB_SIZE, make_byte_codec, make_byte_vocabulary
from deepinfer_api.testing.loopback import serve_on_loopback

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 6}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["city", "n"],
    "additionalProperties": False,
}
LINKED = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"enum": [1, 2]}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["v", "next"],
            "additionalProperties": False,
        }
    },
}


@pytest.fixture(scope="module")
def client():
    """A server on a socket over the real engine; its model says random bytes, so only a form makes sense of them."""
    model = replace(
        make_scripted_model_config(vocab_size=VOCAB_SIZE, max_position_embeddings=2048), eos_token_ids=(EOS_ID,)
    )
    executor = ScriptedExecutor(num_blocks=256, block_size=16, model_config=model)
    config = EngineConfig(
        model=".",
        cache=CacheConfig(block_size=16),
        scheduler=SchedulerConfig(max_num_seqs=8, max_num_batched_tokens=64),
    )
    core = make_engine_core(config, executor, model_identity=b"test")
    with AsyncEngine(core, make_vocabulary=make_byte_vocabulary) as engine:
        app = create_app(EngineBackend(engine), make_byte_codec(), ServerSettings(model_name="m"))
        with serve_on_loopback(app) as server, httpx.Client(base_url=server.url, timeout=50) as client:
            yield client


def ask(client, path, **body):
    body = ({"messages": [{"role": "user", "content": "hi"}]} if path == CHAT else {"prompt": "hi"}) | body
    return client.post(path, json={"max_tokens": 800} | body)


def text_of(answer):
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "stop", choice
    return choice["message"]["content"] if "message" in choice else choice["text"]


def streamed_text_of(answer):
    assert answer.status_code == 200, answer.text
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    choices = [json.loads(line[6:])["choices"][0] for line in lines[:-1]]
    return "".join(choice["delta"].get("content", "") if "delta" in choice else choice["text"] for choice in choices)


FORMS = {
    "json_schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": CITY, "strict": True}}},
        lambda text: set(json.loads(text)) == {"city", "n"},
    ),
    "json": ({"structured_outputs": {"json": CITY}}, lambda text: 0 <= json.loads(text)["n"] <= 99),
    "json as text": ({"structured_outputs": {"json": json.dumps(CITY)}}, lambda text: "city" in json.loads(text)),
    "regex": ({"structured_outputs": {"regex": "[a-c]{3}-[0-9]{1,9}x"}}, re.compile("[a-c]{3}-[0-9]{1,9}x").fullmatch),
    "regex format": ({"response_format": {"type": "regex", "regex": "a|b"}}, ("a", "b").__contains__),
    "choice": (
        {"structured_outputs": {"choice": ["yes", "n\u00f6 (maybe?)"]}},
        ("yes", "n\u00f6 (maybe?)").__contains__,
    ),
    "grammar": ({"structured_outputs": {"grammar": 'root ::= "x" [0-9] "y"'}}, re.compile("x[0-9]y").fullmatch),
    "lark": ({"structured_outputs": {"grammar": 'start: "a" | "b" "c"'}}, ("a", "bc").__contains__),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_forms_hold_whole_and_streamed(client, path, name):
    fields, has_form = FORMS[name]
    text = text_of(ask(client, path, temperature=0, **fields))
    assert has_form(text), text
    assert streamed_text_of(ask(client, path, temperature=0, stream=True, **fields)) == text
    other = text_of(ask(client, path, n=3, seed=5, logit_bias={"65": 100, "123": -100, "34": -100}, **fields))
    assert has_form(other), other


def test_an_unfinished_object_says_so(client):
    long = {"type": "object", "properties": {"a": {"type": "string", "minLength": 50}}, "required": ["a"]}
    answer = ask(client, CHAT, structured_outputs={"json": long}, max_tokens=40).json()["choices"][0]
    assert answer["finish_reason"] == "length"
    assert answer["message"]["content"].startswith("{")


def test_text_is_no_form(client):
    for body in ({"response_format": {"type": "text"}}, {"response_format": None, "structured_outputs": None}):
        answer = ask(client, COMPLETIONS, temperature=0, max_tokens=9, **body)
        assert answer.json()["choices"][0] == ask(client, COMPLETIONS, temperature=0, max_tokens=9).json()["choices"][0]


def test_a_recursive_schema_can_end(client):
    value = json.loads(text_of(ask(client, CHAT, structured_outputs={"json": LINKED}, temperature=0)))
    while value is not None:
        assert value["v"] in (1, 2)
        value = value["next"]


def nested(levels):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def schema_format(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": schema}}}


IN_FORMAT = "response_format.json_schema.schema"
REFUSALS = [
    (schema_format({"properties": {"a": {"items": {"not": {}}}}}), f"{IN_FORMAT}.properties.a.items.not"),
    (schema_format({"$defs": {"x": {"uniqueItems": True}}, "type": "object"}), f"{IN_FORMAT}.$defs.x.uniqueItems"),
    (schema_format({"anyOf": [{"type": "null"}, {"if": {}}]}), f"{IN_FORMAT}.anyOf[1].if"),
    (schema_format({"type": "string", "format": "phone"}), f"{IN_FORMAT}.format"),
    (schema_format({"type": "objekt"}), IN_FORMAT),
    (schema_format({"type": "integer", "minimum": 5, "maximum": 3}), IN_FORMAT),
    (schema_format({"$ref": "#/$defs/nowhere"}), f"{IN_FORMAT}.$ref"),
    (schema_format({"$ref": "https://example.com/schema"}), f"{IN_FORMAT}.$ref"),
    (schema_format({"$ref": "#"}), f"{IN_FORMAT}.$ref"),
    (
        schema_format({"type": "object", "properties": {"me": {"$ref": "#"}}, "required": ["me"]}),
        f"{IN_FORMAT}.properties.me.$ref",
    ),
    (schema_format(nested(150)), IN_FORMAT),
    (schema_format({"description": "x" * 300_000}), IN_FORMAT),
    (schema_format({"properties": {f"p{i}": {} for i in range(1001)}}), f"{IN_FORMAT}.properties"),
    (schema_format({"type": "string", "pattern": "(a{1000}){1000}"}), f"{IN_FORMAT}.pattern"),
    (schema_format(None), IN_FORMAT),
    (schema_format([1]), IN_FORMAT),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": 3, "schema": {}}}},
     "response_format.json_schema.name"),
    ({"response_format": {"type": "poem"}}, "response_format.type"),
    ({"response_format": "json"}, "response_format"),
    ({"structured_outputs": {}}, "structured_outputs"),
    ({"structured_outputs": {"json": None}}, "structured_outputs"),
    ({"structured_outputs": "json"}, "structured_outputs"),
    ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs"),
    ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
    ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
    ({"structured_outputs": {"choice": ["a", ""]}}, "structured_outputs.choice[1]"),
    ({"structured_outputs": {"choice": ["a", 1]}}, "structured_outputs.choice[1]"),
    ({"structured_outputs": {"choice": "a"}}, "structured_outputs.choice"),
    ({"structured_outputs": {"regex": "a("}}, "structured_outputs.regex"),
    ({"structured_outputs": {"regex": "(?=a)b"}}, "structured_outputs.regex"),
    ({"structured_outputs": {"regex": "a{99999}"}}, "structured_outputs.regex"),
    ({"structured_outputs": {"regex": ""}}, "structured_outputs.regex"),
    ({"structured_outputs": {"regex": 1}}, "structured_outputs.regex"),
    ({"structured_outputs": {"grammar": "start: foo"}}, "structured_outputs.grammar"),
    ({"structured_outputs": {"json": "{"}}, "structured_outputs.json"),
    ({"structured_outputs": {"json": "[" * 20_000}}, "structured_outputs.json"),
    ({"structured_outputs": {"json_object": 1}}, "structured_outputs.json_object"),
    ({"structured_outputs": {"choice": ["a"]}, "response_format": {"type": "json_object"}}, "structured_outputs"),
    ({"guided_regex": "a"}, "guided_regex"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param"), REFUSALS, ids=[param for _, param in REFUSALS])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_refusals_name_the_place(client, path, fields, param):
    answer = ask(client, path, **fields)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param
    assert param in error["message"]
    assert len(error["message"]) < 400
    assert "\n" not in error["message"]


def test_a_failed_form_leaves_nothing_behind(client):
    before = ask(client, COMPLETIONS, temperature=0, max_tokens=9).json()["choices"][0]
    for _ in range(3):
        assert ask(client, COMPLETIONS, structured_outputs={"regex": "a("}).status_code == 400
    assert ask(client, COMPLETIONS, temperature=0, max_tokens=9).json()["choices"][0] == before
    assert "grammar_compile_seconds_count" in client.get("/metrics").text


def test_a_backend_without_forms_says_so(make_server):
    answer = asyncio.run(
        make_server("x").client.post(COMPLETIONS, {"prompt": "p", "structured_outputs": {"regex": "a"}})
    )
    assert answer.status == 400
    assert answer.json()["error"]["param"] == "structured_outputs.regex"
