//! The stage machine: reasoning, answer, JSON answer, calls.

use super::buffer::{Part, Piece, PieceBuffer};
use super::delimiter::{Delimiter, DelimiterSet, Hit};
use super::event::{StreamDiagnostics, StreamEvent};
use super::formats::Format;
use super::grammar::{Ending, Input, Step};
use super::{OutputFormat, ParsingOptions, ThinkingInitialStage};
use crate::special_tokens::SpecialToken;

/// What can be found in visible text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Stop(usize),
    CallOpener,
    StrayTag,
    ThinkStart,
    ThinkEnd,
    /// Markup that means nothing here.
    Stray,
    Fence,
    Bracket(u8),
    FenceEnd,
}

/// A stage of visible text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visible {
    Reasoning,
    Content,
    /// A JSON answer has not begun.
    JsonText,
    /// Inside a JSON answer.
    JsonBody,
    /// Behind a fenced JSON answer.
    JsonAfter,
    /// Behind the calls: nothing is visible any more.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Visible,
    /// Inside the markup of calls; where an opener began, newlines included, and how many.
    Calls {
        opener: Option<(usize, usize)>,
    },
    /// The turn or the stream is over.
    Ended,
}

/// The parser of one output stream.
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings and facts that vary independently"
)]
#[derive(Debug)]
pub(crate) struct Parser {
    buffer: PieceBuffer,
    scan: usize,
    stage: Stage,
    visible: Visible,
    skips_newlines: bool,
    has_shown_text: bool,
    /// Whether an object that comes next may be a call.
    parses_bare_calls: bool,
    sets: [DelimiterSet<Role>; 6],
    format: Format,
    stop_sequences: Vec<String>,
    found_stop: Option<usize>,
    answers_in_json: bool,
    /// Whether a piece waits as a whole while its end may belong to a delimiter.
    holds_whole_pieces: bool,
    num_reasoning_ids: u64,
    num_reasoning_text_tokens: u64,
    diagnostics: StreamDiagnostics,
}

impl Parser {
    pub(crate) fn new(options: &ParsingOptions, mut format: Format) -> Self {
        let parse_tool_calls = options.parse_tool_calls || options.starts_in_tool_calls;
        let answers = if options.parse_json_output {
            Visible::JsonText
        } else {
            Visible::Content
        };
        let (visible, skips_newlines) = match options.thinking_initial_stage {
            _ if options.starts_in_tool_calls => (answers, true),
            Some(ThinkingInitialStage::ReasoningStart) => (Visible::Reasoning, true),
            Some(ThinkingInitialStage::ReasoningContinuation) => (Visible::Reasoning, false),
            Some(ThinkingInitialStage::ContentContinuation) => (answers, false),
            None => (answers, true),
        };
        let stage = match &mut format.calls {
            Some(calls) if options.starts_in_tool_calls => {
                calls.start_inside(0);
                Stage::Calls { opener: None }
            }
            _ => Stage::Visible,
        };
        let sets = [
            Visible::Reasoning,
            Visible::Content,
            Visible::JsonText,
            Visible::JsonBody,
            Visible::JsonAfter,
            Visible::After,
        ]
        .map(|visible| delimiters(visible, options, &format, parse_tool_calls));
        Self {
            buffer: PieceBuffer::new(options.compat),
            scan: 0,
            stage,
            visible,
            skips_newlines,
            has_shown_text: false,
            parses_bare_calls: parse_tool_calls
                && options.output_format == OutputFormat::Llama3Json,
            sets,
            format,
            stop_sequences: options.stop_sequences.clone(),
            found_stop: None,
            answers_in_json: options.parse_json_output,
            holds_whole_pieces: options.compat,
            num_reasoning_ids: 0,
            num_reasoning_text_tokens: 0,
            diagnostics: StreamDiagnostics::default(),
        }
    }

    /// Reads one piece.
    pub(crate) fn push(&mut self, piece: Piece, events: &mut Vec<StreamEvent>) {
        self.diagnostics.num_input_bytes += piece.text.len() as u64;
        self.buffer.append(piece);
        self.read(events);
        self.release(events);
    }

    /// The model ended its turn: everything after this is dropped.
    pub(crate) fn end_turn(&mut self, events: &mut Vec<StreamEvent>) {
        self.finish(Ending::Turn, events);
    }

    /// Counts bytes that came in and appear nowhere.
    pub(crate) fn count_dropped(&mut self, num_bytes: usize, num_control_tokens: u64) {
        self.diagnostics.num_input_bytes += num_bytes as u64;
        self.diagnostics.num_dropped_bytes += num_bytes as u64;
        self.diagnostics.num_dropped_control_tokens += num_control_tokens;
    }

    /// The output ended.
    pub(crate) fn finish(&mut self, ending: Ending, events: &mut Vec<StreamEvent>) {
        loop {
            match self.stage {
                Stage::Ended => break,
                Stage::Visible => {
                    self.show(self.buffer.end(), events);
                    break;
                }
                Stage::Calls { opener } => {
                    let (calls, mut input) = self.calls(events);
                    let Some(calls) = calls else { break };
                    let Some(dropped_to) = calls.finish(&mut input, ending) else {
                        break;
                    };
                    self.reject(opener, dropped_to, events);
                    self.read(events);
                }
            }
        }
        self.stage = Stage::Ended;
        self.diagnostics.num_dropped_bytes += self.buffer.skip(self.buffer.end()) as u64;
        self.scan = self.buffer.end();
    }

    /// The stop sequence that ended the answer.
    pub(crate) fn found_stop(&self) -> Option<&str> {
        let index = self.found_stop?;
        self.stop_sequences.get(index).map(String::as_str)
    }

    pub(crate) fn num_reasoning_ids(&self) -> u64 {
        self.num_reasoning_ids
    }

    pub(crate) fn num_reasoning_text_tokens(&self) -> u64 {
        self.num_reasoning_text_tokens
    }

    pub(crate) fn diagnostics(&self) -> StreamDiagnostics {
        self.diagnostics
    }

    /// Name of the stage, for error messages.
    pub(crate) fn stage_name(&self) -> &'static str {
        match (self.stage, self.visible) {
            (Stage::Ended, _) => "ended",
            (Stage::Calls { .. }, _) => "tool_calls",
            (Stage::Visible, Visible::Reasoning) => "reasoning",
            (Stage::Visible, Visible::After) => "after_tool_calls",
            (Stage::Visible, _) => "content",
        }
    }

    fn read(&mut self, events: &mut Vec<StreamEvent>) {
        while self.scan < self.buffer.end() {
            match self.stage {
                Stage::Visible => self.read_visible(events),
                Stage::Calls { opener } => {
                    let (calls, mut input) = self.calls(events);
                    let Some(calls) = calls else { return };
                    match calls.advance(&mut input) {
                        Step::More => return,
                        Step::Rejected { dropped_to } => self.reject(opener, dropped_to, events),
                        Step::Left => self.enter(Visible::After),
                    }
                }
                Stage::Ended => {
                    self.scan = self.buffer.end();
                    self.diagnostics.num_dropped_bytes += self.buffer.skip(self.scan) as u64;
                }
            }
        }
    }

    fn calls<'a>(
        &'a mut self,
        events: &'a mut Vec<StreamEvent>,
    ) -> (
        Option<&'a mut Box<dyn super::grammar::CallGrammar>>,
        Input<'a>,
    ) {
        (
            self.format.calls.as_mut(),
            Input {
                buffer: &mut self.buffer,
                scan: &mut self.scan,
                events,
                diagnostics: &mut self.diagnostics,
            },
        )
    }

    fn enter(&mut self, visible: Visible) {
        self.visible = visible;
        self.stage = Stage::Visible;
        self.set().reset();
    }

    fn set(&mut self) -> &mut DelimiterSet<Role> {
        &mut self.sets[self.visible as usize]
    }

    /// What looked like an opener was none: it is dropped, the text around it stays visible.
    fn reject(
        &mut self,
        opener: Option<(usize, usize)>,
        dropped_to: usize,
        events: &mut Vec<StreamEvent>,
    ) {
        self.stage = Stage::Visible;
        if let Some((start, newlines)) = opener {
            self.show(start + newlines, events);
        }
        self.diagnostics.num_dropped_bytes += self.buffer.skip(dropped_to) as u64;
        self.scan = dropped_to;
        self.set().reset();
    }

    fn read_visible(&mut self, events: &mut Vec<StreamEvent>) {
        let (run, _) = self.buffer.run_at(self.scan);
        if self.skips_newlines {
            let newlines = run.iter().take_while(|byte| **byte == b'\n').count();
            self.skips_newlines = newlines == run.len();
            if newlines > 0 {
                self.scan += newlines;
                self.diagnostics.num_dropped_bytes += self.buffer.skip(self.scan) as u64;
                return;
            }
        }
        let num_blanks = run
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let first = run.get(num_blanks).copied();
        if num_blanks == 0 && self.may_begin_bare(first) {
            return;
        }
        let (mut run, trust) = self.buffer.run_at(self.scan);
        if self.parses_bare_calls && num_blanks > 0 {
            run = &run[..num_blanks];
        }
        let hit = self.sets[self.visible as usize].scan(run, trust);
        match hit {
            Some(hit) => {
                self.scan += hit.consumed;
                self.found(hit, events);
            }
            None => self.scan += run.len(),
        }
    }

    /// Hands an object that begins the answer to the call grammar, if it may be a call.
    fn may_begin_bare(&mut self, first: Option<u8>) -> bool {
        let is_candidate =
            self.parses_bare_calls && self.visible == Visible::Content && first == Some(b'{');
        self.parses_bare_calls &= self.visible == Visible::Reasoning;
        let position = self.scan;
        let calls = self.format.calls.as_mut().filter(|_| is_candidate);
        if !calls.is_some_and(|calls| calls.start_bare(position)) {
            return false;
        }
        self.stage = Stage::Calls {
            opener: Some((position, 0)),
        };
        true
    }

    fn found(&mut self, hit: Hit<Role>, events: &mut Vec<StreamEvent>) {
        let start = self.scan - hit.length;
        self.show(start, events);
        match hit.role {
            Role::Stop(index) => {
                self.found_stop = Some(index);
                self.stage = Stage::Ended;
                self.diagnostics.num_dropped_bytes += self.buffer.skip(self.scan) as u64;
            }
            Role::CallOpener | Role::StrayTag => {
                self.stage = Stage::Calls {
                    opener: Some((start, hit.newlines)),
                };
                if let Some(calls) = &mut self.format.calls {
                    if hit.role == Role::CallOpener {
                        calls.start(self.scan);
                    } else {
                        calls.start_stray(self.scan);
                    }
                }
            }
            // Only a model that has not said anything yet can begin to think.
            Role::ThinkStart if self.has_shown_text => {}
            Role::ThinkStart => {
                self.settle_markup();
                self.skips_newlines = true;
                self.enter(Visible::Reasoning);
            }
            Role::ThinkEnd => {
                self.settle_markup();
                self.skips_newlines = true;
                let next = if self.answers_in_json {
                    Visible::JsonText
                } else {
                    Visible::Content
                };
                self.enter(next);
            }
            Role::Stray => {
                self.diagnostics.num_dropped_bytes += self.buffer.skip(self.scan) as u64;
            }
            Role::Fence => {
                self.settle_markup();
                self.enter(Visible::JsonBody);
            }
            Role::Bracket(_) => {
                self.enter(Visible::JsonBody);
                self.show(self.scan, events);
            }
            Role::FenceEnd => {
                self.settle_markup();
                self.enter(Visible::JsonAfter);
            }
        }
    }

    fn settle_markup(&mut self) {
        self.diagnostics.num_markup_bytes += self.buffer.skip(self.scan) as u64;
    }

    /// Sends what is certain after a piece.
    fn release(&mut self, events: &mut Vec<StreamEvent>) {
        match self.stage {
            // Blanks belong to the call that may follow them.
            Stage::Visible if self.parses_bare_calls && self.visible == Visible::Content => {}
            Stage::Visible => {
                let certain = self.scan - self.set().held();
                let position = if self.holds_whole_pieces {
                    self.buffer.last_border(certain)
                } else {
                    certain
                };
                self.show(position, events);
            }
            Stage::Calls { .. } => {
                let whole_pieces = self.holds_whole_pieces;
                let (calls, mut input) = self.calls(events);
                if let Some(calls) = calls {
                    calls.release(&mut input, whole_pieces);
                }
            }
            Stage::Ended => {}
        }
    }

    /// Settles everything before `position` as visible text of the current stage.
    fn show(&mut self, position: usize, events: &mut Vec<StreamEvent>) {
        let (visible, diagnostics) = (self.visible, &mut self.diagnostics);
        let (ids, text_tokens) = (
            &mut self.num_reasoning_ids,
            &mut self.num_reasoning_text_tokens,
        );
        self.has_shown_text |= self.buffer.settled() < position;
        if visible == Visible::After {
            diagnostics.num_dropped_bytes += self.buffer.skip(position) as u64;
            return;
        }
        self.buffer.take(position, |part| {
            let Part {
                mut text, logprobs, ..
            } = part;
            let is_replaced = matches!(visible, Visible::JsonText | Visible::JsonAfter);
            if is_replaced {
                diagnostics.num_dropped_bytes += text.len() as u64;
                " ".clone_into(&mut text);
            } else {
                diagnostics.num_visible_bytes += text.len() as u64;
            }
            events.push(if visible == Visible::Reasoning {
                *ids += part.num_ids;
                *text_tokens += part.num_text_tokens;
                StreamEvent::Reasoning { text, logprobs }
            } else {
                StreamEvent::Content { text, logprobs }
            });
        });
    }
}

/// The delimiters of one stage.
fn delimiters(
    visible: Visible,
    options: &ParsingOptions,
    format: &Format,
    parse_tool_calls: bool,
) -> DelimiterSet<Role> {
    let mut set = Vec::new();
    if matches!(visible, Visible::Content | Visible::JsonBody) {
        let stops = options.stop_sequences.iter().enumerate();
        set.extend(stops.map(|(index, stop)| (Delimiter::plain(stop), Role::Stop(index))));
    }
    if visible == Visible::JsonBody {
        set.push((Delimiter::plain("\n```"), Role::FenceEnd));
        return DelimiterSet::new(set);
    }
    if let Some(calls) = format.calls.as_ref().filter(|_| parse_tool_calls) {
        set.extend(
            calls
                .openers()
                .into_iter()
                .map(|opener| (opener, Role::CallOpener)),
        );
        set.extend(
            calls
                .strays()
                .into_iter()
                .map(|stray| (stray, Role::StrayTag)),
        );
    }
    if options.output_format == OutputFormat::Dsml {
        // The marker is a token of its own: without the bracket before it, it means nothing.
        let marker = options.special_tokens.token(SpecialToken::Dsml);
        set.push((Delimiter::special_id(marker), Role::Stray));
    }
    if visible == Visible::After {
        return DelimiterSet::new(set);
    }
    if let Some(think_start) = &format.think_start {
        let role = if visible == Visible::Reasoning {
            Role::Stray
        } else {
            Role::ThinkStart
        };
        set.push((Delimiter::markup(think_start), role));
    }
    if let Some(think_end) = &format.think_end {
        let think_end = Delimiter::markup(think_end);
        set.push(if visible == Visible::Reasoning {
            (think_end.taking_newlines(options.compat), Role::ThinkEnd)
        } else {
            (think_end, Role::Stray)
        });
    }
    if visible == Visible::JsonText {
        set.extend(["```json\n", "```\n"].map(|fence| (Delimiter::plain(fence), Role::Fence)));
        set.extend([b'{', b'['].map(|bracket| {
            let text = char::from(bracket).to_string();
            (Delimiter::plain(&text), Role::Bracket(bracket))
        }));
    }
    DelimiterSet::new(set)
}
