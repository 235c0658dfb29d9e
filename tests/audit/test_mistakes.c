// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which models a mistake of the catalogue can occur in.
#include "audit/diagnose/mistakes.h"
#include "model/model.h"
#include "tests/shared/tap.h"

#include <string.h>

static const known_mistake *mistake_called(const char *id) {
    const known_mistake *m;
    for (size_t i = 0; (m = written_mistake_at(i)) != NULL; i++)
        if (strcmp(m->id, id) == 0) return m;
    return NULL;
}

// The ramp of YaRN is rounded where there is one.
static void check_ramp(const char *spec, bool has_ramp) {
    sinkproof_error error;
    sinkproof_model *model = NULL;
    const known_mistake *m = mistake_called("yarn-truncate");
    supposed_engine s = {0};
    bool read = sinkproof_model_open(spec, &model, &error) && m != NULL &&
                sinkproof_policy_parse("f32", &s.policy, &error);
    if (read) s.config = *sinkproof_model_config(model);
    ok(read && m->suppose(&s, m) == has_ramp, "yarn-truncate %s occur in %s",
       has_ramp ? "can" : "cannot", spec);
    sinkproof_model_close(model);
}

int main(void) {
    check_ramp("synthetic:tiny", true);
    check_ramp("synthetic:tiny-llama", false);
    check_ramp("synthetic:tiny-gpt2", false);
    return tap_done();
}
