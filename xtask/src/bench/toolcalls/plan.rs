//! What is measured of the interceptor, and who is beside it.

use super::super::plan::Figure;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Ours,
    /// A search for one byte: no parser, but what looking at each byte costs at least.
    Memchr,
    /// A search for three.
    Memchr3,
    /// A crate.
    Crate,
    /// A package for Node.
    Package,
}

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "innkeeper",
            Self::Memchr => "memchr",
            Self::Memchr3 => "memchr3",
            Self::Crate => "tool-parser",
            Self::Package => "@ai-sdk-tool/parser",
        }
    }
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A call in `<tool_call>` as JSON.
    Hermes,
    /// The same call as `<function=…>` with `<parameter=…>`.
    Xml,
    /// The beginning of a call that is never closed, at the default limits.
    Unclosed,
    /// Text without a marker.
    Prose,
    /// Text with code, links, braces and fenced blocks, and no call.
    Marked,
}

/// One text in pieces of one length, and who reads it.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// What a reader has to tell: the length of the call's long argument, or of the text.
    pub(super) bytes: usize,
    pub(super) piece: usize,
    pub(super) peers: &'static [Peer],
}

impl Case {
    /// What our program calls the reader.
    pub(super) fn word(&self, peer: Peer) -> &'static str {
        if peer == Peer::Ours && self.shape == Shape::Unclosed {
            "innkeeper-default"
        } else {
            peer.name()
        }
    }

    /// The figures people want of it.
    pub(super) fn figures(&self) -> &'static [Figure] {
        match self.shape {
            Shape::Hermes | Shape::Xml => &[MILLIS, NANOS, LINEAR],
            Shape::Unclosed => &[NANOS, GROWTH],
            Shape::Prose | Shape::Marked => &[RATE],
        }
    }
}

const MILLIS: Figure = Figure { key: "ms", called: "ms", divisor: 1.0 };
const NANOS: Figure = Figure { key: "ns_per_byte", called: "ns a byte", divisor: 1.0 };
const LINEAR: Figure = Figure { key: "to_beside", called: "÷ 64 KiB", divisor: 1.0 };
const GROWTH: Figure = Figure { key: "growth_kb", called: "memory MB", divisor: 1024.0 };
const RATE: Figure = Figure { key: "mb_per_second", called: "MB/s", divisor: 1.0 };

const OURS: &[Peer] = &[Peer::Ours];
const PARSERS: &[Peer] = &[Peer::Ours, Peer::Crate, Peer::Package];
const SEARCHES: &[Peer] = &[Peer::Ours, Peer::Memchr, Peer::Memchr3, Peer::Crate];

/// The piece of a call: about a token.
const TOKEN: usize = 4;
/// The piece of a text as it comes over a network, a few tokens.
const SHORT: usize = 16;
/// The piece of a text that was read from a buffer.
const LONG: usize = 4096;

const fn hermes(name: &'static str, bytes: usize, peers: &'static [Peer]) -> Case {
    Case { name, shape: Shape::Hermes, bytes, piece: TOKEN, peers }
}

const fn xml(name: &'static str, bytes: usize) -> Case {
    Case { name, shape: Shape::Xml, bytes, piece: TOKEN, peers: OURS }
}

const fn text(
    name: &'static str,
    shape: Shape,
    bytes: usize,
    piece: usize,
    peers: &'static [Peer],
) -> Case {
    Case { name, shape, bytes, piece, peers }
}

/// The cases that goals name.
pub(super) const HERMES_64: &str = "Hermes, 64 KiB";
pub(super) const XML_64: &str = "XML, 64 KiB";
pub(super) const UNCLOSED: &str = "never closed, 100 MB";
pub(super) const PROSE_SHORT: &str = "prose by 16 B";
pub(super) const PROSE_SHORT_PACKAGE: &str = "prose by 16 B, 2 MB of it";
pub(super) const PROSE_LONG: &str = "prose by 4 kB";

/// Every case. The package gets less text where it would need minutes for all of it: its speed does
/// not depend on how much there is.
pub(super) const CASES: &[Case] = &[
    hermes("Hermes, 8 KiB", 8 << 10, PARSERS),
    hermes("Hermes, 16 KiB", 16 << 10, PARSERS),
    hermes("Hermes, 32 KiB", 32 << 10, PARSERS),
    hermes(HERMES_64, 64 << 10, PARSERS),
    hermes("Hermes, 1 MB", 1_000_000, OURS),
    hermes("Hermes, 10 MB", 10_000_000, OURS),
    hermes("Hermes, 100 MB", 100_000_000, OURS),
    xml("XML, 8 KiB", 8 << 10),
    xml("XML, 16 KiB", 16 << 10),
    xml("XML, 32 KiB", 32 << 10),
    xml(XML_64, 64 << 10),
    xml("XML, 1 MB", 1_000_000),
    xml("XML, 10 MB", 10_000_000),
    xml("XML, 100 MB", 100_000_000),
    text(UNCLOSED, Shape::Unclosed, 100_000_000, TOKEN, OURS),
    text(PROSE_SHORT, Shape::Prose, 64 << 20, SHORT, SEARCHES),
    text(PROSE_SHORT_PACKAGE, Shape::Prose, 2 << 20, SHORT, &[Peer::Ours, Peer::Package]),
    text(PROSE_LONG, Shape::Prose, 64 << 20, LONG, SEARCHES),
    text("prose by 4 kB, 16 MB of it", Shape::Prose, 16 << 20, LONG, &[Peer::Ours, Peer::Package]),
    text("prose with code by 16 B", Shape::Marked, 16 << 20, SHORT, OURS),
    text("prose with code by 4 kB", Shape::Marked, 16 << 20, LONG, OURS),
];
