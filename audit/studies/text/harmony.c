// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Renders messages one after the other; the text of the default system message is the published
// one.
#include "audit/studies/text/harmony.h"

#include "audit/studies/text/chatml.h"
#include "audit/studies/text/conversation.h"
#include "base/words.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_in_list(const char *word, const char *const *list) {
    for (; *list != NULL; list++)
        if (strcmp(word, *list) == 0) return true;
    return false;
}

// ---- the content of a message, which the caller frees

static char *default_system_message(const sinkproof_message *m) {
    char *content = NULL;
    const char *date = m->date;
    int n = asprintf(&content,
                     "You are ChatGPT, a large language model trained by OpenAI.\n"
                     "Knowledge cutoff: 2024-06\n%s%s%s\nReasoning: %s\n\n"
                     "# Valid channels: analysis, commentary, final. Channel must be included for "
                     "every message.",
                     date != NULL ? "Current date: " : "", date != NULL ? date : "",
                     date != NULL ? "\n" : "", m->reasoning != NULL ? m->reasoning : "medium");
    return n < 0 ? NULL : content;
}

static char *developer_instructions(const sinkproof_message *m) {
    char *content = NULL;
    return asprintf(&content, "# Instructions\n\n%s", m->content) < 0 ? NULL : content;
}

static char *message_content(const sinkproof_message *m) {
    if (m->content == NULL) return default_system_message(m);
    return strcmp(m->role, "developer") == 0 ? developer_instructions(m) : strdup(m->content);
}

// ---- a message

static bool check_message(const conversation_writer *w, const sinkproof_message *m) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", NULL};
    static const char *const channels[] = {"analysis", "commentary", "final", NULL};
    static const char *const levels[] = {"low", "medium", "high", NULL};
    if (m->role == NULL || !is_in_list(m->role, roles))
        return sinkproof_fail(w->error,
                              "a message: expected the role system, developer, user or assistant, "
                              "found '%.60s'",
                              m->role != NULL ? m->role : "");
    bool system = strcmp(m->role, "system") == 0, assistant = strcmp(m->role, "assistant") == 0;
    if (m->content == NULL && !system)
        return sinkproof_fail(w->error, "a message of role %s: expected content", m->role);
    if (m->channel != NULL && !(assistant && is_in_list(m->channel, channels)))
        return sinkproof_fail(w->error,
                              "a message of role %s: expected no channel, or an assistant's: "
                              "analysis, commentary or final, found '%.60s'",
                              m->role, m->channel);
    bool usual = system && m->content == NULL;
    if ((m->reasoning != NULL || m->date != NULL) && !usual)
        return sinkproof_fail(w->error,
                              "a message of role %s: reasoning and date are of a system message "
                              "without content",
                              m->role);
    return m->reasoning == NULL || is_in_list(m->reasoning, levels) ||
           sinkproof_fail(w->error,
                          "a message: expected reasoning low, medium or high, found '%.60s'",
                          m->reasoning);
}

static bool render_message(const conversation_writer *w, const sinkproof_message *m) {
    if (!check_message(w, m)) return false;
    char *content = message_content(m);
    if (content == NULL) return sinkproof_fail(w->error, "no memory for a message");
    bool good = conversation_write_mark(w, "<|start|>") && conversation_write_text(w, m->role) &&
                (m->channel == NULL || (conversation_write_mark(w, "<|channel|>") &&
                                        conversation_write_text(w, m->channel))) &&
                conversation_write_mark(w, "<|message|>") && conversation_write_text(w, content) &&
                conversation_write_mark(w, "<|end|>");
    free(content);
    return good;
}

static bool is_in_channel(const sinkproof_message *m, const char *channel) {
    return m->channel != NULL && strcmp(m->channel, channel) == 0;
}

// The first message whose analysis is kept: the first final message, if the assistant's last
// message is final; else the first message.
static size_t first_kept_message(size_t n, const sinkproof_message *message_n) {
    size_t last = n, first = 0;
    while (last > 0 &&
           (message_n[last - 1].role == NULL || strcmp(message_n[last - 1].role, "assistant") != 0))
        last--;
    if (last == 0 || !is_in_channel(&message_n[last - 1], "final")) return 0;
    while (!is_in_channel(&message_n[first], "final")) first++;
    return first;
}

bool sinkproof_harmony_render(const sinkproof_tokenizer *t, size_t n,
                              const sinkproof_message *message_n, sinkproof_ids *ids,
                              sinkproof_error *error) {
    static const sinkproof_message usual = {.role = "system"};
    const conversation_writer w = {
        .tokenizer = t,
        .ids = ids,
        .error = error,
        .file = sinkproof_tokenizer_about(t).path,
        .found =
            ", found none: a conversation needs the tokenizer of GPT-OSS (o200k_harmony), or a "
            "GGUF file with SmolLM2's chat template; text as it stands does not"};
    if (chatml_is_known(t)) return chatml_render(t, n, message_n, ids, error);
    bool has_system =
        n > 0 && message_n[0].role != NULL && strcmp(message_n[0].role, "system") == 0;
    bool good = has_system || render_message(&w, &usual);
    size_t kept = first_kept_message(n, message_n);
    for (size_t i = 0; good && i < n; i++)
        if (i >= kept || !is_in_channel(&message_n[i], "analysis"))
            good = render_message(&w, &message_n[i]);
    return good && conversation_write_mark(&w, "<|start|>") &&
           conversation_write_text(&w, "assistant");
}

// ---- from JSON

// Every member must be known and a string.
static bool read_message(const json_t *object, const char *name, sinkproof_message *m,
                         sinkproof_error *error) {
    const struct {
        const char *key, **value;
    } members[] = {{"role", &m->role},
                   {"channel", &m->channel},
                   {"content", &m->content},
                   {"reasoning", &m->reasoning},
                   {"date", &m->date}};
    size_t known = 0;
    for (size_t k = 0; k < sizeof members / sizeof members[0]; k++) {
        const json_t *value = json_object_get(object, members[k].key);
        if (value == NULL) continue;
        known++;
        *members[k].value = json_string_value(value);
        if (!json_is_string(value))
            return sinkproof_fail(error, "%.300s: expected \"%s\" of a message to be a string",
                                  name, members[k].key);
    }
    return (json_is_object(object) && known == json_object_size(object)) ||
           sinkproof_fail(error,
                          "%.300s: expected messages of role, channel, content, reasoning and date "
                          "alone, found something else",
                          name);
}

bool sinkproof_harmony_parse(const sinkproof_tokenizer *t, const uint8_t *bytes, size_t length,
                             const char *name, sinkproof_ids *ids, sinkproof_error *error) {
    json_error_t found;
    json_t *root = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, &found);
    size_t n = json_array_size(root);
    sinkproof_message *message_n = calloc(n + 1, sizeof *message_n);
    bool good = message_n != NULL ||
                sinkproof_fail(error, "no memory for %s", sinkproof_counted(n, "message").text);
    if (good && n == 0)
        good = sinkproof_fail(error, "%.300s: expected a JSON array of messages: %s", name,
                              root == NULL ? found.text : "found none");
    for (size_t i = 0; good && i < n; i++)
        good = read_message(json_array_get(root, i), name, &message_n[i], error);
    good = good && sinkproof_harmony_render(t, n, message_n, ids, error);
    free(message_n);
    json_decref(root);
    return good;
}
