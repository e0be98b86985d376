"""A host for other packages. Each module imports its package, and nothing else imports it."""
