//! Tests of stored conversations.

use innkeeper_agent::conversation::ToolResult;
use innkeeper_agent::provider::Response;
use proptest::prelude::*;
use tempfile::TempDir;

use super::directory::MAX_EARLIER_MESSAGES;
use super::*;

fn conversation(exchanges: usize) -> Conversation {
    let mut conversation = Conversation::new();
    for number in 0..exchanges {
        conversation.push_user(format!("question {number} äöü")).unwrap();
        let call = Response::from_tool_calls([("a.read", r#"{"path": "x"}"#)]);
        conversation.push_assistant(call.message).unwrap();
        let results = conversation.pending_calls().map(|call| ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            content: "text".into(),
            is_error: false,
        });
        conversation.push_tool_results(results.collect()).unwrap();
        let answer = Response::from_text(format!("answer {number}"));
        conversation.push_assistant(answer.message).unwrap();
    }
    conversation
}

fn stored(exchanges: usize) -> (TempDir, ConversationFile, Conversation) {
    let directory = tempfile::tempdir().unwrap();
    let mut file = ConversationFile::create(directory.path()).unwrap();
    let conversation = conversation(exchanges);
    file.sync(&conversation).unwrap();
    (directory, file, conversation)
}

#[test]
fn a_conversation_is_read_as_it_was_written() {
    let (directory, mut file, conversation) = stored(2);
    file.set_title("Two questions").unwrap();
    let id = file.id();
    drop(file);
    let (file, read) = ConversationFile::open(directory.path(), None).unwrap();
    assert_eq!((file.id(), file.title(), read), (id.clone(), Some("Two questions"), conversation));
    drop(file);
    let (_, read) = ConversationFile::open(directory.path(), Some(&id[..9])).unwrap();
    assert_eq!(read.messages().len(), 8);
}

#[test]
fn messages_of_a_run_are_appended_and_a_shorter_conversation_replaces_the_file() {
    let (directory, mut file, mut conversation) = stored(1);
    let longer = super::tests::conversation(3);
    file.append(&longer.messages()[4..6]).unwrap();
    file.sync(&longer).unwrap();
    drop(file);
    let (mut file, read) = ConversationFile::open(directory.path(), None).unwrap();
    assert_eq!(read, longer);
    conversation.remove_last_exchange();
    file.sync(&conversation).unwrap();
    conversation.push_user("another").unwrap();
    file.sync(&conversation).unwrap();
    drop(file);
    let (_, read) = ConversationFile::open(directory.path(), None).unwrap();
    assert_eq!(read, conversation);
}

#[test]
fn a_file_can_be_opened_once_at_a_time() {
    let (directory, file, _) = stored(1);
    let error = ConversationFile::open(directory.path(), None).unwrap_err();
    assert!(format!("{error:?}").contains("open in another program"), "{error:?}");
    drop(file);
    assert!(ConversationFile::open(directory.path(), None).is_ok());
}

#[test]
fn an_empty_conversation_leaves_no_file() {
    let (directory, file, _) = stored(0);
    file.remove_if_empty().unwrap();
    assert!(list(directory.path()).is_empty());
    let (directory, file, _) = stored(1);
    file.remove_if_empty().unwrap();
    let listed = list(directory.path());
    assert_eq!((listed.len(), &*listed[0].title), (1, "question 0 äöü"));
}

#[test]
fn errors_name_the_line_and_the_version() {
    let problem = |text: &str| parse(text.as_bytes()).err().unwrap();
    assert!(problem("{\"version\":1}\n{\"other\":1}\n").starts_with("line 2: "));
    assert_eq!(problem("{\"version\":2}\n"), "version 2 needs another release of innkeeper");
    assert_eq!(problem(""), "the first line has no version");
}

/// Attack: files | other users of the machine read a stored conversation | only the user can read
/// the file and its directory | Secrets stay with their owner
#[cfg(unix)]
#[test]
fn only_the_user_can_read_a_conversation() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let chats = directory.path().join("chats");
    let mut file = ConversationFile::create(&chats).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&chats), mode(&file.path)), (0o700, 0o600));
    file.replace(&conversation(1)).unwrap();
    assert_eq!(mode(&file.path), 0o600);
}

#[test]
fn only_a_whole_id_removes_a_conversation_that_no_program_has_open() {
    let (directory, file, _) = stored(1);
    let id = file.id();
    let problem = |id: &str| format!("{:?}", remove(directory.path(), id).unwrap_err());
    assert!(problem(&id).contains("open in another program"));
    drop(file);
    for part in ["", &id[..8]] {
        assert!(problem(part).contains("no stored conversation"), "{part}");
    }
    assert_eq!(remove(directory.path(), &id).unwrap(), "question 0 äöü");
    assert!(list(directory.path()).is_empty());
}

#[test]
fn the_start_of_the_current_id_names_the_current_conversation() {
    let (directory, file, _) = stored(1);
    let id = file.id();
    let error = ConversationFile::open_other(directory.path(), &id[..9], Some(&id)).unwrap_err();
    assert!(format!("{error:?}").contains("is the current conversation"), "{error:?}");
    drop(file);
    let (other, _) = ConversationFile::open_other(directory.path(), &id[..9], None).unwrap();
    assert_eq!(other.id(), id);
}

fn set_age(file: &ConversationFile, seconds: u64) {
    let modified = SystemTime::now() - std::time::Duration::from_secs(seconds);
    file.file.set_modified(modified).unwrap();
}

#[test]
fn without_an_id_the_conversation_that_changed_last_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let files: Vec<_> = [5, 1, 9]
        .into_iter()
        .map(|age| {
            let file = ConversationFile::create(directory.path()).unwrap();
            set_age(&file, age);
            file.id()
        })
        .collect();
    let (newest, _) = ConversationFile::open(directory.path(), None).unwrap();
    assert_eq!(newest.id(), files[1]);
}

#[test]
fn messages_of_other_conversations_are_found_newest_first_and_each_once() {
    let directory = tempfile::tempdir().unwrap();
    let texts: [&[&str]; 3] = [&["newest", "same"], &["middle", "same", "same"], &["current"]];
    let mut files = Vec::new();
    for (age, texts) in (1..).zip(texts) {
        let mut file = ConversationFile::create(directory.path()).unwrap();
        let mut conversation = Conversation::new();
        for text in texts.iter().rev() {
            let attached = vec!["File `a`".into(), (*text).into()];
            conversation.push_user(attached).unwrap();
            conversation.push_assistant(Response::from_text("answer").message).unwrap();
        }
        file.sync(&conversation).unwrap();
        set_age(&file, age);
        files.push(file);
    }
    std::fs::write(directory.path().join("broken.jsonl"), "no JSON\n").unwrap();
    let current = files[2].id();
    let found = earlier_messages(directory.path(), Some(&current));
    assert_eq!(found, ["newest", "same", "middle"]);
}

#[test]
fn the_number_of_found_messages_has_a_limit() {
    let (directory, _file, _) = stored(MAX_EARLIER_MESSAGES + 1);
    let found = earlier_messages(directory.path(), None);
    assert_eq!(found.len(), MAX_EARLIER_MESSAGES);
    assert_eq!(found[0], format!("question {MAX_EARLIER_MESSAGES} äöü"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn a_file_that_is_cut_off_anywhere_has_the_messages_before_the_cut(share in 0.0f64..1.0) {
        let (directory, file, conversation) = stored(3);
        let path = file.path.clone();
        drop(file);
        let length = path.metadata().unwrap().len();
        let first_line = br#"{"version":1}"#.len() as u64 + 1;
        let cut = first_line + ((length - first_line) as f64 * share) as u64;
        OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
        let (mut file, read) = ConversationFile::open(directory.path(), None).unwrap();
        let kept = read.messages().len();
        prop_assert_eq!(read.messages(), &conversation.messages()[..kept]);
        // The rest can be written behind the cut.
        file.sync(&conversation).unwrap();
        drop(file);
        let (_, read) = ConversationFile::open(directory.path(), None).unwrap();
        prop_assert_eq!(read, conversation);
    }
}
