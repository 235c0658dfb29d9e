(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Metamorphic laws: how the output changes when the inputs are shifted (law.shift), permuted (law.permute), constant
   (law.constant-value), combined linearly (law.linear-value), or repeated for grouped heads (law.gqa-repeat);
   chapters 6 and 7. Nothing is assumed: keys and scores are arbitrary. *)

From Sinkproof Require Import Sums SoftmaxSink Derivation General.
From Coq Require Import Reals List Permutation Arith Lia Lra FunctionalExtensionality.
Import ListNotations.
Open Scope R_scope.

Section Row.
  Context {key : Type}.
  Implicit Types (J : list key) (s v : key -> R) (b : R).

  Definition output J s b v : R := ∑ j ∈ J, alpha J s b j * v j.

  (*> law.shift *)
  Theorem law_shift J s b c :
    (forall j, alpha J (fun k => s k + c) (b + c) j = alpha J s b j) /\
    alpha_sink J (fun k => s k + c) (b + c) = alpha_sink J s b.
  Proof.
    replace (b + c) with (b - - c) by ring.
    replace (fun k => s k + c) with (fun k => s k - - c)
      by (apply functional_extensionality; intros; ring).
    split; [intros j; apply alpha_shift | apply alpha_sink_shift].
  Qed.
  (*< law.shift *)

  (*> law.permute *)
  Theorem law_permute J J' s b v : Permutation J J' ->
    (forall j, alpha J s b j = alpha J' s b j) /\ alpha_sink J s b = alpha_sink J' s b /\
    output J s b v = output J' s b v.
  Proof.
    intros P. assert (A : forall j, alpha J s b j = alpha J' s b j)
      by (intros; unfold alpha; rewrite (Sum_perm J J' _ P); reflexivity).
    split; [exact A|]. split; [unfold alpha_sink; rewrite (Sum_perm J J' _ P); reflexivity|].
    unfold output. rewrite (Sum_perm J J' _ P). apply Sum_ext. intros j. rewrite A. reflexivity.
  Qed.
  (*< law.permute *)

  (*> law.constant-value *)
  Theorem law_constant_value J s b c : output J s b (fun _ => c) = c * (1 - alpha_sink J s b).
  Proof. unfold output. rewrite Sum_scal_r, sink_mass. ring. Qed.
  (*< law.constant-value *)

  (*> law.linear-value *)
  Theorem law_linear_value J s b v w a c :
    output J s b (fun j => a * v j + c * w j) = a * output J s b v + c * output J s b w.
  Proof. unfold output. rewrite <- !Sum_scal_l, <- Sum_plus. apply Sum_ext. intros. ring. Qed.
  (*< law.linear-value *)
End Row.

(* Key/value head g h, copied to every query head h: the columns of a matrix, the blocks of a vector. *)
Definition repeat_columns (d' : nat) (g : nat -> nat) (W : mat) : mat :=
  fun r c => W r (g (c / d') * d' + c mod d')%nat.
Definition repeat_blocks (d' : nat) (g : nat -> nat) (b : vec) : vec :=
  fun c => b (g (c / d') * d' + c mod d')%nat.

Lemma block_repeat d' g b h c : (c < d')%nat ->
  block d' h (repeat_blocks d' g b) c = block d' (g h) b c.
Proof.
  intros Hc. unfold block, repeat_blocks. rewrite Nat.div_add_l, Nat.div_small by lia.
  rewrite (Nat.add_comm (h * d')), Nat.mod_add, Nat.mod_small by lia.
  rewrite Nat.add_0_r. reflexivity.
Qed.

(* Grouped heads equal ungrouped heads with repeated keys and values. The keys enter through the score. *)
(*> law.gqa-repeat *)
Theorem law_gqa_repeat {key} d H d' g WK bK WV bV WO bO (x : key -> vec) (q : nat -> vec) J b :
  let score g WK bK h j :=
    q h ⋅[d'] (x j *[d] columns d' (g h) WK + block d' (g h) bK)%V / sqrt (INR d') in
  let id h := h in
  sink_attention d H d' g WV WO bV bO x (score g WK bK) J b =
  sink_attention d H d' id (repeat_columns d' g WV) WO (repeat_blocks d' g bV) bO x
    (score id (repeat_columns d' g WK) (repeat_blocks d' g bK)) J b.
Proof.
  intros score id.
  (* below d', a coordinate of a key or a value is the same on both sides *)
  assert (E : forall W bias h j c, (c < d')%nat ->
    (x j *[d] columns d' h (repeat_columns d' g W) + block d' h (repeat_blocks d' g bias))%V c =
    (x j *[d] columns d' (g h) W + block d' (g h) bias)%V c).
  { intros W bias h j c Hc. unfold vadd. rewrite block_repeat by exact Hc. f_equal.
    apply Sum_ext. intros r. f_equal. exact (block_repeat d' g (W r) h c Hc). }
  assert (S : score id (repeat_columns d' g WK) (repeat_blocks d' g bK) = score g WK bK).
  { do 2 (apply functional_extensionality; intro). unfold score, vdot. f_equal.
    apply Sum_ext_in. intros c Hc. apply in_seq in Hc. f_equal. apply E. lia. }
  rewrite S. unfold sink_attention, attend. f_equal. rewrite !mul_concat.
  apply vsum_ext. intros h. at_coordinate e. apply Sum_ext_in. intros c Hc. apply in_seq in Hc.
  f_equal. apply Sum_ext. intros j. f_equal. symmetry. apply (E WV bV h j c). lia.
Qed.
(*< law.gqa-repeat *)
