/* A shared object that is not a plugin: it exports nothing. */
typedef int nothing;
