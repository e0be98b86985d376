//! The files and directories of this program that no sandbox may write.

use std::path::PathBuf;

use crate::attach::socket_directory;
use crate::configuration::user_config_file;
use crate::context::CommandContext;
use crate::model::default_models_dir;
use crate::pins::lock_path;
use crate::state_dir::state_dir;

/// Returns what decides about later commands, whether it exists or not: the configuration of the user,
/// whose servers start without an approval, with its lock and `.env`; approvals, rules, tokens, ledger and
/// conversations; the sockets of gateways; installed models with their programs; the log file.
pub(crate) fn own_paths(context: &CommandContext) -> Vec<PathBuf> {
    let environment = &context.environment;
    let config = user_config_file(environment);
    let beside = config
        .as_ref()
        .map(|config| [lock_path(std::slice::from_ref(config)), config.with_file_name(".env")]);
    let directories = [
        state_dir(environment),
        socket_directory(environment),
        default_models_dir(environment),
        context.global.log.log_file.clone(),
    ];
    let all = config.into_iter().chain(beside.into_iter().flatten());
    all.chain(directories.into_iter().flatten()).collect()
}
