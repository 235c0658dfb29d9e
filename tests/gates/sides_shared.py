# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What both sides of a check may call (check_sides.py): nothing else. ROOMS: what one computation of the
points may call of another.

PRIMITIVES: arithmetic, and what reads or draws an instance. None states anything that a check
proves: a mistake in one changes the question that is asked of both sides, not the answer of both.
The tests of tests/proofs/ and tests/ref/ hold each by itself.

SYMBOLS: a term that stands in the statement on both sides, as alpha does in every line of the
derivation. Each names the check that has it on one side alone, so that a mistake in it is seen
there; check_sides.py asks that this is so.
"""

from inventory import REFERENCE

# reason: files or file:functions; behind "in FOLDER:" only where a check of that folder calls them
PRIMITIVES = {
    "arithmetic on rationals, on rows and on matrices of them": """
        proofs/exact/rational.c proofs/exact/rational.h proofs/exact/repeat.c:scale_matrix proofs/exact/repeat.c:entries_as_row
        proofs/exact/repeat.c:repeat_token proofs/exact/formats.c:number_row""",
    "arithmetic on balls: a sum, a product of rows, a quotient, e^x of a number of the instance; memory": """
        proofs/truth/identities_attention.c:ball_sum
        proofs/truth/identities_attention.c:ball_exps
        proofs/truth/identities_attention.c:ball_exp_sink proofs/truth/identities_attention.c:ball_exp
        proofs/truth/identities_attention.c:set_doubles proofs/truth/identities_sink.c:divide_all
        proofs/truth/identities_terms.c:dot proofs/truth/identities_terms.c:set_quotient
        proofs/truth/identities.c:ball_doubles proofs/truth/identities_model.c:divide_by_64
        proofs/truth/number.c:sinkproof_truth_decimal proofs/truth/number.c:truth_decimal_text
        proofs/truth/rope.c:sinkproof_truth_yarn_clear""",
    "reads a stored number: containers and formats, each held by an exact check of its own codes": """
        in proofs/truth/: model/matrix.c model/bf16.c model/ggml_blocks.c model/mxfp4.c model/q8_0.c model/synthetic.c
        model/planted.c model/slots.c model/round.c""",
    "a letter of the instance by its name, which head reads which, which keys are seen": """
        proofs/exact/attention.h:next_seen proofs/exact/attention.h:kv_head proofs/exact/attention.h:e_score
        proofs/exact/attention.h:x_of proofs/exact/attention.h:w_value proofs/exact/attention.h:b_value
        proofs/exact/attention.h:w_output proofs/exact/attention.h:value_of proofs/exact/softmax_sink.c:count_seen
        proofs/exact/softmax_sink.c:seen_exps proofs/exact/softmax_sink.c:sink_of proofs/exact/terms.c:w_key
        proofs/exact/terms.c:w_query proofs/exact/terms.c:transpose proofs/exact/terms.c:b_query
        proofs/exact/terms.c:over_each_key proofs/exact/router.c:chosen_w2 proofs/truth/identities_attention.c:kv_group
        proofs/exact/gradients.c:score_step proofs/exact/gradients.c:dalpha proofs/exact/gradients.c:output_gradient
        proofs/truth/identities_gradients.c:set_do""",
    "draws numbers, or a row of the instance that both sides are about": """
        base/splitmix.h proofs/exact/formats.c:block_byte proofs/exact/formats.c:scale_bits
        proofs/exact/formats.c:drawn_float proofs/exact/formats.c:draw_terms proofs/exact/repeat.c:instance_of_row
        proofs/truth/identities_first.c:row_of_keys proofs/truth/identities_first.c:append_key
        proofs/truth/identities_first.c:empty_row proofs/truth/identities_first.c:row_of_all
        proofs/truth/identities_first.c:row_free proofs/truth/identities_mixing.c:row_of
        proofs/truth/identities_mixing.c:weigh_row proofs/truth/identities_mixing.c:drawn_weight
        proofs/truth/identities_mixing.c:stack_init proofs/truth/identities_mixing.c:stack_clear
        proofs/truth/identities_mixing.c:key_is_exact proofs/truth/identities_mixing.c:cached_init
        proofs/truth/identities_mixing.c:cached_clear proofs/truth/identities_mixing.c:low_score
        proofs/truth/identities_model.c:norm_scale proofs/truth/identities_model.c:gate_and_up_inputs
        proofs/truth/identities_model.c:rope_config proofs/truth/identities_model.c:drawn_position
        proofs/truth/identities_model.c:drawn_vector proofs/truth/identities_model.c:router_logit
        proofs/truth/identities_model.c:experts_chosen proofs/truth/identities_repeat.c:draw_slope
        proofs/truth/identities_repeat.c:query_and_key proofs/truth/identities_repeat.c:instance_power
        proofs/truth/identities_stages.c:choose_experts proofs/truth/identities_terms.c:layer_init
        proofs/truth/identities_terms.c:layer_clear proofs/truth/identities_terms.c:set_x
        proofs/truth/identities_terms.c:set_column proofs/truth/identities_terms.c:set_head
        proofs/truth/identities_terms.c:row_init proofs/truth/identities_terms.c:row_clear
        proofs/truth/identities_terms.c:remove_sink proofs/truth/identities_terms.c:term_vectors
        proofs/truth/identities_terms.c:rotation_table proofs/truth/identities_terms.c:rotation_table_clear
        proofs/truth/identities_terms.c:key_position""",
}

# file:function: (the id of a check that has it on one side alone, what it is)
SYMBOLS = {
    "proofs/exact/attention.c:exact_sum_exp": ("sink.concat-slice", "sum_j e^s_j"),
    "proofs/exact/attention.c:exact_attention_alpha": ("sink.concat-slice", "alpha_ijh"),
    "proofs/exact/attention.c:exact_attention_alpha_sink": ("sink.gate", "alpha_s,ih"),
    "proofs/exact/attention.c:head": ("sink.attn-concat", "head_h"),
    "proofs/exact/attention.c:x_wv_wo": ("sink.attn-distribute", "x_j W^V_h W^O_h"),
    "proofs/exact/attention.c:bv_wo": ("sink.attn-distribute", "b^V_h W^O_h"),
    "proofs/exact/attention.c:attended": ("sink.attn-split", "sum_h sum_j alpha_ijh x_j W^V_h W^O_h"),
    "proofs/exact/attention.c:sink_part": ("sink.attn-reorder", "sum_h alpha_s,ih (-b^V_h W^O_h)"),
    "proofs/exact/key_bias.c:exp_score": ("sink.key-bias", "e^(q k / sqrt(d')) of the keys"),
    "proofs/exact/router.c:top_k": ("router.topk", "the chosen experts"),
    "proofs/exact/router.c:softmax_after": ("router.softmax-after", "w_e"),
    "proofs/exact/softmax_sink.c:softmax": ("sink.limit", "softmax(s)_j"),
    "proofs/exact/softmax_sink.c:weigh_values": ("sink.zero-pad", "sum_j w_j u_j"),
    "proofs/truth/softmax_sink.c:sinkproof_truth_softmax_sink": ("sink.concat-slice", "alpha_j and alpha_s"),
    "proofs/truth/softmax_sink.c:exp_shifted": ("sink.concat-slice", "e^(s_j - m)"),
    "proofs/truth/identities_attention.c:ball_weights": ("sink.concat-slice", "alpha_j and alpha_s"),
    "proofs/truth/identities_attention.c:ball_weighted": ("sink.online", "sum_j w_j v_j"),
    "proofs/truth/identities_attention.c:add_times_output": ("sink.bias-intensity", "x W^O_h"),
    "proofs/truth/identities_attention.c:attn_with_bias": ("sink.attn-final", "the heads without their biases"),
    "proofs/truth/identities_sink.c:weights": ("sink.concat-slice", "alpha_j and alpha_s"),
    "proofs/truth/identities_sink.c:softmax": ("sink.limit", "softmax(s)_j"),
    "proofs/truth/identities_sink.c:output_of_weights": ("sink.online", "sum_j w_j v_j"),
    "proofs/truth/router.c:sinkproof_truth_topk": ("router.topk", "the chosen experts"),
    "proofs/truth/router.c:truth_margin": ("router.topk", "the chosen experts"),
    "proofs/truth/router.c:compare_choice": ("router.topk", "the chosen experts"),
    "proofs/truth/router.c:is_among_chosen": ("router.topk", "the chosen experts"),
    "proofs/truth/rope.c:sinkproof_truth_rope": ("rope.rotate", "R^i x"),
    "proofs/truth/rope.c:rotate_pair": ("rope.rotate", "R^i x"),
    "proofs/truth/rope.c:sinkproof_truth_yarn_init": ("yarn.ramp", "the frequencies and the concentration"),
    "proofs/truth/rope.c:yarn_ramp": ("yarn.ramp", "the ramp"),
    "proofs/truth/rope.c:ramp_ends": ("yarn.ramp", "the ramp"),
    "proofs/truth/rope.c:yarn_correction": ("yarn.ramp", "the ramp"),
    "proofs/truth/rope.c:yarn_frequency_ball": ("yarn.ramp", "the frequencies"),
    "proofs/truth/rope.c:llama3_slowed": ("yarn.ramp", "the frequencies"),
    "proofs/truth/rope.c:yarn_concentration_ball": ("yarn.concentration", "the concentration"),
}

# Reference, truth and bounds stand apart: (calling rooms, called rooms): {reason: files or file:functions}. A
# measurement of `verify` has one of each for its sides.
ROOMS = {
    ("proofs/truth/", REFERENCE): {
        "reads the model: its configuration, its weights as they are stored, its name; the words of an error": """
            base/error.c base/words.c model/architecture.c model/matrix.c model/model.c ref/normaliser.c
            ref/variants/designs.c""",
        "draws an instance; the grid of a format, which a statement names": "base/splitmix.h model/round.c",
        "asks which vectors the processor has; no number": "base/processor.h",
        "walks the table of points: operations, inputs, weights and shapes by name, no number; test_truth_points.c "
        "and the published vectors hold it": "ref/points.c ref/walk.c",
    },
    ("proofs/bounds/", REFERENCE): {
        "reads weights as they are stored": "model/matrix.c",
        "asks which vectors the processor has; no number": "base/processor.h",
        "says what a policy rounds, and rounds one number to a format": """
            ref/policy.c ref/policy.h ref/points.c ref/operands.c model/round.c""",
        "says which numbers share a scale, and rounds a quotient to a code; test_bounds_scaled.c has quantisers of its "
        "own": "ref/scaled.c",
        "a constant of the design: every policy takes what the reference computes of a learned key's feature": """
            ref/variants/similarity.c:sinkproof_variant_feature""",
    },
    ("proofs/truth/", "proofs/bounds/"): {
        "compares two numbers so that NaN is the worse": "proofs/bounds/worst.h",
        "asks OpenBLAS for one thread per product; no number": "proofs/bounds/times.c",
    },
    ("proofs/bounds/", "proofs/truth/"): {},
    (REFERENCE, "proofs/"): {},
}
