//! Tests of the limit on the media of tool results.

use super::*;
use crate::content::{ContentBlock, MediaContent};

const MIME_TYPE: &str = "image/png";

fn image(data: String) -> ContentBlock {
    ContentBlock::Image(MediaContent { mime_type: Some(MIME_TYPE.to_owned()), data: data.into() })
}

/// An image of which the conversation counts this number of bytes.
fn image_of(bytes: usize) -> ContentBlock {
    image("a".repeat(bytes - MIME_TYPE.len()))
}

/// Adds these contents as the results of one response, and returns the contents in the
/// conversation.
fn push_results(contents: Vec<Content>) -> Vec<Content> {
    let mut conversation = Conversation::new();
    conversation.push_user("?").unwrap();
    let ids: Vec<_> = (0..contents.len()).map(|at| format!("c{at}")).collect();
    let parts = ids.iter().map(|id| call_part(id)).collect();
    conversation.push_assistant(AssistantMessage { parts }).unwrap();
    let results = ids.iter().zip(contents);
    let results = results.map(|(id, content)| ToolResult { content, ..tool_result(id) });
    conversation.push_tool_results(results.collect()).unwrap();
    let Some(Message::ToolResults(results)) = conversation.messages().last() else {
        panic!("{conversation:?}")
    };
    results.iter().map(|result| result.content.clone()).collect()
}

fn are_media(contents: &[Content]) -> Vec<Vec<bool>> {
    let blocks = contents.iter().map(Content::blocks);
    blocks.map(|blocks| blocks.iter().map(|it| it.media().is_some()).collect()).collect()
}

#[test]
fn media_at_the_limit_stay_and_one_byte_past_the_limit_the_last_medium_is_a_line() {
    let last_bytes = 1000;
    let results = |excess| {
        let first = image_of(MAX_BYTES - last_bytes + excess);
        push_results(vec![first.into(), image_of(last_bytes).into()])
    };
    assert_eq!(are_media(&results(0)), [[true], [true]]);
    let limited = results(1);
    assert_eq!(are_media(&limited), [[true], [false]]);
    let line = limited[1].to_text();
    assert!(line.starts_with("[image, image/png, "), "{line}");
    assert!(line.contains(&format!("not sent: the results have more than {MAX_BYTES}")), "{line}");
}

#[test]
fn of_the_blocks_of_one_result_the_last_medium_is_a_line_and_text_stays() {
    let blocks = vec![image_of(2000), "text".into(), image_of(1000), "more".into()];
    let overhead = Content::from(blocks.clone()).byte_size();
    let content = |excess| [blocks.clone(), vec!["x".repeat(excess).into()]].concat().into();
    let room = MAX_BYTES - overhead - size_of::<ContentBlock>();
    assert_eq!(are_media(&push_results(vec![content(room)])), [[true, false, true, false, false]]);
    let limited = push_results(vec![content(room + 1)]);
    assert_eq!(are_media(&limited), [[true, false, false, false, false]]);
    assert_eq!(limited[0].blocks()[3], "more".into());
}

#[test]
fn a_medium_that_is_shorter_than_its_line_stays() {
    let contents = push_results(vec![image_of(MAX_BYTES).into(), image("aGk=".to_owned()).into()]);
    assert_eq!(are_media(&contents), [[false], [true]]);
}
