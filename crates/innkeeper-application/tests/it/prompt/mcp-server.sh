#!/bin/sh
# Records the arguments in the working directory, and becomes the fixture server.
echo "$@" > arguments
exec path/to/fixture-server "$@"
