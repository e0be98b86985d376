//! Errors of a schema, and of a check that has no result.

use crate::limits::{
    MAX_ANCHOR_TARGETS, MAX_COST, MAX_DEPTH, MAX_PATTERNS, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_VALUES, MAX_TOTAL_BYTES,
};
use crate::quote::{describe_location, quote};

/// The reason why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text of the schema is too long.
    #[error("longer than {MAX_SCHEMA_BYTES} bytes")]
    TooLong,
    /// The schema has too many JSON values.
    #[error("more than {MAX_SCHEMA_VALUES} values")]
    TooManyValues,
    /// The arrays and objects of the schema are nested too deeply.
    #[error("more than {MAX_SCHEMA_DEPTH} levels of nested values")]
    TooDeep,
    /// The text of the schema is not JSON.
    #[error("invalid JSON: {reason}")]
    InvalidJson {
        /// The message of the parser.
        reason: String,
    },
    /// `$schema` is no known dialect.
    #[error("unknown dialect {}", quote(uri))]
    UnknownDialect {
        /// The URI of the dialect.
        uri: String,
    },
    /// A reference points outside the schema.
    #[error("reference {} points outside the schema", quote(reference))]
    ExternalReference {
        /// The reference.
        reference: String,
    },
    /// A reference has no target.
    #[error("reference {} has no target", quote(reference))]
    UnresolvedReference {
        /// The reference.
        reference: String,
    },
    /// References by name have too many targets.
    #[error("references to more than {MAX_ANCHOR_TARGETS} anchors of the same name")]
    TooManyAnchors,
    /// A subschema declares its own base, which changes the meaning of its references.
    #[error("unsupported combination of references and a nested `{id_keyword}`")]
    NestedBase {
        /// The keyword that declares the base: `$id`, or `id` in old drafts.
        id_keyword: &'static str,
    },
    /// A subschema applies itself to the same value.
    #[error("infinite self-reference")]
    SelfReference,
    /// The schema with expanded references is too costly.
    #[error("validation cost with expanded references exceeds {MAX_COST}")]
    TooCostly,
    /// Subschemas are nested too deeply, also through references.
    #[error("more than {MAX_DEPTH} nested subschemas")]
    TooManyNestedSubschemas,
    /// The schema has too many regular expressions.
    #[error("more than {MAX_PATTERNS} patterns")]
    TooManyPatterns,
    /// A regular expression cannot be compiled within its size limit.
    #[error("pattern {} is invalid or too large", quote(pattern))]
    InvalidPattern {
        /// The regular expression.
        pattern: String,
    },
    /// The compiled regular expressions are too large.
    #[error("patterns take more than {MAX_TOTAL_BYTES} bytes in total")]
    PatternsTooLarge,
    /// The schema violates its dialect.
    #[error("invalid at {}", describe_location(pointer))]
    Invalid {
        /// JSON pointer into the schema.
        pointer: String,
    },
    /// The compiler panicked.
    #[error("compilation failed")]
    CompilationFailed,
}

/// The reason why a value cannot be checked against a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The schema is unusable.
    #[error("the schema is unusable: {0}")]
    UnusableSchema(SchemaError),
    /// The value is nested too deeply for a recursive schema.
    #[error("nested too deeply to be checked against the schema")]
    TooDeep,
    /// The check of the value would cost too much.
    #[error("too large to be checked against the schema")]
    TooLarge,
    /// The validator panicked.
    #[error("cannot be checked against the schema")]
    Failed,
}
