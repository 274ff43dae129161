//! Any messages, tools and variables: special ranges cover exactly what the template wrote.

#![no_main]

use std::sync::LazyLock;

use fuzz_support::TOKENIZER;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use recipe_rs::{ChatTemplateEncoding, ChatTemplateInput};
use serde_json::Value;

/// Templates that copy, cut, split and print what the request says.
const TEMPLATES: [&str; 3] = [
    "{% for m in messages %}<｜begin｜>{{ m.role }}: {{ m.content }}<｜end｜>{% endfor %}",
    "{% for m in messages %}<think>{{ (m.content | string).split('</think>')[-1].strip() }}</think>\
     {{ m.tool_calls | tojson }}{% endfor %}{{ tools | tojson(indent=2) }}",
    "{{ messages | tojson }}{% if add_generation_prompt %}<think>{% endif %}{{ name | default('x') | upper }}",
];

static ENCODINGS: LazyLock<Vec<ChatTemplateEncoding>> = LazyLock::new(|| {
    TEMPLATES
        .iter()
        .map(|template| {
            ChatTemplateEncoding::new(template, TOKENIZER.clone(), "<｜begin｜>", "<｜end｜>")
                .expect("the template is fixed")
        })
        .collect()
});

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    messages: &'a str,
    tools: &'a str,
    kwargs: &'a str,
    add_generation_prompt: bool,
    continue_final_message: bool,
}

fuzz_target!(|input: Input<'_>| {
    let Ok(messages) = serde_json::from_str::<Value>(input.messages) else {
        return;
    };
    let tools: Option<Value> = serde_json::from_str(input.tools).ok();
    let kwargs = serde_json::from_str(input.kwargs).ok();
    for encoding in ENCODINGS.iter() {
        let Ok(rendered) = encoding.render(ChatTemplateInput {
            messages: &messages,
            tools: tools.as_ref(),
            kwargs: kwargs.as_ref(),
            add_generation_prompt: input.add_generation_prompt,
            continue_final_message: input.continue_final_message,
        }) else {
            continue;
        };
        for range in &rendered.special_ranges {
            assert!(
                TOKENIZER
                    .token_to_id(&rendered.prompt[range.clone()])
                    .is_some()
            );
        }
        TOKENIZER
            .encode_ranges(&rendered.prompt, &rendered.special_ranges, None)
            .unwrap();
    }
});
