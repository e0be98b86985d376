//! One server's entry, from what was typed to what it means.

use indexmap::IndexSet;

use super::document::Entry;
use super::files::Surroundings;
use super::filter::ToolFilter;
use super::host::HostConfig;
use super::place::{Step, key, locate};
use super::problem::{Position, Severity};
use super::server::{ServerConfig, TransportConfig};
use super::settings::{self, Shared};
use super::source::Report;
use super::{Kept, expand, launch, oauth, raw, remote, tree, validate};

/// A server on its way into the configuration.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) position: Position,
    pub(super) disabled: bool,
    /// The dependencies with their indexes in the file.
    pub(super) dependencies: Vec<(usize, String)>,
    /// Absent where an error has been told.
    pub(super) config: Option<ServerConfig>,
}

/// Checks an entry; what is wrong with it is in the report.
pub(super) fn server(
    entry: &Entry,
    host: &HostConfig,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Draft {
    let value = validate::server(&entry.node, &entry.path, report);
    settings::check_sizes(&entry.node, &entry.path, report);
    let mut typed: raw::Server = serde_json::from_value(value).unwrap_or_else(|_| {
        report.error(entry.node.at, &entry.path, "does not fit the schema");
        raw::Server::default()
    });
    let disabled = typed.disabled.unwrap_or(false);
    let dependencies = typed.dependencies.take().unwrap_or_default();
    let dependencies =
        dependencies.into_iter().enumerate().filter_map(|(i, raw::Text(name))| Some((i, name?)));
    let dependencies: Vec<(usize, String)> = dependencies.collect();
    let position = report.source().position(entry.at);
    let name = entry.name.clone();
    let mut draft = Draft { name, position, disabled, dependencies, config: None };
    // What is switched off is not asked for its variables: they may well be missing here.
    if disabled || !entry.node.is_object() {
        return draft;
    }
    let mut checker = Checker { entry, surroundings, report };
    let transport = checker.transport(&mut typed);
    let elsewhere = !matches!(transport, Some(TransportConfig::Stdio { .. }));
    let oauth = match typed.oauth.take().filter(|_| elsewhere) {
        Some(typed) => oauth::oauth(&mut checker, typed).map(Some),
        None => Some(None),
    };
    let helper = match typed.headers_helper.take().filter(|_| elsewhere) {
        Some(typed) => remote::helper(&mut checker, typed),
        None => Some(Vec::new()),
    };
    if let (Some(transport), Some(oauth), Some(helper)) = (transport, oauth, helper) {
        let mut config = checker.settle(transport, host, typed, &draft.dependencies);
        (config.oauth, config.headers_helper) = (oauth, helper);
        draft.config = Some(config);
    }
    draft
}

/// What is needed to tell about one entry.
pub(super) struct Checker<'a> {
    pub(super) entry: &'a Entry,
    pub(super) surroundings: &'a Surroundings<'a>,
    pub(super) report: &'a mut Report,
}

impl Checker<'_> {
    fn transport(&mut self, typed: &mut raw::Server) -> Option<TransportConfig> {
        let (command, url) = (self.has("command"), self.has("url"));
        let kind = match (typed.kind, command, url) {
            (Some(kind), ..) => kind,
            (None, true, false) => raw::Transport::Stdio,
            (None, false, true) => remote::kind_of(typed.url.as_deref().unwrap_or_default()),
            (None, true, true) => {
                self.error(&[], "has a `command` and a `url`");
                self.report
                    .hint("say which one counts: `\"type\": \"stdio\"` or `\"type\": \"http\"`");
                return None;
            }
            (None, false, false) if self.has("type") => return None,
            (None, false, false) => {
                self.error(&[], "has neither a `command` nor a `url`");
                return None;
            }
        };
        let useless = useless(kind);
        self.warn_useless(kind, useless);
        if kind == raw::Transport::Stdio {
            launch::stdio(self, typed)
        } else {
            remote::remote(self, kind, typed)
        }
    }

    /// Tells about keys that this transport has no use for.
    fn warn_useless(&mut self, kind: raw::Transport, useless: &[&str]) {
        for name in useless {
            if let Some(member) = self.entry.node.get(name) {
                let place = locate(&self.entry.node, &self.entry.path, &[key(name)]);
                let message = format!("a server of type `{}` has no use for this", kind.name());
                self.report.warning(member.at, place.key, message);
            }
        }
    }

    fn settle(
        &self,
        transport: TransportConfig,
        host: &HostConfig,
        typed: raw::Server,
        dependencies: &[(usize, String)],
    ) -> ServerConfig {
        let shared = Shared::over(host, typed.shared);
        let needs: IndexSet<String> = dependencies.iter().map(|(_, name)| name.clone()).collect();
        ServerConfig {
            name: self.entry.name.clone(),
            key: self.entry.path.clone(),
            position: self.report.source().position(self.entry.at),
            transport,
            required: typed.required.unwrap_or(true),
            dependencies: needs.into_iter().collect(),
            timeout: shared.timeout,
            init_timeout: shared.init_timeout,
            shutdown_timeout: shared.shutdown_timeout,
            max_total_timeout: shared.max_total_timeout,
            max_concurrent: shared.max_concurrent,
            unavailable_after_timeouts: shared.unavailable_after_timeouts,
            inherit_env: typed.inherit_env.unwrap_or(host.inherit_env),
            tools: typed.tools.map(tools).unwrap_or_default(),
            restart: shared.restart,
            retry: shared.retry,
            cache: shared.cache,
            limits: shared.limits,
            guard: shared.guard,
            sandbox: shared.sandbox,
            headers_helper: Vec::new(),
            oauth: None,
            extra: Kept::new(tree::to_map(&self.entry.extra)),
        }
    }

    /// Whether the key stands in the file, whatever its value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entry.node.get(name).is_some()
    }

    pub(super) fn error(&mut self, steps: &[Step<'_>], message: impl Into<String>) {
        if self.report.is_full() {
            return self.report.count(Severity::Error);
        }
        let place = locate(&self.entry.node, &self.entry.path, steps);
        self.report.error(place.at, place.key, message);
    }

    pub(super) fn warning(&mut self, steps: &[Step<'_>], message: impl Into<String>) {
        if self.report.is_full() {
            return self.report.count(Severity::Warning);
        }
        let place = locate(&self.entry.node, &self.entry.path, steps);
        self.report.warning(place.at, place.key, message);
    }

    /// Replaces the variables of one value; `None` where that failed or left what no system
    /// could be given.
    pub(super) fn expand(&mut self, steps: &[Step<'_>], text: &str) -> Option<expand::Replaced> {
        match expand::expand(text, self.surroundings) {
            Ok(replaced) if replaced.value.contains('\0') => {
                self.error(steps, "has a NUL character");
                None
            }
            Ok(replaced) => Some(replaced),
            Err(failures) => {
                for failure in failures {
                    self.error(steps, failure.message());
                    if let Some(hint) = failure.hint() {
                        self.report.hint(hint);
                    }
                }
                None
            }
        }
    }
}

/// The keys that only the other transports have a use for.
fn useless(kind: raw::Transport) -> &'static [&'static str] {
    match kind {
        raw::Transport::Stdio => &["url", "headers", "headersHelper", "oauth"],
        raw::Transport::Http | raw::Transport::Sse | raw::Transport::WebSocket => {
            &["command", "args", "cwd", "env", "envFile", "inheritEnv", "limits", "sandbox"]
        }
    }
}

fn tools(typed: raw::Tools) -> ToolFilter {
    let allow = typed.allow.map(|allow| raw::texts(Some(allow)));
    let denied = typed.deny_arguments.unwrap_or_default();
    let deny_arguments =
        denied.into_iter().map(|(tools, texts)| (tools, raw::texts(Some(texts)))).collect();
    ToolFilter { allow, deny: raw::texts(typed.deny), deny_arguments }
}
