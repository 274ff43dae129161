//! From what the parser found to the chunks and whole responses of the three protocols.

mod call_id;
mod chat_accumulate;
mod chat_chunk;
mod chat_completions;
mod custom_input;
mod messages;
mod messages_accumulate;
mod responses;
mod responses_event;
mod responses_item;
mod responses_object;
mod tool_input;
mod usage;

pub use call_id::CallIds;
pub use chat_accumulate::ChatCompletionResponse;
pub use chat_chunk::ChatCompletionChunk;
pub use chat_completions::{ChatCompletionChunkGenerator, UsageStyle};
pub use messages::{MessagesChunkGenerator, MessagesStreamEvent};
pub use messages_accumulate::MessagesResponse;
pub use responses::ResponsesChunkGenerator;
pub use responses_event::ResponsesStreamEvent;
pub use responses_object::{ResponsesEcho, ResponsesResponse};

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
fn unix_seconds() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| {
            i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)
        })
}

/// The JSON text of a chunk.
fn to_json(value: &impl serde::Serialize) -> String {
    // Strings, numbers and maps with string keys: nothing here can fail to be written.
    serde_json::to_string(value).unwrap_or_default()
}
