//! Randomly damaged messages: no panic, and no response with another call's id.

use innkeeper_protocol::skim::recover_top_level_id;
use innkeeper_protocol::view::{
    InitializeResult, Page, ProgressNotification, Tool, ToolResult, check_prompt_result,
    check_read_result, check_tool_result,
};
use innkeeper_protocol::{Incoming, Message, RequestId, envelope};
use serde_json::value::RawValue;

const SEEDS: [&str; 6] = [
    r#"{"jsonrpc":"2.0","id":77,"result":{"content":[{"type":"text","text":"a\"b\\"}],"isError":false}}"#,
    r#"{"jsonrpc":"2.0","id":77,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}"#,
    r#"{"jsonrpc":"2.0","id":77,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":77,"error":{"code":-32601,"message":"no","data":[1,2,{"a":null}]}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":0.5}}"#,
    r#"[{"jsonrpc":"2.0","id":77,"result":null},{"jsonrpc":"2.0","id":"s","method":"ping"}]"#,
];

/// A small random number generator with a fixed seed, so that failures are reproducible.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    fn mangle(&mut self, line: &mut Vec<u8>) {
        const FRAGMENTS: [&[u8]; 12] = [
            b"\"", b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xFF", b"\0", b"1e999", b"\\ud83d",
        ];
        for _ in 0..=self.below(4) {
            let (at, odd) = (self.below(line.len() + 1), FRAGMENTS[self.below(FRAGMENTS.len())]);
            match self.below(4) {
                0 => line.truncate(at.max(1)),
                1 => drop(line.splice(at..at, odd.iter().copied())),
                2 => drop(line.drain(at..line.len().min(at + 1 + self.below(8)))),
                _ => drop(line.splice(at..line.len().min(at + 1), odd.iter().copied())),
            }
        }
    }
}

fn parse_as_every_view(result: &RawValue) {
    let _ = check_tool_result(result);
    let _ = check_prompt_result(result);
    let _ = check_read_result(result);
    let _ = ToolResult::from_raw(result);
    let _ = InitializeResult::from_raw(result);
    for item in Page::from_raw(result, "tools").unwrap_or_default().items {
        let _ = Tool::from_raw(&item);
    }
}

fn parse_views(incoming: &Incoming<'_>) {
    match incoming {
        Incoming::Response { outcome: Ok(result), .. } => parse_as_every_view(result),
        Incoming::Notification { params: Some(params), .. } => {
            let _ = ProgressNotification::from_raw(params);
            parse_as_every_view(params);
        }
        _ => {}
    }
}

/// Attack: framing | 100,000 messages with damaged bytes | each message is read or rejected;
/// nothing panics | Libraries change no global state
/// Proves: FR7.6, FR7.5, TR3.7
#[test]
fn a_hundred_thousand_mangled_messages_do_not_panic() {
    let mut dice = SeededRng(0x9E37_79B9_7F4A_7C15);
    let mut understood = 0;
    for case in 0..100_000 {
        let mut line = SEEDS[case % SEEDS.len()].as_bytes().to_vec();
        dice.mangle(&mut line);
        match envelope::parse(&line) {
            Ok(Message::Single(incoming)) => {
                understood += 1;
                parse_views(&incoming);
            }
            Ok(Message::Batch(items)) => items.iter().flatten().for_each(parse_views),
            Err(malformed) => assert!(malformed.detail.chars().count() <= 200),
        }
    }
    assert!(understood > 1000, "the damage is too great to try the views: {understood}");
}

/// Attack: framing | a message ends at any byte | the recovered id is the id of the message, or
/// none | Own response
/// Proves: FR7.6
#[test]
fn a_truncated_message_has_its_own_id_or_none() {
    for seed in &SEEDS[..4] {
        let mut recovered = 0;
        for end in 0..seed.len() {
            let truncated = &seed.as_bytes()[..end];
            if let (Some(id), _) = recover_top_level_id(truncated) {
                assert_eq!(id, RequestId::Integer(77), "{}", &seed[..end]);
                recovered += 1;
            }
            assert!(envelope::parse(truncated).is_err());
        }
        assert!(recovered > 0, "no id is recovered: {seed}");
    }
}
