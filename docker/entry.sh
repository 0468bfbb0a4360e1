#!/bin/sh
# What a container does: a program in Python by its name alone, the command of Oarlock where nothing or an option is said, or
# whatever else is said.

# The first process of a container does not hear `docker stop`, so that is another one, which passes it on.
[ $$ != 1 ] || exec tini -- "$0" "$@"

# A user whom only `docker run --user` knows has the root for a home, where pip and Python cannot keep anything, and no name, which
# many programs ask for.
[ -w "${HOME:-/}" ] || export HOME=/tmp PATH="$PATH:/tmp/.local/bin" USER="${USER:-oarlock}"

case ${1-} in
'') exec oarlock --help ;;
-*) exec oarlock "$@" ;;
*.py) exec python3 "$@" ;;
*) exec "$@" ;;
esac
