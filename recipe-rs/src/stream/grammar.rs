//! What the grammars of tool calls have in common.

use super::buffer::PieceBuffer;
use super::delimiter::{Delimiter, DelimiterSet, Trust};
use super::event::{ArgumentFragment, StreamDiagnostics, StreamEvent};

/// The stream as a call grammar sees it.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    pub(crate) buffer: &'a mut PieceBuffer,
    /// Position up to which the bytes were looked at.
    pub(crate) scan: &'a mut usize,
    pub(crate) events: &'a mut Vec<StreamEvent>,
    pub(crate) diagnostics: &'a mut StreamDiagnostics,
}

impl Input<'_> {
    /// Settles everything before `position` as markup.
    pub(crate) fn markup(&mut self, position: usize) {
        self.diagnostics.num_markup_bytes += self.buffer.skip(position) as u64;
    }

    /// Settles everything before `position` as text that appears nowhere.
    pub(crate) fn discard(&mut self, position: usize) {
        self.diagnostics.num_dropped_bytes += self.buffer.skip(position) as u64;
    }

    /// Settles everything before `position` as text that an event carries in another form.
    pub(crate) fn used(&mut self, position: usize) {
        self.diagnostics.num_visible_bytes += self.buffer.skip(position) as u64;
    }

    /// Sends everything before `position` as pieces of a string value.
    pub(crate) fn string_pieces(&mut self, position: usize) {
        let (events, diagnostics) = (&mut *self.events, &mut *self.diagnostics);
        self.buffer.take(position, |part| {
            diagnostics.num_visible_bytes += part.text.len() as u64;
            events.push(StreamEvent::CallArguments(ArgumentFragment::StringPiece(
                part.text,
            )));
        });
    }

    /// Text from the settled position to `position`.
    pub(crate) fn text_to(&self, position: usize) -> &str {
        self.buffer.text(self.buffer.settled()..position)
    }

    pub(crate) fn arguments(&mut self, fragment: ArgumentFragment) {
        self.events.push(StreamEvent::CallArguments(fragment));
    }

    pub(crate) fn call(&mut self, name: &str) {
        self.events.push(StreamEvent::CallStart {
            name: name.to_owned(),
        });
    }
}

/// Result of letting a grammar read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Everything there is was looked at.
    More,
    /// What looked like an opener was none: it ends before `dropped_to`, text goes on there.
    Rejected {
        /// Where the text goes on.
        dropped_to: usize,
    },
    /// The calls are over; the rest is outside.
    Left,
}

/// How the output ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The model ended its turn: open calls are completed.
    Turn,
    /// The output was cut: open calls stay as they are.
    Cut,
}

/// The markup of tool calls of one model family.
pub(crate) trait CallGrammar: std::fmt::Debug + Send + Sync {
    /// What opens calls in visible text.
    fn openers(&self) -> Vec<Delimiter>;

    /// Tags that mean nothing in visible text.
    fn strays(&self) -> Vec<Delimiter> {
        Vec::new()
    }

    /// An opener was found; it ends at `position`.
    fn start(&mut self, position: usize);

    /// A stray tag was found; its delimiter ends at `position`.
    fn start_stray(&mut self, position: usize) {
        self.start(position);
    }

    /// An object begins the answer at `position`; true if it may be a call.
    fn start_bare(&mut self, _position: usize) -> bool {
        false
    }

    /// The prompt already opened the block.
    fn start_inside(&mut self, position: usize);

    /// Reads on.
    fn advance(&mut self, input: &mut Input<'_>) -> Step;

    /// The piece is read: sends what is certain, up to whole pieces or to the last byte.
    fn release(&mut self, input: &mut Input<'_>, whole_pieces: bool);

    /// The output ended inside the markup; `Some` names where visible text goes on, if what was
    /// read turns out to be no call.
    fn finish(&mut self, input: &mut Input<'_>, ending: Ending) -> Option<usize>;
}

/// The next byte to look at, with its trust.
pub(crate) fn next_byte(input: &Input<'_>) -> Option<(u8, Trust)> {
    let (run, trust) = input.buffer.run_at(*input.scan);
    run.first().map(|byte| (*byte, trust))
}

/// Moves on to the first byte that `is_wanted`, without passing it.
pub(crate) fn find_byte(
    input: &mut Input<'_>,
    is_wanted: impl Fn(u8) -> bool,
) -> Option<(usize, u8)> {
    loop {
        let (run, _) = input.buffer.run_at(*input.scan);
        if run.is_empty() {
            return None;
        }
        if let Some(index) = run.iter().position(|byte| is_wanted(*byte)) {
            let byte = run[index];
            *input.scan += index;
            return Some((*input.scan, byte));
        }
        *input.scan += run.len();
    }
}

/// Moves on to the end of the first match; gives its role and where it starts.
pub(crate) fn scan_set<R: Copy>(
    set: &mut DelimiterSet<R>,
    input: &mut Input<'_>,
) -> Option<(R, usize)> {
    loop {
        let (run, trust) = input.buffer.run_at(*input.scan);
        if run.is_empty() {
            return None;
        }
        if let Some(hit) = set.scan(run, trust) {
            *input.scan += hit.consumed;
            return Some((hit.role, *input.scan - hit.length));
        }
        *input.scan += run.len();
    }
}
