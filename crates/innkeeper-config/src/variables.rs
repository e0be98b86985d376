//! Variables, and the files that contain them.

pub(crate) mod dotenv;
pub(crate) mod env_file;
pub(crate) mod environment;
pub(crate) mod expand;
pub(crate) mod files;
pub(crate) mod literal;
pub(crate) mod scope;
