// Runs a model with one input of f32 and one output on zeroes, and prints the output: `run MODEL`.
#include <cstdlib>
#include <iostream>

#include <oarlock.hpp>

static void run(const char *file) {
    const auto runtime = oarlock::make<oarlock_runtime>(oarlock_runtime_start, nullptr);
    const oarlock_device *device = nullptr;
    oarlock::check(oarlock_runtime_find_device(runtime.get(), "cpu", &device));
    const auto model = oarlock::make<oarlock_model>(oarlock_model_load, file);
    const oarlock::Session session(runtime.get(), model.get());

    const oarlock_slot *slot = oarlock_session_input(session.get(), 0);
    std::vector<std::int64_t> dims;
    std::size_t count = 1;
    for (std::int64_t at = 0; at < oarlock_slot_rank(slot); at++) {
        const std::int64_t size = oarlock_slot_dims(slot)[at];
        dims.push_back(size < 0 ? 2 : size);
        count *= static_cast<std::size_t>(dims.back());
    }
    const oarlock::Value input(device, dims, std::vector<float>(count));
    const auto outputs = session.run({&input});
    for (const float element : outputs.at(0).elements<float>()) {
        std::cout << element << ' ';
    }
    std::cout << '\n';
}

int main(int count, char **arguments) {
    if (count < 2) {
        std::cerr << "usage: " << arguments[0] << " MODEL\n";
        return EXIT_FAILURE;
    }
    try {
        run(arguments[1]);
        return EXIT_SUCCESS;
    } catch (const oarlock::Error &error) {
        std::cerr << "error: " << error.what() << '\n';
        if (!error.hint().empty()) {
            std::cerr << "hint: " << error.hint() << '\n';
        }
        return EXIT_FAILURE;
    }
}
