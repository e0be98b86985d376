//! Who signs an entry.

use innkeeper_host::Environment;

use crate::exit::CliError;

const ACCOUNT_VARIABLES: [&str; 2] = ["USER", "USERNAME"];

/// Returns the named person, else the account of the user.
///
/// # Errors
///
/// There is no name.
pub(super) fn author(named: Option<&str>, environment: &Environment) -> Result<String, CliError> {
    let account = ACCOUNT_VARIABLES.iter().find_map(|name| environment.get(name));
    let name = named.or(account).map(str::trim).filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| {
        CliError::usage("there is no name to sign with").with_hint("use `--who NAME`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::from_pairs(variables.iter().copied())
    }

    #[test]
    fn the_named_person_comes_before_the_account_and_one_of_them_is_required() {
        let account = environment(&[("USERNAME", "ada")]);
        assert_eq!(author(Some("grace"), &account).unwrap(), "grace");
        assert_eq!(author(None, &account).unwrap(), "ada");
        let error = author(None, &environment(&[("USER", " ")])).unwrap_err();
        assert!(error.to_line().contains("use `--who NAME`"));
    }
}
