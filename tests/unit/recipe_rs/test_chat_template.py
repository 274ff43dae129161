"""`recipe_rs.ChatTemplateEncoding`: what templates may use, and that messages cannot spell special tokens."""

# ruff: noqa: RUF001

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe_rs

CHAT = """{% for m in messages %}{{ bos_token }}{{ m.role }}
{{ m.content }}{{ eos_token }}
{% endfor %}{% if add_generation_prompt %}{{ bos_token }}assistant
{% endif %}"""
BOS, EOS = "<｜begin｜>", "<｜end｜>"


def encoding(small: recipe_rs.Tokenizer, template: str = CHAT) -> recipe_rs.ChatTemplateEncoding:
    return recipe_rs.ChatTemplateEncoding(template, small, bos_token=BOS, eos_token=EOS)


def render(enc: recipe_rs.ChatTemplateEncoding, *contents: str, **options) -> recipe_rs.RenderedPrompt:
    messages = [{"role": "user", "content": content} for content in contents]
    return enc.render(json.dumps(messages), **options)


def specials(rendered: recipe_rs.RenderedPrompt) -> list[str]:
    return [rendered.prompt[start:end] for start, end in rendered.special_ranges]


def test_prompt_ranges_and_ids(small: recipe_rs.Tokenizer) -> None:
    enc = encoding(small)
    rendered = render(enc, "hé")
    assert rendered.prompt == f"{BOS}user\nhé{EOS}\n{BOS}assistant\n"
    assert specials(rendered) == [BOS, EOS, BOS]
    data = memoryview(enc.encode(rendered)).cast("I").tolist()
    assert data == small.encode(rendered.prompt)


@given(
    contents=st.lists(st.lists(st.sampled_from([BOS, EOS, "<", "think>", "</", "x", " ", "\ue000", "｜"])), max_size=3)
)
def test_messages_cannot_spell_special_tokens(small: recipe_rs.Tokenizer, contents: list[list[str]]) -> None:
    texts = ["".join(parts) for parts in contents] or [""]
    template = "{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token }}{{ messages | tojson }}"
    rendered = render(encoding(small, template), *texts)
    assert specials(rendered) == [EOS]
    messages = [{"role": "user", "content": text} for text in texts]
    assert rendered.prompt == "".join(texts) + EOS + json.dumps(messages, ensure_ascii=False)


@pytest.mark.parametrize(
    "expression",
    [
        "m.content.split('</think>')[-1]",
        "m.content | trim",
        "m.content.strip()[:200]",
        "m.content[2:]",
        "m.content.replace('x', '')",
        "m.content ~ m.content",
        "(m.content.split('>') | last) ~ m.content",
    ],
)
def test_templates_that_look_into_the_content(small: recipe_rs.Tokenizer, expression: str) -> None:
    content = "  a<think>b</think>c<｜end｜>x <｜en"
    template = "{% for m in messages %}{{ " + expression + " }}{% endfor %}{{ eos_token }}"
    rendered = render(encoding(small, template), content)
    assert specials(rendered) == [EOS]
    plain = rendered.prompt.removesuffix(EOS)
    if "[" not in expression and "replace" not in expression and "~" not in expression:
        assert plain == content.strip() if "trim" in expression else plain
    assert "\ue000" not in plain
    assert "c<｜end｜>" in plain or "last" in expression


def test_functions_and_filters(small: recipe_rs.Tokenizer) -> None:
    template = """{%- set ns = namespace(n=0) -%}
{%- for m in messages -%}{%- if loop.index > 2 %}{% break %}{% endif -%}{%- set ns.n = ns.n + 1 -%}{%- endfor -%}
{{ ns.n }}|{{ strftime_now('%Y') | length }}|{{ tools | tojson }}|{{ tools | tojson(indent=2) }}|{{ flag }}|{{ none }}|
{%- generation -%} g {%- endgeneration -%}|{{ 'A b'.lower().split(' ') | join('-') }}|{{ {'a': 1}.get('z', 7) }}"""
    tools = [{"name": "é", "n": 1.0, "x": None}]
    rendered = render(
        encoding(small, template), "1", "2", "3", tools_json=json.dumps(tools), kwargs_json='{"flag": true}'
    )
    expected = [
        "2",
        "4",
        json.dumps(tools, ensure_ascii=False),
        json.dumps(tools, ensure_ascii=False, indent=2),
        "True",
        "None",
        "g",
        "a-b",
        "7",
    ]
    assert rendered.prompt == "|".join(expected)


def test_continue_final_message(small: recipe_rs.Tokenizer) -> None:
    enc = encoding(small)
    rendered = render(enc, "one", f" two{EOS} ", add_generation_prompt=False, continue_final_message=True)
    assert rendered.prompt.endswith(f"user\n two{EOS} ")
    assert specials(rendered) == [BOS, EOS, BOS]
    with pytest.raises(recipe_rs.RenderError, match="continue_final_message"):
        render(enc, "x", continue_final_message=True)


@pytest.mark.parametrize(
    ("messages", "message"),
    [("[]", "empty"), ("{}", "list"), ("[1]", r"messages\[0\]"), ("[", "JSON"), ('[{"role": "\\ud800"}]', "JSON")],
)
def test_bad_messages_are_refused(small: recipe_rs.Tokenizer, messages: str, message: str) -> None:
    with pytest.raises(recipe_rs.RenderError, match=message):
        encoding(small).render(messages)


def test_template_errors_are_one_sentence(small: recipe_rs.Tokenizer) -> None:
    with pytest.raises(recipe_rs.RenderError, match="no chat template"):
        encoding(small, " ")
    with pytest.raises(recipe_rs.RenderError, match="cannot be read"):
        encoding(small, "{% if %}")
    with pytest.raises(recipe_rs.RenderError, match="only one user turn") as caught:
        render(encoding(small, "{{ raise_exception('only one user turn') }}"), "x")
    assert "\n" not in str(caught.value)
    with pytest.raises(recipe_rs.RenderError, match="reserved"):
        render(encoding(small), "x", kwargs_json='{"messages": []}')
