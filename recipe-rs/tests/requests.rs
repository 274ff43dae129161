//! Requests and prompts: nothing panics, refusals name a field, and ranges are what they say.

use proptest::prelude::*;
use recipe_rs::json::Value;
use recipe_rs::{
    AssistantMessage, ChatCompletionRequest, Conversation, ConversionOptions, DeepseekV4Renderer,
    DeepseekV41Renderer, Error, Message, MessagesRequest, RenderedPrompt, ResponsesRequest,
    SpecialToken, ToolCall, ToolDefinition, ToolMessage,
};
use serde_json::json;

fn any_text() -> impl Strategy<Value = String> {
    let spellings = SpecialToken::ALL.map(SpecialToken::default_str);
    prop_oneof![
        ".{0,12}",
        proptest::sample::select(spellings.to_vec()).prop_map(str::to_owned),
        Just("<｜DSML｜ calls>".to_owned()),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(vec![
            "user",
            "assistant",
            "tool",
            "text",
            "function",
            "object",
            "low",
            "auto",
            "x",
        ])
        .prop_map(Value::from),
    ];
    let key = proptest::sample::select(vec![
        "model",
        "messages",
        "input",
        "role",
        "content",
        "type",
        "text",
        "tools",
        "function",
        "name",
        "parameters",
        "tool_calls",
        "id",
        "arguments",
        "thinking",
        "stop",
        "call_id",
        "output",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::hash_map(key.clone(), inner, 0..6).prop_map(|members| members
                .into_iter()
                .map(|(key, member)| (key.to_owned(), member))
                .collect()),
        ]
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let call = (any_text(), any_text(), any_text()).prop_map(|(id, name, arguments)| ToolCall {
        id,
        name,
        arguments,
    });
    prop_oneof![
        any_text().prop_map(|text| Message::User(text.as_str().into())),
        any_text().prop_map(Message::LatestReminder),
        (any_text(), proptest::option::of(any_text())).prop_map(|(text, tool_call_id)| {
            Message::Tool(ToolMessage {
                content: text.as_str().into(),
                tool_call_id,
            })
        }),
        (
            any_text(),
            proptest::option::of(any_text()),
            proptest::option::of(proptest::collection::vec(call, 0..3)),
            any::<bool>()
        )
            .prop_map(|(content, reasoning_content, tool_calls, prefix)| {
                Message::Assistant(AssistantMessage {
                    content,
                    reasoning_content,
                    tool_calls,
                    prefix,
                })
            }),
    ]
}

fn check_ranges(rendered: &RenderedPrompt) {
    let spellings = SpecialToken::ALL.map(SpecialToken::default_str);
    let mut end = 0;
    for range in &rendered.special_ranges {
        assert!(end <= range.start && range.start < range.end);
        assert!(spellings.contains(&&rendered.prompt[range.clone()]));
        end = range.end;
    }
    assert!(end <= rendered.prompt.len());
}

fn names_a_field(error: &Error) -> bool {
    matches!(error, Error::Conversion { param: Some(_), status_code: 400, message } if !message.is_empty())
}

proptest! {
    #[test]
    fn any_value_is_read_or_refused(body in any_json(), compat in any::<bool>()) {
        let options = ConversionOptions::default().with_compat(compat);
        let outcomes = [
            ChatCompletionRequest::from_value(&body).and_then(|request| request.convert(&options)),
            ResponsesRequest::from_value(&body).and_then(|request| request.convert(&options)),
            MessagesRequest::from_value(&body).and_then(|request| request.convert(&options)),
        ];
        for error in outcomes.into_iter().filter_map(Result::err) {
            prop_assert!(names_a_field(&error), "{error}");
        }
    }

    #[test]
    fn ranges_are_ascending_spellings(
        messages in proptest::collection::vec(any_message(), 0..8),
        thinking_mode in any::<bool>(),
        compat in any::<bool>(),
    ) {
        let conversation = Conversation { messages, thinking_mode, ..Conversation::default() };
        check_ranges(&DeepseekV4Renderer::default().with_compat(compat).render(&conversation));
        check_ranges(&DeepseekV41Renderer::default().with_compat(compat).render(&conversation));
    }

    #[test]
    fn user_text_adds_no_special_range(text in any_text()) {
        let count = |text: &str| {
            let conversation = Conversation {
                messages: vec![Message::User(text.into())],
                tools: vec![ToolDefinition {
                    name: text.to_owned(),
                    description: Some(text.to_owned()),
                    parameters: json!({"description": text}),
                    strict: None,
                    defer_loading: false,
                }],
                ..Conversation::default()
            };
            DeepseekV41Renderer::default().render(&conversation).special_ranges.len()
        };
        prop_assert_eq!(count(&text), count("x"));
    }
}

/// Ten thousand tools convert in about ten times the time of a thousand.
#[test]
fn many_tools_and_calls_convert() {
    let tools: Vec<Value> = (0..10_000)
        .map(|index| {
            json!({"type": "function", "function": {"name": format!("f{index}"), "parameters": {"type": "object"}}})
        })
        .collect();
    let calls: Vec<Value> = (0..10_000)
        .map(|index| {
            json!({"id": format!("c{index}"), "type": "function", "function": {"name": "f1", "arguments": "{}"}})
        })
        .collect();
    let mut messages = vec![
        json!({"role": "user", "content": "x"}),
        json!({"role": "assistant", "tool_calls": calls}),
    ];
    messages.extend(
        (0..10_000).map(
            |index| json!({"role": "tool", "tool_call_id": format!("c{index}"), "content": "r"}),
        ),
    );
    let body = json!({"model": "DeepSeek-V4.1-Flash", "messages": messages, "tools": tools});
    let request = ChatCompletionRequest::from_value(&body).unwrap();
    let converted = request.convert(&ConversionOptions::default()).unwrap();
    assert_eq!(converted.conversation.tools.len(), 10_000);
    let rendered = DeepseekV41Renderer::default().render(&converted.conversation);
    check_ranges(&rendered);
}

#[test]
fn golden_prompts_of_a_tool_turn() {
    let body = json!({
        "model": "DeepSeek-V4.1-Flash",
        "messages": [
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": "", "reasoning_content": "ask", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "w", "arguments": "{\"city\": \"Rome\", \"n\": 2}"}}
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "sunny"},
        ],
        "tools": [{"type": "function", "function": {"name": "w", "parameters": {"type": "object"}}}],
    });
    let converted = ChatCompletionRequest::from_value(&body)
        .unwrap()
        .convert(&ConversionOptions::default())
        .unwrap();
    let prompt = DeepseekV41Renderer::default()
        .render(&converted.conversation)
        .prompt;
    let turn = prompt.split_once("<｜User｜>").unwrap().1;
    assert_eq!(
        turn,
        "weather?<｜Assistant｜><think>ask</think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"w\">\n\
         <｜DSML｜ parameter name=\"city\" string=\"true\">Rome</｜DSML｜ parameter>\n\
         <｜DSML｜ parameter name=\"n\" string=\"false\">2</｜DSML｜ parameter>\n\
         </｜DSML｜ invoke>\n</｜DSML｜ calls><｜end▁of▁sentence｜>\
         <｜User｜><tool_result>sunny</tool_result><｜Assistant｜><think>"
    );
    let prompt = DeepseekV4Renderer::default()
        .render(&converted.conversation)
        .prompt;
    assert!(prompt.contains("<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"w\">\n"));
}
