/* Starts two runtimes, and expects a single warning about `FLAGS_selected_gpus` in the environment, which has no effect. */
#include "expect.h"

static int heard = 0;

static void listen(void *context, oarlock_log_level level, const char *plugin, const char *message) {
    static const char expected[] = "the environment variable `FLAGS_selected_gpus` has no effect here; ";
    EXPECT(context == &heard && level == OARLOCK_LOG_LEVEL_WARNING && strcmp(plugin, "core") == 0);
    EXPECT(strncmp(message, expected, sizeof expected - 1) == 0);
    heard++;
}

int main(void) {
    oarlock_runtime_options options = {0};
    options.size = sizeof options;
    options.log = listen;
    options.log_context = &heard;
    for (int start = 0; start < 2; start++) {
        oarlock_runtime *runtime;
        WORKS(oarlock_runtime_start(&options, &runtime));
        EXPECT(heard == 1);
        oarlock_runtime_free(runtime);
    }
    return EXIT_SUCCESS;
}
