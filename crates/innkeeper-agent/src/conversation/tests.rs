//! The order of a conversation, and what of it is sent.

use super::*;
use crate::provider::Wire;

fn call(id: &str) -> Part {
    let (id, name) = (id.to_owned(), "tool".to_owned());
    Part::new(Said::Call(ToolCall { id, name, arguments: "{}".to_owned() }))
}

fn result(id: &str) -> ToolResult {
    let (name, text) = ("tool".to_owned(), format!("of {id}"));
    ToolResult { id: id.to_owned(), name, text, is_error: false }
}

fn open(conversation: &Conversation) -> Vec<String> {
    conversation.open_calls().map(|call| call.id.clone()).collect()
}

/// The ids of a message, of its calls or of its results.
fn ids(message: &Message) -> Vec<&str> {
    match message {
        Message::User(_) => Vec::new(),
        Message::Answer(answer) => answer.calls().map(|call| call.id.as_str()).collect(),
        Message::Results(results) => results.iter().map(|result| result.id.as_str()).collect(),
    }
}

#[test]
fn while_a_call_is_open_nobody_else_speaks() {
    let mut talk = Conversation::new();
    talk.user("hello").unwrap();
    talk.answer(Answer { parts: vec![call("a"), call("b")] }).unwrap();
    let refused = OutOfTurn::OpenCall { id: "a".to_owned(), tool: "tool".to_owned() };
    assert_eq!(talk.user("and?"), Err(refused.clone()));
    assert_eq!(talk.answer(Answer::text("so")), Err(refused));
    let missing = OutOfTurn::OpenCall { id: "b".to_owned(), tool: "tool".to_owned() };
    assert_eq!(talk.results(vec![result("a")]), Err(missing));
    let strange = OutOfTurn::NoSuchCall { id: "c".to_owned() };
    assert_eq!(talk.results(vec![result("a"), result("b"), result("c")]), Err(strange));
    assert_eq!(talk.messages().len(), 2);
    talk.results(vec![result("b"), result("a")]).unwrap();
    assert_eq!(talk.messages()[2], Message::Results(vec![result("a"), result("b")].into()));
    talk.user("thanks").unwrap();
}

#[test]
fn no_id_stands_for_two_calls() {
    let mut talk = Conversation::new();
    talk.answer(Answer { parts: vec![call("call_1"), call(""), call("call_1")] }).unwrap();
    assert_eq!(open(&talk), ["call_1", "call_2", "call_3"]);
    talk.close("stopped");
    talk.answer(Answer { parts: vec![call("call_3")] }).unwrap();
    assert_eq!(open(&talk), ["call_4"]);
}

#[test]
fn a_providers_words_for_a_call_go_with_its_id() {
    let native = Native {
        wire: Wire::Anthropic,
        model: "m".to_owned(),
        block: serde_json::value::to_raw_value(&1).unwrap(),
    };
    let part = |id| Part { native: Some(native.clone()), ..call(id) };
    let mut talk = Conversation::new();
    talk.answer(Answer { parts: vec![part("x"), part("x"), part("")] }).unwrap();
    let Message::Answer(answer) = &talk.messages()[0] else { panic!("no answer") };
    let kept: Vec<_> = answer.parts.iter().map(|part| part.native.is_some()).collect();
    assert_eq!(kept, [true, false, true]);
    assert!(native.for_model(Wire::Anthropic, "m").is_some());
    assert!(native.for_model(Wire::Anthropic, "n").is_none());
    assert!(native.for_model(Wire::Ollama, "m").is_none());
}

#[test]
fn what_was_interrupted_can_be_closed_and_goes_on() {
    let mut talk = Conversation::new();
    talk.user("hello").unwrap();
    talk.close("nothing is open");
    talk.answer(Answer { parts: vec![call("a"), call("b")] }).unwrap();
    talk.close("cancelled");
    let Message::Results(results) = &talk.messages()[2] else { panic!("no results") };
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|it| it.is_error && it.text == "cancelled"));
    talk.user("again").unwrap();
}

#[test]
fn of_more_messages_than_are_kept_the_oldest_exchanges_go() {
    let mut talk = Conversation::new();
    for round in 0..MESSAGES / 2 {
        talk.user(format!("{round}")).unwrap();
        talk.answer(Answer::text("yes")).unwrap();
    }
    assert_eq!(talk.messages().len(), MESSAGES);
    talk.user("one more").unwrap();
    assert_eq!(talk.messages().len(), MESSAGES - 1);
    assert_eq!(talk.messages()[0], Message::User("1".into()));
}

#[test]
fn of_more_bytes_than_are_kept_the_oldest_exchanges_go() {
    let mut talk = Conversation::new();
    talk.user("1").unwrap();
    talk.answer(Answer { parts: vec![call("a")] }).unwrap();
    talk.results(vec![ToolResult { text: "y".repeat(BYTES / 2), ..result("a") }]).unwrap();
    let said: usize = talk.messages().iter().map(Message::bytes).sum();
    let rest = "x".repeat(BYTES - said);
    talk.user(rest.as_str()).unwrap();
    assert_eq!(talk.messages().len(), 4, "at the limit");
    talk.answer(Answer::text("z")).unwrap();
    assert_eq!(
        talk.messages(),
        [Message::User(rest.into()), Message::Answer(Answer::text("z").into())]
    );
    // The call went, and its id with it.
    talk.answer(Answer { parts: vec![call("a")] }).unwrap();
    assert_eq!(open(&talk), ["a"]);
}

#[test]
fn of_an_exchange_of_more_bytes_than_are_kept_the_newest_steps_stay_behind_the_question() {
    let mut talk = Conversation::new();
    talk.user("?").unwrap();
    for id in ["a", "b", "c"] {
        talk.answer(Answer { parts: vec![call(id)] }).unwrap();
        assert_eq!(open(&talk), [id]);
        talk.results(vec![ToolResult { text: "y".repeat(BYTES / 2 - 256), ..result(id) }]).unwrap();
    }
    let kept: Vec<_> = talk.messages()[1..].iter().flat_map(ids).collect();
    assert_eq!(talk.messages()[0], Message::User("?".into()));
    assert_eq!(kept, ["b", "b", "c", "c"]);
    // The newest step stays however long it is.
    talk.answer(Answer { parts: vec![call("d")] }).unwrap();
    talk.results(vec![ToolResult { text: "y".repeat(BYTES), ..result("d") }]).unwrap();
    assert_eq!(talk.messages().len(), 3);
    assert!(matches!(&talk.messages()[2], Message::Results(it) if it[0].id == "d"));
}

#[test]
fn an_answer_that_went_on_after_a_pause_stays_or_goes_as_one() {
    let mut talk = Conversation::new();
    talk.user("?").unwrap();
    for id in ["a", "b"] {
        talk.answer(Answer::text(format!("pause of {id} {}", "x".repeat(BYTES / 4)))).unwrap();
        talk.answer(Answer { parts: vec![call(id)] }).unwrap();
        talk.results(vec![ToolResult { text: "y".repeat(BYTES / 4), ..result(id) }]).unwrap();
    }
    let pause = |message: &Message| match message {
        Message::Answer(answer) => answer.shown().starts_with("pause of b"),
        Message::User(_) | Message::Results(_) => false,
    };
    assert_eq!(talk.messages().len(), 4);
    assert!(pause(&talk.messages()[1]));
    assert_eq!(talk.messages()[1..].iter().flat_map(ids).collect::<Vec<_>>(), ["b", "b"]);
    let fitting = Budget { tokens: 0 }.fit(talk.messages(), 0);
    assert_eq!(fitting, talk.messages(), "the newest step is whole");
}

#[test]
fn what_is_kept_of_an_answer_counts_its_parts_and_the_name_of_its_model() {
    let part = |model: &str| {
        let block = serde_json::value::to_raw_value(&1).unwrap();
        let native = Native { wire: Wire::Anthropic, model: model.to_owned(), block };
        Part { said: Said::Other, native: Some(native) }
    };
    let bytes = |model| Message::Answer(Answer { parts: vec![part(model); 10] }.into()).bytes();
    assert_eq!(bytes("model") - bytes(""), 50);
    assert_eq!(bytes(""), 10 * (size_of::<Part>() + 1));
}

#[test]
fn a_message_of_more_bytes_than_are_kept_is_refused_and_says_so() {
    let mut talk = Conversation::new();
    talk.user("x".repeat(BYTES)).unwrap();
    let refused = talk.user("x".repeat(BYTES + 1)).unwrap_err();
    assert_eq!(refused, OutOfTurn::TooLong { bytes: BYTES + 1 });
    assert_eq!(talk.messages().len(), 1);
}

/// Proves: P7
#[test]
fn what_is_too_long_loses_its_oldest_exchanges_and_no_call_its_result() {
    let mut talk = Conversation::new();
    for round in 0..10 {
        talk.user(format!("question {round} {}", "x".repeat(400))).unwrap();
        talk.answer(Answer { parts: vec![call("")] }).unwrap();
        let id = open(&talk).remove(0);
        talk.results(vec![result(&id)]).unwrap();
        talk.answer(Answer::text(format!("answer {round}"))).unwrap();
    }
    talk.user("last").unwrap();
    for most in [0, 1, 50, 200, 400, 1000, 5000] {
        let fitting = Budget { tokens: most }.fit(talk.messages(), 0);
        assert_eq!(fitting.last(), Some(&Message::User("last".into())));
        assert!(matches!(fitting[0], Message::User(_)));
        for (at, message) in fitting.iter().enumerate() {
            let calls = matches!(message, Message::Answer(it) if it.calls().next().is_some());
            let answered = matches!(fitting.get(at + 1), Some(Message::Results(_)));
            assert_eq!(calls, answered, "at {at} of {most}");
        }
        let text: usize = fitting.iter().map(|it| tokens(&format!("{it:?}"))).sum();
        assert!(fitting.len() == 1 || text <= most * 4, "{text} of {most}");
    }
    let all = Budget { tokens: 100_000 }.fit(talk.messages(), 0);
    assert_eq!(all, talk.messages());
    assert_eq!(Budget { tokens: 100_000 }.fit(talk.messages(), 100_000).len(), 1);
}

#[test]
fn of_a_long_last_exchange_the_newest_steps_stay() {
    let mut talk = Conversation::new();
    talk.user("question").unwrap();
    for _ in 0..20 {
        talk.answer(Answer { parts: vec![call("")] }).unwrap();
        let id = open(&talk).remove(0);
        let long = ToolResult { text: "y".repeat(400), ..result(&id) };
        talk.results(vec![long]).unwrap();
    }
    let fitting = Budget { tokens: 500 }.fit(talk.messages(), 0);
    assert_eq!(fitting[0], talk.messages()[0]);
    assert_eq!(fitting[1..], talk.messages()[talk.messages().len() - fitting.len() + 1..]);
    assert!((5..=9).contains(&fitting.len()), "{}", fitting.len());
    assert_eq!(Budget { tokens: 0 }.fit(talk.messages(), 0).len(), 3);
}

/// What it costs to put a long conversation into a request: for who wants to know.
#[test]
#[ignore = "a measurement"]
fn the_history_of_a_request_of_a_thousand_messages_is_put_together() {
    let mut talk = Conversation::new();
    for _ in 0..250 {
        talk.user("x".repeat(4000)).unwrap();
        talk.answer(Answer { parts: vec![call(""), Part::new(Said::Text("y".repeat(4000)))] })
            .unwrap();
        let id = open(&talk).remove(0);
        talk.results(vec![ToolResult { text: "z".repeat(4000), ..result(&id) }]).unwrap();
        talk.answer(Answer::text("w".repeat(4000))).unwrap();
    }
    let budget = Budget { tokens: usize::MAX };
    let begun = tokio::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(std::hint::black_box(budget.fit(talk.messages(), 0)).len(), 1000);
    }
    eprintln!("{:?} for each request", begun.elapsed() / 100);
}
