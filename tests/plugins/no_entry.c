/* A shared object that is no plugin: it exports nothing. */
typedef int nothing;
