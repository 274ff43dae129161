//! Any body as a request of any protocol: refused with a sentence, or converted, rendered and answered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use recipe_rs::{
    ChatCompletionRequest, ChunkGenerator, ConversationRequest, ConversionOptions,
    DeepseekV4Renderer, DeepseekV41Renderer, Error, InferenceChunk, InferenceFinishReason,
    MessagesRequest, ModelVersion, RenderedPrompt, ResponsesRequest, SpecialTokens,
    StreamProcessor,
};

const OUTPUT: &str = "thought</think>Hi\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";

fn check_prompt(prompt: &RenderedPrompt) {
    let tokens = SpecialTokens::default();
    let mut end = 0;
    for range in &prompt.special_ranges {
        assert!(range.start >= end && range.end > range.start);
        end = range.end;
        let spelling = &prompt.prompt[range.clone()];
        assert!(
            tokens.iter().any(|(_, known)| known == spelling),
            "{spelling}"
        );
    }
}

fn answer<G: ChunkGenerator>(generator: G, request: &ConversationRequest) {
    let mut processor = StreamProcessor::new(generator, &request.parsing_options, None);
    processor.push(InferenceChunk::text(OUTPUT, 9)).unwrap();
    if !processor.is_finished() {
        let stop = InferenceChunk::finish(InferenceFinishReason::Stop);
        processor.push(stop).unwrap();
    }
    assert!(processor.is_finished());
}

fn check(
    converted: Result<ConversationRequest, Error>,
    compat: bool,
) -> Option<ConversationRequest> {
    let request = match converted {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let conversation = &request.conversation;
    check_prompt(
        &DeepseekV4Renderer::default()
            .with_compat(compat)
            .render(conversation),
    );
    check_prompt(
        &DeepseekV41Renderer::default()
            .with_compat(compat)
            .render(conversation),
    );
    let _ = request.resolve_max_tokens(100, 4096);
    Some(request)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, body)) = data.split_first() else {
        return;
    };
    let compat = first & 1 == 0;
    let options = ConversionOptions::default()
        .with_compat(compat)
        .with_model_alias("m", ModelVersion::DeepseekV41Flash)
        .with_model_alias("n", ModelVersion::DeepseekV4Pro);
    match first >> 1 & 3 {
        0 => {
            let request = ChatCompletionRequest::from_json(body);
            let converted = request.and_then(|request| request.convert(&options));
            if let Some(request) = check(converted, compat) {
                answer(
                    ChatCompletionRequest::chunk_generator(&request, "i", "m"),
                    &request,
                );
            }
        }
        1 => {
            let Ok(request) = ResponsesRequest::from_json(body) else {
                return;
            };
            let echo = request.echo();
            let _ = request.namespace_tool_map(&options);
            if let Some(request) = check(request.convert(&options), compat) {
                let generator = ResponsesRequest::chunk_generator(&request, "i", "m");
                answer(generator.with_echo(&echo), &request);
            }
        }
        _ => {
            let request = MessagesRequest::from_json(body);
            let converted = request.and_then(|request| request.convert(&options));
            if let Some(request) = check(converted, compat) {
                answer(
                    MessagesRequest::chunk_generator(&request, "i", "m"),
                    &request,
                );
            }
        }
    }
});
