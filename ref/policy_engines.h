// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the policies of ref/policy.c say beyond a column of its table: overrides, in the words of
// the command line.
#ifndef SINKPROOF_POLICY_ENGINES_H
#define SINKPROOF_POLICY_ENGINES_H

// Engines that differ from a column at some points:
//
// hf-llama-bf16  transformers' LlamaForCausalLM and its relatives, Qwen2, Qwen3 and Mistral
//                (eager attention) in bfloat16:
//                hf-bf16, but each norm is cast before its weight multiplies, the softmax is one
//                operation in float32, and so is gate times sigmoid.
// llama-cpp      llama.cpp on a processor, float32 between operations. A product reads its
//                activations in the type of its weight (blocks of whole numbers beside weights in
//                blocks, and the sum of each beside minima; the router's weight is float32 in every
//                file), and adds its bias apart;
//                queries, weights, cached keys and values are read as float16. The range of YaRN's
//                ramp is truncated: a known mistake, which has its name here so that the rest can
//                be judged.
// llama-cpp-flash  The same with flash attention on fewer than 64 queries: the weights stay in
//                float32 under a running maximum, and meet the values in a running sum of float16.
//                On more queries it is llama-cpp-flash,A5.q=real,A11.acc=real.
// mlx            mlx-lm on MLX's processor backend. Norms round before their weight. The
//                concentration meets the vector, rounded, and the table has none of it. Every
//                operation of the rotation, the scores and the mixture leaves bf16, but the sum
//                over experts. Its exp is 2^(x log2 e) with that product rounded; inside the
//                sigmoid that of |t| is rounded to bf16 (M8.exp). A concentration rounded to bf16
//                (A4.conc=bf16) is a mistake, as a rounded 1.702 is.
// vllm-bf16      vLLM on a processor. One kernel adds the residual and takes the norm: the mean
//                square is of the sum before it is rounded. Attention is one pass with a running
//                maximum, in parts or not; its exponentials are rounded where the matrix unit takes
//                bf16. Norms may round before their weight.
// onnxruntime    ONNX Runtime GenAI's float16 graph (in float32 it is f32). One kernel adds the
//                residual and takes the norm, of the sum before it is rounded; a product's bias
//                joins its sum; the rotation's products stay in float32.
// flash-bf16     Any engine that stores bf16 and whose attention is one fused kernel, as those of
//                FlashAttention-3 and the Triton kernels of vLLM, SGLang and gpt-oss on an H200:
//                bf16, but scores stay in float32, and the exponentials may be rounded for the
//                matrix unit (SGLang's decode does not where each query has its own key head);
//                nothing is rounded after the division, and no maximum is rounded.
// flash-f16      The same in binary16.
#define NORMED(format)                                                                             \
    "A1.norm=" format "?,A3.norm=" format "?,M1.norm=" format "?,F1.norm=" format "?"
#define FUSED(format)                                                                              \
    NORMED(format)                                                                                 \
    ",A9.unnorm=" format "?,A11.part=" format "?,div=2ulp,rcp=1ulp,exp=3ulp+0.75|x|"
#define FLASH(format)                                                                              \
    FUSED(format)                                                                                  \
    ",A5=f32?,A6=f32?,A8=f32?,A9.max=real,A9=real,"                                                \
    "A9.form=definition|base-2|running-max,A11.part=real"
static const char bf16[] = FUSED("bf16"), f16[] = FUSED("f16");
static const char flash_bf16[] = FLASH("bf16"), flash_f16[] = FLASH("f16");
static const char hf_llama[] =
    "A1.norm=bf16,A3.norm=bf16,M1.norm=bf16,F1.norm=bf16,A9.max=real,M8.sigmoid=real";
static const char mlx[] =
    "A1.norm=bf16,A3.norm=bf16,A3=bf16,M1.norm=bf16,F1.norm=bf16,A2=bf16,A4.form=scaled-first,A4."
    "scaled=bf16,"
    "A4.cos=bf16,A4.prod=bf16,A5=bf16,A6=bf16,A8=bf16,A9=bf16,A9.max=real,A12=bf16,M2=bf16,"
    "M4=bf16,M6=bf16,M8.scaled=bf16,M8.exp=bf16,M8.sigmoid=bf16,M8.swish=bf16,M8.up=bf16,M10=bf16,"
    "M11.prod=bf16,M11.sum=real,M11=bf16,F2=bf16,exp=3ulp+0.62|x|";
static const char vllm_bf16[] =
    NORMED("bf16") ",A5=f32?,A6=f32?,A9.max=real,A9=real,"
                   "A9.unnorm=bf16?,A9.form=definition|running-max,unrounded=A13|M12";

static const char onnxruntime[] =
    "A2=f16,A2.product=real,A4.cos=f16,A4.prod=f32?,A12=f16,A12.product=real,M2=f16,"
    "M2.product=real,M11=f16,F2=f16,unrounded=A13|M12";

#define LLAMA_CPP                                                                                  \
    "A2.in=weight,A2.product=f32,A12.in=weight,A12.product=f32,M2.product=f32,"                    \
    "M5.in=weight,M5=f32,M9.in=weight,M9=f32,F2.in=weight,A5.q=f16,A5.k=f16,A5=f32,A11.v=f16,"     \
    "yarn=truncate,A4.freq.form=powers|running-product,"
static const char llama_cpp[] = LLAMA_CPP "A11.weights=f16";
static const char llama_cpp_flash[] = LLAMA_CPP "A9.form=running-max,A11.acc=f16";

#endif
