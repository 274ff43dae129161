//! The raw input of a custom tool call, taken out of its arguments.

use crate::stream::ArgumentFragment;

/// The parameter that carries the raw input.
const INPUT_PARAMETER: &str = "input";

/// Turns argument fragments into deltas of the raw input.
///
/// A string parameter `input` is passed on as it is. If the model wrote something else, the JSON text
/// of the arguments is the input.
#[derive(Debug, Clone, Default)]
pub(super) struct CustomInput {
    state: State,
    /// JSON text that waits for the decision.
    waiting: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Undecided,
    /// The first parameter is `input`.
    Named,
    /// Inside the string value of `input`.
    Raw,
    /// Behind it: the rest appears nowhere.
    Done,
    /// The arguments are passed on as JSON.
    Json,
}

impl CustomInput {
    /// The delta that a fragment gives, if any.
    pub(super) fn push(&mut self, fragment: ArgumentFragment) -> Option<String> {
        match (self.state, fragment) {
            (State::Undecided, ArgumentFragment::Name(name)) if name == INPUT_PARAMETER => {
                self.waiting
                    .push_str(&ArgumentFragment::Name(name).to_json());
                self.state = State::Named;
                None
            }
            (State::Undecided, fragment @ ArgumentFragment::OpenObject)
            | (State::Named, fragment @ ArgumentFragment::Colon) => {
                self.waiting.push_str(&fragment.to_json());
                None
            }
            (State::Named, ArgumentFragment::OpenString) => {
                self.waiting.clear();
                self.state = State::Raw;
                None
            }
            (State::Raw, ArgumentFragment::StringPiece(text)) => Some(text),
            (State::Raw, _) => {
                self.state = State::Done;
                None
            }
            (State::Done, _) => None,
            (State::Undecided | State::Named | State::Json, fragment) => {
                self.state = State::Json;
                let mut delta = std::mem::take(&mut self.waiting);
                delta.push_str(&fragment.to_json());
                Some(delta)
            }
        }
    }
}
