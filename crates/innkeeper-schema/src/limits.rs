//! The limits of a schema that its errors name.

/// Maximum size of a schema in bytes; the largest known schemas have a few ten thousand.
pub(crate) const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// Maximum number of JSON values in a schema.
pub(crate) const MAX_SCHEMA_VALUES: usize = 5_000;

/// Maximum nesting of arrays and objects in a schema; the JSON parser has about the same limit.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 128;

/// Maximum number of targets of all references by anchor name. Duplicate names are rare, and a
/// thousand references to a name used a thousand times would take long to parse.
pub(crate) const MAX_ANCHOR_TARGETS: usize = 10_000;

/// Maximum cost of a schema with all references expanded, in visited subschemas; real schemas stay
/// below a few thousand, and compiling at the limit takes tens of milliseconds.
pub(crate) const MAX_COST: u64 = 100_000;

/// Maximum number of nested subschemas; each takes up to 1 KiB of stack in an unoptimized build,
/// and the smallest expected stack has 1 MiB.
pub(crate) const MAX_DEPTH: usize = 768;

/// Maximum number of distinct regular expressions; compiling takes up to a millisecond for each.
pub(crate) const MAX_PATTERNS: usize = 64;

/// Maximum total size of all compiled expressions of a schema, in bytes.
pub(crate) const MAX_TOTAL_BYTES: u64 = 1 << 22;
