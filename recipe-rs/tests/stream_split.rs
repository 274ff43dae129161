//! However an output is cut, its stream adds up to the same response.

#![expect(clippy::unwrap_used, reason = "functions that tests call")]

use proptest::prelude::*;
use recipe_rs::{
    CallIds, ChatCompletionChunkGenerator, ChatCompletionResponse, InferenceChunk,
    InferenceFinishReason, OutputFormat, ParsingOptions, SpecialToken, StreamProcessor,
    ThinkingInitialStage,
};

/// The response that these pieces add up to, with every byte accounted for.
fn read(pieces: &[&str], options: &ParsingOptions, finish: InferenceFinishReason) -> String {
    let generator = ChatCompletionChunkGenerator::new("id", "model")
        .with_created(1)
        .with_thinking(options.thinking_initial_stage)
        .with_call_ids(CallIds::seeded(1));
    let mut processor = StreamProcessor::new(generator, options, None);
    let mut response = ChatCompletionResponse::new("id", "model", 1);
    let texts = pieces.iter().map(|piece| InferenceChunk::text(*piece, 0));
    for chunk in texts.chain([InferenceChunk::finish(finish)]) {
        for event in processor.push(chunk).unwrap() {
            response.accumulate(event);
        }
    }
    let seen = processor.diagnostics();
    assert_eq!(
        seen.num_input_bytes,
        seen.num_visible_bytes + seen.num_markup_bytes + seen.num_dropped_bytes
    );
    response.to_json()
}

/// Text made of markup, pieces of markup, and ordinary text.
fn output() -> impl Strategy<Value = String> {
    let marker = SpecialToken::Dsml.default_str();
    let think_end = SpecialToken::ThinkingEnd.default_str();
    let mut atoms: Vec<String> = [
        "a",
        " b",
        "\n",
        "<",
        "</",
        " calls>",
        "tool_calls>",
        " invoke name=\"f\">",
        "invoke name=\"",
        " parameter name=\"k\" string=\"true\">",
        " parameter name=\"",
        "\" string=\"false\">",
        "\">",
        " parameter>",
        " invoke>",
        "1",
        "{\"k\": [2]}",
        "nope",
        "\u{e9}",
        "\"",
        "\\",
        "/>",
        "<tool_call>",
        "</tool_call>",
        "{\"name\": \"f\", \"arguments\": {\"a\": \"}\"}}",
        "[TOOL_CALLS]",
        "f[ARGS]{\"a\": 1}",
        "<|python_tag|>",
        ";",
    ]
    .map(str::to_owned)
    .to_vec();
    atoms.extend([
        marker.to_owned(),
        think_end.to_owned(),
        format!("<{marker}"),
        format!("</{marker}"),
        format!(
            "<{marker} calls>\n<{marker} invoke name=\"f\">\n\
             <{marker} parameter name=\"x\" string=\"true\">v</{marker} parameter>\n"
        ),
    ]);
    prop::collection::vec(prop::sample::select(atoms), 0..14).prop_map(|atoms| atoms.concat())
}

proptest! {
    #[test]
    fn cuts_do_not_change_the_response(
        text in output(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        format in prop::sample::select(OutputFormat::NAMES.map(|(_, format)| format).to_vec()),
        compat in any::<bool>(),
        is_thinking in any::<bool>(),
        is_cut in any::<bool>(),
    ) {
        let options = ParsingOptions {
            output_format: format,
            compat,
            thinking_initial_stage: is_thinking.then_some(ThinkingInitialStage::ReasoningStart),
            ..ParsingOptions::default()
        };
        let finish = if is_cut {
            InferenceFinishReason::Length
        } else {
            InferenceFinishReason::Stop
        };
        let mut borders: Vec<_> = cuts
            .iter()
            .map(|cut| cut.index(text.len() + 1))
            .filter(|cut| text.is_char_boundary(*cut))
            .chain([0, text.len()])
            .collect();
        borders.sort_unstable();
        let pieces: Vec<_> = borders.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        let characters: Vec<_> = text.split_inclusive(|_| true).collect();
        let whole = read(&[&text], &options, finish);
        prop_assert_eq!(&read(&pieces, &options, finish), &whole);
        prop_assert_eq!(&read(&characters, &options, finish), &whole);
    }

    #[test]
    fn arguments_of_finished_calls_are_objects(text in output(), format in prop::sample::select(
        OutputFormat::NAMES.map(|(_, format)| format).to_vec(),
    )) {
        let options = ParsingOptions { output_format: format, ..ParsingOptions::default() };
        let response = read(&[&text], &options, InferenceFinishReason::Stop);
        let response: serde_json::Value = serde_json::from_str(&response).unwrap();
        let calls = response["choices"][0]["message"]["tool_calls"].as_array().cloned();
        for call in calls.unwrap_or_default() {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let parsed: serde_json::Value = serde_json::from_str(arguments).unwrap();
            prop_assert!(parsed.is_object(), "{}", arguments);
        }
    }
}
