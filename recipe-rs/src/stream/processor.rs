//! The stream processor: inference chunks in, protocol chunks out.

use std::sync::Arc;

use super::buffer::{Piece, TokenMark};
use super::delimiter::Trust;
use super::detokenize::{Detokenized, Detokenizer, TokenBytes};
use super::event::{FinishCause, StreamDiagnostics, StreamEvent, StreamUsage};
use super::formats::Format;
use super::grammar::Ending;
use super::states::Parser;
use super::{InferenceChunk, InferenceFinishReason, ParsingOptions, PromptUsage, TokenLogprob};
use crate::error::{Error, Result};

/// Turns what the parser found into the chunks of one protocol.
pub trait ChunkGenerator {
    /// The chunk type of the protocol.
    type Chunk;

    /// The stream begins.
    fn start(
        &mut self,
        prompt: PromptUsage,
        system_fingerprint: Option<String>,
        chunks: &mut Vec<Self::Chunk>,
    );

    /// The parser found something.
    fn event(&mut self, event: StreamEvent, chunks: &mut Vec<Self::Chunk>);

    /// The stream ends.
    fn finish(&mut self, cause: &FinishCause, usage: &StreamUsage, chunks: &mut Vec<Self::Chunk>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Finished,
    Closed,
}

/// Reads the output of one request and emits protocol chunks as soon as they are certain.
///
/// ```
/// use recipe_rs::{
///     ChatCompletionChunkGenerator, InferenceChunk, InferenceFinishReason, ParsingOptions,
///     StreamProcessor,
/// };
///
/// let generator = ChatCompletionChunkGenerator::new("chatcmpl-1", "model");
/// let mut processor = StreamProcessor::new(generator, &ParsingOptions::default(), None);
/// let mut chunks = processor.push(InferenceChunk::text("Hel", 1))?;
/// chunks.extend(processor.push(InferenceChunk::text("lo", 1))?);
/// chunks.extend(processor.push(InferenceChunk::finish(InferenceFinishReason::Stop))?);
/// assert!(processor.is_finished());
/// assert_eq!(chunks.len(), 4);
/// # Ok::<(), recipe_rs::Error>(())
/// ```
pub struct StreamProcessor<G> {
    generator: G,
    parser: Parser,
    detokenizer: Detokenizer,
    vocabulary: Option<Arc<dyn TokenBytes>>,
    state: State,
    prompt: PromptUsage,
    completion_tokens: u64,
    /// Whether the request thinks: only then reasoning is counted.
    is_thinking: bool,
    /// Whether the tokens of text chunks count as reasoning too.
    counts_text_tokens: bool,
    /// The reasoning so far, where its tokens are counted by encoding it.
    reasoning: String,
}

impl<G> std::fmt::Debug for StreamProcessor<G> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StreamProcessor")
            .field("state", &self.state)
            .field("parser", &self.parser)
            .finish_non_exhaustive()
    }
}

impl<G: ChunkGenerator> StreamProcessor<G> {
    /// A processor of one stream; `vocabulary` is needed for chunks of token ids only.
    #[must_use]
    pub fn new(
        generator: G,
        options: &ParsingOptions,
        vocabulary: Option<Arc<dyn TokenBytes>>,
    ) -> Self {
        let format = Format::new(options);
        Self {
            generator,
            detokenizer: Detokenizer::new(options, format.markup.clone()),
            parser: Parser::new(options, format),
            vocabulary,
            state: State::Waiting,
            prompt: PromptUsage::default(),
            completion_tokens: 0,
            is_thinking: options.thinking_initial_stage.is_some(),
            counts_text_tokens: !options.compat,
            reasoning: String::new(),
        }
    }

    /// Whether the stream ended normally and the processor was not closed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// What became of the bytes so far.
    #[must_use]
    pub fn diagnostics(&self) -> StreamDiagnostics {
        self.parser.diagnostics()
    }

    /// Reads one chunk.
    ///
    /// # Errors
    /// [`Error::Stream`] after the end or [`close`](Self::close), for ids without a vocabulary, and
    /// when the number of log probabilities is not that of the ids; the last two close the
    /// processor.
    pub fn push(&mut self, chunk: InferenceChunk) -> Result<Vec<G::Chunk>> {
        match self.state {
            State::Finished => {
                return Err(self.error("the stream has ended; nothing can be pushed"));
            }
            State::Closed => return Err(self.error("the stream processor is closed")),
            State::Waiting | State::Running => {}
        }
        let mut chunks = Vec::new();
        match chunk {
            InferenceChunk::Ready {
                prompt_usage,
                system_fingerprint,
            } => {
                if self.state == State::Waiting {
                    self.prompt = prompt_usage.unwrap_or_default();
                    self.start(system_fingerprint, &mut chunks);
                }
            }
            InferenceChunk::Text {
                content,
                token_count,
            } => {
                self.start(None, &mut chunks);
                self.completion_tokens += token_count;
                self.push_text(content, token_count, &mut chunks);
            }
            InferenceChunk::Tokens {
                token_ids,
                logprobs,
            } => {
                let logprobs = logprobs.unwrap_or_default();
                self.push_ids(&token_ids, &logprobs, &mut chunks)?;
            }
            InferenceChunk::Finish { finish_reason } => {
                self.start(None, &mut chunks);
                let ending = match finish_reason {
                    InferenceFinishReason::Stop => Ending::Turn,
                    InferenceFinishReason::Length | InferenceFinishReason::ContentFilter => {
                        Ending::Cut
                    }
                };
                self.end(ending, &FinishCause::Backend(finish_reason), &mut chunks);
            }
        }
        Ok(chunks)
    }

    /// Ends the input; without a finish chunk the output counts as cut. Does nothing after the end.
    ///
    /// # Errors
    /// [`Error::Stream`] after [`close`](Self::close) or an error.
    pub fn finish(&mut self) -> Result<Vec<G::Chunk>> {
        let mut chunks = Vec::new();
        match self.state {
            State::Closed => return Err(self.error("the stream processor is closed")),
            State::Finished => {}
            State::Waiting | State::Running => {
                self.start(None, &mut chunks);
                self.end(Ending::Cut, &FinishCause::EndOfInput, &mut chunks);
            }
        }
        Ok(chunks)
    }

    /// Gives up the stream.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }

    fn start(&mut self, system_fingerprint: Option<String>, chunks: &mut Vec<G::Chunk>) {
        if self.state == State::Waiting {
            self.state = State::Running;
            self.generator
                .start(self.prompt, system_fingerprint, chunks);
        }
    }

    fn push_text(&mut self, text: String, num_tokens: u64, chunks: &mut Vec<G::Chunk>) {
        let mut found = Vec::new();
        self.detokenizer.flush(&mut found);
        let end = text.len();
        found.push(Detokenized::Piece(Piece {
            text,
            trust: Trust::Text,
            tokens: vec![TokenMark {
                end,
                num_tokens,
                is_id: false,
                logprob: None,
            }],
        }));
        self.parse(found, chunks);
    }

    fn push_ids(
        &mut self,
        ids: &[u32],
        logprobs: &[TokenLogprob],
        chunks: &mut Vec<G::Chunk>,
    ) -> Result<()> {
        let Some(vocabulary) = self.vocabulary.clone() else {
            self.state = State::Closed;
            return Err(self.error("token ids were pushed, but the processor has no tokenizer"));
        };
        if !logprobs.is_empty() && logprobs.len() != ids.len() {
            self.state = State::Closed;
            return Err(self.error(&format!(
                "{} log probabilities were given for {} token ids; give one per id or none",
                logprobs.len(),
                ids.len()
            )));
        }
        self.completion_tokens += ids.len() as u64;
        let mut found = Vec::new();
        self.detokenizer
            .push(ids, logprobs, vocabulary.as_ref(), &mut found);
        if !found.is_empty() {
            self.start(None, chunks);
        }
        self.parse(found, chunks);
        Ok(())
    }

    fn parse(&mut self, found: Vec<Detokenized>, chunks: &mut Vec<G::Chunk>) {
        let mut events = Vec::new();
        for item in found {
            if self.parser.found_stop().is_some() {
                // Nothing behind the stop belongs to the answer, so it is not charged either.
                self.completion_tokens -= item.num_tokens();
                continue;
            }
            match item {
                Detokenized::Piece(piece) => self.parser.push(piece, &mut events),
                Detokenized::EndOfTurn => self.parser.end_turn(&mut events),
                Detokenized::DroppedControl(num_bytes) => self.parser.count_dropped(num_bytes, 1),
            }
        }
        self.send(events, chunks);
        if let Some(stop) = self.parser.found_stop() {
            let cause = FinishCause::StopSequence(stop.to_owned());
            self.end(Ending::Cut, &cause, chunks);
        }
    }

    fn send(&mut self, events: Vec<StreamEvent>, chunks: &mut Vec<G::Chunk>) {
        for event in events {
            if let StreamEvent::Reasoning { text, .. } = &event
                && !self.counts_text_tokens
                && self.vocabulary.is_some()
            {
                self.reasoning.push_str(text);
            }
            self.generator.event(event, chunks);
        }
    }

    fn end(&mut self, ending: Ending, cause: &FinishCause, chunks: &mut Vec<G::Chunk>) {
        let mut found = Vec::new();
        let num_cut_bytes = self.detokenizer.finish(&mut found);
        let mut events = Vec::new();
        for item in found {
            if let Detokenized::Piece(piece) = item {
                self.parser.push(piece, &mut events);
            }
        }
        self.parser.count_dropped(num_cut_bytes, 0);
        self.parser.finish(ending, &mut events);
        self.send(events, chunks);
        let cause = match self.parser.found_stop() {
            Some(stop) => FinishCause::StopSequence(stop.to_owned()),
            None => cause.clone(),
        };
        let usage = StreamUsage {
            prompt: self.prompt,
            completion_tokens: self.completion_tokens,
            reasoning_tokens: self.reasoning_tokens(),
        };
        self.generator.finish(&cause, &usage, chunks);
        self.state = State::Finished;
    }

    /// The official codec encodes the reasoning again; without compat the tokens that came in count.
    fn reasoning_tokens(&self) -> Option<u64> {
        if !self.is_thinking {
            return None;
        }
        let num_ids = self.parser.num_reasoning_ids();
        if self.counts_text_tokens {
            return Some(num_ids + self.parser.num_reasoning_text_tokens());
        }
        let vocabulary = self.vocabulary.as_ref()?;
        Some(vocabulary.count_tokens(&self.reasoning).unwrap_or(num_ids))
    }

    fn error(&self, message: &str) -> Error {
        Error::Stream {
            message: message.to_owned(),
            state: match self.state {
                State::Finished => "finished",
                State::Closed => "closed",
                State::Waiting | State::Running => self.parser.stage_name(),
            },
        }
    }
}
