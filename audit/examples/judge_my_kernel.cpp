// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The arrays that an engine of one's own left behind, judged:
//     c++ judge_my_kernel.cpp $(pkg-config --cflags --libs sinkproof) && ./a.out
// The engine here is one RMSNorm in float32 on the embeddings of a few tokens.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sinkproof.h>
#include <stdexcept>
#include <vector>

template <auto Free> struct Deleter {
    template <class T> void operator()(T *object) const { Free(object); }
};
using Model = std::unique_ptr<sinkproof_model, Deleter<sinkproof_model_close>>;
using Builder = std::unique_ptr<sinkproof_trace_builder, Deleter<sinkproof_trace_builder_free>>;
using Trace = std::unique_ptr<sinkproof_trace, Deleter<sinkproof_trace_close>>;
using Ruling = std::unique_ptr<sinkproof_ruling, Deleter<sinkproof_ruling_free>>;

static sinkproof_error error;
static void check(bool good) {
    if (!good) throw std::runtime_error(error.text);
}

static double number(const Model &model, const char *name) {
    double value;
    check(sinkproof_config_number(sinkproof_model_config(model.get()), name, &value, &error));
    return value;
}

static std::vector<double> weight(const Model &model, const char *name) {
    size_t shape[2];
    check(sinkproof_model_weight(model.get(), name, 0, 0, shape, nullptr, &error));
    std::vector<double> values(shape[0] * shape[1]);
    check(sinkproof_model_weight(model.get(), name, 0, 0, shape, values.data(), &error));
    return values;
}

static int judge(bool eps_left_out) {
    sinkproof_model *opened;
    check(sinkproof_model_open("synthetic:tiny", &opened, &error));
    const Model model(opened);
    const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6};
    const size_t hidden = size_t(number(model, "hidden")), shape[2] = {tokens.size(), hidden};
    const std::vector<double> table = weight(model, "embedding"), scale = weight(model, "attn_norm");
    std::vector<float> x(tokens.size() * hidden), normed(x.size());
    for (size_t i = 0; i < tokens.size(); i++) {
        float squares = 0;
        for (size_t c = 0; c < hidden; c++) {
            x[i * hidden + c] = float(table[size_t(tokens[i]) * hidden + c]);
            squares += x[i * hidden + c] * x[i * hidden + c];
        }
        float eps = eps_left_out ? 0.0f : float(number(model, "rms_eps"));
        float factor = 1 / std::sqrt(squares / float(hidden) + eps);
        for (size_t c = 0; c < hidden; c++)
            normed[i * hidden + c] = x[i * hidden + c] * factor * float(scale[c]);
    }
    sinkproof_trace_builder *begun;
    check(sinkproof_trace_builder_new(model.get(), "mine", nullptr, tokens.size(), tokens.data(),
                                      &begun, &error));
    const Builder builder(begun);
    check(sinkproof_trace_builder_add(begun, "T0", "F32", 2, shape, x.data(), &error));
    check(sinkproof_trace_builder_add(begun, "00.A1", "F32", 2, shape, normed.data(), &error));
    sinkproof_trace *made;
    check(sinkproof_trace_builder_finish(begun, &made, &error));
    const Trace trace(made);
    sinkproof_ruling *ruled;
    check(sinkproof_judge_trace(model.get(), made, nullptr, &ruled, &error));
    const Ruling ruling(ruled);
    std::printf("%s\n", sinkproof_ruling_text(ruled));
    return sinkproof_ruling_exit(ruled);
}

int main(int argc, char **argv) {
    try {
        return judge(argc > 1 && std::strcmp(argv[1], "no-eps") == 0);
    } catch (const std::exception &e) {
        std::printf("%s\n", e.what());
        return 3;
    }
}
