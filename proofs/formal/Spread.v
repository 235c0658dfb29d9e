(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Sums of squared errors: the total of n bounded contributions seldom exceeds the sum of their means by much
   (stat.spread, Chernoff's inequality). Assumed: each contribution is in [0, M], and its mean, given all
   contributions before it, is at most μ. Independence is not assumed. *)

(* [pick h] is the distribution of the next unit's contribution, a list of (probability, value), after the
   contributions h; it may depend on all of them. A unit is one element, or all elements of a class of similar
   rows, however they depend on each other: m squares below M with means up to 1 are one number below m M with
   a mean up to m. *)

From Coq Require Import Reals List Lia Lra.
From Sinkproof Require Import Sums BoundsSoftmaxSink Likely.
Import ListNotations.
Open Scope R_scope.

(* The mean of k over all outcomes of n units. *)
Fixpoint outcome (pick : list R -> list (R * R)) (n : nat) (h : list R) (k : list R -> R) : R :=
  match n with
  | O => k h
  | S n => mean (pick h) (fun x => outcome pick n (x :: h) k)
  end.

Definition total (h : list R) : R := ∑ x ∈ h, x.

Section Chernoff.
  (*> stat.spread *)
  Variable pick : list R -> list (R * R).
  Variable μ : nat -> R.  (* μ i bounds the mean of the unit that comes after i others *)
  Variable M : R.
  Hypothesis M_pos : 0 < M.
  Hypothesis bounded : forall h p x, In (p, x) (pick h) -> 0 <= p /\ 0 <= x <= M.
  Hypothesis certain : forall h, mean (pick h) (fun _ => 1) = 1.
  Hypothesis small : forall h, mean (pick h) (fun x => x) <= μ (length h).
  (*< stat.spread *)

  (* Between 0 and M, e^(θ x) lies below its chord. *)
  Lemma unit_moment θ h : 0 <= θ ->
    mean (pick h) (fun x => exp (θ * x)) <= exp (μ (length h) * (exp (θ * M) - 1) / M).
  Proof.
    intros Hθ. set (g := (exp (θ * M) - 1) / M).
    assert (Hg : 0 <= g).
    { apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, M_pos].
      pose proof (exp_le 0 (θ * M) ltac:(apply Rmult_le_pos; lra)) as H. rewrite exp_0 in H. lra. }
    apply Rle_trans with (mean (pick h) (fun x => 1 * 1 + g * x)).
    - apply Sum_le. intros [p x] Ho. destruct (bounded h p x Ho) as [Hp Hx]. simpl.
      apply Rmult_le_compat_l; [exact Hp|].
      assert (Hu : 0 <= x / M <= 1).
      { split; [apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat, M_pos]|].
        apply Rmult_le_reg_r with M; [exact M_pos|]. field_simplify; lra. }
      pose proof (exp_chord (x / M) (θ * M) Hu) as C.
      replace (x / M * (θ * M)) with (θ * x) in C by (field; lra).
      replace (1 * 1 + g * x) with (1 + x / M * (exp (θ * M) - 1)) by (unfold g; field; lra).
      exact C.
    - unfold mean in *. rewrite (Sum_ext _ _ (fun o : R * R =>
        1 * (fst o * 1) + g * (fst o * snd o))) by (intros; ring).
      rewrite Sum_plus, !Sum_scal_l. pose proof (certain h) as C. pose proof (small h) as S.
      unfold mean in C, S. rewrite C.
      apply Rle_trans with (1 + g * μ (length h)).
      + pose proof (Rmult_le_compat_l g _ _ Hg S). lra.
      + replace (μ (length h) * (exp (θ * M) - 1) / M) with (g * μ (length h))
          by (unfold g; field; lra).
        pose proof (exp_tangent 0 (g * μ (length h))) as T. rewrite exp_0 in T. lra.
  Qed.

  Lemma outcome_le n : forall h k k', (forall h, k h <= k' h) ->
    outcome pick n h k <= outcome pick n h k'.
  Proof.
    induction n as [|n IH]; simpl; intros h k k' H; [apply H|].
    apply Sum_le. intros [p x] Ho. apply Rmult_le_compat_l; [apply (bounded h p x Ho)|].
    apply IH, H.
  Qed.

  (* The exponential moment of the total of n further units, after the units h. *)
  Lemma total_moment θ n : 0 <= θ -> forall h K, 0 <= K ->
    outcome pick n h (fun h => K * exp (θ * total h)) <=
      K * exp (θ * total h) * exp ((∑ i ∈ seq (length h) n, μ i) * (exp (θ * M) - 1) / M).
  Proof.
    intros Hθ. induction n as [|n IH]; intros h K HK; simpl.
    - replace (0 * (exp (θ * M) - 1) / M) with 0 by (field; lra). rewrite exp_0. lra.
    - set (rest := ∑ i ∈ seq (S (length h)) n, μ i).
      set (c := exp (rest * (exp (θ * M) - 1) / M)).
      apply Rle_trans with (mean (pick h) (fun x => K * exp (θ * total h) * c * exp (θ * x))).
      + apply Sum_le. intros [p x] Ho. apply Rmult_le_compat_l; [apply (bounded h p x Ho)|].
        simpl. eapply Rle_trans; [apply IH, HK|]. right. unfold total. simpl.
        rewrite Rmult_plus_distr_l, exp_plus. fold rest. fold c. ring.
      + unfold mean. rewrite (Sum_ext _ _ (fun o : R * R =>
          K * exp (θ * total h) * c * (fst o * exp (θ * snd o)))) by (intros; ring).
        rewrite Sum_scal_l. pose proof (unit_moment θ h Hθ) as U. unfold mean in U.
        eapply Rle_trans; [apply Rmult_le_compat_l, U|].
        * repeat apply Rmult_le_pos; try exact HK; apply Rlt_le, exp_pos.
        * right. unfold c. rewrite !Rmult_assoc, <- !exp_plus. do 2 f_equal. f_equal.
          field. lra.
  Qed.

  (*> stat.spread *)
  Theorem stat_spread (n : nat) (a : R) : let m := ∑ i < n, μ i in 0 < m -> m <= a ->
    outcome pick n [] (fun h => if Rle_dec a (total h) then 1 else 0) <=
      exp (- ((a * ln (a / m) - a + m) / M)).
  Proof.
    intros m Hm Ha. set (θ := ln (a / m) / M).
    assert (Hq : 1 <= a / m)
      by (apply Rmult_le_reg_r with m; [exact Hm|]; field_simplify; lra).
    assert (Hl : 0 <= ln (a / m)).
    { rewrite <- ln_1. destruct (Rle_lt_or_eq_dec 1 (a / m) Hq) as [L|E].
      - apply Rlt_le, ln_increasing; lra.
      - rewrite <- E. lra. }
    assert (Hθ : 0 <= θ)
      by (apply Rmult_le_pos; [exact Hl | apply Rlt_le, Rinv_0_lt_compat, M_pos]).
    (* Markov's inequality, applied to e^(θ total) *)
    apply Rle_trans with (outcome pick n [] (fun h => exp (- θ * a) * exp (θ * total h))).
    - apply outcome_le. intros h. rewrite <- exp_plus. destruct (Rle_dec a (total h)) as [L|L].
      + rewrite <- exp_0. apply exp_le.
        pose proof (Rmult_le_compat_l θ _ _ Hθ L). lra.
      + apply Rlt_le, exp_pos.
    - eapply Rle_trans; [apply total_moment; [exact Hθ | apply Rlt_le, exp_pos]|].
      simpl length. fold m. right. unfold total. simpl Sum.
      rewrite Rmult_0_r, exp_0, Rmult_1_r, <- exp_plus. f_equal.
      replace (θ * M) with (ln (a / m)) by (unfold θ; field; lra).
      rewrite exp_ln by lra. unfold θ. field. lra.
  Qed.
  (*< stat.spread *)
End Chernoff.
