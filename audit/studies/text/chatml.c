// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A template is a program; this one is known by its text, and only its system message differs.
#include "audit/studies/text/chatml.h"

#include "audit/studies/text/conversation.h"
#include "audit/studies/text/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char before[] =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\n";
static const char after[] =
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";

// A system message with a quote or a backslash would need the template's own rules.
bool chatml_take_template(sinkproof_tokenizer *t, const char *text, size_t length,
                          sinkproof_error *error) {
    size_t head = sizeof before - 1, tail = sizeof after - 1;
    if (length < head + tail || memcmp(text, before, head) != 0 ||
        memcmp(text + length - tail, after, tail) != 0)
        return true;
    const char *system = text + head;
    size_t n = length - head - tail;
    if (memchr(system, '\'', n) != NULL || memchr(system, '\\', n) != NULL ||
        memchr(system, '\0', n) != NULL)
        return true;
    t->chat_system = strndup(system, n);
    return t->chat_system != NULL || sinkproof_fail(error, "no memory for a chat template");
}

bool chatml_is_known(const sinkproof_tokenizer *t) {
    return t->chat_system != NULL;
}

static bool check_message(const conversation_writer *w, const sinkproof_message *m) {
    static const char *const roles[] = {"system", "user", "assistant"};
    bool known = false;
    for (size_t r = 0; r < 3; r++) known = known || (m->role != NULL && !strcmp(m->role, roles[r]));
    if (!known)
        return sinkproof_fail(w->error,
                              "a message: expected the role system, user or assistant, found "
                              "'%.60s'",
                              m->role != NULL ? m->role : "");
    if (m->content == NULL)
        return sinkproof_fail(w->error, "a message of role %s: expected content", m->role);
    return (m->channel == NULL && m->reasoning == NULL && m->date == NULL) ||
           sinkproof_fail(w->error,
                          "a message of role %s: expected no channel, reasoning or date, which are "
                          "GPT-OSS's",
                          m->role);
}

static bool render_message(const conversation_writer *w, const sinkproof_message *m) {
    char *words = NULL;
    if (!check_message(w, m)) return false;
    if (asprintf(&words, "%s\n%s", m->role, m->content) < 0)
        return sinkproof_fail(w->error, "no memory for a message");
    bool good = conversation_write_mark(w, "<|im_start|>") && conversation_write_text(w, words) &&
                conversation_write_mark(w, "<|im_end|>") && conversation_write_text(w, "\n");
    free(words);
    return good;
}

bool chatml_render(const sinkproof_tokenizer *t, size_t n, const sinkproof_message *message_n,
                   sinkproof_ids *ids, sinkproof_error *error) {
    const conversation_writer w = {.tokenizer = t,
                                   .ids = ids,
                                   .error = error,
                                   .file = t->name,
                                   .found = " of its chat template, found none"};
    const sinkproof_message usual = {.role = "system", .content = t->chat_system};
    bool has_system = n > 0 && message_n[0].role != NULL && !strcmp(message_n[0].role, "system");
    bool good = has_system || render_message(&w, &usual);
    for (size_t i = 0; good && i < n; i++) good = render_message(&w, &message_n[i]);
    return good && conversation_write_mark(&w, "<|im_start|>") &&
           conversation_write_text(&w, "assistant\n");
}
