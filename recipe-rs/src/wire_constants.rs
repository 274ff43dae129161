//! The prompt texts that the models were trained on, read from `data/wire_constants.json`.
//!
//! That file is their only home and carries their licence.

use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct WireConstants {
    pub(crate) v4_effort_high: String,
    pub(crate) v4_effort_max: String,
    pub(crate) v41_effort_head: String,
    pub(crate) v41_effort_tail: String,
    pub(crate) v4_tool_section_head: String,
    pub(crate) v41_tool_section_head: String,
    pub(crate) tool_section_tail: String,
    pub(crate) update_head: String,
    pub(crate) v4_json_object: String,
    pub(crate) schema_head: String,
    pub(crate) v41_json_object_schema: String,
    pub(crate) tool_result_open: String,
    pub(crate) tool_result_close: String,
    pub(crate) apply_patch_schema: String,
    pub(crate) unsupported_document: String,
    pub(crate) unsupported_document_type_head: String,
    pub(crate) unsupported_document_type_tail: String,
    pub(crate) unsupported_image: String,
    pub(crate) system_reminder_open: String,
    pub(crate) system_reminder_close: String,
}

/// The constants; the file is part of the binary and a test parses it.
pub(crate) static WIRE: LazyLock<WireConstants> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/wire_constants.json")).unwrap_or_default()
});

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use sha2::{Digest, Sha256};

    use super::*;

    fn hex_digest(text: &str) -> String {
        let mut hex = String::new();
        for byte in Sha256::digest(text.as_bytes()) {
            write!(hex, "{byte:02x}").unwrap();
        }
        hex
    }

    #[test]
    fn each_text_has_its_length_and_hash() {
        let expected = [
            (
                &WIRE.v4_effort_high,
                476,
                476,
                "f7a24f3b3050d4a83781e9b755b316aae2ec1d9dc87562541d90bcb04d7350f7",
            ),
            (
                &WIRE.v4_effort_max,
                526,
                528,
                "53fb31b8392ec5b4a926481943efc67636748f137c1a49d493a7af4d4fa55d2c",
            ),
            (
                &WIRE.v4_tool_section_head,
                854,
                890,
                "c7c9042638154a237b5d1bd48be772374a35a4d24c5cacfd1ffbd92703da329c",
            ),
            (
                &WIRE.v41_tool_section_head,
                848,
                884,
                "2ae2ff83edf990187ed419c4e2901bb9ea6ce2129eb503ac543b258e7de8231d",
            ),
            (
                &WIRE.tool_section_tail,
                98,
                98,
                "3f9ac63d8e9ea51690e882a457650794bc193cb2367bed0b33ddf115b3b0e7d0",
            ),
            (
                &WIRE.v4_json_object,
                104,
                104,
                "34751a8fa185b0764ecf5c12cfcfb9792de54e229e60b64ef14f302e312d90e2",
            ),
        ];
        for (text, characters, bytes, digest) in expected {
            assert_eq!(text.chars().count(), characters);
            assert_eq!(text.len(), bytes);
            assert_eq!(hex_digest(text), digest);
        }
    }

    #[test]
    fn the_file_carries_its_licence() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../data/wire_constants.json")).unwrap();
        assert_eq!(file["license"], "MIT");
        assert!(file["copyright"].as_str().unwrap().contains("DeepSeek"));
        let notice = file["permission_notice"].as_str().unwrap();
        assert!(
            notice.starts_with("Permission is hereby granted") && notice.ends_with("SOFTWARE.")
        );
    }

    #[test]
    fn embedded_schemas_are_json() {
        let schema: serde_json::Value = serde_json::from_str(&WIRE.v41_json_object_schema).unwrap();
        assert!(schema.is_object());
    }
}
