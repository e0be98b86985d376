//! Tests of the values from servers, with a server in memory.

use innkeeper_host::Config;
use innkeeper_testkit::{InMemoryServer, ServerFeatures};
use serde_json::{Value, json};

use super::*;

fn features() -> ServerFeatures {
    let argument = |name: &str| json!({"name": name});
    ServerFeatures {
        prompts: Some(vec![json!({
            "name": "find", "arguments": [argument("title"), argument("tag")],
        })]),
        resources: Some((
            vec![json!({"uri": "git://readme", "name": "About"})],
            vec![json!({"uriTemplate": "git://{repo}/{+path}", "name": "File"})],
        )),
        ..ServerFeatures::default()
    }
}

/// A host with the server `one`.
struct TestHost {
    server: InMemoryServer,
    sources: CompletionSources,
}

impl TestHost {
    async fn start() -> Self {
        let (mut server, read, write) = InMemoryServer::new();
        let builder = Host::builder(Config::default()).connect("one", tokio::io::join(read, write));
        let features = features();
        let (host, _) = tokio::join!(builder.start(), server.handshake_legacy(&features));
        let (host, threads) = (host.unwrap(), FileThreads::default());
        Self {
            server,
            sources: CompletionSources {
                host,
                threads,
                conversations: None,
                current: None,
                rules: Vec::new(),
                home: None,
            },
        }
    }

    /// Returns the inserted texts of the values without a request to the server.
    async fn complete(&self, text: &str) -> Vec<String> {
        let completions = complete(self.sources.clone(), text.to_owned()).await;
        assert!(text.ends_with(&completions.replaced), "{completions:?}");
        completions.values.into_iter().map(|value| value.text).collect()
    }

    /// Returns the parameters of the request to the server, and the values.
    async fn complete_by_server(&mut self, text: &str, values: &[&str]) -> (Value, Vec<String>) {
        let result = json!({"completion": {"values": values}});
        let completing = complete(self.sources.clone(), text.to_owned());
        let responding = self.server.respond_to("completion/complete", result);
        let (completions, mut request) = tokio::join!(completing, responding);
        assert!(text.ends_with(&completions.replaced), "{completions:?}");
        let values = completions.values.into_iter().map(|value| value.text).collect();
        (request["params"].take(), values)
    }
}

#[tokio::test]
async fn a_variable_of_a_template_is_completed_by_its_server_with_the_variables_before() {
    let mut test = TestHost::start().await;
    assert_eq!(test.complete("/attach g").await, ["git://readme", "git://"]);
    let (params, values) = test.complete_by_server("/attach git://inn", &["inn keeper"]).await;
    let expected = json!({
        "ref": {"type": "ref/resource", "uri": "git://{repo}/{+path}"},
        "argument": {"name": "repo", "value": "inn"},
    });
    assert_eq!((params, values), (expected, vec!["git://inn%20keeper/".to_owned()]));
    let text = "/attach git://inn%20keeper/src/";
    let (params, values) = test.complete_by_server(text, &["src/lib.rs"]).await;
    let expected = json!({
        "ref": {"type": "ref/resource", "uri": "git://{repo}/{+path}"},
        "argument": {"name": "path", "value": "src/"},
        "context": {"arguments": {"repo": "inn keeper"}},
    });
    assert_eq!((params, values), (expected, vec!["git://inn%20keeper/src/lib.rs".to_owned()]));
}

#[tokio::test]
async fn an_argument_of_a_prompt_is_completed_with_the_arguments_before() {
    let mut test = TestHost::start().await;
    assert_eq!(test.complete("/prompt o").await, ["one.find"]);
    assert_eq!(test.complete("/prompt one.find ").await, ["title=", "tag="]);
    assert_eq!(test.complete("/prompt one.find title=x t").await, ["tag="]);
    let text = "/prompt one.find title='two words' tag=\"a b";
    let (params, values) = test.complete_by_server(text, &["a b c", "ab"]).await;
    let expected = json!({
        "ref": {"type": "ref/prompt", "name": "find"},
        "argument": {"name": "tag", "value": "a b"},
        "context": {"arguments": {"title": "two words"}},
    });
    assert_eq!((params, values), (expected, vec!["tag='a b c'".to_owned(), "tag=ab".to_owned()]));
}

#[tokio::test]
async fn a_name_behind_an_at_sign_completes_resources_and_files() {
    let test = TestHost::start().await;
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a b.md"), "").unwrap();
    std::fs::create_dir(directory.path().join("ab")).unwrap();
    let start = format!("{}/a", directory.path().to_str().unwrap());
    let completions = complete(test.sources.clone(), format!("Read @{start}")).await;
    assert_eq!(completions.replaced, format!("@{start}"));
    let values: Vec<_> =
        completions.values.iter().map(|it| (&*it.text, it.attachment.as_deref())).collect();
    let (file, inserted) = (format!("{start} b.md"), format!("{start} b.md "));
    let directory = format!("@{start}b/");
    assert_eq!(values, [(&*inserted, Some(&*file)), (&*directory, None)]);
    assert_eq!(test.complete("Read @About").await, ["git://readme "]);
    assert_eq!(test.complete("Read it").await, Vec::<String>::new());
}

#[tokio::test]
async fn values_that_start_with_the_text_are_before_values_that_contain_the_text() {
    let mut test = TestHost::start().await;
    let (params, values) = test.complete_by_server("/attach git://read", &["zread"]).await;
    assert_eq!(params["argument"]["value"], "read");
    assert_eq!(values, ["git://readme", "git://zread/"]);
}

#[tokio::test]
async fn ids_of_stored_conversations_and_levels_are_completed() {
    let mut test = TestHost::start().await;
    assert_eq!(test.complete("/log e").await, ["error", "emergency"]);
    let directory = tempfile::tempdir().unwrap();
    let file = conversation_file::ConversationFile::create(directory.path()).unwrap();
    test.sources.conversations = Some(directory.path().to_owned());
    for command in ["/resume 20", "/remove 20"] {
        assert_eq!(test.complete(command).await, [file.id()]);
    }
    test.sources.current = Some(file.id());
    assert_eq!(test.complete("/resume ").await, Vec::<String>::new());
}

/// Attack: terminal | a server and the names of files propose terminal sequences and new lines | no
/// completion inserts the value | Foreign text stays text
#[cfg(unix)]
#[tokio::test]
async fn a_value_with_control_characters_completes_nothing() {
    let mut test = TestHost::start().await;
    let long = "x".repeat(MAX_VALUE_BYTES);
    let values = ["Ada", "A\u{1b}[2J", "A\n/quit", "A\u{202e}b", &long];
    let (_, values) = test.complete_by_server("/prompt one.find title=A", &values).await;
    assert_eq!(values, ["title=Ada"]);
    let directory = tempfile::tempdir().unwrap();
    for name in ["a\u{1b}[2J", "a\nb", "a\u{202e}b", "ab"] {
        std::fs::write(directory.path().join(name), "").unwrap();
    }
    let typed = format!("{}/a", directory.path().to_str().unwrap());
    assert_eq!(test.complete(&format!("/attach {typed}")).await, [format!("{typed}b")]);
}

/// Attack: flow control | a server does not respond to a request for values | the next key cancels
/// the request | No unbounded wait
#[tokio::test]
async fn a_dropped_search_cancels_the_request_to_the_server() {
    let mut test = TestHost::start().await;
    let search = complete(test.sources.clone(), "/prompt one.find title=A".to_owned());
    tokio::pin!(search);
    let request = tokio::select! {
        completions = &mut search => panic!("the server did not respond: {completions:?}"),
        request = test.server.expect("completion/complete") => request,
    };
    search.set(complete(test.sources.clone(), "/log".to_owned()));
    let cancelled = test.server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn a_path_in_the_home_directory_is_completed_as_an_absolute_path() {
    let mut test = TestHost::start().await;
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("notes.md"), "").unwrap();
    let home = home.path().to_str().unwrap();
    test.sources.home = Some(home.to_owned());
    assert_eq!(test.complete("/attach ~/no").await, [format!("{home}/notes.md")]);
}
