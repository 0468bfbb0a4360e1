#!/bin/sh
# What a container does: a program in Python by its name alone, the command of Oarlock where nothing or an option is said, or
# whatever else is said.
case ${1-} in
'') exec oarlock --help ;;
-*) exec oarlock "$@" ;;
*.py) exec python3 "$@" ;;
*) exec "$@" ;;
esac
