//! What a request decides about the form of its responses.

use std::collections::{BTreeMap, BTreeSet};

/// How the calls of a request's tools are reported; only Responses knows other kinds than functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolKinds {
    /// For the function name of each tool of a namespace, the namespace and the tool's own name.
    pub namespaced: BTreeMap<String, (String, String)>,
    /// Names of the tools whose calls carry raw input instead of JSON arguments.
    pub custom: BTreeSet<String>,
    /// Whether a call of `tool_search` is an item of its own kind.
    pub has_tool_search: bool,
}

/// What a request asks of the form of its responses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reporting {
    /// Whether a stream is to report its usage (Chat's `stream_options.include_usage`).
    pub usage: bool,
    /// Whether reasoning is packed for the client to send back (Responses, compat off).
    pub carried_reasoning: bool,
    /// Tools whose calls are not reported as those of functions.
    pub tool_kinds: ToolKinds,
}
