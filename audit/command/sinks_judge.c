// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/command/sinks_judge.h"

#include "audit/command/command.h"
#include "audit/face/designs.h"

#include <string.h>

int cmd_sinks_judge(const char *path, const char *policy, const char *json) {
    sinkproof_error error = {{0}};
    sinkproof_design_ruling *ruling;
    if (!sinkproof_judge_design(path, policy, &ruling, &error))
        return exit_bad_input("sinks", &error);
    int exit_code = sinkproof_design_ruling_exit(ruling);
    if (json == NULL || strcmp(json, "-") != 0) fputs(sinkproof_design_ruling_text(ruling), stdout);
    json_t *results = json_incref(sinkproof_design_ruling_results(ruling));
    sinkproof_design_ruling_free(ruling);
    return exit_with_results(json, "sinks", exit_code, results);
}
