// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The frequencies that a rotation used, fitted, and the rules that are tried of them.
#ifndef SINKPROOF_COMPOSED_FREQUENCIES_H
#define SINKPROOF_COMPOSED_FREQUENCIES_H

#include "audit/diagnose/composed_fit.h"

// The fit, and what the definition has. Each array is of the pairs.
typedef struct frequency_fit {
    const sinkproof_config *config;
    size_t half;
    double *f, *error, *defined, *plain, *rule; // plain: without the scaling
    double size;                                // of what is rotated, relative to the definition's
    int without;
    double times;
    bool wrong;
} frequency_fit;

// Tries fit->rule, if it is within what the fit may be off by; does nothing once a cause is found.
// Returns false on error.
bool frequencies_try(composing *c, const frequency_fit *fit, const char *id, const char *text);
// Fits the frequencies, and tries rules of them where they are not those of the definition.
typedef bool frequency_rules(composing *c, const frequency_fit *fit);
bool frequencies_fit_and_try(composing *c, frequency_rules *try);

#endif
