(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The derivation of the sink's value bias, line by line in its own notation (chapter 15; sink.attn-concat to
   sink.attn-gate). Each line is defined as a vector of R^d, and each equality between two lines is a theorem.
   Assumed: d = H d'. There are H query heads, each with its own key and value head; the keys are 1 … i; the scores
   are q k / sqrt d'; the rows of X are x 1 … x n. *)

From Sinkproof Require Import Sums SoftmaxSink.
From Coq Require Import Reals List Arith Lia Lra.
Import ListNotations.
Open Scope R_scope.
Open Scope V_scope.

(* Each of width d': column block h of a d x d matrix, block h of a vector, row block h of W^O. *)
Definition columns (d' h : nat) (W : mat) : mat := fun r c => W r (h * d' + c)%nat.
Definition block (d' h : nat) (b : vec) : vec := fun c => b (h * d' + c)%nat.
Definition rows (d' h : nat) (W : mat) : mat := fun r c => W (h * d' + r)%nat c.

(* [u_1 … u_H]: the vector whose block h is u h. *)
Definition concat_heads (d' : nat) (u : nat -> vec) : vec := fun r => u (r / d')%nat (r mod d')%nat.

Lemma block_concat d' h (u : nat -> vec) c : (c < d')%nat -> block d' h (concat_heads d' u) c = u h c.
Proof.
  intros Hc. unfold block, concat_heads. rewrite Nat.div_add_l, Nat.div_small by lia.
  rewrite Nat.add_0_r, Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. reflexivity.
Qed.

(* A vector times W^O is a sum over the heads: block h of the vector times row block h of W^O. *)
Lemma mul_blocks H d' (u : vec) (W : mat) :
  u *[H * d'] W = ∑ h < H, block d' h u *[d'] rows d' h W.
Proof. at_coordinate c. apply Sum_blocks. Qed.

Lemma mul_concat H d' (u : nat -> vec) (W : mat) :
  concat_heads d' u *[H * d'] W = ∑ h < H, u h *[d'] rows d' h W.
Proof.
  rewrite mul_blocks. apply vsum_ext. intros h. at_coordinate c.
  apply Sum_ext_in. intros k Hk. apply in_seq in Hk. rewrite block_concat by lia. reflexivity.
Qed.

Section Derivation.
  Variables d H d' : nat.
  (*> sink.attn-headsum sink.attn-values sink.attn-expand sink.attn-inside sink.attn-distribute sink.attn-split sink.attn-factor sink.attn-mass sink.attn-one-minus sink.attn-reorder sink.attn-final sink.attn-gate *)
  Hypothesis d_split : d = (H * d')%nat.
  (*< sink.attn-headsum sink.attn-values sink.attn-expand sink.attn-inside sink.attn-distribute sink.attn-split sink.attn-factor sink.attn-mass sink.attn-one-minus sink.attn-reorder sink.attn-final sink.attn-gate *)
  Variables WQ WK WV WO : mat.     (* d x d *)
  Variables bQ bK bV bO : vec.     (* R^d *)
  Variable b_S : nat -> R.         (* the learned sink logit of each head *)
  Variable x : nat -> vec.         (* x j in R^d *)
  Variable i : nat.                (* the query's position *)

  (*> attn.qkv *)
  Definition q h (y : vec) : vec := y *[d] columns d' h WQ + block d' h bQ.
  Definition k h (y : vec) : vec := y *[d] columns d' h WK + block d' h bK.
  Definition v h (y : vec) : vec := y *[d] columns d' h WV + block d' h bV.
  (*< attn.qkv *)

  (*> attn.score *)
  Definition s h j : R := (q h (x i) ⋅[d'] k h (x j)) / sqrt (INR d').
  (*< attn.score *)

  Definition J : list nat := seq 1 i. (* the keys 1 … i *)
  Definition α h j : R := alpha J (s h) (b_S h) j.
  Definition α_sink h : R := alpha_sink J (s h) (b_S h).
  Definition head h : vec := ∑ j ∈ J, α h j *: v h (x j).

  Notation WV_ h := (columns d' h WV).
  Notation bV_ h := (block d' h bV).
  Notation WO_ h := (rows d' h WO).

  (*> sink.attn-concat *)
  Definition ATTN : vec := concat_heads d' head *[d] WO + bO.
  (*< sink.attn-concat *)

  (* By the row blocks of W^O, the product of the concatenated heads is a sum over the heads. *)
  (*> sink.attn-headsum *)
  Definition line_headsum : vec := (∑ h < H, head h *[d'] WO_ h) + bO.

  Theorem sink_attn_headsum : ATTN = line_headsum.
  Proof. unfold ATTN, line_headsum. rewrite d_split, mul_concat. reflexivity. Qed.
  (*< sink.attn-headsum *)

  (* Each head is replaced by its definition. *)
  (*> sink.attn-values *)
  Definition line_values : vec :=
    (∑ h < H, (∑ j ∈ J, α h j *: v h (x j)) *[d'] WO_ h) + bO.

  Theorem sink_attn_values : line_headsum = line_values.
  Proof. reflexivity. Qed.
  (*< sink.attn-values *)

  (* Each value is replaced by its definition. *)
  (*> sink.attn-expand *)
  Definition line_expand : vec :=
    (∑ h < H, (∑ j ∈ J, α h j *: (x j *[d] WV_ h + bV_ h)) *[d'] WO_ h) + bO.

  Theorem sink_attn_expand : line_values = line_expand.
  Proof. reflexivity. Qed.
  (*< sink.attn-expand *)

  (* A product with a matrix is linear, so W^O_h moves inside the sum over the keys. *)
  (*> sink.attn-inside *)
  Definition line_inside : vec :=
    (∑ h < H, ∑ j ∈ J, α h j *: ((x j *[d] WV_ h + bV_ h) *[d'] WO_ h)) + bO.

  Theorem sink_attn_inside : line_expand = line_inside.
  Proof.
    unfold line_expand, line_inside. f_equal. apply vsum_ext. intros h.
    rewrite vsum_mul. apply vsum_ext. intros j. apply vmul_scal.
  Qed.
  (*< sink.attn-inside *)

  (*> sink.attn-distribute *)
  Definition line_distribute : vec :=
    (∑ h < H, ∑ j ∈ J, α h j *: (x j *[d] WV_ h *[d'] WO_ h + bV_ h *[d'] WO_ h)) + bO.

  Theorem sink_attn_distribute : line_inside = line_distribute.
  Proof.
    unfold line_inside, line_distribute. f_equal. apply vsum_ext. intros h.
    apply vsum_ext. intros j. rewrite vmul_add. reflexivity.
  Qed.
  (*< sink.attn-distribute *)

  (* The sum over the tokens, which is the same in every line from here on. *)
  Notation tokens := (∑ h < H, ∑ j ∈ J, α h j *: (x j *[d] WV_ h *[d'] WO_ h)).

  (*> sink.attn-split *)
  Definition line_split : vec :=
    tokens + (∑ h < H, ∑ j ∈ J, α h j *: (bV_ h *[d'] WO_ h)) + bO.

  Theorem sink_attn_split : line_distribute = line_split.
  Proof.
    unfold line_distribute, line_split. f_equal. rewrite <- vsum_plus.
    apply vsum_ext. intros h. rewrite <- vsum_plus. apply vsum_ext. intros j. apply vscal_add.
  Qed.
  (*< sink.attn-split *)

  (* The value bias does not depend on the key, so only the sum of the weights remains as its factor. *)
  (*> sink.attn-factor *)
  Definition line_factor : vec :=
    tokens + (∑ h < H, (∑ j ∈ J, α h j)%R *: (bV_ h *[d'] WO_ h)) + bO.

  Theorem sink_attn_factor : line_split = line_factor.
  Proof.
    unfold line_split, line_factor. f_equal. f_equal. apply vsum_ext. intros h.
    apply vsum_scal_const.
  Qed.
  (*< sink.attn-factor *)

  (* By sink.mass, the sum of the weights is 1 - alpha_s. *)
  (*> sink.attn-mass *)
  Definition line_mass : vec :=
    tokens + (∑ h < H, (1 - α_sink h) *: (bV_ h *[d'] WO_ h)) + bO.

  Theorem sink_attn_mass : line_factor = line_mass.
  Proof.
    unfold line_factor, line_mass. f_equal. f_equal. apply vsum_ext. intros h.
    unfold α, α_sink. rewrite sink_mass. reflexivity.
  Qed.
  (*< sink.attn-mass *)

  (*> sink.attn-one-minus *)
  Definition line_one_minus : vec :=
    tokens + (∑ h < H, bV_ h *[d'] WO_ h) - (∑ h < H, α_sink h *: (bV_ h *[d'] WO_ h)) + bO.

  Theorem sink_attn_one_minus : line_mass = line_one_minus.
  Proof.
    unfold line_mass, line_one_minus. f_equal. at_coordinate c.
    rewrite Rplus_assoc. f_equal. rewrite <- Sum_opp, <- Sum_plus. apply Sum_ext. intros. ring.
  Qed.
  (*< sink.attn-one-minus *)

  (*> sink.attn-reorder *)
  Definition line_reorder : vec :=
    tokens + (∑ h < H, α_sink h *: (- (bV_ h *[d'] WO_ h))) + (∑ h < H, bV_ h *[d'] WO_ h) + bO.

  Theorem sink_attn_reorder : line_one_minus = line_reorder.
  Proof.
    unfold line_one_minus, line_reorder. f_equal. at_coordinate c.
    rewrite (Sum_ext _ (fun h => α_sink h * - _)%R
                       (fun h => - (α_sink h * ∑ r < d', bV_ h r * WO_ h r c))%R)
      by (intros; ring).
    rewrite Sum_opp. ring.
  Qed.
  (*< sink.attn-reorder *)

  (* The blocks of b^V and of W^O are joined again, so the bias term is one product without a sum over heads. *)
  (*> sink.attn-final *)
  Definition line_final : vec :=
    tokens + (∑ h < H, α_sink h *: (- (bV_ h *[d'] WO_ h))) + bV *[d] WO + bO.

  Theorem sink_attn_final : line_reorder = line_final.
  Proof. unfold line_reorder, line_final. rewrite d_split, mul_blocks. reflexivity. Qed.

  Corollary sink_attn_first_is_last : ATTN = line_final.
  Proof.
    rewrite sink_attn_headsum, sink_attn_values, sink_attn_expand, sink_attn_inside,
      sink_attn_distribute, sink_attn_split, sink_attn_factor, sink_attn_mass,
      sink_attn_one_minus, sink_attn_reorder.
    apply sink_attn_final.
  Qed.
  (*< sink.attn-final *)

  (* The same result as ordinary attention with gated heads: head h is multiplied by 1 - alpha_s, which gates
     its tokens and its value bias alike. Only b^O is outside the gate. *)
  (*> sink.attn-gate *)
  Definition line_gate : vec :=
    (∑ h < H, (1 - α_sink h) *:
       (((∑ j ∈ J, softmax J (s h) j *: (x j *[d] WV_ h)) + bV_ h) *[d'] WO_ h)) + bO.

  Theorem sink_attn_gate : J <> [] -> ATTN = line_gate.
  Proof.
    intros HJ. rewrite sink_attn_headsum, sink_attn_values, sink_attn_expand. unfold line_expand, line_gate.
    f_equal. apply vsum_ext. intros h.
    set (o := (∑ j ∈ J, softmax J (s h) j *: (x j *[d] WV_ h))%V).
    assert (E : (∑ j ∈ J, α h j *: (x j *[d] WV_ h + bV_ h))%V = ((1 - α_sink h) *: (o + bV_ h))%V).
    { apply vec_eq. intros c. unfold vsum, vscal, vadd, o. unfold vsum, vscal, vadd.
      rewrite Rmult_plus_distr_l, <- Sum_scal_l.
      rewrite (Sum_ext _ _ (fun j => ((1 - α_sink h) * (softmax J (s h) j * (x j *[d] WV_ h)%V c)
                                     + α h j * bV_ h c)%R)).
      - rewrite Sum_plus, Sum_scal_r. f_equal. f_equal. apply sink_mass.
      - intros j. assert (A : (α h j = (1 - α_sink h) * softmax J (s h) j)%R).
        { unfold α, α_sink, alpha, alpha_sink, softmax. pose proof (sum_exp_pos J (s h) HJ).
          pose proof (exp_pos (b_S h)). field. split; lra. }
        rewrite <- Rmult_assoc, <- A. ring. }
    rewrite E, vmul_scal. reflexivity.
  Qed.
  (*< sink.attn-gate *)
End Derivation.
