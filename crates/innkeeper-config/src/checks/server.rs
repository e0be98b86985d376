//! Checks one server entry and converts it to a server configuration.

use std::time::Duration;

use indexmap::{IndexMap, IndexSet};

use crate::checks::entry_checker::EntryChecker;
use crate::checks::shared_settings;
use crate::checks::{launch, oauth, remote};
use crate::diagnostic::Position;
use crate::form::document::ServerEntry;
use crate::form::{raw, validate};
use crate::settings::argument_rule::ArgumentPatterns;
use crate::settings::extra_keys::ExtraKeys;
use crate::settings::filter::ToolFilter;
use crate::settings::host::HostConfig;
use crate::settings::server::{ServerConfig, TransportConfig};
use crate::settings::shared::Share;
use crate::text::key_location::{key_segment, locate};
use crate::text::source_text::Diagnostics;
use crate::text::tree;
use crate::variables::env_file::EnvFile;
use crate::variables::scope::VariableScope;

/// A checked entry before it becomes part of the configuration.
#[derive(Debug)]
pub(crate) struct ServerDraft {
    pub(crate) name: String,
    pub(crate) position: Position,
    pub(crate) disabled: bool,
    pub(crate) required: bool,
    /// The transport, if known: an error elsewhere in the entry does not affect the transport.
    pub(crate) transport: Option<&'static str>,
    /// The clients that share one process; an error elsewhere in the entry does not affect this.
    pub(crate) share: Share,
    /// Dependencies with their index in the file.
    pub(crate) dependencies: Vec<(usize, String)>,
    /// The file with variables; an error elsewhere in the entry does not affect this.
    pub(crate) env_file: Option<EnvFile>,
    /// `None` if an error was reported.
    pub(crate) config: Option<ServerConfig>,
}

/// Checks an entry and adds its problems to the report.
pub(crate) fn server(
    entry: &ServerEntry,
    host: &HostConfig,
    scope: &VariableScope<'_>,
    report: &mut Diagnostics,
) -> ServerDraft {
    let value = validate::server(&entry.node, &entry.path, report);
    shared_settings::check_sizes(&entry.node, &entry.path, report);
    let mut typed: raw::Server = serde_json::from_value(value).unwrap_or_else(|_| {
        report.error(entry.node.at, &entry.path, "does not match the schema");
        raw::Server::default()
    });
    let disabled = typed.disabled.unwrap_or(false);
    let dependencies = typed.dependencies.take().unwrap_or_default();
    let dependencies = dependencies
        .into_iter()
        .enumerate()
        .filter_map(|(i, raw::StringElement(name))| Some((i, name?)));
    let dependencies: Vec<(usize, String)> = dependencies.collect();
    let position = report.source().position(entry.at);
    let name = entry.name.clone();
    let required = typed.required.unwrap_or(true);
    let mut draft = ServerDraft {
        name,
        position,
        disabled,
        required,
        transport: None,
        share: typed.shared.share.map_or(host.lifecycle.share, shared_settings::share),
        dependencies,
        env_file: None,
        config: None,
    };
    // The variables of a disabled server may be unset, so the check skips them.
    if disabled || !entry.node.is_object() {
        return draft;
    }
    let mut checker = EntryChecker { entry, scope, report, env_file: None };
    let kind = checker.transport_kind(&typed);
    draft.transport = kind.map(raw::Transport::name);
    let transport = kind.and_then(|kind| checker.transport(kind, &mut typed));
    let elsewhere =
        !matches!(transport, Some(TransportConfig::Stdio { .. } | TransportConfig::InProcess));
    let oauth = match typed.oauth.take().filter(|_| elsewhere) {
        Some(typed) => oauth::oauth(&mut checker, typed).map(Some),
        None => Some(None),
    };
    let helper = match typed.headers_helper.take().filter(|_| elsewhere) {
        Some(typed) => remote::helper(&mut checker, typed),
        None => Some(Vec::new()),
    };
    draft.env_file = checker.env_file.take();
    if let (Some(transport), Some(oauth), Some(helper)) = (transport, oauth, helper) {
        let mut config = checker.build_config(transport, host, typed, &draft.dependencies);
        (config.oauth, config.headers_helper) = (oauth, helper);
        draft.config = Some(config);
    }
    draft
}

impl EntryChecker<'_> {
    /// Returns the kind of the transport, or `None` after an error.
    fn transport_kind(&mut self, typed: &raw::Server) -> Option<raw::Transport> {
        let command = self.has("command");
        let url = self.has("url");
        match (typed.kind, command, url) {
            (Some(kind), ..) => Some(kind),
            (None, true, false) => Some(raw::Transport::Stdio),
            (None, false, true) => {
                Some(remote::transport_for_url(typed.url.as_deref().unwrap_or_default()))
            }
            (None, true, true) => {
                self.error(&[], "has both `command` and `url`");
                self.report.hint("set `\"type\": \"stdio\"` or `\"type\": \"http\"`");
                None
            }
            (None, false, false) if self.has("type") => None,
            (None, false, false) => {
                self.error(&[], "has neither `command` nor `url`");
                None
            }
        }
    }

    fn transport(
        &mut self,
        kind: raw::Transport,
        typed: &mut raw::Server,
    ) -> Option<TransportConfig> {
        let useless = unused_keys(kind);
        self.warn_unused_keys(kind, useless);
        match kind {
            raw::Transport::Stdio => launch::stdio(self, typed),
            raw::Transport::Http | raw::Transport::Sse | raw::Transport::WebSocket => {
                remote::remote(self, kind, typed)
            }
            raw::Transport::InProcess => Some(TransportConfig::InProcess),
        }
    }

    /// Warns about keys that this transport does not use.
    fn warn_unused_keys(&mut self, kind: raw::Transport, useless: &[&str]) {
        for name in useless {
            if let Some(member) = self.entry.node.get(name) {
                let location = locate(&self.entry.node, &self.entry.path, &[key_segment(name)]);
                let message = format!("not supported for server type `{}`", kind.name());
                self.report.warning(member.at, location.key, message);
            }
        }
    }

    fn build_config(
        &self,
        transport: TransportConfig,
        host: &HostConfig,
        typed: raw::Server,
        dependencies: &[(usize, String)],
    ) -> ServerConfig {
        let needs: IndexSet<String> = dependencies.iter().map(|(_, name)| name.clone()).collect();
        let position = self.report.source().position(self.entry.at);
        let name = self.entry.name.clone();
        let key = self.entry.path.clone();
        ServerConfig {
            required: typed.required.unwrap_or(true),
            dependencies: needs.into_iter().collect(),
            lifecycle: host.lifecycle.overridden(&typed.shared),
            calls: host.calls.overridden(&typed.shared),
            confinement: host.confinement.overridden(typed.inherit_env, &typed.shared),
            guard: shared_settings::guard(host.guard, typed.shared.guard),
            tools: typed.tools.map(tools).unwrap_or_default(),
            extra: ExtraKeys::new(tree::to_map(&self.entry.extra)),
            ..ServerConfig::new(host, name, key, position, transport)
        }
    }
}

/// Returns the keys that only other transports use.
fn unused_keys(kind: raw::Transport) -> &'static [&'static str] {
    match kind {
        raw::Transport::Stdio => &["url", "headers", "headersHelper", "oauth"],
        raw::Transport::Http | raw::Transport::Sse | raw::Transport::WebSocket => {
            &["command", "args", "cwd", "env", "envFile", "inheritEnv", "limits", "sandbox"]
        }
        raw::Transport::InProcess => &[
            "command",
            "args",
            "cwd",
            "env",
            "envFile",
            "inheritEnv",
            "limits",
            "sandbox",
            "url",
            "headers",
            "headersHelper",
            "oauth",
        ],
    }
}

fn tools(typed: raw::Tools) -> ToolFilter {
    let allow = typed.allow.map(|allow| raw::strings(Some(allow)));
    let denied = typed.deny_arguments.unwrap_or_default();
    let deny_arguments =
        denied.into_iter().map(|(tools, texts)| (tools, raw::strings(Some(texts)))).collect();
    let timeouts = typed.timeouts.unwrap_or_default().into_iter();
    let timeouts =
        timeouts.map(|(tools, raw::Seconds(value))| (tools, Duration::from_secs_f64(value)));
    let approved = typed.approve_arguments.unwrap_or_default().into_iter();
    let approve_arguments = approved.map(|(tools, rules)| {
        // A rule with an invalid pattern approves nothing.
        (tools, rules.into_iter().filter_map(argument_patterns).collect())
    });
    ToolFilter {
        allow,
        deny: raw::strings(typed.deny),
        deny_arguments,
        approve: raw::strings(typed.approve),
        approve_arguments: approve_arguments.collect(),
        ask: raw::strings(typed.ask),
        timeouts: timeouts.collect(),
    }
}

/// Returns the patterns of a rule; `None` if a pattern is not a text.
fn argument_patterns(rule: IndexMap<String, raw::StringElement>) -> Option<ArgumentPatterns> {
    rule.into_iter().map(|(name, raw::StringElement(text))| Some((name, text?))).collect()
}
