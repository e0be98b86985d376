//! The names of the methods, as they stand on the wire.

/// Opens a legacy connection.
pub const INITIALIZE: &str = "initialize";
/// Asks a modern server what it is and offers.
pub const SERVER_DISCOVER: &str = "server/discover";
/// Asks the peer of a legacy connection whether it is there.
pub const PING: &str = "ping";

/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Renders a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists the templates that resource addresses can be made of.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Asks a legacy server to say when a resource changes.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends what [`RESOURCES_SUBSCRIBE`] asked for.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Asks for values that complete an argument.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Sets how much a legacy server logs.
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Opens the stream of a modern server's change notifications.
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";

/// Asks how far a task is.
pub const TASKS_GET: &str = "tasks/get";
/// Asks for the result of a task of the revision 2025-11-25, and waits for it.
pub const TASKS_RESULT: &str = "tasks/result";
/// Asks for a task to be stopped.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Lists the tasks of the revision 2025-11-25.
pub const TASKS_LIST: &str = "tasks/list";
/// Gives a task of the extension the input it asks for.
pub const TASKS_UPDATE: &str = "tasks/update";

/// Server to client: have a model answer.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// Server to client: the directories it may work in.
pub const ROOTS_LIST: &str = "roots/list";
/// Server to client: ask the user.
pub const ELICITATION_CREATE: &str = "elicitation/create";

/// Every notification's name starts so.
pub const NOTIFICATION_PREFIX: &str = "notifications/";
/// The client has understood the answer to [`INITIALIZE`].
pub const INITIALIZED: &str = "notifications/initialized";
/// A request is no longer wanted.
pub const CANCELLED: &str = "notifications/cancelled";
/// A request has come further.
pub const PROGRESS: &str = "notifications/progress";
/// A log message.
pub const MESSAGE: &str = "notifications/message";
/// The list of tools has changed.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// The list of prompts has changed.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
/// The list of resources has changed.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// A resource has changed.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
/// The client's roots have changed.
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// An interaction outside of the client has ended.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// What [`SUBSCRIPTIONS_LISTEN`] will report.
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// A task of the revision 2025-11-25 has changed.
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// A task of the extension has changed.
pub const TASKS_CHANGED: &str = "notifications/tasks";
