//! `chat`: an interactive conversation with a model that can call all tools.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::AgentSettings;
use innkeeper_agent::conversation::Conversation;
use innkeeper_agent::ghost::DEFAULT_NAMESPACE;
use innkeeper_agent::safety::ApprovalPolicy;
use innkeeper_agent::server_requests::{ServerRequestHandler, ServerRequestSettings};
use innkeeper_host::{Config, Environment};

use super::demo::load_servers;
use super::golden::choice::GoldenChoice;
use super::run_recording::{RecordTarget, RunFacts, RunRecording};
use crate::chat::conversation_file::ConversationFile;
use crate::chat::first_run::{self, Choice};
use crate::chat::listings;
use crate::chat::permanent_rules::RuleStore;
use crate::chat::plain::{self, PlainContext};
use crate::chat::question::{ChatApprover, Questioner};
use crate::chat::recording::ChatRecording;
use crate::chat::server_log::DEFAULT_LOG_LEVEL;
use crate::chat::servers::{ServerReloader, approval_filters};
use crate::chat::session::{ChatSession, settings_for};
use crate::chat::terminal::Theme;
use crate::chat::terminal::app::{self, ChatContext};
use crate::cli::{
    ApprovalArg, ChatArgs, ModelCommand, ModelFetchArgs, ModelSelectionArgs, ThemeArg,
};
use crate::configuration::{ConfigFiles, select_source};
use crate::context::CommandContext;
use crate::exit::{CliError, CliExitCode};
use crate::hosting::{HostOptions, print_failed_servers, with_host_options};
use crate::model::{
    DiscoveryOptions, ModelSource, check_supported, default_models_dir, discover_models,
};
use crate::model_selection::select_model;
use crate::output::{Output, Style};
use crate::state_dir::state_dir;

/// Time for the servers to stop after Ctrl-C twice or after the end of the terminal; then the host
/// kills the servers.
const URGENT_STOP_TIME: Duration = Duration::from_secs(1);

pub(super) async fn run(context: &mut CommandContext, args: &ChatArgs) -> Result<(), CliError> {
    if args.display.respond && !context.output.is_json() {
        return Err(CliError::usage("`--respond` needs `--json`"));
    }
    let choice = args.stored.record.as_deref().map(GoldenChoice::to_record);
    let target = RecordTarget::new(choice, None, &context.environment)?;
    let mut recording = target.map(RunRecording::new);
    let recorder = recording.as_ref().map(|recording| recording.recorder.clone());
    let directory = conversation_directory(&context.environment);
    if args.stored.list {
        return list(context, directory);
    }
    let is_plain = is_plain(context, args);
    let setup = if is_plain {
        Setup { model: args.model.clone(), uses_demo: args.demo }
    } else {
        let Some(setup) = offer_setup(context, args).await? else { return Ok(()) };
        setup
    };
    let (selected, (loaded, _demo)) = match (
        select_model(&setup.model, &context.environment),
        load_servers(context, setup.uses_demo, "chat"),
    ) {
        (Ok(selected), Ok(servers)) => (selected, servers),
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
        (Err(model), Err(servers)) => return Err(model.merge(servers)),
    };
    let directory = directory.filter(|_| !args.stored.no_store);
    let stored = open_conversation(args, directory.as_ref())?;
    let model = selected.prepare(recorder.as_ref()).await?;
    if let Some(recording) = &mut recording {
        recording.set_configuration(model.endpoint.as_ref(), &loaded.config);
    }
    let (questioner, questions) = Questioner::new();
    let mut server_requests = server_request_handler(args.agent.approve, &questioner);
    if let Some(recorder) = &recorder {
        server_requests = server_requests.map(|handler| recorder.record_questions(&handler));
    }
    let options = HostOptions {
        server_requests: server_requests.clone(),
        log_level: Some(DEFAULT_LOG_LEVEL),
        ..HostOptions::default()
    };
    let lock = loaded.files.read_lock()?;
    let environment = context.environment.clone();
    let settings = agent_settings(args);
    let filters = approval_filters(&loaded.config, loaded.files.to_approve.is_none());
    let reloader =
        (!setup.uses_demo).then(|| server_reloader(context, &loaded.files)).transpose()?;
    let permanent = open_permanent_rules(context, args, setup.uses_demo)?;
    let secret_mask = context.output.secret_mask().clone();
    let loaded = loaded.map(Config::with_optional_servers);
    with_host_options(context, loaded, options, async |host, output| {
        let approver =
            Arc::new(ChatApprover::new(questioner, host.clone(), lock, filters, permanent));
        let for_servers = model.for_servers.clone();
        let chat_recording = recorder.map(|recorder| {
            let settings = settings_for(&settings, model.local.is_some());
            ChatRecording::new(recorder, &*model.provider, settings, secret_mask)
        });
        let mut session = ChatSession::new(host.clone(), model, approver, settings, chat_recording)
            .with_server_requests(server_requests, for_servers);
        if let Some(reloader) = reloader {
            session = session.with_reloader(reloader);
        }
        if let Some((file, conversation)) = stored {
            session = session.with_file(file, conversation).map_err(storage_error)?;
        }
        let message = args.message.clone();
        let (mut session, has_failed) = if is_plain {
            print_failed_servers(host, output)?;
            let has_responder = args.display.respond;
            let chat = PlainContext { environment, directory, questions, has_responder };
            let ended = plain::run(session, chat, output, message).await?;
            (ended.session, ended.has_failed)
        } else {
            let (redirection, log_lines) = output.progress_lines().redirect_stderr();
            let theme = theme(args, &environment);
            let chat = ChatContext { environment, theme, directory, questions, log_lines };
            let ended = app::run(session, chat, message).await;
            drop(redirection);
            // After an error, the terminal may be closed: nobody can kill servers that do not stop.
            if ended.as_ref().map_or(true, |end| end.is_urgent) {
                host.shutdown_within(URGENT_STOP_TIME).await;
            }
            (ended?.session, false)
        };
        let recorded = write_recording(recording.as_ref(), &mut session, output).await;
        let id = session.finish().await?;
        if has_failed {
            return recorded.and(Err(CliError::without_message(CliExitCode::Failed)));
        }
        if let Some(id) = id.filter(|_| !output.is_json()) {
            let text = format!("innkeeper chat --resume {id}");
            output.labelled_status(Style::Hint, "continue with", &text)?;
        }
        recorded
    })
    .await
    .map(drop)
}

/// Writes the recording of a chat that has ended.
async fn write_recording(
    recording: Option<&RunRecording<'_>>,
    session: &mut ChatSession,
    output: &mut Output,
) -> Result<(), CliError> {
    let Some(recording) = recording else { return Ok(()) };
    let Some(chat) = session.take_recording() else { return Ok(()) };
    let chat = chat.into_recorded_chat().map_err(|problem| {
        let file = recording.file().display();
        CliError::failure(format!("the chat was not recorded in `{file}`: {problem}"))
    })?;
    let run = RunFacts {
        prompt: &chat.first_prompt,
        further_prompts: &chat.further_prompts,
        namespace: DEFAULT_NAMESPACE,
        settings: chat.settings,
        servers: chat.servers,
    };
    recording.write(run, &chat.report, output).await
}

fn server_reloader(
    context: &CommandContext,
    files: &ConfigFiles,
) -> Result<ServerReloader, CliError> {
    Ok(ServerReloader {
        source: select_source(context)?,
        environment: context.environment.clone(),
        is_strict: context.global.strict,
        timeout: context.global.timeout,
        file_to_approve: files.to_approve.clone(),
        trust_directory: state_dir(&context.environment).map(|state| state.join("trust")),
        secret_mask: context.output.secret_mask().clone(),
    })
}

/// Opens the rules for later conversations. The servers of the demo have none, and `--approve all` and
/// `--approve never` need none.
fn open_permanent_rules(
    context: &CommandContext,
    args: &ChatArgs,
    uses_demo: bool,
) -> Result<RuleStore, CliError> {
    match args.agent.approve {
        ApprovalArg::Ask if !uses_demo => {}
        ApprovalArg::Ask | ApprovalArg::All | ApprovalArg::Never => return Ok(RuleStore::default()),
    }
    let directory = state_dir(&context.environment).map(|state| state.join("rules"));
    let source = select_source(context)?;
    RuleStore::open(directory.as_deref(), source.files(), args.stored.no_store)
}

/// Returns the handler that asks the person about the requests of servers; `None` if the servers
/// get no answers.
fn server_request_handler(
    approve: ApprovalArg,
    questioner: &Questioner,
) -> Option<ServerRequestHandler> {
    let sampling = match approve {
        ApprovalArg::All => ApprovalPolicy::AllowAll,
        ApprovalArg::Ask => ApprovalPolicy::Ask,
        ApprovalArg::Never => return None,
    };
    Some(ServerRequestHandler::new(ServerRequestSettings {
        sampling,
        prompter: Some(Arc::new(questioner.clone())),
        ..ServerRequestSettings::default()
    }))
}

/// The model and the servers of a chat.
struct Setup {
    model: ModelSelectionArgs,
    uses_demo: bool,
}

/// Offers servers and a model to a person who has configured none; `None` if the person leaves.
async fn offer_setup(
    context: &mut CommandContext,
    args: &ChatArgs,
) -> Result<Option<Setup>, CliError> {
    let failure = |error| CliError::failure("cannot read a key").with_source(error);
    let mut setup = Setup { model: args.model.clone(), uses_demo: args.demo };
    if !args.demo && select_source(context).is_err() && has_no_source(context) {
        let title = "No configuration file was found. Choose by a key:";
        let menu = first_run::server_menu();
        match first_run::choose(&mut context.output, title, &menu).map_err(failure)? {
            Choice::DemoServers => setup.uses_demo = true,
            Choice::Model(_) | Choice::InstallLocalModel | Choice::Leave => return Ok(None),
        }
    }
    if args.model.provider.is_some() {
        return Ok(Some(setup));
    }
    let directory = default_models_dir(&context.environment);
    let options = DiscoveryOptions::with_default_ports(&context.environment, directory.as_deref());
    let sources = discover_models(&options).await;
    let can_run = directory.is_some() && check_supported().is_ok();
    let menu = first_run::model_menu(&sources.available, can_run);
    let title = "No model is selected. Choose by a key:";
    match first_run::choose(&mut context.output, title, &menu).map_err(failure)? {
        Choice::Model(source) => setup.model = first_run::selection_of(&source),
        Choice::InstallLocalModel => {
            let fetch = ModelFetchArgs { name: None, dir: None };
            super::model(context, ModelCommand::Fetch(fetch)).await?;
            setup.model = first_run::selection_of(&ModelSource::Installed);
        }
        Choice::DemoServers | Choice::Leave => return Ok(None),
    }
    Ok(Some(setup))
}

/// Whether neither the command line nor a directory names servers.
fn has_no_source(context: &CommandContext) -> bool {
    let global = &context.global;
    global.config.is_empty() && !global.server.is_given()
}

fn list(context: &mut CommandContext, directory: Option<PathBuf>) -> Result<(), CliError> {
    let directory = directory.ok_or_else(no_home_error)?;
    if context.output.is_json() {
        return Ok(context.output.print_json(&listings::conversations_json(&directory))?);
    }
    Ok(context.output.print_data(&listings::conversations(&directory))?)
}

/// Opens the conversation of `--resume`, or creates a file for a new one.
fn open_conversation(
    args: &ChatArgs,
    directory: Option<&PathBuf>,
) -> Result<Option<(ConversationFile, Conversation)>, CliError> {
    let Some(directory) = directory else {
        return match &args.stored.resume {
            Some(_) => Err(no_home_error()),
            None => Ok(None),
        };
    };
    match &args.stored.resume {
        Some(id) => {
            let id = Some(&**id).filter(|id| !id.is_empty());
            ConversationFile::open(directory, id).map(Some)
        }
        None => Ok(Some((ConversationFile::create(directory)?, Conversation::new()))),
    }
}

fn conversation_directory(environment: &Environment) -> Option<PathBuf> {
    Some(state_dir(environment)?.join("chats"))
}

fn no_home_error() -> CliError {
    CliError::usage("no directory for conversations").with_hint("set HOME or XDG_STATE_HOME")
}

fn storage_error(error: io::Error) -> CliError {
    CliError::failure("cannot store the conversation").with_source(error)
}

/// Whether the chat reads and prints lines.
fn is_plain(context: &CommandContext, args: &ChatArgs) -> bool {
    let has_screen = io::stdin().is_terminal() && context.output.is_terminal();
    let is_dumb = context.environment.get("TERM") == Some("dumb");
    args.display.plain || context.output.is_json() || !has_screen || is_dumb
}

fn theme(args: &ChatArgs, environment: &Environment) -> Theme {
    let no_colour = environment.get("NO_COLOR").is_some_and(|value| !value.is_empty());
    // `15;0`: the colours of the text and of the background, by their numbers.
    let background = environment.get("COLORFGBG").and_then(|value| value.rsplit(';').next());
    match args.display.theme {
        Some(ThemeArg::Dark) => Theme::Dark,
        Some(ThemeArg::Light) => Theme::Light,
        Some(ThemeArg::None) => Theme::Plain,
        None if no_colour => Theme::Plain,
        None if matches!(background, Some("7" | "15")) => Theme::Light,
        None => Theme::Dark,
    }
}

fn agent_settings(args: &ChatArgs) -> AgentSettings {
    let mut settings = AgentSettings {
        system: args.agent.system.clone().unwrap_or_default(),
        approval_policy: match args.agent.approve {
            ApprovalArg::All => ApprovalPolicy::AllowAll,
            ApprovalArg::Ask => ApprovalPolicy::AskAll,
            ApprovalArg::Never => ApprovalPolicy::DenyAll,
        },
        ..AgentSettings::default()
    };
    settings.limits.max_iterations = args.agent.max_iterations;
    settings.tool_use.tool_calling = args.agent.tool_calling.into();
    settings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use innkeeper_host::Config;
    use serde_json::json;

    use super::*;

    /// Attack: files | a file in a directory approves all calls of its server | each call asks
    /// | Approval first
    #[test]
    fn a_file_that_was_found_in_a_directory_approves_no_call() {
        let config = json!({"servers": {"a": {"command": "x", "tools": {
            "approve": ["*"], "approveArguments": {"*": [{}]},
        }}}});
        let config = Config::from_value(&config, "test", Path::new("."), &Environment::default());
        let config = config.unwrap();
        for may_approve in [true, false] {
            let filter = &approval_filters(&config, may_approve)["a"];
            assert_eq!(filter.is_approved("t"), may_approve.then_some(true));
            assert_eq!(filter.approves_arguments("t", "{}"), may_approve);
        }
    }
}
