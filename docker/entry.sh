#!/bin/sh
# The entry point of a container: runs a Python program given by name, the command `oarlock` for no argument or an option, or any
# other command.

# The first process of a container ignores the signal of `docker stop`, so tini is that process and passes signals on.
[ $$ != 1 ] || exec tini -- "$0" "$@"

# A user from `docker run --user` alone has `/` as home, where pip and Python cannot write, and no name, which many programs need.
[ -w "${HOME:-/}" ] || export HOME=/tmp PATH="$PATH:/tmp/.local/bin" USER="${USER:-oarlock}"

case ${1-} in
'') exec oarlock --help ;;
-*) exec oarlock "$@" ;;
*.py) exec python3 "$@" ;;
*) exec "$@" ;;
esac
