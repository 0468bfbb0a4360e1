/* An op of a plugin: `custom_op PLUGIN`, where the plugin is `declared_ops.c`. */
#include "expect.h"

int main(int count, char **arguments) {
    EXPECT(count == 2);
    const char *plugins[1] = {arguments[1]};
    oarlock_runtime_options options = {0};
    oarlock_runtime *runtime;
    oarlock_attributes *attributes;
    oarlock_op *op;
    oarlock_value *matrix, *outputs[2];
    const float elements[4] = {1, 2, 3, 4};
    const int64_t dims[2] = {2, 2};
    float sums[2];
    options.size = sizeof options;
    options.plugin_paths = plugins;
    options.plugin_path_count = 1;
    WORKS(oarlock_runtime_start(&options, &runtime));
    WORKS(oarlock_tensor_create(cpu_of(runtime), OARLOCK_DTYPE_F32, dims, 2, elements, sizeof elements, &matrix));
    const oarlock_value *inputs[1] = {matrix};

    WORKS(oarlock_attributes_create(&attributes));
    WORKS(oarlock_attributes_set_int(attributes, "axis", 1));
    WORKS(oarlock_op_create(runtime, "test.declared", "square", 0, attributes, &op));
    WORKS(oarlock_op_run(op, NULL, inputs, 1, outputs, 2));
    WORKS(oarlock_tensor_read(outputs[1], sums, sizeof sums));
    EXPECT(sums[0] > 16.5F && sums[0] < 17.5F && sums[1] > 36.5F && sums[1] < 37.5F);
    oarlock_value_free(outputs[0]);
    oarlock_value_free(outputs[1]);
    oarlock_op_free(op);

    WORKS(oarlock_attributes_set_int(attributes, "axes", 1));
    WORKS(oarlock_op_create(runtime, "test.declared", "square", 0, attributes, &op));
    FAILS(oarlock_op_run(op, NULL, inputs, 1, outputs, 2), OARLOCK_CODE_INVALID_ARGUMENT, "`square` has: `axis`; found `axes`");
    EXPECT(outputs[0] == NULL && outputs[1] == NULL);
    oarlock_op_free(op);
    oarlock_attributes_free(attributes);
    oarlock_value_free(matrix);
    oarlock_runtime_free(runtime);
    return EXIT_SUCCESS;
}
