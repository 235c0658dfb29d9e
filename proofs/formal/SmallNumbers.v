(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* What a sum of products may lose when subnormal numbers are read as zero and results are flushed to zero
   (bound.ftz). Assumed: only a number below a threshold may become zero, and each operation has its own error bound
   (Nodes.v). *)

From Sinkproof Require Import Sums Nodes Summation.
From Coq Require Import Reals List Permutation Lra.
Import ListNotations.
Open Scope R_scope.

Definition lost (tiny x : R) : R := if Rlt_dec (Rabs x) tiny then Rabs x else 0.

Lemma read_loss (read : R -> R) tiny x : read x = x \/ (read x = 0 /\ Rabs x < tiny) ->
  Rabs (read x - x) <= lost tiny x /\ Rabs (read x) <= Rabs x.
Proof.
  unfold lost. intros [E | [E L]]; rewrite E.
  - rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. pose proof (Rabs_pos x).
    destruct (Rlt_dec (Rabs x) tiny); lra.
  - rewrite Rminus_0_l, Rabs_Ropp, Rabs_R0. pose proof (Rabs_pos x).
    destruct (Rlt_dec (Rabs x) tiny); lra.
Qed.

(* Operands below their thresholds τ and σ may be read as zero, each independently of the others. The
   operations may form any tree. An operation that may flush has the threshold as its η; the next theorem says
   why. *)
(*> bound.ftz *)
Theorem bound_ftz {key} (J : list key) (a a' τ b b' σ : key -> R) (t : nodes) : honest t ->
  (forall k, a' k = a k \/ (a' k = 0 /\ Rabs (a k) < τ k)) ->
  (forall k, b' k = b k \/ (b' k = 0 /\ Rabs (b k) < σ k)) ->
  Permutation (products t) (map (fun k => (a' k, b' k)) J) ->
  Rabs (value t - ∑ k ∈ J, a k * b k) <=
    (growth t - 1) * (∑ k ∈ J, Rabs (a k * b k)) + underflow t
    + ∑ k ∈ J, (lost (τ k) (a k) * Rabs (b k) + Rabs (a k) * lost (σ k) (b k)).
Proof.
  intros Ht Ha Hb P. pose proof (bound_dot_nodes t _ Ht P) as B. rewrite !Sum_map in B. cbn [fst snd] in B.
  assert (La : forall k, Rabs (a' k - a k) <= lost (τ k) (a k) /\ Rabs (a' k) <= Rabs (a k)).
  { intros k. destruct (Ha k) as [E | [E L]].
    - apply (read_loss (fun _ => a' k) (τ k) (a k)). left. exact E.
    - apply (read_loss (fun _ => a' k) (τ k) (a k)). right. split; assumption. }
  assert (Lb : forall k, Rabs (b' k - b k) <= lost (σ k) (b k) /\ Rabs (b' k) <= Rabs (b k)).
  { intros k. destruct (Hb k) as [E | [E L]].
    - apply (read_loss (fun _ => b' k) (σ k) (b k)). left. exact E.
    - apply (read_loss (fun _ => b' k) (σ k) (b k)). right. split; assumption. }
  assert (A : (∑ k ∈ J, Rabs (a' k * b' k)) <= ∑ k ∈ J, Rabs (a k * b k)).
  { apply Sum_le. intros k _. rewrite !Rabs_mult.
    apply Rmult_le_compat; try apply Rabs_pos; [apply La | apply Lb]. }
  assert (D : Rabs ((∑ k ∈ J, a' k * b' k) - ∑ k ∈ J, a k * b k) <=
              ∑ k ∈ J, (lost (τ k) (a k) * Rabs (b k) + Rabs (a k) * lost (σ k) (b k))).
  { rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros k _.
    replace (a' k * b' k - a k * b k) with ((a' k - a k) * b k + a' k * (b' k - b k)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult. apply Rplus_le_compat.
    - apply Rmult_le_compat_r; [apply Rabs_pos | apply La].
    - apply Rmult_le_compat; try apply Rabs_pos; [apply La | apply Lb]. }
  replace (value t - _) with
    ((value t - ∑ k ∈ J, a' k * b' k) + ((∑ k ∈ J, a' k * b' k) - ∑ k ∈ J, a k * b k)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. pose proof (growth_ge_1 t Ht).
  pose proof (Rmult_le_compat_l (growth t - 1) _ _ ltac:(lra) A). lra.
Qed.

(* An operation on x, where X bounds |x|. Its rounded result r is within u X + η of x. If it may return 0 for
   an |x| below [tiny], its error is at most u X + tiny. *)
Theorem bound_ftz_operation (x X r z u η tiny : R) : 0 <= u -> Rabs x <= X -> η <= tiny ->
  Rabs (r - x) <= u * X + η -> z = r \/ (z = 0 /\ Rabs x < tiny) -> Rabs (z - x) <= u * X + tiny.
Proof.
  intros Hu HX Hη Hr Hz. pose proof (Rabs_pos x). pose proof (Rmult_le_pos u X Hu ltac:(lra)).
  destruct Hz as [-> | [-> L]]; [lra|]. rewrite Rminus_0_l, Rabs_Ropp. lra.
Qed.

(* One format: each rounding is the usual one, with underflow η, or returns 0 for a number below [tiny]. *)
Theorem bound_ftz_one_format (read rnd fl : R -> R) (tiny η u : R) (t : tree) (l : list (R * R)) :
  0 <= u -> 0 <= η <= tiny ->
  (forall x, read x = x \/ (read x = 0 /\ Rabs x < tiny)) ->
  (forall x, Rabs (rnd x - x) <= u * Rabs x + η) ->
  (forall x, fl x = rnd x \/ (fl x = 0 /\ Rabs x < tiny)) ->
  Permutation (terms t) (map (fun p => (read (fst p), read (snd p))) l) ->
  Rabs (eval fl t - ∑ p ∈ l, fst p * snd p) <=
    ((1 + u) ^ depth t - 1) * (∑ p ∈ l, Rabs (fst p * snd p))
    + INR (roundings t) * (1 + u) ^ depth t * tiny
    + ∑ p ∈ l, (lost tiny (fst p) * Rabs (snd p) + Rabs (fst p) * lost tiny (snd p)).
Proof.
  intros Hu Hη Hread Hrnd Hfl P.
  assert (F : forall x, Rabs (fl x - x) <= u * Rabs x + tiny).
  { intros x. pose proof (Rabs_pos x). pose proof (Rmult_le_pos _ _ Hu H).
    destruct (Hfl x) as [E | [E L]]; rewrite E.
    - pose proof (Hrnd x). lra.
    - rewrite Rminus_0_l, Rabs_Ropp. lra. }
  pose proof (tree_error fl u tiny Hu ltac:(lra) F t) as B.
  rewrite (dot_perm _ _ P), (absdot_perm _ _ P) in B. unfold dot, absdot in B.
  rewrite !Sum_map in B. cbn [fst snd] in B.
  set (read_dot := ∑ p ∈ l, read (fst p) * read (snd p)) in *.
  assert (A : (∑ p ∈ l, Rabs (read (fst p) * read (snd p))) <= ∑ p ∈ l, Rabs (fst p * snd p)).
  { apply Sum_le. intros p _. rewrite !Rabs_mult.
    apply Rmult_le_compat; try apply Rabs_pos; apply (read_loss read tiny), Hread. }
  assert (D : Rabs (read_dot - ∑ p ∈ l, fst p * snd p) <=
              ∑ p ∈ l, (lost tiny (fst p) * Rabs (snd p) + Rabs (fst p) * lost tiny (snd p))).
  { unfold read_dot. rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|].
    apply Sum_le. intros [a b] _. cbn [fst snd].
    destruct (read_loss read tiny a (Hread a)) as [A1 A2].
    destruct (read_loss read tiny b (Hread b)) as [B1 B2].
    replace (read a * read b - a * b) with ((read a - a) * b + read a * (read b - b)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult. apply Rplus_le_compat.
    - apply Rmult_le_compat_r; [apply Rabs_pos | exact A1].
    - apply Rmult_le_compat; try apply Rabs_pos; assumption. }
  replace (eval fl t - _) with ((eval fl t - read_dot) + (read_dot - ∑ p ∈ l, fst p * snd p)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (0 <= (1 + u) ^ depth t - 1) by (pose proof (pow_R1_Rle (1 + u) (depth t) ltac:(lra)); lra).
  pose proof (Rmult_le_compat_l _ _ _ H A). lra.
Qed.
(*< bound.ftz *)
