(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Other forms of the softmax with a sink, equal to it over the reals: an added column, softmax_1, a learned key or
   value, the shift by the maximum, b = -inf, log-sum-exp, and the gate (sink.concat-slice to sink.gated; chapters 6
   and 16). Wrong forms are marked (≠) and refuted. Values are one coordinate of the value vectors: v j is a real.
   Assumed, where a statement needs it: the row has at least one key. *)

From Sinkproof Require Import Sums Rope SoftmaxSink ValueBias.
From Coq Require Import Reals List Permutation Lia Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

Section Forms.
  Context {key : Type}.
  Implicit Types (J : list key) (s v : key -> R) (b : R).

  (* One more position after the keys: [Some j] is key j, [None] is the added position. *)
  Definition with_extra J : list (option key) := map Some J ++ [None].
  Definition cat s b (o : option key) : R := match o with Some j => s j | None => b end.

  Lemma Sum_extra J (f : option key -> R) : Sum (with_extra J) f = (∑ j ∈ J, f (Some j)) + f None.
  Proof. unfold with_extra. rewrite Sum_app, Sum_map. simpl. ring. Qed.

  Lemma softmax_extra J s b j : softmax (with_extra J) (cat s b) (Some j) = alpha J s b j.
  Proof. unfold softmax, alpha. rewrite Sum_extra, Rplus_comm. reflexivity. Qed.

  (*> sink.concat-slice *)
  Theorem sink_concat_slice J s b :
    (forall j, softmax (with_extra J) (cat s b) (Some j) = alpha J s b j) /\
    softmax (with_extra J) (cat s b) None = alpha_sink J s b.
  Proof.
    split; [apply softmax_extra|]. unfold softmax, alpha_sink.
    rewrite Sum_extra, Rplus_comm. reflexivity.
  Qed.
  (*< sink.concat-slice *)

  (*> sink.softmax1 *)
  Theorem sink_softmax1 J s j : softmax1 J s j = alpha J s 0 j.
  Proof. unfold softmax1, alpha. rewrite exp_0. reflexivity. Qed.
  (*< sink.softmax1 *)

  (*> sink.shifted-softmax1 *)
  Theorem sink_shifted_softmax1 J s b j : alpha J s b j = softmax1 J (fun k => s k - b) j.
  Proof. rewrite sink_softmax1, <- (alpha_shift J s b b), Rminus_diag_eq; reflexivity. Qed.
  (*< sink.shifted-softmax1 *)

  (*> sink.zero-pad *)
  Theorem sink_zero_pad J s v :
    (forall j, softmax1 J s j = softmax (with_extra J) (cat s 0) (Some j)) /\
    ∑ j ∈ J, softmax1 J s j * v j = ∑ o ∈ with_extra J, softmax (with_extra J) (cat s 0) o * cat v 0 o.
  Proof.
    assert (E : forall j, softmax1 J s j = softmax (with_extra J) (cat s 0) (Some j))
      by (intros; rewrite softmax_extra; apply sink_softmax1).
    split; [exact E|]. rewrite Sum_extra. simpl. rewrite Rmult_0_r, Rplus_0_r.
    apply Sum_ext. intros j. rewrite E. reflexivity.
  Qed.
  (*< sink.zero-pad *)

  (* ---- a learned key or value as the sink ---- *)

  (* The score of a query q and a key k; k may be the learned key k*. *)
  Definition scaled_dot (d' : nat) (q k : vec) : R := (q ⋅[d'] k) / sqrt (INR d').

  Definition put (c : nat) (x : R) (v : vec) : vec := fun i => if i =? c then x else v i.

  Lemma put_dot d' c q k x y : (c < d')%nat -> q c = 0 ->
    put c x q ⋅[d'] put c y k = (q ⋅[d'] k) + x * y.
  Proof.
    intros Hc Hq. unfold vdot.
    rewrite (Sum_ext _ _ (fun i => q i * k i + (if i =? c then x * y else 0))).
    - rewrite Sum_plus. f_equal. clear Hq. induction d' as [|n IH]; [lia|].
      rewrite seq_S, Sum_app. cbn [Sum]. rewrite Nat.add_0_l. destruct (Nat.eq_dec n c) as [->|N].
      + rewrite Nat.eqb_refl, Rplus_0_r, (Sum_ext_in _ _ (fun _ => 0)), Sum_zero; [ring|].
        intros j Hj. apply in_seq in Hj. rewrite (proj2 (Nat.eqb_neq j c)) by lia. reflexivity.
      + rewrite IH by lia. rewrite (proj2 (Nat.eqb_neq n c)) by exact N. ring.
    - intros i. unfold put. destruct (Nat.eqb_spec i c) as [->|N]; [rewrite Hq|]; ring.
  Qed.

  (*> sink.shifted-softmax1 *)
  (* Biases β of the query and γ of the key, in a coordinate c that nothing else uses, shift every score by
     the same constant. *)
  Theorem sink_shifted_softmax1_by_biases d' c q k β γ : (c < d')%nat -> q c = 0 ->
    scaled_dot d' (put c β q) (put c γ k) = scaled_dot d' q k + β * γ / sqrt (INR d').
  Proof. intros Hc Hq. unfold scaled_dot. rewrite put_dot by assumption. unfold Rdiv. ring. Qed.

  (* If query and key are rotated to their positions i and j, what the biases add depends on i - j. *)
  Theorem sink_shifted_softmax1_rotated half ω c i j β γ : (c < half)%nat -> let none := fun _ => 0 in
    rotate half ω 1 i (put c β none) ⋅[half + half] rotate half ω 1 j (put c γ none) =
    β * γ * cos (ω c * (i - j)).
  Proof.
    intros Hc none. rewrite dot_pairs.
    rewrite (Sum_ext_in _ _ (fun p => (if p =? c then β * γ * cos (ω c * (i - j)) else 0))).
    - clear - Hc. induction half as [|n IH]; [lia|].
      rewrite seq_S, Sum_app. cbn [Sum]. rewrite Nat.add_0_l. destruct (Nat.eq_dec n c) as [->|N].
      + rewrite Nat.eqb_refl, (Sum_ext_in _ _ (fun _ => 0)), Sum_zero; [ring|].
        intros p Hp. apply in_seq in Hp. rewrite (proj2 (Nat.eqb_neq p c)) by lia. reflexivity.
      + rewrite IH by lia. rewrite (proj2 (Nat.eqb_neq n c)) by exact N. ring.
    - intros p Hp. apply in_seq in Hp. rewrite !rotate_second, !rotate_first by lia. unfold put, none.
      rewrite (proj2 (Nat.eqb_neq (p + half) c)) by lia. destruct (Nat.eqb_spec p c) as [->|N]; [|ring].
      replace (ω c * (i - j)) with (i * ω c - j * ω c) by ring. rewrite cos_minus. ring.
  Qed.
  (*< sink.shifted-softmax1 *)

  (* A learned key k* with a zero value is a sink with logit q k* / sqrt d'; k* = 0 gives softmax_1. The logit
     of gpt-oss does not depend on q. It has this form for queries whose coordinate r is always 1: the key
     that is b sqrt d' at r and 0 elsewhere gives the logit b. *)
  (*> sink.key-bias *)
  Theorem sink_key_bias J (d' : nat) (q k_star : vec) (k : key -> vec) v :
    let s j := scaled_dot d' q (k j) in
    let o k_star := ∑ p ∈ with_extra J,
      softmax (with_extra J) (cat s (scaled_dot d' q k_star)) p * cat v 0 p in
    o k_star = ∑ j ∈ J, alpha J s (scaled_dot d' q k_star) j * v j /\
    o (fun _ => 0) = ∑ j ∈ J, softmax1 J s j * v j /\
    forall r b, (r < d')%nat -> q r = 1 ->
      o (fun c => if Nat.eq_dec c r then b * sqrt (INR d') else 0) = ∑ j ∈ J, alpha J s b j * v j.
  Proof.
    intros s o.
    assert (E : forall k0, o k0 = ∑ j ∈ J, alpha J s (scaled_dot d' q k0) j * v j).
    { intros k0. unfold o. rewrite Sum_extra. simpl. rewrite Rmult_0_r, Rplus_0_r.
      apply Sum_ext. intros j. rewrite softmax_extra. reflexivity. }
    split; [apply E|]. split; [|intros r b Hr Hq]; rewrite E.
    - apply Sum_ext. intros j. rewrite sink_softmax1. do 2 f_equal.
      unfold scaled_dot, vdot. rewrite Sum_is_zero; [unfold Rdiv; ring | intros; ring].
    - apply Sum_ext. intros j. do 2 f_equal. unfold scaled_dot, vdot.
      assert (0 < sqrt (INR d')) by (apply sqrt_lt_R0, (lt_INR 0); lia).
      replace (Sum _ _) with (b * sqrt (INR d')); [field; lra|].
      assert (F : forall n a, (a <= r < a + n)%nat ->
        ∑ c ∈ seq a n, q c * (if Nat.eq_dec c r then b * sqrt (INR d') else 0) = b * sqrt (INR d')).
      { induction n as [|n IH]; intros a Ha; [lia|]. simpl.
        destruct (Nat.eq_dec a r) as [->|N].
        - rewrite Hq, (Sum_ext_in _ _ (fun _ => 0)), Sum_zero; [ring|].
          intros c Hc. apply in_seq in Hc. destruct (Nat.eq_dec c r); [lia | ring].
        - rewrite IH by lia. ring. }
      symmetry. apply F. lia.
  Qed.
  (*< sink.key-bias *)

  (* A logit b* inside the brackets that 1/sqrt d' multiplies is the sink logit b* / sqrt d', so both
     placements can express the same sinks. A gradient step of size eta on b* moves the logit as far as a step
     of size eta / d' on b. *)
  (*> sink.scale-inside *)
  Theorem sink_scale_inside J (d' : nat) (q : vec) (k : key -> vec) b_star dL eta : (0 < d')%nat ->
    let r := sqrt (INR d') in
    let s j := scaled_dot d' q (k j) in
    let inside b_star o := cat (fun j => q ⋅[d'] k j) b_star o / r in
    (forall j, softmax (with_extra J) (inside b_star) (Some j) = alpha J s (b_star / r) j) /\
    softmax (with_extra J) (inside b_star) None = alpha_sink J s (b_star / r) /\
    (forall b j, alpha J s b j = softmax (with_extra J) (inside (r * b)) (Some j)) /\
    (let a := alpha_sink J s (b_star / r) in
     is_derive (fun t => alpha_sink J s (t / r)) b_star (a * (1 - a) / r)) /\
    (b_star - eta * (dL / r)) / r = b_star / r - eta / INR d' * dL.
  Proof.
    intros Hd r s inside. assert (Hr : 0 < r) by (apply sqrt_lt_R0, (lt_INR 0); exact Hd).
    assert (E : forall t o, inside t o = cat s (t / r) o) by (intros t [j|]; reflexivity).
    assert (F : forall t, softmax (with_extra J) (inside t) = softmax (with_extra J) (cat s (t / r)))
      by (intros; f_equal; apply FunctionalExtensionality.functional_extensionality, E).
    split; [|split; [|split; [|split]]].
    - intros j. rewrite F. apply softmax_extra.
    - rewrite F. apply sink_concat_slice.
    - intros b j. rewrite F, softmax_extra. f_equal. field. lra.
    - intros a. unfold a.
      replace (alpha_sink J s (b_star / r) * (1 - alpha_sink J s (b_star / r)) / r)
        with (/ r * (alpha_sink J s (b_star / r) * (1 - alpha_sink J s (b_star / r)))) by (field; lra).
      apply (is_derive_comp (alpha_sink J s) (fun t => t / r) b_star);
        [apply alpha_sink_derive | auto_derive; [exact I | field; lra]].
    - assert (R : INR d' = r * r) by (symmetry; apply sqrt_sqrt, pos_INR). rewrite R. field. lra.
  Qed.
  (*< sink.scale-inside *)

  (*> sink.kv-bias *)
  Theorem sink_kv_bias J s v s_star v_star :
    ∑ o ∈ with_extra J, softmax (with_extra J) (cat s s_star) o * cat v v_star o =
    (∑ j ∈ J, alpha J s s_star j * v j) + alpha_sink J s s_star * v_star.
  Proof.
    rewrite Sum_extra. destruct (sink_concat_slice J s s_star) as [Hj Hs].
    rewrite Hs. f_equal. apply Sum_ext. intros j. rewrite Hj. reflexivity.
  Qed.
  (*< sink.kv-bias *)

  Lemma softmax_mass J s : J <> [] -> ∑ j ∈ J, softmax J s j = 1.
  Proof. intros HJ. pose proof (sum_exp_pos J s HJ). unfold softmax. rewrite Sum_div. field. lra. Qed.

  (* The control: adding v* to the output leaves the sum of the weights at 1. It is the same as adding v* to
     every value. *)
  (*> sink.value-bias-only *)
  Theorem sink_value_bias_only J s v v_star : J <> [] ->
    ∑ j ∈ J, softmax J s j = 1 /\
    (∑ j ∈ J, softmax J s j * v j) + v_star = ∑ j ∈ J, softmax J s j * (v j + v_star).
  Proof.
    intros HJ. split; [apply softmax_mass, HJ|].
    rewrite (Sum_ext _ (fun j => softmax J s j * (v j + v_star))
               (fun j => softmax J s j * v j + softmax J s j * v_star)) by (intros; ring).
    rewrite Sum_plus, Sum_scal_r, softmax_mass by exact HJ. ring.
  Qed.
  (*< sink.value-bias-only *)

  (* ---- the shift by the maximum ---- *)

  Definition row_max J s b : R := fold_right Rmax b (map s J).

  Lemma row_max_sink J s b : b <= row_max J s b.
  Proof.
    induction J as [|j J IH]; [apply Rle_refl|]. exact (Rle_trans _ _ _ IH (Rmax_r (s j) _)).
  Qed.

  Lemma row_max_key J s b j : In j J -> s j <= row_max J s b.
  Proof.
    induction J as [|k J IH]; simpl; [tauto|]. intros [->|Hj]; [apply Rmax_l|].
    exact (Rle_trans _ _ _ (IH Hj) (Rmax_r _ _)).
  Qed.

  Lemma row_max_attained J s b : row_max J s b = b \/ exists j, In j J /\ row_max J s b = s j.
  Proof.
    induction J as [|k J IH]; [left; reflexivity|]. unfold row_max in *. simpl.
    unfold Rmax at 1 3. destruct (Rle_dec _ _).
    - destruct IH as [-> | [j [Hj ->]]]; [left; reflexivity | right; exists j; auto].
    - right. exists k. auto.
  Qed.

  Lemma exp_le_1 t : t <= 0 -> exp t <= 1.
  Proof.
    intros [Ht | ->]; [|rewrite exp_0; lra].
    rewrite <- exp_0. apply Rlt_le, exp_increasing, Ht.
  Qed.

  (* With m the maximum over the scores and the sink, no exponential exceeds 1, one of them is 1, and the
     denominator is between 1 and n + 1. So nothing overflows, and no quotient is 0/0. *)
  (*> sink.stable *)
  Theorem sink_stable J s b j : In j J ->
    let m := row_max J s b in
    let den := exp (b - m) + ∑ k ∈ J, exp (s k - m) in
    alpha J s b j = exp (s j - m) / den /\
    exp (b - m) <= 1 /\ (forall k, In k J -> exp (s k - m) <= 1) /\
    1 <= den <= INR (length J) + 1.
  Proof.
    intros Hj m den.
    assert (Hb : exp (b - m) <= 1) by (apply exp_le_1; pose proof (row_max_sink J s b : b <= m); lra).
    assert (Hk : forall k, In k J -> exp (s k - m) <= 1)
      by (intros k Hk; apply exp_le_1; pose proof (row_max_key J s b k Hk : s k <= m); lra).
    split; [symmetry; apply (alpha_shift J s b m j) |]. split; [exact Hb|]. split; [exact Hk|].
    split.
    - pose proof (sum_exp_nonneg J (fun k => s k - m)).
      destruct (row_max_attained J s b) as [E | [k [Hin E]]]; fold m in E; unfold den.
      + assert (exp (b - m) = 1) by (rewrite E, Rminus_diag_eq, exp_0; reflexivity). lra.
      + pose proof (Sum_term_le J (fun k => exp (s k - m)) k Hin
                      (fun _ _ => Rlt_le _ _ (exp_pos _))) as T. simpl in T.
        rewrite <- E, Rminus_diag_eq, exp_0 in T by reflexivity. pose proof (exp_pos (b - m)). lra.
    - pose proof (Sum_le J (fun k => exp (s k - m)) (fun _ => 1) Hk) as L.
      rewrite Sum_const in L. unfold den. lra.
  Qed.
  (*< sink.stable *)

  (* ---- b = -inf ---- *)

  (* The sink's term in the denominator; [None] stands for the logit -inf. *)
  Definition exp_logit (b : option R) : R := match b with Some b => exp b | None => 0 end.
  Definition alpha_logit J s (b : option R) j := exp (s j) / (exp_logit b + ∑ k ∈ J, exp (s k)).

  (*> sink.limit *)
  Theorem sink_limit J s j : J <> [] ->
    is_lim (fun b => alpha_sink J s b) m_infty 0 /\
    is_lim (fun b => alpha J s b j) m_infty (softmax J s j) /\
    is_lim (fun b => ∑ j ∈ J, alpha J s b j) m_infty 1 /\
    alpha_logit J s None j = softmax J s j /\
    (forall b, alpha_logit J s (Some b) j = alpha J s b j).
  Proof.
    intros HJ. split; [apply alpha_sink_at_m_infty, HJ|]. split; [apply alpha_at_m_infty, HJ|].
    split; [|split; [|reflexivity]].
    { apply (is_lim_ext (fun b => 1 - alpha_sink J s b)); [intros b; symmetry; apply sink_mass|].
      replace (Finite 1) with (Rbar_minus 1 0) by (simpl; f_equal; ring).
      apply (is_lim_minus _ _ _ 1 0); [apply is_lim_const | apply alpha_sink_at_m_infty, HJ | reflexivity]. }
    unfold alpha_logit, softmax. simpl. rewrite Rplus_0_l. reflexivity.
  Qed.
  (*< sink.limit *)

  (* ---- log-sum-exp and the gate ---- *)

  Definition LSE J s : R := ln (∑ j ∈ J, exp (s j)).
  Definition LSE_sink J s b : R := ln (exp b + ∑ j ∈ J, exp (s j)).
  Definition sigmoid (t : R) : R := 1 / (1 + exp (- t)).

  Lemma exp_LSE J s : J <> [] -> exp (LSE J s) = ∑ j ∈ J, exp (s j).
  Proof. intros HJ. apply exp_ln, sum_exp_pos, HJ. Qed.

  (*> sink.lse *)
  Theorem sink_lse J s b : J <> [] -> LSE_sink J s b = ln (exp (LSE J s) + exp b).
  Proof. intros HJ. rewrite exp_LSE, Rplus_comm by exact HJ. reflexivity. Qed.
  (*< sink.lse *)

  (* The row mass is the sigmoid of LSE - b. So the sink is a gate on the ordinary output: one gate for each
     head and query, which depends on the content through LSE. *)
  (*> sink.gate *)
  Theorem sink_gate J s v b : J <> [] ->
    1 - alpha_sink J s b = sigmoid (LSE J s - b) /\
    ∑ j ∈ J, alpha J s b j * v j = sigmoid (LSE J s - b) * ∑ j ∈ J, softmax J s j * v j.
  Proof.
    intros HJ. pose proof (sum_exp_pos J s HJ) as HS. pose proof (exp_pos b).
    assert (G : sigmoid (LSE J s - b) = (∑ j ∈ J, exp (s j)) / (exp b + ∑ j ∈ J, exp (s j))).
    { unfold sigmoid. replace (- (LSE J s - b)) with (b + - LSE J s) by ring.
      rewrite exp_plus, exp_Ropp, exp_LSE by exact HJ. field. lra. }
    rewrite G. split; [unfold alpha_sink; field; lra|].
    rewrite <- Sum_scal_l. apply Sum_ext. intros j. unfold alpha, softmax. field. lra.
  Qed.
  (*< sink.gate *)

  (* Gated attention multiplies the softmax output by sigmoid(G). The sink is the gate G = LSE - b; where the
     output is not 0, no other G gives the same result. *)
  (*> sink.gated *)
  Theorem sink_gated J s v b G : J <> [] ->
    let o_softmax := ∑ j ∈ J, softmax J s j * v j in
    let o_sink := ∑ j ∈ J, alpha J s b j * v j in
    (G = LSE J s - b -> sigmoid G * o_softmax = o_sink) /\
    (o_softmax <> 0 -> sigmoid G * o_softmax = o_sink -> G = LSE J s - b).
  Proof.
    intros HJ o_softmax o_sink. unfold o_sink. rewrite (proj2 (sink_gate J s v b HJ)).
    fold o_softmax. split; [intros ->; reflexivity|]. intros Ho E.
    apply Rmult_eq_reg_r in E; [|exact Ho]. unfold sigmoid in E.
    pose proof (exp_pos (- G)). pose proof (exp_pos (- (LSE J s - b))).
    assert (E' : 1 + exp (- G) = 1 + exp (- (LSE J s - b))).
    { rewrite <- (Rinv_inv (1 + exp (- G))), <- (Rinv_inv (1 + exp (- (_ - _)))). f_equal.
      unfold Rdiv in E. rewrite !Rmult_1_l in E. exact E. }
    apply Rplus_eq_reg_l, exp_inv in E'. lra.
  Qed.
  (*< sink.gated *)
End Forms.

(* (≠) The maximum of the scores is subtracted, but the literal 1 of softmax_1 stays: one key with score 1
   then has the weight 1/2 instead of e / (1 + e). *)
(*> sink.stable *)
Theorem sink_stable_wrong_literal_one : exists (J : list nat) s j,
  let m := fold_right Rmax (s j) (map s J) in
  exp (s j - m) / (1 + ∑ k ∈ J, exp (s k - m)) <> softmax1 J s j.
Proof.
  exists [0%nat], (fun _ => 1), 0%nat. unfold softmax1. cbn -[exp].
  rewrite Rmax_left by lra. rewrite Rminus_diag_eq, exp_0 by reflexivity.
  pose proof (exp_pos 1). intros E.
  assert (exp 1 = 1).
  { apply (f_equal (fun t => t * (1 + (exp 1 + 0)) * 2)) in E. field_simplify in E; lra. }
  pose proof (exp_ineq1_le 1). lra.
Qed.

Lemma exp_above_pow2 n : 2 ^ S n < exp (INR (S n)).
Proof.
  assert (E : 2 < exp 1) by (pose proof (exp_ineq1 1); lra).
  induction n as [|n IH]; [simpl; lra|].
  rewrite (S_INR (S n)), exp_plus. pose proof (pow_lt 2 (S n) ltac:(lra)).
  change (2 ^ S (S n)) with (2 * 2 ^ S n). rewrite Rmult_comm.
  apply Rmult_gt_0_lt_compat; lra.
Qed.

(* (≠) The maximum leaves out the sink: with score 0 and b = 128 the sink's term exceeds every finite binary32
   number (all of them are below 2^128). *)
Theorem sink_stable_wrong_max_without_sink : exists (s : nat -> R) b,
  let m := fold_right Rmax (s 0%nat) (map s [0%nat]) in exp (b - m) > 2 ^ 128.
Proof.
  exists (fun _ => 0), (INR 128). cbn -[exp pow INR].
  rewrite Rmax_left, Rminus_0_r by lra. apply exp_above_pow2.
Qed.
(*< sink.stable *)
