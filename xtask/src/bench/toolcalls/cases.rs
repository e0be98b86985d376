//! The parser benchmark's cases.

use super::super::runs::FigureColumn;

/// A measured program: a parser or a byte search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench) enum BenchParser {
    Innkeeper,
    /// A search for one byte: the lower bound of one pass over the text.
    Memchr,
    /// A search for three bytes.
    Memchr3,
    /// The crate `tool-parser`.
    ToolParserCrate,
    /// The Node.js package `@ai-sdk-tool/parser`.
    AiSdkPackage,
}

impl BenchParser {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Innkeeper => "innkeeper",
            Self::Memchr => "memchr",
            Self::Memchr3 => "memchr3",
            Self::ToolParserCrate => "tool-parser",
            Self::AiSdkPackage => "@ai-sdk-tool/parser",
        }
    }
}

/// The content of a benchmark text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextShape {
    /// A JSON call in `<tool_call>` tags.
    Hermes,
    /// The same call with `<function=…>` and `<parameter=…>` tags.
    Xml,
    /// The start of a call without an end, at the default limits.
    Unclosed,
    /// Text without a marker.
    Prose,
    /// Text with code, links, braces and fenced blocks, without a call.
    Marked,
}

/// One text with its chunk size and its parsers.
#[derive(Debug)]
pub(in crate::bench) struct ParserCase {
    pub(in crate::bench) name: &'static str,
    pub(super) shape: TextShape,
    /// The number of bytes a parser must report: the length of the call's long argument, or of the
    /// text.
    pub(super) bytes: usize,
    pub(super) chunk_bytes: usize,
    pub(super) parsers: &'static [BenchParser],
}

impl ParserCase {
    /// The parser's name on the command line of the benchmark program.
    pub(super) fn program_name(&self, peer: BenchParser) -> &'static str {
        if peer == BenchParser::Innkeeper && self.shape == TextShape::Unclosed {
            "innkeeper-default"
        } else {
            peer.name()
        }
    }

    /// The columns of the case.
    pub(in crate::bench) fn columns(&self) -> &'static [FigureColumn] {
        match self.shape {
            TextShape::Hermes | TextShape::Xml => &[TOTAL_MILLIS, NANOS_PER_BYTE, TIME_RATIO],
            TextShape::Unclosed => &[NANOS_PER_BYTE, MEMORY_GROWTH],
            TextShape::Prose | TextShape::Marked => &[THROUGHPUT],
        }
    }
}

const TOTAL_MILLIS: FigureColumn = FigureColumn { key: "ms", heading: "ms", divisor: 1.0 };
const NANOS_PER_BYTE: FigureColumn =
    FigureColumn { key: "ns_per_byte", heading: "ns per byte", divisor: 1.0 };
const TIME_RATIO: FigureColumn =
    FigureColumn { key: "to_reference", heading: "÷ 64 KiB", divisor: 1.0 };
const MEMORY_GROWTH: FigureColumn =
    FigureColumn { key: "growth_kb", heading: "memory MB", divisor: 1024.0 };
const THROUGHPUT: FigureColumn =
    FigureColumn { key: "mb_per_second", heading: "MB/s", divisor: 1.0 };

const INNKEEPER_ONLY: &[BenchParser] = &[BenchParser::Innkeeper];
const PARSERS: &[BenchParser] =
    &[BenchParser::Innkeeper, BenchParser::ToolParserCrate, BenchParser::AiSdkPackage];
const SEARCHES: &[BenchParser] = &[
    BenchParser::Innkeeper,
    BenchParser::Memchr,
    BenchParser::Memchr3,
    BenchParser::ToolParserCrate,
];
const THREE_BYTE_SEARCH: &[BenchParser] = &[BenchParser::Innkeeper, BenchParser::Memchr3];

/// Chunk size of calls: about one token.
const TOKEN_CHUNK_BYTES: usize = 4;
/// Chunk size of text from a network: a few tokens.
const SHORT_CHUNK_BYTES: usize = 16;
/// Chunk size of text from a buffer.
const LONG_CHUNK_BYTES: usize = 4096;

const fn hermes_case(
    name: &'static str,
    bytes: usize,
    parsers: &'static [BenchParser],
) -> ParserCase {
    ParserCase { name, shape: TextShape::Hermes, bytes, chunk_bytes: TOKEN_CHUNK_BYTES, parsers }
}

const fn xml_case(name: &'static str, bytes: usize) -> ParserCase {
    ParserCase {
        name,
        shape: TextShape::Xml,
        bytes,
        chunk_bytes: TOKEN_CHUNK_BYTES,
        parsers: INNKEEPER_ONLY,
    }
}

const fn text_case(
    name: &'static str,
    shape: TextShape,
    bytes: usize,
    chunk_bytes: usize,
    parsers: &'static [BenchParser],
) -> ParserCase {
    ParserCase { name, shape, bytes, chunk_bytes, parsers }
}

/// Names of the cases with a goal.
pub(super) const HERMES_64: &str = "Hermes, 64 KiB";
pub(super) const XML_64: &str = "XML, 64 KiB";
pub(super) const UNCLOSED: &str = "unclosed, 100 MB";
pub(super) const PROSE_SHORT: &str = "prose, 16 B chunks";
pub(super) const PROSE_SHORT_PACKAGE: &str = "prose, 16 B chunks, 2 MB";
pub(super) const PROSE_LONG: &str = "prose, 4 kB chunks";
pub(super) const CODE_SHORT: &str = "prose with code, 16 B chunks";
pub(super) const CODE_LONG: &str = "prose with code, 4 kB chunks";

/// All cases. The package gets a shorter text where the full text would take minutes; its speed
/// does not depend on the length.
pub(in crate::bench) const CASES: &[ParserCase] = &[
    hermes_case("Hermes, 8 KiB", 8 << 10, PARSERS),
    hermes_case("Hermes, 16 KiB", 16 << 10, PARSERS),
    hermes_case("Hermes, 32 KiB", 32 << 10, PARSERS),
    hermes_case(HERMES_64, 64 << 10, PARSERS),
    hermes_case("Hermes, 1 MB", 1_000_000, INNKEEPER_ONLY),
    hermes_case("Hermes, 10 MB", 10_000_000, INNKEEPER_ONLY),
    hermes_case("Hermes, 100 MB", 100_000_000, INNKEEPER_ONLY),
    xml_case("XML, 8 KiB", 8 << 10),
    xml_case("XML, 16 KiB", 16 << 10),
    xml_case("XML, 32 KiB", 32 << 10),
    xml_case(XML_64, 64 << 10),
    xml_case("XML, 1 MB", 1_000_000),
    xml_case("XML, 10 MB", 10_000_000),
    xml_case("XML, 100 MB", 100_000_000),
    text_case(UNCLOSED, TextShape::Unclosed, 100_000_000, TOKEN_CHUNK_BYTES, INNKEEPER_ONLY),
    text_case(PROSE_SHORT, TextShape::Prose, 64 << 20, SHORT_CHUNK_BYTES, SEARCHES),
    text_case(
        PROSE_SHORT_PACKAGE,
        TextShape::Prose,
        2 << 20,
        SHORT_CHUNK_BYTES,
        &[BenchParser::Innkeeper, BenchParser::AiSdkPackage],
    ),
    text_case(PROSE_LONG, TextShape::Prose, 64 << 20, LONG_CHUNK_BYTES, SEARCHES),
    text_case(
        "prose, 4 kB chunks, 16 MB",
        TextShape::Prose,
        16 << 20,
        LONG_CHUNK_BYTES,
        &[BenchParser::Innkeeper, BenchParser::AiSdkPackage],
    ),
    text_case(CODE_SHORT, TextShape::Marked, 16 << 20, SHORT_CHUNK_BYTES, THREE_BYTE_SEARCH),
    text_case(CODE_LONG, TextShape::Marked, 16 << 20, LONG_CHUNK_BYTES, THREE_BYTE_SEARCH),
];
