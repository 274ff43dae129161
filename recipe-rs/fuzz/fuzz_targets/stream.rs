//! Any output in any pieces: no byte is lost, cuts change nothing, finished calls carry one JSON object.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use recipe_rs::{
    ChatCompletionChunkGenerator, ChatCompletionResponse, InferenceChunk, InferenceFinishReason,
    OutputFormat, ParsingOptions, StreamProcessor, ThinkingInitialStage,
};
use serde_json::Value;

/// Pieces of markup; a model's output is made of them and of free text.
const ATOMS: [&str; 24] = [
    "<",
    "</",
    "｜DSML｜",
    "<｜DSML｜",
    "</｜DSML｜",
    " calls>",
    "tool_calls>",
    " invoke name=\"f\">",
    " parameter name=\"k\"",
    " string=\"true\">",
    " string=\"false\">",
    " parameter>",
    " invoke>",
    "/>",
    "<think>",
    "</think>",
    "\n",
    "\n\n",
    "\"",
    "{\"a\": 1}",
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "é",
];

#[derive(Debug, Arbitrary)]
enum Atom<'a> {
    Markup(u8),
    Text(&'a str),
}

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    output: Vec<Atom<'a>>,
    cuts: Vec<u8>,
    stops: Vec<&'a str>,
    stage: u8,
    finish: u8,
    format: u8,
    flags: u8,
}

/// The accumulated answer without what differs from run to run, and the fate of its bytes.
fn run<'a>(pieces: impl Iterator<Item = &'a str>, options: &ParsingOptions, finish: u8) -> Value {
    let generator = ChatCompletionChunkGenerator::new("i", "m")
        .with_created(0)
        .with_thinking(options.thinking_initial_stage)
        .with_call_ids(recipe_rs::CallIds::seeded(1));
    let mut processor = StreamProcessor::new(generator, options, None);
    let mut response = ChatCompletionResponse::new("i", "m", 0);
    let mut chunks = Vec::new();
    for piece in pieces {
        if processor.is_finished() {
            break;
        }
        chunks.extend(processor.push(InferenceChunk::text(piece, 1)).unwrap());
    }
    if !processor.is_finished() {
        let reason = match finish % 3 {
            0 => InferenceFinishReason::Stop,
            1 => InferenceFinishReason::Length,
            _ => InferenceFinishReason::ContentFilter,
        };
        chunks.extend(processor.push(InferenceChunk::finish(reason)).unwrap());
    }
    let seen = processor.diagnostics();
    let settled = seen.num_visible_bytes + seen.num_markup_bytes + seen.num_dropped_bytes;
    assert_eq!(settled, seen.num_input_bytes);
    for chunk in chunks {
        response.accumulate(chunk);
    }
    serde_json::from_str(&response.to_json()).unwrap()
}

fuzz_target!(|input: Input<'_>| {
    let output: String = input
        .output
        .iter()
        .map(|atom| match atom {
            Atom::Markup(index) => ATOMS[usize::from(*index) % ATOMS.len()],
            Atom::Text(text) => text,
        })
        .collect();
    let flag = |bit: u8| input.flags >> bit & 1 == 1;
    let options = ParsingOptions {
        parse_tool_calls: !flag(0),
        starts_in_tool_calls: flag(1) && flag(2),
        parse_json_output: flag(3) && flag(4),
        thinking_initial_stage: match input.stage % 4 {
            0 => None,
            1 => Some(ThinkingInitialStage::ReasoningStart),
            2 => Some(ThinkingInitialStage::ReasoningContinuation),
            _ => Some(ThinkingInitialStage::ContentContinuation),
        },
        stop_sequences: input
            .stops
            .iter()
            .filter(|stop| !stop.is_empty())
            .map(|&stop| stop.to_owned())
            .collect(),
        output_format: OutputFormat::NAMES[usize::from(input.format) % OutputFormat::NAMES.len()].1,
        compat: flag(5),
        ..ParsingOptions::default()
    };
    let whole = run(std::iter::once(output.as_str()), &options, input.finish);
    let mut rest = output.as_str();
    let mut cuts = input
        .cuts
        .iter()
        .map(|&cut| usize::from(cut % 16) + 1)
        .chain(std::iter::repeat(1));
    let pieces = std::iter::from_fn(|| {
        let cut = cuts.next()?;
        let end = (cut..rest.len())
            .find(|&end| rest.is_char_boundary(end))
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    });
    let mut cut = run(pieces, &options, input.finish);
    // One text chunk stands for one token here.
    cut["usage"] = whole["usage"].clone();
    if !options.parse_json_output {
        assert_eq!(cut, whole);
    }
    let choice = &whole["choices"][0];
    let is_finished = input.finish % 3 == 0 && choice["finish_reason"] != "stop";
    for call in choice["message"]["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|_| is_finished)
    {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let mut scanned =
            serde_json::Deserializer::from_str(arguments).into_iter::<serde::de::IgnoredAny>();
        assert!(
            arguments.starts_with('{')
                && scanned.next().unwrap().is_ok()
                && scanned.next().is_none(),
            "{arguments}"
        );
    }
});
