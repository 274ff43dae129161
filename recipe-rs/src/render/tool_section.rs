//! The texts about tools: the schema section, single schemas, and blocks of past calls.

use crate::conversation::{ToolCall, ToolDefinition};
use crate::json::{self, NumberStyle, Value};
use crate::render::writer::PromptWriter;
use crate::special_tokens::SpecialToken;
use crate::wire_constants::WIRE;

/// What differs between the tool texts of the two encodings.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolStyle {
    /// Text between the DSML token and a tag word.
    tag_gap: &'static str,
    /// Tag word of a block of calls.
    block_word: &'static str,
    pub(super) number_style: NumberStyle,
}

/// Style of V4.
pub(super) const V4_STYLE: ToolStyle = ToolStyle {
    tag_gap: "",
    block_word: "tool_calls",
    number_style: NumberStyle::Shortest,
};

/// Style of V4.1.
pub(super) const V41_STYLE: ToolStyle = ToolStyle {
    tag_gap: " ",
    block_word: "calls",
    number_style: NumberStyle::TwoDigitExponent,
};

impl ToolStyle {
    fn tag(self, writer: &mut PromptWriter<'_>, before: &str, word: &str) {
        writer.plain(before);
        writer.special(SpecialToken::Dsml);
        writer.plain(self.tag_gap);
        writer.plain(word);
    }

    /// Writes two line breaks and the opener of a block of calls.
    pub(super) fn open_block(self, writer: &mut PromptWriter<'_>) {
        self.tag(writer, "\n\n<", self.block_word);
        writer.plain(">\n");
    }

    /// Writes the closer of a block of calls.
    pub(super) fn close_block(self, writer: &mut PromptWriter<'_>) {
        self.tag(writer, "</", self.block_word);
        writer.plain(">");
    }

    /// Writes the opening tag of one call.
    pub(super) fn open_invoke(self, writer: &mut PromptWriter<'_>, name: &str) {
        self.tag(writer, "<", "invoke name=\"");
        writer.plain(name);
        writer.plain("\">");
    }

    /// Writes the closing tag of one call.
    pub(super) fn close_invoke(self, writer: &mut PromptWriter<'_>) {
        self.tag(writer, "</", "invoke>");
    }

    /// Writes the arguments of a call; `before_next` stands between, `after_each` behind them.
    pub(super) fn parameters(
        self,
        writer: &mut PromptWriter<'_>,
        call: &ToolCall,
        before_next: &str,
        after_each: &str,
    ) {
        let Some(arguments) = parse_arguments(&call.arguments) else {
            self.parameter(writer, "arguments", true, &call.arguments);
            writer.plain(after_each);
            return;
        };
        for (index, (name, value)) in arguments.iter().enumerate() {
            if index > 0 {
                writer.plain(before_next);
            }
            match value {
                Value::String(text) => self.parameter(writer, name, true, text),
                other => {
                    let text = json::spaced(other, self.number_style);
                    self.parameter(writer, name, false, &text);
                }
            }
            writer.plain(after_each);
        }
    }

    fn parameter(self, writer: &mut PromptWriter<'_>, name: &str, is_string: bool, text: &str) {
        self.tag(writer, "<", "parameter name=\"");
        writer.plain(name);
        writer.plain("\" string=\"");
        writer.plain(if is_string { "true" } else { "false" });
        writer.plain("\">");
        writer.plain(text);
        self.tag(writer, "</", "parameter>");
    }

    /// Writes one line of the schema list, without a line break.
    pub(super) fn schema_line(self, writer: &mut PromptWriter<'_>, tool: &ToolDefinition) {
        let out = writer.plain_buffer();
        out.push_str("{\"name\": ");
        json::write_string(&tool.name, out);
        out.push_str(", \"description\": ");
        json::write_string(tool.description.as_deref().unwrap_or_default(), out);
        out.push_str(", \"parameters\": ");
        json::write_spaced(&tool.parameters, self.number_style, out);
        out.push('}');
    }

    /// Writes the schemas of the tools that are loaded, joined by line breaks.
    pub(super) fn joined_schemas<'t>(
        self,
        writer: &mut PromptWriter<'_>,
        tools: impl Iterator<Item = &'t ToolDefinition>,
    ) {
        for (index, tool) in tools.enumerate() {
            if index > 0 {
                writer.plain("\n");
            }
            self.schema_line(writer, tool);
        }
    }

    /// Writes the demand for an answer that fits a schema.
    pub(super) fn schema_format(self, writer: &mut PromptWriter<'_>, schema: &Value) {
        writer.plain(&WIRE.schema_head);
        json::write_spaced(schema, self.number_style, writer.plain_buffer());
    }
}

/// The members of an arguments object, or `None` if the text is not exactly one JSON object.
fn parse_arguments(arguments: &str) -> Option<json::Map<String, Value>> {
    serde_json::from_str(arguments).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_are_split_into_parameters() {
        for text in [
            "",
            "[]",
            "null",
            "{",
            "{\"a\":NaN}",
            "{\"a\":1e400}",
            "{}x",
            r#"{"a":"\ud83d"}"#,
        ] {
            assert!(parse_arguments(text).is_none(), "{text}");
        }
        assert!(parse_arguments(" {\"a\":1} ").is_some());
    }
}
