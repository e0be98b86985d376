//! Method names of MCP.

/// Opens a legacy connection.
pub const INITIALIZE: &str = "initialize";
/// Requests the identity and the capabilities of a modern server.
pub const SERVER_DISCOVER: &str = "server/discover";
/// Checks that the peer of a legacy connection responds.
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
/// Lists resource templates.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to updates of a resource on a legacy server.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Cancels a subscription created by [`RESOURCES_SUBSCRIBE`].
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Requests completion values for an argument.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Sets the log level of a legacy server.
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Opens the stream of a modern server's change notifications.
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";

/// Requests the status of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Waits for the result of a task (revision 2025-11-25) and returns the result.
pub const TASKS_RESULT: &str = "tasks/result";
/// Cancels a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Lists tasks (revision 2025-11-25).
pub const TASKS_LIST: &str = "tasks/list";
/// Sends requested input to a task (tasks extension).
pub const TASKS_UPDATE: &str = "tasks/update";

/// Server to client: requests a response from a model.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// Server to client: requests the directories in which the server may work.
pub const ROOTS_LIST: &str = "roots/list";
/// Server to client: requests input from the user.
pub const ELICITATION_CREATE: &str = "elicitation/create";

/// Prefix of all notification names.
pub const NOTIFICATION_PREFIX: &str = "notifications/";
/// The client has processed the result of [`INITIALIZE`].
pub const INITIALIZED: &str = "notifications/initialized";
/// The sender has cancelled a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Progress of a request.
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
/// An interaction outside of the client has completed.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// The notifications that [`SUBSCRIPTIONS_LISTEN`] will send.
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// The status of a task has changed (revision 2025-11-25).
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// A task has changed (tasks extension).
pub const TASKS_CHANGED: &str = "notifications/tasks";
