(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Sums that the matrix unit of a GPU adds up (bound.tensor-core). Assumed of it: a block's products and the sum so
   far are cut toward zero at one place, added exactly, and the result is cut once more. Partial sums are added in
   any format. *)

From Sinkproof Require Import Sums Nodes Summation.
From Coq Require Import Reals List Permutation Lra Lia.
Import ListNotations.
Open Scope R_scope.

(* y is x without what lies below the place of q. *)
Definition cut (q x y : R) : Prop := Rabs y <= Rabs x /\ Rabs (x - y) <= q.

Lemma cuts_sum (q : R) (l : list (R * R)) : (forall p, In p l -> cut q (fst p) (snd p)) ->
  Rabs (∑ p ∈ l, snd p) <= ∑ p ∈ l, Rabs (fst p) /\
  Rabs ((∑ p ∈ l, snd p) - ∑ p ∈ l, fst p) <= INR (length l) * q.
Proof.
  intros C. split.
  - eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros p H. apply (C p H).
  - rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|].
    rewrite <- (Sum_const l q). apply Sum_le. intros p H. rewrite Rabs_minus_sym. apply (C p H).
Qed.

(* The operations on the way from a product to the result: at most m blocks, each with an error of ε, and at most j
   other additions, each with an error of u. *)
Inductive passes (ε u : R) : nat -> nat -> nodes -> Prop :=
  | passes_leaf m j a b : passes ε u m j (Leaf a b)
  | passes_join m j l r : passes ε u m j l -> passes ε u m j r -> passes ε u m j (Join l r)
  | passes_block m j v η δ t : v <= ε -> passes ε u m j t -> passes ε u (S m) j (Node v η δ t)
  | passes_addition m j v η δ t : v <= u -> passes ε u m j t -> passes ε u m (S j) (Node v η δ t).

Lemma growth_passes ε u m j t : 0 <= ε -> 0 <= u -> honest t -> passes ε u m j t ->
  growth t <= (1 + ε) ^ m * (1 + u) ^ j.
Proof.
  intros Hε Hu H P.
  induction P as [m j a b | m j l r _ IHl _ IHr | m j v η δ t V P IH | m j v η δ t V P IH];
    cbn [honest growth] in *.
  - pose proof (pow_R1_Rle (1 + ε) m ltac:(lra)). pose proof (pow_R1_Rle (1 + u) j ltac:(lra)). nra.
  - apply Rmax_lub; tauto.
  - destruct H as (H & V0 & _). specialize (IH H). pose proof (growth_ge_1 t H). cbn [pow].
    replace ((1 + ε) * (1 + ε) ^ m * (1 + u) ^ j) with ((1 + ε) * ((1 + ε) ^ m * (1 + u) ^ j)) by ring.
    apply Rmult_le_compat; lra.
  - destruct H as (H & V0 & _). specialize (IH H). pose proof (growth_ge_1 t H). cbn [pow].
    replace ((1 + ε) ^ m * ((1 + u) * (1 + u) ^ j)) with ((1 + u) * ((1 + ε) ^ m * (1 + u) ^ j)) by ring.
    apply Rmult_le_compat; lra.
Qed.

(*> bound.tensor-core *)
(* One operation on the numbers x, which are cut to y at the place of q, no higher than β times the largest x; v is
   the last cut, relative to its result. *)
Theorem bound_tensor_core_block (β v q z : R) (l : list (R * R)) :
  0 <= β -> 0 <= v -> (forall p, In p l -> cut q (fst p) (snd p)) ->
  (exists p, In p l /\ q <= β * Rabs (fst p)) ->
  Rabs (z - ∑ p ∈ l, snd p) <= v * Rabs (∑ p ∈ l, snd p) ->
  Rabs (z - ∑ p ∈ l, fst p) <= (INR (length l) * β + v) * ∑ p ∈ l, Rabs (fst p).
Proof.
  intros Hβ Hv C (largest & I & Q) Z. destruct (cuts_sum q l C) as [S E].
  set (A := ∑ p ∈ l, Rabs (fst p)) in *.
  assert (M : Rabs (fst largest) <= A)
    by (apply (Sum_term_le l (fun p => Rabs (fst p)) largest I); intros; apply Rabs_pos).
  pose proof (Rmult_le_compat_l β _ _ Hβ M). pose proof (Rmult_le_compat_l v _ _ Hv S).
  pose proof (Rmult_le_compat_l (INR (length l)) q (β * A) (pos_INR _) ltac:(lra)).
  replace (z - ∑ p ∈ l, fst p) with ((z - ∑ p ∈ l, snd p) + ((∑ p ∈ l, snd p) - ∑ p ∈ l, fst p)) by ring.
  pose proof (Rabs_triang (z - ∑ p ∈ l, snd p) ((∑ p ∈ l, snd p) - ∑ p ∈ l, fst p)). lra.
Qed.

(* A whole sum, in any order and any partial sums: ε is the error of a block, u that of another addition. *)
Theorem bound_tensor_core (ε u : R) (m j : nat) (t : nodes) (l : list (R * R)) :
  0 <= ε -> 0 <= u -> honest t -> passes ε u m j t -> (j <= m)%nat -> INR m * (ε + u + ε * u) < 1 ->
  Permutation (products t) l ->
  Rabs (value t - ∑ p ∈ l, fst p * snd p) <=
    gamma m (ε + u + ε * u) * (∑ p ∈ l, Rabs (fst p * snd p)) + underflow t.
Proof.
  intros Hε Hu H P J G L. pose proof (bound_dot_nodes t l H L) as B.
  assert (K : growth t - 1 <= gamma m (ε + u + ε * u)).
  { pose proof (growth_passes ε u m j t Hε Hu H P) as K.
    pose proof (Rle_pow (1 + u) j m ltac:(lra) J).
    pose proof (Rmult_le_compat_l ((1 + ε) ^ m) _ _ ltac:(apply pow_le; lra) H0).
    rewrite <- Rpow_mult_distr in H1.
    replace ((1 + ε) * (1 + u)) with (1 + (ε + u + ε * u)) in H1 by ring.
    pose proof (pow_gamma (ε + u + ε * u) m ltac:(nra) G). lra. }
  assert (N : 0 <= ∑ p ∈ l, Rabs (fst p * snd p)) by (apply Sum_nonneg; intros; apply Rabs_pos).
  pose proof (Rmult_le_compat_r _ _ _ N K). lra.
Qed.
(*< bound.tensor-core *)
