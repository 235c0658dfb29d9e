(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* A sum of n errors plus a bounded bias B reaches sqrt (2 Λ v) + B in absolute value with probability at most
   2 e^(-Λ), where v is the sum of the V i (stat.drift). Assumed: error i is calm (sub-Gaussian) with V i, whatever
   came before it: the mean of e^(s x) is at most e^(s² V i / 2) for every s. An error ±d with equal odds is calm
   with d². An error that is uniform on [-h, h] is calm with its variance, h² / 3. *)

(* [pick h] is the distribution of the next unit's error, a list of (probability, value), after the errors h. *)

From Coq Require Import Reals List Lia Lra.
From Sinkproof Require Import Sums BoundsSoftmaxSink Orders Likely Spread.
Import ListNotations.
Open Scope R_scope.

Section Calm.
  (*> stat.drift *)
  Variable pick : list R -> list (R * R).
  Variable V : nat -> R.  (* V i belongs to the unit that comes after i others *)
  Hypothesis odds : forall h p x, In (p, x) (pick h) -> 0 <= p.
  Hypothesis calm : forall h s, mean (pick h) (fun x => exp (s * x)) <= exp (s ^ 2 * V (length h) / 2).
  (*< stat.drift *)

  Lemma calm_le n : forall h k k', (forall h, k h <= k' h) ->
    outcome pick n h k <= outcome pick n h k'.
  Proof.
    induction n as [|n IH]; simpl; intros h k k' H; [apply H|].
    apply Sum_le. intros [p x] Ho. apply Rmult_le_compat_l; [apply (odds h p x Ho) | apply IH, H].
  Qed.

  Lemma outcome_plus n : forall h k k',
    outcome pick n h (fun h => k h + k' h) = outcome pick n h k + outcome pick n h k'.
  Proof.
    induction n as [|n IH]; simpl; intros h k k'; [reflexivity|].
    unfold mean. rewrite <- Sum_plus. apply Sum_ext. intros o. rewrite IH. ring.
  Qed.

  Lemma calm_moment θ n : forall h K, 0 <= K ->
    outcome pick n h (fun h => K * exp (θ * total h)) <=
      K * exp (θ * total h) * exp (θ ^ 2 * (∑ i ∈ seq (length h) n, V i) / 2).
  Proof.
    induction n as [|n IH]; intros h K HK; simpl.
    - replace (θ * (θ * 1) * 0 / 2) with 0 by field. rewrite exp_0. lra.
    - set (rest := ∑ i ∈ seq (S (length h)) n, V i). set (c := exp (θ ^ 2 * rest / 2)).
      apply Rle_trans with (mean (pick h) (fun x => K * exp (θ * total h) * c * exp (θ * x))).
      + apply Sum_le. intros [p x] Ho. apply Rmult_le_compat_l; [apply (odds h p x Ho)|].
        simpl. eapply Rle_trans; [apply IH, HK|]. right. unfold total. simpl Sum. simpl length.
        rewrite Rmult_plus_distr_l, exp_plus. fold rest. fold c. ring.
      + unfold mean. rewrite (Sum_ext _ _ (fun o : R * R =>
          K * exp (θ * total h) * c * (fst o * exp (θ * snd o)))) by (intros; ring).
        rewrite Sum_scal_l. pose proof (calm h θ) as U. unfold mean in U.
        eapply Rle_trans; [apply Rmult_le_compat_l, U|].
        * repeat apply Rmult_le_pos; try exact HK; apply Rlt_le, exp_pos.
        * right. unfold c. rewrite !Rmult_assoc, <- !exp_plus. do 2 f_equal. simpl. field.
  Qed.

  (*> stat.drift *)
  (* n calm units, plus a bias [lean] of size at most B, both divided by the weight W. *)
  Theorem stat_drift (n : nat) (Λ B W : R) (lean : list R -> R) :
    let v := ∑ i < n, V i in 0 < v -> 0 < Λ -> 0 < W -> (forall h, Rabs (lean h) <= B) ->
    let limit := (sqrt (2 * Λ * v) + B) / W in
    outcome pick n [] (fun h => if Rle_dec limit (Rabs ((total h + lean h) / W)) then 1 else 0)
      <= 2 * exp (- Λ).
  Proof.
    intros v Hv HΛ HW HB limit.
    assert (S0 : 0 < 2 * Λ * v) by (apply Rmult_lt_0_compat; lra).
    set (l := sqrt (2 * Λ * v)). pose proof (sqrt_lt_R0 _ S0 : 0 < l) as L0.
    pose proof (sqrt_sqrt _ (Rlt_le _ _ S0) : l * l = 2 * Λ * v) as LL.
    set (θ := l / v). assert (T0 : 0 < θ) by (apply Rdiv_lt_0_compat; lra).
    assert (TL : θ * l = 2 * Λ) by (unfold θ; replace (l / v * l) with (l * l / v) by (field; lra);
      rewrite LL; field; lra).
    assert (TT : θ ^ 2 * v / 2 = Λ)
      by (replace (θ ^ 2 * v / 2) with (l * l / v / 2) by (unfold θ; field; lra); rewrite LL; field; lra).
    (* Markov's inequality, applied to e^(θ total) and e^(-θ total) *)
    apply Rle_trans with (outcome pick n [] (fun h =>
      exp (- (2 * Λ)) * exp (θ * total h) + exp (- (2 * Λ)) * exp (- θ * total h))).
    - apply calm_le. intros h. rewrite <- !exp_plus.
      pose proof (exp_pos (- (2 * Λ) + θ * total h)) as P1.
      pose proof (exp_pos (- (2 * Λ) + - θ * total h)) as P2.
      destruct (Rle_dec limit _) as [L|L]; [|lra].
      assert (A : l <= Rabs (total h)).
      { unfold Rdiv in L. rewrite Rabs_mult, (Rabs_pos_eq (/ W)) in L by (apply Rlt_le, Rinv_0_lt_compat, HW).
        unfold limit, Rdiv in L. apply Rmult_le_reg_r in L; [|apply Rinv_0_lt_compat, HW]. fold l in L.
        pose proof (Rabs_triang (total h) (lean h)). pose proof (HB h). lra. }
      pose proof (Rmult_le_compat_l θ _ _ (Rlt_le _ _ T0) A) as M. rewrite TL in M.
      unfold Rabs in M. destruct (Rcase_abs (total h)) as [N|N].
      + pose proof (exp_le 0 (- (2 * Λ) + - θ * total h) ltac:(lra)) as X. rewrite exp_0 in X. lra.
      + pose proof (exp_le 0 (- (2 * Λ) + θ * total h) ltac:(lra)) as X. rewrite exp_0 in X. lra.
    - rewrite outcome_plus. pose proof (Rlt_le _ _ (exp_pos (- (2 * Λ)))) as K.
      pose proof (calm_moment θ n [] _ K) as M1. pose proof (calm_moment (- θ) n [] _ K) as M2.
      simpl length in M1, M2. fold v in M1, M2. unfold total at 2 in M1. unfold total at 2 in M2.
      simpl Sum in M1, M2. rewrite Rmult_0_r, exp_0, Rmult_1_r in M1, M2.
      replace ((- θ) ^ 2) with (θ ^ 2) in M2 by ring. rewrite TT, <- exp_plus in M1, M2.
      replace (- (2 * Λ) + Λ) with (- Λ) in M1, M2 by ring. lra.
  Qed.
  (*< stat.drift *)
End Calm.

(*> stat.drift *)
(* Calm units exist. An error of a given size d whose two signs have equal odds is calm with V = d². *)
Theorem stat_drift_signs (d s : R) :
  mean [(1 / 2, d); (1 / 2, - d)] (fun x => exp (s * x)) <= exp (s ^ 2 * d ^ 2 / 2).
Proof.
  unfold mean. simpl. pose proof (cosh_le (s * d)) as C.
  replace (- (s * d)) with (s * - d) in C by ring.
  replace (s * (s * 1) * (d * (d * 1)) / 2) with ((s * d) ^ 2 / 2) by (simpl; field). lra.
Qed.

(* The 2^j equally likely rounding errors of half step h when j bits are cut off: V is h² / 3 for every j. *)
Fixpoint even_errors (j : nat) (h : R) : list (R * R) :=
  match j with
  | O => [(1, 0)]
  | S j => flat_map (fun o => [(fst o / 2, snd o + h / 2); (fst o / 2, snd o - h / 2)])
                    (even_errors j (h / 2))
  end.

Theorem stat_drift_uniform (j : nat) : forall h s,
  mean (even_errors j h) (fun x => exp (s * x)) <= exp (s ^ 2 * (h ^ 2 / 3) / 2).
Proof.
  induction j as [|j IH]; intros h s; unfold mean in *; cbn [even_errors].
  - replace (Sum _ _) with (exp 0) by (simpl; rewrite Rmult_0_r; ring). apply exp_le.
    replace (s ^ 2 * (h ^ 2 / 3) / 2) with ((s * h) ^ 2 / 6) by field. pose proof (pow2_ge_0 (s * h)). lra.
  - rewrite Sum_flat_map. rewrite (Sum_ext _ _ (fun o : R * R =>
      (exp (s * (h / 2)) + exp (- (s * (h / 2)))) / 2 * (fst o * exp (s * snd o)))).
    + rewrite Sum_scal_l. pose proof (cosh_le (s * (h / 2))) as C. pose proof (IH (h / 2) s) as I.
      eapply Rle_trans; [apply Rmult_le_compat; [| | exact C | exact I]|].
      * pose proof (exp_pos (s * (h / 2))). pose proof (exp_pos (- (s * (h / 2)))). lra.
      * apply Sum_nonneg. intros [p x] Ho. apply Rmult_le_pos; [|apply Rlt_le, exp_pos].
        cbn [fst]. clear - Ho. revert h p x Ho. generalize j as k. induction k as [|k IHk]; intros h p x Ho.
        -- destruct Ho as [E|[]]. injection E as <- _. lra.
        -- apply in_flat_map in Ho as ([p' x'] & Hp & [E|[E|[]]]); injection E as <- _; simpl;
             pose proof (IHk _ _ _ Hp); simpl in *; lra.
      * rewrite <- exp_plus. right. f_equal. field.
    + intros [p x]. cbn [Sum fst snd].
      replace (s * (x + h / 2)) with (s * x + s * (h / 2)) by ring.
      replace (s * (x - h / 2)) with (s * x + - (s * (h / 2))) by ring. rewrite !exp_plus. field.
Qed.
(*< stat.drift *)
