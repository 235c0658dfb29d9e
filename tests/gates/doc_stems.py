# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The matrix of stages and rooms: where each step of the model is computed; for check_doc.py.

A file is named for the one stage that it computes, alike in every room. A stage that is too small there for a
file of its own has a home: FILE:FUNCTION. Refused: a home whose function is gone, a file beside the home, a stage
without a file, a home or a reason, a file without a place, a place without a file.
"""
import re

# Column: folder, ending. The judge walks by sublayers: its files begin with judge_.
ROOMS = {"reference": ("ref", "c"), "lanes": ("fast/lanes", "c"), "kernels": ("fast/kernels", "inc"),
         "engine": ("fast/engine", "c"), "truth": ("proofs/truth", "c"), "bounds": ("proofs/bounds", "c"),
         "judge": ("audit/judge", "c")}

NOT_FAST = dict.fromkeys(["lanes", "kernels", "engine"], "- the reference alone computes GPT-2")

# Stage: its points, then what stands where its file does not: its home there, or "- " and why there is none.
STAGES = {
    "linear": ("products", {"engine": "pass:multiply_part", "judge": "judge_operations:judge_projection"}),
    "rmsnorm": ("A1 M1 F1", {"engine": "pass:pass_norm", "judge": "judge_norm:norm_token"}),
    "layernorm": ("A1 M1 F1 of GPT-2", {**NOT_FAST, "judge": "judge_norm:norm_token"}),
    "gelu": ("M8 of GPT-2", {**NOT_FAST, "judge": "judge_mlp:activate_token"}),
    "qkv": ("A2", {"lanes": "linear:lanes_qkv", "kernels": "linear:linear", "engine": "pass:project_qkv",
                   "truth": "linear:sinkproof_truth_linear", "bounds": "linear:linear_sums_new",
                   "judge": "judge_operations:judge_projection"}),
    "rope": ("A3 A4", {"engine": "attention:rotate_row", "judge": "judge_rotation:judge_rotated"}),
    "mask": ("A7", {"lanes": "attention:attend_query", "kernels": "attention:attend", "engine": "attention:make_queries",
                    "truth": "forward:first_key", "bounds": "- the judge hands over visible keys alone",
                    "judge": "judge_seen:first_seen_key"}),
    "scores": ("A5 A6", {"lanes": "attention:lanes_scores", "kernels": "attention:span_scores",
                         "engine": "- the kernels' one pass", "judge": "judge_attention:compare_scores"}),
    "normaliser": ("A8", {"lanes": "- the reference's", "kernels": "- a number of each head",
                          "engine": "weights:place_sinks", "truth": "softmax_sink:truth_sink_logit",
                          "bounds": "scores:sinkproof_honest_sink_logits", "judge": "judge_sinks:sink_logits"}),
    "softmax_sink": ("A9 A10", {"lanes": "attention:span_weights",
                                   "engine": "- the kernels' one pass", "judge": "judge_attention:block_weights"}),
    "values": ("A11", {"lanes": "attention:span_value", "kernels": "attention:span_values",
                       "engine": "- the kernels' one pass", "bounds": "linear:sinkproof_honest_products",
                       "judge": "judge_attention:block_values"}),
    "attention": ("A5 to A11 in one pass", dict.fromkeys(["reference", "truth", "bounds", "judge"],
                                                         "- in three stages")),
    "output": ("A12", {"lanes": "linear:lanes_output", "kernels": "linear:linear",
                       "engine": "pass:pass_add_to_residual",
                       "truth": "linear:sinkproof_truth_linear", "bounds": "linear:linear_sums_new",
                       "judge": "judge_operations:judge_projection"}),
    "residual": ("A13 M12", {"reference": "output:sinkproof_residual", "lanes": "- the reference's",
                             "kernels": "elements:add_row", "engine": "experts:mix_row_columns", "truth": "forward:add_residual",
                             "bounds": "- an addition of `honest.h`", "judge": "judge_operations:judge_residual"}),
    "router": ("M2 M3 M4", {"kernels": "- linear, called by the engine", "engine": "experts:choose_row_experts",
                            "bounds": "experts:sinkproof_honest_expert_weights",
                            "judge": "judge_routing:judge_routing"}),
    "experts": ("M5 to M10", {"kernels": "- linear and swiglu, called by the engine",
                              "judge": "judge_expert_maps:judge_expert_map"}),
    "swiglu": ("M7 M8", {"engine": "experts:multiply_up_part", "judge": "judge_experts:activate_rows"}),
    "mixture": ("M11", {"reference": "experts:sinkproof_mixture", "lanes": "experts:lanes_mixture",
                        "kernels": "elements:mixture", "engine": "experts:mix_row_columns",
                        "truth": "experts:sinkproof_truth_mixture", "bounds": "experts:sinkproof_honest_mixture",
                        "judge": "judge_mixture:judge_mix_row"}),
    "embed": ("T0", {"reference": "unembed:sinkproof_embed", "lanes": "- the reference's",
                     "kernels": "- a stored row", "bounds": "- a stored row", "engine": "pass:embed_rows",
                     "truth": "forward:embed_tokens", "judge": "judge_walk:embed_token"}),
    "unembed": ("F2", {"lanes": "linear:lanes_unembed", "kernels": "linear:linear",
                       "engine": "pass:finish_logits", "truth": "linear:sinkproof_truth_linear",
                       "bounds": "linear:linear_sums_new", "judge": "judge_operations:judge_projection"}),
}

# Files that compute no stage.
OTHERS = {
    "reference": "buffers forward loop mechanism metrics operands points policy policy_parse policy_rounding scaled session tensor_core terms walk",
    "lanes": "amx exp stages sum16",
    "kernels": "block_amx elements exp kernels span_amx tile",
    "engine": "buffers cache engine memory observe packed_file pass perceptron sample team weights",
    "truth": "backward check_rows circuit circuit_planted edges exact_dot forward gelu_fit identities identities_attention identities_first "
             "identities_forms identities_gradients identities_grid identities_mixing identities_model identities_repeat identities_sink "
             "identities_stages identities_terms lattice number operator_norm repeat share_work sliced sliced_plan slices slices_avx2 slices_avx512 slices_plain training variants",
    "bounds": "abreast abreast_avx2 abreast_avx512 accumulators alike drift factors flash gated gradient_sums gradients honest lse measures merged mixing one_minus "
              "operands parts planes quotient rope_forms scaled softmax_maximum spread sum_sets tensor_core times unnormalised unrounded variants",
    "judge": "judge judge_access judge_adapter judge_attending judge_attention judge_backward judge_backward_attention judge_backward_experts "
             "judge_backward_norm judge_backward_read judge_backward_report judge_backward_row judge_backward_stages judge_cache judge_candidates "
             "judge_cause judge_certified judge_certified_alone judge_certified_report judge_change judge_describe judge_evidence judge_expert_maps "
             "judge_experts judge_finite judge_forms judge_gates judge_layers judge_layout judge_lse judge_meaning judge_merging judge_mixture judge_mlp "
             "judge_moved judge_norm judge_operations judge_passes judge_plan judge_prefix judge_query_weights judge_read_as judge_read_maps judge_region "
             "judge_remedy judge_report judge_rotation judge_routing judge_seen judge_sinks judge_stretch judge_summing judge_tracks judge_truth "
             "judge_truth_maps judge_unrounded judge_walk judge_weighing judge_weights verdict",
}


def files_of(root, room):
    folder, ending = ROOMS[room]
    return {path.stem for path in (root / folder).glob(f"*.{ending}")}


def path_of(room, stem):
    folder, ending = ROOMS[room]
    return f"{folder}/{stem}.{ending}"


def defines(root, room, home):
    """Whether the home's file has the home's function."""
    stem, function = home.split(":")
    path = root / path_of(room, stem)
    return path.is_file() and re.search(rf"^[a-z].*\b{function}\(", path.read_text(encoding="utf-8"), re.M)


def serves(root):
    return (root / "ref/forward.c").is_file()


def check(root, problems):
    if not serves(root):
        return
    for room in ROOMS:
        files, others = files_of(root, room), set(OTHERS[room].split())
        for stem in sorted(files - others - set(STAGES)):
            problems.add(path_of(room, stem), "is named for no stage and has no place in tests/gates/doc_stems.py")
        for stem in sorted(others - files):
            problems.add("tests/gates/doc_stems.py", f"{path_of(room, stem)} is not there")
        for stage, (_, homes) in STAGES.items():
            home = homes.get(room)
            if home and stage in files:
                problems.add(path_of(room, stage), f"tests/gates/doc_stems.py says of its stage: {home}")
            elif not home and stage not in files:
                problems.add("tests/gates/doc_stems.py", f"{stage} has no file, no home and no reason in {room}")
            elif home and not home.startswith("- ") and not defines(root, room, home):
                problems.add(path_of(room, home.split(":")[0]), f"has no {home.split(':')[1]}, the home of {stage}")


def matrix(root):
    """Lines of Markdown: a row for each stage, a column for each room."""
    lines = ["## Stages and rooms", "",
             "A file is named for the stage that it computes, alike in every room; where a stage has no file of its "
             "own, the function that computes it. Three cuts are called attention: A5 to A11 in one pass (the lanes, "
             "the kernels and `judge_attention`), a pass's share of it with rotation and cache (the engine), and "
             "the derivation's lines (`proofs/exact/attention.c`).", "",
             "| stage | points | " + " | ".join(f"{room} `{folder}/`" for room, (folder, _) in ROOMS.items()) + " |",
             "|---" * (len(ROOMS) + 2) + "|"]
    for stage, (points, homes) in STAGES.items():
        cells = []
        for room in ROOMS:
            stem, _, function = homes.get(room, stage).partition(":")
            cells.append(f"`{function}` in `{stem}`" if function else stem.replace("- ", "— ")
                         if stem.startswith("- ") else f"`{stem}.{ROOMS[room][1]}`")
        lines.append(f"| {stage} | {points} | {' | '.join(cells)} |")
    return lines + [""]
