(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The lanes' exponential (fast/lanes/exp.h), operation by operation, and its error at every float32 number from -104
   to 89 (bound.exp). A float32 number is an element of Flocq's FLT format, which has no largest number: a result of
   2^128 or more is infinity in the code. The constants are copied from the header;
   tests/fast/test_lanes_exp_constants.py compares them. Assumed: round to nearest, ties to even. *)

From Coq Require Import Reals ZArith Lia Lra.
From Flocq Require Import Core.
From Interval Require Import Float.Specific_stdz Float.Specific_ops.
From Interval Require Tactic.
Open Scope R_scope.

(* Interval arithmetic over Coq's own integers: no axiom on machine numbers. *)
Module IntegerFloats := SpecificFloat StdZRadix2.
Module IntegerIntervals := Tactic.IntervalTactic IntegerFloats.
Import IntegerIntervals.
Notation i_prec := Tactic.i_prec.
Notation i_bisect := Tactic.i_bisect.
Notation i_taylor := Tactic.i_taylor.
Notation i_degree := Tactic.i_degree.

Notation pow2 := (bpow radix2).
Definition float32 : R -> Prop := generic_format radix2 (FLT_exp (-149) 24).
Definition rnd : R -> R := round radix2 (FLT_exp (-149) 24) ZnearestE.

(*> bound.exp *)
Definition HIGH   := 89.0.
Definition LOW    := -104.0.
(*< bound.exp *)
Definition LOG2E  := 0x1.715476p+0.
Definition ROUND  := 0x1.8001fcp+23.
Definition LN2_HI := 0x1.62e43p-1.
Definition LN2_LO := -0x1.05c61p-29.
Definition C2     := 0x1.fffffap-2.
Definition C3     := 0x1.555492p-3.
Definition C4     := 0x1.555a26p-5.
Definition C5     := 0x1.12397ep-7.
Definition C6     := 0x1.694c8ep-10.
(*> bound.exp *)
Definition ULP           := 0.93.
Definition ULP_SUBNORMAL := 0.965.
(*< bound.exp *)

(* Of the header: steps 2 and 3 (steps_n, steps_r), step 4 (steps_p), steps 5 and 6 (steps_scale). *)
Definition steps_n (x : R) : R := rnd (rnd (x * LOG2E + ROUND) - ROUND).
Definition steps_r (x n : R) : R := rnd (n * - LN2_LO + rnd (n * - LN2_HI + x)).
Definition steps_p (r : R) : R :=
  rnd (rnd (rnd (rnd (rnd (rnd (C6 * r + C5) * r + C4) * r + C3) * r + C2) * r + 1) * r + 1).
Definition steps_scale (p n : R) : R :=
  let half := Zfloor (n / 2) in
  rnd (rnd (p * pow2 half) * pow2 (Zfloor n - half)).
Definition lanes_exp (x : R) : R :=
  let x := Rmax LOW (Rmin HIGH x) in
  let n := steps_n x in
  steps_scale (steps_p (steps_r x n)) n.

Ltac constants := unfold HIGH, LOW, LOG2E, ROUND, LN2_HI, LN2_LO, C2, C3, C4, C5, C6 in *.

(* ---- one rounding ---- *)

#[local] Instance precision : Prec_gt_0 24 := eq_refl.

Lemma rnd_half e y : (-125 <= e)%Z -> Rabs y <= pow2 e -> Rabs (rnd y - y) <= pow2 (e - 25).
Proof.
  intros He [Hy | Hy].
  - destruct (Req_dec y 0) as [->|N].
    { unfold rnd. rewrite round_0 by typeclasses eauto. rewrite Rminus_0_r, Rabs_R0. apply bpow_ge_0. }
    eapply Rle_trans; [apply error_le_half_ulp; typeclasses eauto|].
    rewrite ulp_neq_0 by assumption. unfold cexp, FLT_exp.
    replace (e - 25)%Z with (-1 + (e - 24))%Z by ring. rewrite bpow_plus.
    change (pow2 (-1)) with (/ 2). apply Rmult_le_compat_l; [lra|]. apply bpow_le.
    pose proof (mag_le_bpow radix2 y e N Hy). lia.
  - assert (F : float32 y).
    { destruct (Rle_lt_dec 0 y) as [S|S]; [rewrite Rabs_pos_eq in Hy by assumption|
      rewrite Rabs_left in Hy by assumption; apply (f_equal Ropp) in Hy; rewrite Ropp_involutive in Hy];
      rewrite Hy; [|apply generic_format_opp]; apply generic_format_bpow; unfold FLT_exp; lia. }
    unfold rnd. rewrite round_generic, Rminus_diag_eq, Rabs_R0; auto using bpow_ge_0.
    typeclasses eauto.
Qed.

(* No float32 number is nearer to y than rnd y. *)
Lemma rnd_nearest y f : float32 f -> Rabs (rnd y - y) <= Rabs (f - y).
Proof. intros F. apply round_N_pt; [typeclasses eauto | exact F]. Qed.

Lemma rnd_float y : float32 y -> rnd y = y.
Proof. intros F. apply round_generic; [typeclasses eauto | exact F]. Qed.

Lemma float_rnd y : float32 (rnd y).
Proof. apply generic_format_round; typeclasses eauto. Qed.

(* m 2^e is a float32 number if m has at most 24 bits. *)
Lemma float_of m e : (Z.abs m <= 2 ^ 24)%Z -> (-149 <= e)%Z -> float32 (IZR m * pow2 e).
Proof.
  intros Hm He. destruct (Z.eq_dec (Z.abs m) (2 ^ 24)) as [E|N].
  - assert (B : float32 (pow2 (24 + e))) by (apply generic_format_bpow; unfold FLT_exp; lia).
    destruct (Z.abs_eq_or_opp m) as [A|A]; rewrite A in E;
      [rewrite E | rewrite <- (Z.opp_involutive m), E, opp_IZR, <- Ropp_mult_distr_l; apply generic_format_opp];
      change (IZR (2 ^ 24)) with (pow2 24); rewrite <- bpow_plus; exact B.
  - apply generic_format_FLT. exists (Defs.Float radix2 m e); simpl; [reflexivity| lia | lia].
Qed.

(* A float32 number of absolute value 2^e or more is a multiple of 2^(e - 23). *)
Lemma float_grain x e : float32 x -> pow2 e <= Rabs x -> (-126 <= e)%Z ->
  exists m, x = IZR m * pow2 (e - 23).
Proof.
  intros F H He. assert (M : (e + 1 <= mag radix2 x)%Z) by (apply mag_ge_bpow; now replace (e + 1 - 1)%Z with e by ring).
  assert (C : (e - 23 <= cexp radix2 (FLT_exp (-149) 24) x)%Z) by (unfold cexp, FLT_exp; lia).
  exists (Ztrunc (scaled_mantissa radix2 (FLT_exp (-149) 24) x) * 2 ^ (cexp radix2 (FLT_exp (-149) 24) x - (e - 23)))%Z.
  unfold float32, generic_format in F. rewrite F at 1. unfold F2R; simpl Fnum; simpl Fexp.
  rewrite mult_IZR, Rmult_assoc.
  rewrite (IZR_Zpower radix2) by lia. rewrite <- bpow_plus. do 2 f_equal. ring.
Qed.

(* ---- steps 2 and 3: x - n ln 2 ---- *)

Lemma reduction x : float32 x -> LOW <= x <= HIGH -> exists k rr,
  steps_n x = IZR k /\ (-150 <= k <= 128)%Z /\ steps_r x (IZR k) = rnd rr /\
  Rabs rr <= 0x1.62fp-2 /\ Rabs (x - IZR k * ln 2 - rr) <= 0x1p-45.
Proof.
  intros F B. set (y := x * LOG2E + ROUND).
  assert (Y : pow2 23 <= y < pow2 24).
  { change (pow2 23) with 8388608. change (pow2 24) with 16777216. subst y; constants. split; interval with (i_prec 60). }
  pose (k := (ZnearestE y - 12583166)%Z). exists k.
  assert (T : rnd y = IZR (ZnearestE y)).
  { unfold rnd, round. assert (C : cexp radix2 (FLT_exp (-149) 24) y = 0%Z).
    { unfold cexp, FLT_exp. rewrite (mag_unique_pos radix2 y 24); [reflexivity | exact Y]. }
    unfold scaled_mantissa. rewrite C. unfold F2R; simpl. now rewrite !Rmult_1_r. }
  pose proof (Znearest_half (fun z => negb (Z.even z)) y) as D. fold ZnearestE in D.
  assert (R0 : ROUND = IZR 12583166) by (unfold ROUND, Q2R; simpl; lra).
  assert (R1 : rnd (rnd y - ROUND) = rnd (IZR k)) by (rewrite T, R0, <- minus_IZR; reflexivity).
  set (δ := x * LOG2E - IZR k).
  assert (Hδ : Rabs δ <= 1 / 2).
  { subst δ k y. rewrite minus_IZR, <- R0. rewrite Rabs_minus_sym in D.
    replace (x * LOG2E - _) with (x * LOG2E + ROUND - IZR (ZnearestE (x * LOG2E + ROUND))) by ring.
    rewrite Rabs_minus_sym. lra. }
  clearbody k. clear D T Y.
  assert (X : x = (δ + IZR k) / LOG2E) by (subst δ; constants; field; unfold Q2R; simpl; lra).
  assert (K : -150.6 <= IZR k <= 128.95).
  { replace (IZR k) with (x * LOG2E - δ) by (subst δ; ring). constants. interval with (i_prec 60). }
  assert (K1 : (-151 < k)%Z) by (apply lt_IZR; lra).
  assert (K2 : (k < 129)%Z) by (apply lt_IZR; lra).
  assert (G : Rabs (IZR k * - LN2_HI + x) <= 0.35).
  { replace (IZR k * - LN2_HI + x) with (δ / LOG2E + IZR k * (1 / LOG2E - LN2_HI))
      by (rewrite X at 1; field; unfold LOG2E, Q2R; simpl; lra).
    constants. interval with (i_prec 80). }
  assert (E : float32 (IZR k * - LN2_HI + x)).
  { destruct (Z.eq_dec k 0) as [->|N]; [now rewrite Rmult_0_l, Rplus_0_l|].
    destruct (float_grain x (-2)) as [m Hm]; [exact F | | lia |].
    - change (pow2 (-2)) with (/ 4). rewrite X. unfold Rdiv. rewrite Rabs_mult.
      assert (1 <= Rabs (IZR k)) by (rewrite <- abs_IZR; apply IZR_le; lia).
      assert (1 / 2 <= Rabs (δ + IZR k)).
      { pose proof (Rabs_triang_inv (IZR k) (- δ)) as H1. rewrite Rabs_Ropp in H1.
        replace (IZR k - - δ) with (δ + IZR k) in H1 by ring. lra. }
      assert (0.6 <= Rabs (/ LOG2E)) by (constants; interval with (i_prec 60)). nra.
    - assert (H : IZR k * - LN2_HI + x = IZR (m - k * 23258160) * pow2 (-25)).
      { rewrite Hm at 1. change (-2 - 23)%Z with (-25)%Z. rewrite minus_IZR, mult_IZR.
        assert (LN2_HI = 23258160 * pow2 (-25)) as -> by (unfold LN2_HI, Q2R; simpl; lra). ring. }
      rewrite H in G |- *. apply float_of; [|lia]. rewrite Rabs_mult, <- abs_IZR in G.
      rewrite (Rabs_pos_eq (pow2 (-25))) in G by apply bpow_ge_0.
      change (pow2 (-25)) with (/ 33554432) in G. apply le_IZR. simpl (2 ^ 24)%Z. lra. }
  exists (IZR k * - LN2_LO + (IZR k * - LN2_HI + x)). repeat split; try lia.
  - unfold steps_n. fold y. rewrite R1, <- (Rmult_1_r (IZR k)).
    change 1 with (pow2 0). apply rnd_float, float_of; lia.
  - unfold steps_r. now rewrite (rnd_float _ E).
  - replace (_ + _) with (δ / LOG2E + IZR k * (1 / LOG2E - LN2_HI - LN2_LO))
      by (rewrite X at 1; field; unfold LOG2E, Q2R; simpl; lra).
    constants. interval with (i_prec 80).
  - replace (_ - _) with (IZR k * (LN2_HI + LN2_LO - ln 2)) by ring.
    constants. interval with (i_prec 120).
Qed.

(* ---- step 4: the polynomial ---- *)

Definition P (r : R) : R := (((((C6 * r + C5) * r + C4) * r + C3) * r + C2) * r + 1) * r + 1.

Lemma P_exp r : Rabs r <= 0x1.63p-2 -> Rabs (P r * exp (- r) - 1) <= 3.4e-9.
Proof. intros. unfold P. constants. interval with (i_taylor r, i_bisect r, i_degree 12, i_prec 70). Qed.

Lemma rounded e b y : (-125 <= e)%Z -> pow2 e = b -> Rabs y <= b ->
  exists ε, rnd y = y + ε /\ Rabs ε <= b * 0x1p-25.
Proof.
  intros He <- Hy. exists (rnd y - y). split; [ring|].
  replace 0x1p-25 with (pow2 (-25)) by (unfold Q2R; simpl; lra).
  rewrite <- bpow_plus. now apply rnd_half.
Qed.

(* Adds up the errors e0 … e5 of the roundings, the distance of P from e^r, and the error d of r itself. *)
Lemma gather r d e0 e1 e2 e3 e4 e5 b : Rabs r <= 0x1.63p-2 -> Rabs d <= 0x1.001p-26 ->
  Rabs (e0 + e1 * r + e2 * r ^ 2 + e3 * r ^ 3 + e4 * r ^ 4 + e5 * r ^ 5)
    + exp r * (3.4e-9 + 0x1.002p-26) <= b ->
  Rabs ((((((C6 * r + C5 + e5) * r + C4 + e4) * r + C3 + e3) * r + C2 + e2) * r + 1 + e1) * r + 1 + e0
    - exp (r + d)) <= b.
Proof.
  intros Hr Hd Hb. eapply Rle_trans; [|exact Hb].
  replace (_ - exp (r + d)) with
    ((e0 + e1 * r + e2 * r ^ 2 + e3 * r ^ 3 + e4 * r ^ 4 + e5 * r ^ 5)
     + exp r * ((P r * exp (- r) - 1) + (1 - exp d))).
  - eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l.
    rewrite Rabs_mult, (Rabs_pos_eq (exp r)) by (left; apply exp_pos).
    apply Rmult_le_compat_l; [left; apply exp_pos|].
    eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [now apply P_exp|].
    interval with (i_prec 80).
  - rewrite exp_plus, exp_Ropp. unfold P. field. apply Rgt_not_eq, exp_pos.
Qed.

(* Names the error of the innermost rounding, whose argument is at most b = 2^e. *)
Ltac round_inner e b :=
  match goal with |- context [rnd ?y] =>
    lazymatch y with context [rnd _] => fail | _ =>
      let ε := fresh "e" in let H := fresh "H" in
      destruct (rounded e b y ltac:(lia) eq_refl ltac:(constants; interval with (i_prec 60)))
        as (ε & -> & H)
    end end.
Ltac first_three := unfold steps_p; round_inner (-6)%Z (/ 64); round_inner (-4)%Z (/ 16); round_inner (-2)%Z (/ 4).
Ltac gathered r := apply gather; [apply Rabs_le; lra | assumption | unfold ULP; interval with (i_bisect r, i_prec 60)].

Lemma steps_p_below r d : -0x1.63p-2 <= r <= 0 -> Rabs d <= 0x1.001p-26 ->
  Rabs (steps_p r - exp (r + d)) <= ULP * 0x1p-24.
Proof.
  intros. first_three. round_inner (-1)%Z (/ 2). do 2 round_inner 0%Z 1. gathered r.
Qed.

Lemma steps_p_above r d : 0 <= r <= 0x1.63p-2 -> Rabs d <= 0x1.001p-26 ->
  Rabs (steps_p r - exp (r + d)) <= ULP * 0x1p-23.
Proof.
  intros. first_three. round_inner 0%Z 1. do 2 round_inner 1%Z 2. gathered r.
Qed.

(* The case where r is just above 0 but x - n ln 2 may be just below. The last rounding errs by no more than
   the distance from its argument to 1, because 1 is a float32 number. *)
Lemma steps_p_tiny r d : 0 <= r <= 0x1p-44 -> Rabs d <= 0x1.001p-26 ->
  Rabs (steps_p r - exp (r + d)) <= ULP * 0x1p-24.
Proof.
  intros. assert (r <= 0x1.63p-2) by lra. first_three. round_inner 0%Z 1. round_inner 1%Z 2.
  match goal with |- context [rnd ?y] =>
    assert (L : Rabs (rnd y - y) <= Rabs (1 - y)) by
      (apply rnd_nearest; change 1 with (pow2 0); apply generic_format_bpow; unfold FLT_exp; lia);
    assert (M : Rabs (1 - y) <= 0x1p-42) by (constants; interval with (i_prec 80));
    replace (rnd y) with (y + (rnd y - y)) by ring; set (last := rnd y - y) in *; clearbody last
  end.
  assert (Rabs last <= 0x1p-42) by lra. gathered r.
Qed.

(* p approximates E = e^(x - n ln 2), which is at least 2^(j - 1), within ULP units in the last place of
   numbers in [2^(j - 1), 2^j). *)
Lemma steps_error x : float32 x -> LOW <= x <= HIGH -> exists k j,
  steps_n x = IZR k /\ (-150 <= k <= 128)%Z /\
  let p := steps_p (steps_r x (IZR k)) in let E := exp (x - IZR k * ln 2) in
  0.7 <= p <= 1.5 /\ pow2 (j - 1) <= E /\ Rabs (p - E) <= ULP * pow2 (j - 24).
Proof.
  intros F B. destruct (reduction x F B) as (k & rr & N & K & T & A & D).
  exists k. rewrite T. set (R := x - IZR k * ln 2) in *. clearbody R.
  assert (E : Rabs (rnd rr - rr) <= 0x1p-26).
  { replace 0x1p-26 with (pow2 (-1 - 25)) by (unfold Q2R; simpl; lra). apply rnd_half; [lia|].
    change (pow2 (-1)) with (/ 2). lra. }
  apply Rabs_le_inv in A. pose proof (Rabs_le_inv _ _ D) as D'. pose proof (Rabs_le_inv _ _ E) as E'.
  assert (X : Rabs (R - rnd rr) <= 0x1.001p-26) by (apply Rabs_le; lra).
  assert (Z : forall b, Rabs (steps_p (rnd rr) - exp (rnd rr + (R - rnd rr))) <= b ->
    Rabs (steps_p (rnd rr) - exp R) <= b).
  { intros b. now replace (rnd rr + (R - rnd rr)) with R by ring. }
  assert (S : -0.347 <= R <= 0.347) by lra.
  assert (W : forall j, (j = 0 \/ j = 1)%Z -> Rabs (steps_p (rnd rr) - exp R) <= ULP * pow2 (j - 24) ->
    0.7 <= steps_p (rnd rr) <= 1.5).
  { intros j J H. apply Rabs_le_inv in H.
    assert (ULP * pow2 (j - 24) <= 0x1p-20).
    { destruct J as [-> | ->]; unfold ULP, Q2R; simpl; lra. }
    assert (0.701 <= exp R <= 1.42) by (split; interval with (i_prec 60)). lra. }
  assert (C : (exists j, (j = 0 \/ j = 1)%Z /\ pow2 (j - 1) <= exp R /\
    Rabs (steps_p (rnd rr) - exp R) <= ULP * pow2 (j - 24))).
  { assert (P0 : pow2 (0 - 1) <= exp R) by (change (pow2 (0 - 1)) with (/ 2); interval with (i_prec 60)).
    replace (pow2 (0 - 24)) with 0x1p-24 by (unfold Q2R; simpl; lra).
    destruct (Rle_lt_dec rr 0) as [L|L].
    - exists 0%Z. repeat split; auto. replace (pow2 (0 - 24)) with 0x1p-24 by (unfold Q2R; simpl; lra).
      apply Z, steps_p_below; [|exact X]. split; [lra|]. replace 0 with (rnd 0) by (apply round_0; typeclasses eauto).
      apply round_le; [typeclasses eauto | typeclasses eauto | exact L].
    - assert (G : 0 <= rnd rr).
      { replace 0 with (rnd 0) by (apply round_0; typeclasses eauto).
        apply round_le; [typeclasses eauto | typeclasses eauto | lra]. }
      destruct (Rle_lt_dec 0 R) as [M|M].
      + exists 1%Z. repeat split; auto; [change (pow2 (1 - 1)) with 1; interval with (i_prec 60)|].
        replace (pow2 (1 - 24)) with 0x1p-23 by (unfold Q2R; simpl; lra).
        apply Z, steps_p_above; [|exact X]. split; lra.
      + exists 0%Z. repeat split; auto. replace (pow2 (0 - 24)) with 0x1p-24 by (unfold Q2R; simpl; lra).
        apply Z, steps_p_tiny; [|exact X]. split; [exact G|].
        assert (V : rnd rr <= rnd (pow2 (-45))).
        { apply round_le; [typeclasses eauto | typeclasses eauto |].
          replace (pow2 (-45)) with 0x1p-45 by (unfold Q2R; simpl; lra). lra. }
        rewrite (rnd_float (pow2 (-45))) in V by (apply generic_format_bpow; unfold FLT_exp; lia).
        replace (pow2 (-45)) with 0x1p-45 in V by (unfold Q2R; simpl; lra). lra. }
  destruct C as (j & J & C1 & C2). exists j. simpl. destruct (W j J C2).
  repeat split; auto; lia.
Qed.

(* ---- steps 5 and 6: the product with 2^n ---- *)

Lemma float_scaled p k : float32 p -> 0.7 <= p <= 1.5 -> pow2 (-126) <= p * pow2 k -> float32 (p * pow2 k).
Proof.
  intros F B H. pose proof (bpow_gt_0 radix2 k) as K.
  assert (G : exists e, (e = 0 \/ e = -1)%Z /\ pow2 e <= p < pow2 (e + 1)).
  { destruct (Rle_lt_dec 1 p); [exists 0%Z | exists (-1)%Z]; (split; [auto|]);
      unfold Q2R in *; simpl in *; lra. }
  destruct G as (e & He & P1 & P2).
  assert (L : (-126 < e + 1 + k)%Z).
  { apply (lt_bpow radix2). rewrite bpow_plus. eapply Rle_lt_trans; [exact H|]. now apply Rmult_lt_compat_r. }
  destruct (float_grain p e) as [m Hm]; [exact F | now rewrite Rabs_pos_eq by lra | lia |].
  replace (p * pow2 k) with (IZR m * pow2 (e - 23 + k)) by (rewrite bpow_plus, Hm; ring).
  apply float_of; [|lia]. rewrite Hm in P1, P2.
  assert (M0 : (0 <= m)%Z).
  { apply le_IZR. pose proof (bpow_gt_0 radix2 (e - 23)). pose proof (bpow_gt_0 radix2 e). nra. }
  assert (M1 : (m < 2 ^ 24)%Z).
  { apply lt_IZR. apply (Rmult_lt_reg_r (pow2 (e - 23))); [apply bpow_gt_0|].
    change (IZR (2 ^ 24)) with (pow2 24). rewrite <- bpow_plus. now replace (24 + (e - 23))%Z with (e + 1)%Z by ring. }
  lia.
Qed.

(* Both factors are powers of 2 and the first product is exact, so there is only one rounding. *)
Lemma scale_rounds_once p k : float32 p -> 0.7 <= p <= 1.5 -> (-150 <= k <= 128)%Z ->
  steps_scale p (IZR k) = rnd (p * pow2 k).
Proof.
  intros F B K. unfold steps_scale. rewrite Zfloor_div by lia. rewrite Zfloor_IZR.
  assert (H : (-75 <= k / 2)%Z) by (apply Z.div_le_lower_bound; lia).
  rewrite (rnd_float (p * pow2 (k / 2))).
  - rewrite Rmult_assoc, <- bpow_plus. do 3 f_equal. ring.
  - apply float_scaled; auto. apply (Rle_trans _ (pow2 (-1) * pow2 (k / 2))).
    + rewrite <- bpow_plus. apply bpow_le. lia.
    + apply Rmult_le_compat_r; [apply bpow_ge_0|]. change (pow2 (-1)) with (/ 2). lra.
Qed.

(* The exponential of a float32 number is below the least normal number, or exceeds it by at least 2^-20,
   relatively. *)
Lemma away_from_2_126 x : float32 x -> LOW <= x -> pow2 (-126) <= exp x ->
  pow2 (-126) * (1 + 0x1p-20) <= exp x.
Proof.
  intros F B H. rewrite (bpow_exp radix2) in *. simpl (IZR radix2) in *.
  assert (X : (-126) * ln 2 <= x) by (apply Rnot_lt_le; intros C; apply exp_increasing in C; lra).
  assert (Y : -11447375 / 131072 <= x).
  { destruct (Rle_lt_dec (-87) x); [lra|].
    destruct (float_grain x 6) as [m Hm]; [exact F | | lia |].
    - rewrite Rabs_left by lra. change (pow2 6) with 64. lra.
    - change (pow2 (6 - 23)) with (/ 131072) in Hm.
      assert (-11447376 < m)%Z; [|assert (-11447375 <= m)%Z as M by lia; apply IZR_le in M; lra].
      apply lt_IZR. assert (-11447376 / 131072 < -126 * ln 2) by interval with (i_prec 60). lra. }
  apply (Rle_trans _ (exp (-11447375 / 131072))); [|destruct Y as [Y | <-]; [left; now apply exp_increasing | lra]].
  interval with (i_prec 80).
Qed.

(*> bound.exp *)
(* Any exponential with relative error e, of an argument that was rounded once. *)
Theorem bound_exp_rounded (t t' y u e : R) :
  Rabs (t' - t) <= u * Rabs t -> Rabs (y - exp t') <= e * exp t' ->
  Rabs (y - exp t) <= (exp (Rabs t * u) * (1 + e) - 1) * exp t.
Proof.
  intros T Y. set (a := t' - t) in *.
  assert (E : exp t' = exp a * exp t) by (rewrite <- exp_plus; f_equal; unfold a; ring).
  assert (A : exp a <= exp (Rabs t * u)).
  { destruct (Rle_lt_or_eq_dec a (Rabs t * u)) as [L | ->]; [pose proof (Rle_abs a); lra | | lra].
    left. now apply exp_increasing. }
  assert (D : Rabs (exp a - 1) <= exp (Rabs t * u) - 1).
  { apply Rabs_le. split; [|lra]. set (b := Rabs t * u) in *.
    assert (B : - b <= a) by (pose proof (Rcomplements.Rabs_maj2 a); unfold b; lra).
    assert (exp (- b) <= exp a) by (destruct B as [B | <-]; [left; now apply exp_increasing | lra]).
    (* e^b + e^(-b) >= 2 *)
    pose proof (exp_pos b). rewrite exp_Ropp in *. assert (exp b * / exp b = 1) by (field; lra).
    assert (0 < / exp b) by (now apply Rinv_0_lt_compat). nra. }
  pose proof (exp_pos t). pose proof (exp_pos a). assert (0 <= e).
  { apply Rmult_le_reg_r with (exp t'); [apply exp_pos|]. rewrite Rmult_0_l.
    eapply Rle_trans; [apply Rabs_pos | exact Y]. }
  replace (y - exp t) with ((y - exp t') + (exp a - 1) * exp t) by (rewrite E; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_pos_eq (exp t)) by lra.
  set (b := exp (Rabs t * u)) in *.
  replace ((b * (1 + e) - 1) * exp t) with (e * (b * exp t) + (b - 1) * exp t) by ring.
  apply Rplus_le_compat; [|now apply Rmult_le_compat_r; [lra|]].
  eapply Rle_trans; [exact Y|]. rewrite E. apply Rmult_le_compat_l; [assumption|].
  apply Rmult_le_compat_r; lra.
Qed.

(* The lanes' exponential with all its roundings, at every float32 number from LOW to HIGH. *)
Theorem bound_exp (x : R) : float32 x -> LOW <= x <= HIGH ->
  (pow2 (-126) <= exp x -> Rabs (lanes_exp x - exp x) <= ULP * ulp radix2 (FLT_exp (-149) 24) (exp x)) /\
  (exp x < pow2 (-126) -> Rabs (lanes_exp x - exp x) <= ULP_SUBNORMAL * pow2 (-149)).
Proof.
  intros F B. destruct (steps_error x F B) as (k & j & N & K & P1 & P2 & P3).
  unfold lanes_exp. rewrite Rmin_right, Rmax_right by lra. rewrite N.
  set (p := steps_p _) in *. assert (Fp : float32 p) by apply float_rnd. clearbody p.
  rewrite scale_rounds_once by assumption.
  assert (Z : exp x = exp (x - IZR k * ln 2) * pow2 k).
  { rewrite (bpow_exp radix2), <- exp_plus. f_equal. simpl (IZR radix2). ring. }
  set (E := exp (x - IZR k * ln 2)) in *.
  assert (V : Rabs (p * pow2 k - exp x) <= ULP * pow2 (k + j - 24)).
  { rewrite Z, <- Rmult_minus_distr_r, Rabs_mult, (Rabs_pos_eq (pow2 k)) by apply bpow_ge_0.
    replace (k + j - 24)%Z with (j - 24 + k)%Z by ring. rewrite bpow_plus, <- Rmult_assoc.
    apply Rmult_le_compat_r; [apply bpow_ge_0 | exact P3]. }
  assert (L : pow2 (k + j - 1) <= exp x).
  { rewrite Z. replace (k + j - 1)%Z with (j - 1 + k)%Z by ring. rewrite bpow_plus.
    apply Rmult_le_compat_r; [apply bpow_ge_0 | exact P2]. }
  pose proof (Rabs_le_inv _ _ V) as V'. split; intros H.
  - assert (A := away_from_2_126 x F (proj1 B) H).
    assert (S : pow2 (k + j - 24) <= 0x1p-23 * exp x).
    { replace (k + j - 24)%Z with (-23 + (k + j - 1))%Z by ring. rewrite bpow_plus.
      apply Rmult_le_compat; try apply bpow_ge_0; [unfold Q2R; simpl; lra | exact L]. }
    pose proof (bpow_gt_0 radix2 (k + j - 24)). pose proof (bpow_gt_0 radix2 (-126)).
    rewrite rnd_float; [eapply Rle_trans; [exact V|]|].
    + apply Rmult_le_compat_l; [unfold ULP; lra|]. rewrite ulp_neq_0 by apply Rgt_not_eq, exp_pos.
      apply bpow_le. unfold cexp, FLT_exp.
      assert (k + j <= mag radix2 (exp x))%Z; [|lia].
      apply mag_ge_bpow. rewrite Rabs_pos_eq by (left; apply exp_pos). exact L.
    + apply float_scaled; auto. unfold ULP in *. lra.
  - assert (J : (k + j <= -126)%Z).
    { assert (k + j - 1 < -126)%Z; [apply (lt_bpow radix2); lra | lia]. }
    assert (S : ULP * pow2 (k + j - 24) <= ULP * pow2 (-150)).
    { apply Rmult_le_compat_l; [unfold ULP; lra|]. apply bpow_le. lia. }
    assert (T : pow2 (-149) = 2 * pow2 (-150)) by (change (-149)%Z with (1 + -150)%Z; now rewrite bpow_plus).
    assert (U : pow2 (-125) = 2 * pow2 (-126)) by (change (-125)%Z with (1 + -126)%Z; now rewrite bpow_plus).
    assert (W : pow2 (-150) <= pow2 (-126)) by (apply bpow_le; lia).
    assert (Q : Rabs (rnd (p * pow2 k) - p * pow2 k) <= pow2 (-150)).
    { apply (rnd_half (-125)); [lia|]. pose proof (bpow_gt_0 radix2 k).
      rewrite Rabs_pos_eq by (apply Rmult_le_pos; lra). unfold ULP in *. lra. }
    apply Rabs_le_inv in Q. apply Rabs_le. unfold ULP, ULP_SUBNORMAL in *. lra.
Qed.

(* It overflows exactly where the true exponential does. *)
Theorem bound_exp_overflow (x : R) : float32 x -> LOW <= x <= HIGH ->
  (exp x < pow2 128 <-> lanes_exp x < pow2 128).
Proof.
  intros F B. destruct (bound_exp x F B) as [Q S].
  assert (P : pow2 (-126) <= 1 /\ 4 <= pow2 128) by (split; [apply (bpow_le radix2 _ 0) | apply (bpow_le radix2 2)]; lia).
  assert (R : pow2 (-126) <= exp x -> Rabs (lanes_exp x - exp x) <= ULP * (exp x * 0x1p-23)).
  { intros H. eapply Rle_trans; [exact (Q H)|]. apply Rmult_le_compat_l; [unfold ULP; lra|].
    pose proof (ulp_FLT_le radix2 (-149) 24 (exp x)) as U. rewrite Rabs_pos_eq in U by (left; apply exp_pos).
    replace 0x1p-23 with (pow2 (1 - 24)) by (unfold Q2R; simpl; lra). apply U, H. }
  destruct (Rle_lt_dec x (11629079 / 131072)) as [L|L].
  - assert (E : exp x <= pow2 128 * (1 - 0x1p-20)).
    { apply (Rle_trans _ (exp (11629079 / 131072))).
      - destruct L as [L | <-]; [left; now apply exp_increasing | lra].
      - rewrite (bpow_exp radix2). simpl (IZR radix2). interval with (i_prec 100). }
    split; intros _; [|lra]. destruct (Rle_lt_dec (pow2 (-126)) (exp x)) as [N|N].
    + specialize (R N). apply Rabs_le_inv in R. unfold ULP in R. lra.
    + specialize (S N). apply Rabs_le_inv in S. unfold ULP_SUBNORMAL in S.
      assert (pow2 (-149) <= pow2 (-126)) by (apply bpow_le; lia). lra.
  - assert (G : 11629080 / 131072 <= x).
    { destruct (float_grain x 6) as [m Hm]; [exact F | rewrite Rabs_pos_eq by lra; change (pow2 6) with 64; lra | lia |].
      change (pow2 (6 - 23)) with (/ 131072) in Hm.
      assert (11629079 < m)%Z by (apply lt_IZR; lra). assert (11629080 <= m)%Z as M by lia. apply IZR_le in M. lra. }
    assert (E : pow2 128 * (1 + 2.3e-7) <= exp x).
    { apply (Rle_trans _ (exp (11629080 / 131072))).
      - rewrite (bpow_exp radix2). simpl (IZR radix2). interval with (i_prec 100).
      - destruct G as [G | <-]; [left; now apply exp_increasing | lra]. }
    assert (N : pow2 (-126) <= exp x) by lra. specialize (R N). apply Rabs_le_inv in R. unfold ULP in R. lra.
Qed.
(*< bound.exp *)
