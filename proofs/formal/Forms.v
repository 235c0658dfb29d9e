(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Forms in which kernels evaluate the same weights and the same sigmoid: equal over the reals, and
   each with a bound of its own when it is rounded. No second-order term is dropped. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Summation BoundsSoftmaxSink Bounds.
From Coq Require Import Reals List Permutation Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* ---- equal over the reals ---- *)

Definition exp2 (x : R) : R := exp (x * ln 2).
Definition log2e : R := / ln 2.

Lemma ln_2_pos : 0 < ln 2.
Proof. rewrite <- ln_1. apply ln_increasing; lra. Qed.

Lemma softmax_scaled {A} (I : list A) (z e : A -> R) (C : R) k : I <> [] -> 0 < C ->
  (forall k, e k = exp (z k) * C) -> e k / Sum I e = softmax I z k.
Proof.
  intros HI HC He. pose proof (sum_exp_pos I z HI). unfold softmax.
  rewrite (Sum_ext I e (fun k => exp (z k) * C)), Sum_scal_r, He by exact He. field. lra.
Qed.

Lemma extra_nonempty {key} (J : list key) : with_extra J <> [].
Proof. unfold with_extra. destruct J; discriminate. Qed.

(* μ is whatever is subtracted; the sink is None. By sink.concat-slice the right side is alpha_j or
   alpha_sink. *)
(*> form.base2 *)
Theorem form_base2 {key} (J : list key) (s : key -> R) (b μ : R) (k : option key) :
  let I := with_extra J in let z := cat s b in
  let e k := exp2 (z k * log2e - μ) in
  e k / Sum I e = softmax I z k.
Proof.
  intros I z e. apply (softmax_scaled I z e (exp (- (μ * ln 2))));
    [apply extra_nonempty | apply exp_pos|].
  intros k'. unfold e, exp2, log2e. rewrite <- exp_plus. f_equal. pose proof ln_2_pos. field. lra.
Qed.
(*< form.base2 *)

(* A numerator that was made under the maximum m is rescaled at each later one. *)
Fixpoint rescaled (w m : R) (later : list R) : R :=
  match later with
  | [] => w
  | m' :: rest => rescaled (w * exp (m - m')) m' rest
  end.

Lemma rescaled_exp z later : forall m, rescaled (exp (z - m)) m later = exp (z - last later m).
Proof.
  induction later as [|m' rest IH]; intros m; [reflexivity|].
  cbn [rescaled]. rewrite <- exp_plus. replace (z - m + (m - m')) with (z - m') by ring.
  rewrite IH. f_equal. f_equal. destruct rest as [|r rest]; [reflexivity|].
  cbn [last]. clear. revert r. induction rest; intros r; [reflexivity | cbn [last]; apply IHrest].
Qed.

(* Each key has its own first maximum and later ones; in the end all stand under the same M. *)
(*> form.running-max *)
Theorem form_running_max {key} (J : list key) (s : key -> R) (b M : R)
  (m : option key -> R) (later : option key -> list R) (k : option key) :
  let I := with_extra J in let z := cat s b in
  (forall k, last (later k) (m k) = M) ->
  let e k := rescaled (exp (z k - m k)) (m k) (later k) in
  e k / Sum I e = softmax I z k.
Proof.
  intros I z HM e. apply (softmax_scaled I z e (exp (- M))); [apply extra_nonempty | apply exp_pos|].
  intros k'. unfold e. rewrite rescaled_exp, HM, <- exp_plus. reflexivity.
Qed.
(*< form.running-max *)

Lemma exp_LSE_sink {key} (J : list key) s b :
  exp (LSE_sink J s b) = exp b + ∑ j ∈ J, exp (s j).
Proof. apply exp_ln, den_pos. Qed.

(*> form.lse-subtract *)
Theorem form_lse_subtract {key} (J : list key) (s : key -> R) (b : R) :
  (forall j, exp (s j - LSE_sink J s b) = alpha J s b j) /\
  exp (b - LSE_sink J s b) = alpha_sink J s b.
Proof.
  split; intros; unfold Rminus; rewrite exp_plus, exp_Ropp, exp_LSE_sink; reflexivity.
Qed.
(*< form.lse-subtract *)

(*> form.lse-gate *)
Theorem form_lse_gate {key} (J : list key) (s : key -> R) (b : R) : J <> [] ->
  (forall j, softmax J s j * sigmoid (LSE J s - b) = alpha J s b j) /\
  sigmoid (b - LSE J s) = alpha_sink J s b.
Proof.
  intros HJ. pose proof (sum_exp_pos J s HJ) as HS. pose proof (exp_pos b). split; intros;
    unfold sigmoid.
  - replace (- (LSE J s - b)) with (b + - LSE J s) by ring.
    rewrite exp_plus, exp_Ropp, exp_LSE by exact HJ. unfold softmax, alpha. field. lra.
  - replace (- (b - LSE J s)) with (LSE J s + - b) by ring.
    rewrite exp_plus, exp_Ropp, exp_LSE by exact HJ. unfold alpha_sink. field. lra.
Qed.
(*< form.lse-gate *)

(*> form.sigmoid-tanh *)
Theorem form_sigmoid_tanh (t : R) : sigmoid t = (1 + tanh (t / 2)) / 2.
Proof.
  unfold sigmoid, tanh, sinh, cosh. pose proof (exp_pos (t / 2)).
  replace (- t) with (- (t / 2) + - (t / 2)) by field.
  rewrite exp_plus, exp_Ropp. set (E := exp (t / 2)) in *.
  assert (0 < E * E) by (apply Rmult_lt_0_compat; lra).
  field. repeat split; lra.
Qed.
(*< form.sigmoid-tanh *)

(* ---- weights from terms that are known within factors ---- *)

Lemma term_over_sum x1 x2 y1 y2 r1 r2 : 0 < x1 <= x2 -> 0 < y2 <= y1 -> 0 <= r2 <= r1 ->
  x1 / (y1 + r1) <= x2 / (y2 + r2).
Proof.
  intros Hx Hy Hr. unfold Rdiv. apply Rmult_le_compat; try lra.
  - apply Rlt_le, Rinv_0_lt_compat. lra.
  - apply Rinv_le_contravar; lra.
Qed.

(* Terms e k within C lo k and C hi k, C whatever all share, summed in any order; w is the
   numerator, the term itself or another evaluation of it. *)
Lemma weight_of_terms {A} (i : A) (others : list A) (e lo hi : A -> R) (w C : R)
  (fl : R -> R) (u : R) (t : tree) :
  let n := length others in
  0 <= u < 1 -> INR n * u < 1 / 2 -> (forall y, Rabs (fl y - y) <= u * Rabs y) -> 0 < C ->
  (forall k, 0 < lo k /\ C * lo k <= e k <= C * hi k) -> C * lo i <= w <= C * hi i ->
  Permutation (terms t) (map (fun k => (e k, 1)) (i :: others)) -> products_round t = 0%nat ->
  let α' := fl (w / eval fl t) in
  lo i / (hi i + Sum others hi) * ((1 - u) / (1 + gamma n u)) <= α' <=
  hi i / (lo i + Sum others lo) * ((1 + u) / (1 - gamma n u)).
Proof.
  intros n Hu Hn Hfl HC K Hw P Hp α'.
  pose proof (gamma_small n u (proj1 Hu) Hn) as G1.
  assert (E0 : forall k, 0 < e k).
  { intros k. destruct (K k) as [L [L1 _]]. apply Rlt_le_trans with (2 := L1), Rmult_lt_0_compat; lra. }
  assert (ES : Sum (i :: others) e * (1 - gamma n u) <= eval fl t
               <= Sum (i :: others) e * (1 + gamma n u)).
  { apply (positive_sum _ e n fl u t); auto; try lra. simpl. unfold n. lia. }
  set (lows := lo i + Sum others lo). set (highs := hi i + Sum others hi).
  destruct (K i) as [Lp _].
  assert (R0 : 0 <= Sum others lo) by (apply Sum_nonneg; intros k _; apply Rlt_le, K).
  assert (B : C * lows <= Sum (i :: others) e <= C * highs).
  { cbn [Sum]. unfold lows, highs. rewrite !Rmult_plus_distr_l, <- !Sum_scal_l. split;
      (apply Rplus_le_compat; [apply K | apply Sum_le; intros k _; apply K]). }
  assert (LP : 0 < lows) by (unfold lows; lra).
  assert (CL : 0 < C * lows) by (apply Rmult_lt_0_compat; lra).
  assert (LH : lows <= highs) by (apply Rmult_le_reg_l with C; lra).
  assert (D : C * lows * (1 - gamma n u) <= eval fl t <= C * highs * (1 + gamma n u)).
  { split; [eapply Rle_trans; [|apply ES] | eapply Rle_trans; [apply ES|]];
      apply Rmult_le_compat_r; lra. }
  assert (DP : 0 < C * lows * (1 - gamma n u)) by (apply Rmult_lt_0_compat; lra).
  assert (NP : 0 < C * lo i) by (apply Rmult_lt_0_compat; lra).
  pose proof (quotient_bounds _ _ _ _ _ _ NP Hw DP D) as Q.
  assert (QP : 0 < C * lo i / (C * highs * (1 + gamma n u))).
  { apply Rdiv_lt_0_compat; [lra | apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat|]; lra]. }
  pose proof (Hfl (w / eval fl t)) as F. fold α' in F.
  rewrite (Rabs_pos_eq (w / eval fl t)) in F by lra. apply abs_between in F. split.
  - apply Rle_trans with (C * lo i / (C * highs * (1 + gamma n u)) * (1 - u)).
    + right. field. lra.
    + apply Rle_trans with (w / eval fl t * (1 - u)); [apply Rmult_le_compat_r; lra | lra].
  - apply Rle_trans with (C * hi i / (C * lows * (1 - gamma n u)) * (1 + u)).
    + apply Rle_trans with (w / eval fl t * (1 + u)); [lra | apply Rmult_le_compat_r; lra].
    + right. field. lra.
Qed.

(* ---- base 2 ---- *)

(* In natural units, since 2^(y log2 e) = e^y: y k = z k (1 + κ) (1 + δ k), κ the constants, which
   all terms share, δ k the roundings of one product; μ is y at the maximum m; the difference is
   rounded, and exp errs by x. What is left of an exponent's error is G. *)
(*> bound.form-base2 *)
Theorem bound_form_base2 {A} (i : A) (others : list A) (z δ x t' : A -> R) (m μ κ κ0 d u e : R)
  (fl : R -> R) (t : tree) :
  let n := length others in
  let y k := z k * (1 + κ) * (1 + δ k) in
  0 <= u < 1 -> INR n * u < 1 / 2 -> 0 <= e < 1 -> 0 <= d ->
  (forall v, Rabs (fl v - v) <= u * Rabs v) ->
  Rabs κ <= κ0 < 1 -> (forall k, Rabs (δ k) <= d) -> (forall k, Rabs (x k) <= e) ->
  Rabs (μ - (1 + κ) * m) <= (1 + κ0) * (d * Rabs m) ->
  (forall k, Rabs (t' k - (y k - μ)) <= u * Rabs (y k - μ)) ->
  let e' k := exp (t' k) * (1 + x k) in
  let far k := Rabs (z k - m) in
  let G k := κ0 * far k + (1 + κ0) * (d * Rabs (z k))
             + u * ((1 + κ0) * (far k + d * (Rabs (z k) + Rabs m))) in
  let lo k := exp (z k - m) * (exp (- G k) * (1 - e)) in
  let hi k := exp (z k - m) * (exp (G k) * (1 + e)) in
  Permutation (terms t) (map (fun k => (e' k, 1)) (i :: others)) -> products_round t = 0%nat ->
  let α' := fl (e' i / eval fl t) in
  lo i / (hi i + Sum others hi) * ((1 - u) / (1 + gamma n u)) <= α' <=
  hi i / (lo i + Sum others lo) * ((1 + u) / (1 - gamma n u)).
Proof.
  intros n y Hu Hn He Hd Hfl Hκ Hδ Hx Hμ Ht e' far G lo hi P Hp.
  set (c := μ - (1 + κ) * m) in *.
  assert (K : forall k, 0 < lo k /\ exp (- c) * lo k <= e' k <= exp (- c) * hi k).
  { intros k. specialize (Hδ k). specialize (Hx k). specialize (Ht k). apply within in Hx.
    assert (E : Rabs (t' k - (z k - m) + c) <= G k).
    { pose proof (Rabs_pos (z k)). pose proof (Rabs_pos (z k - m)). pose proof (Rabs_pos m).
      assert (K1 : Rabs (1 + κ) <= 1 + κ0).
      { eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_R1. lra. }
      assert (T1 : Rabs (κ * (z k - m)) <= κ0 * far k).
      { rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos | lra]. }
      assert (T2 : Rabs ((1 + κ) * (z k * δ k)) <= (1 + κ0) * (d * Rabs (z k))).
      { rewrite !Rabs_mult. apply Rmult_le_compat; try apply Rabs_pos; [|exact K1|].
        - apply Rmult_le_pos; apply Rabs_pos.
        - rewrite (Rmult_comm d). apply Rmult_le_compat_l; [apply Rabs_pos | exact Hδ]. }
      assert (Y : Rabs (y k - μ) <= (1 + κ0) * (far k + d * (Rabs (z k) + Rabs m))).
      { replace (y k - μ) with ((1 + κ) * (z k - m) + (1 + κ) * (z k * δ k) + - c)
          by (unfold y, c; ring).
        eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
        eapply Rle_trans; [apply Rplus_le_compat_r, Rabs_triang|].
        assert (Rabs ((1 + κ) * (z k - m)) <= (1 + κ0) * far k).
        { rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos | exact K1]. }
        lra. }
      replace (t' k - (z k - m) + c) with
        (κ * (z k - m) + (1 + κ) * (z k * δ k) + (t' k - (y k - μ))) by (unfold y, c; ring).
      eapply Rle_trans; [apply Rabs_triang|]. unfold G. apply Rplus_le_compat.
      - eapply Rle_trans; [apply Rabs_triang | lra].
      - eapply Rle_trans; [exact Ht | apply Rmult_le_compat_l; lra]. }
    apply within in E. unfold lo, hi, e'. pose proof (exp_pos (z k - m)).
    pose proof (exp_pos (- G k)). pose proof (exp_pos (- c)). pose proof (exp_pos (t' k)).
    split; [repeat apply Rmult_lt_0_compat; lra|].
    rewrite <- !Rmult_assoc, <- !exp_plus.
    split; apply Rmult_le_compat; try lra; try (apply Rlt_le, exp_pos); apply exp_le; lra. }
  apply (weight_of_terms i others e' lo hi (e' i) (exp (- c)) fl u t); auto; [apply exp_pos | apply K].
Qed.
(*< bound.form-base2 *)

(* ---- a running maximum ---- *)

(* Each step multiplies a term by a computed exponential of a k <= 0 and rounds. The a k add up to
   the distance from the first maximum to the last. *)
(*> bound.form-running-max *)
Theorem bound_form_running_max {A} (steps : list A) (a d x ρ : A -> R) (u e : R) :
  0 <= u < 1 -> 0 <= e < 1 -> (forall k, a k <= 0) ->
  (forall k, Rabs (d k) <= u) -> (forall k, Rabs (x k) <= e) -> (forall k, Rabs (ρ k) <= u) ->
  let step w k := w * (exp (a k * (1 + d k)) * (1 + x k)) * (1 + ρ k) in
  let far := Sum steps a in
  forall w, 0 < w ->
  w * exp far * (exp (u * far) * ((1 - e) * (1 - u)) ^ length steps) <= fold_left step steps w <=
  w * exp far * (exp (- (u * far)) * ((1 + e) * (1 + u)) ^ length steps).
Proof.
  intros Hu He Ha Hd Hx Hρ step far. unfold far. clear far.
  induction steps as [|k rest IH]; intros w Hw.
  - cbn [Sum fold_left length pow]. rewrite !Rmult_0_r, Ropp_0, exp_0. lra.
  - cbn [Sum fold_left length]. set (S := Sum rest a) in *. set (R := length rest) in *.
    specialize (Hd k). specialize (Hx k). specialize (Hρ k). specialize (Ha k).
    pose proof (rounded_shift u (a k) (d k) Ha Hd) as Ds.
    apply within in Hx. apply within in Hρ.
    assert (W : w * exp (a k) * (exp (u * a k) * ((1 - e) * (1 - u))) <= step w k <=
                w * exp (a k) * (exp (- (u * a k)) * ((1 + e) * (1 + u)))).
    { unfold step. replace (a k * (1 + d k)) with (a k + a k * d k) by ring. rewrite exp_plus.
      pose proof (exp_pos (a k)). pose proof (exp_pos (u * a k)). pose proof (exp_pos (a k * d k)).
      pose proof (exp_le _ _ (proj1 Ds)). pose proof (exp_le (a k * d k) (- (u * a k)) ltac:(lra)).
      assert (0 < w * exp (a k)) by (apply Rmult_lt_0_compat; lra).
      replace (w * (exp (a k) * exp (a k * d k) * (1 + x k)) * (1 + ρ k)) with
        (w * exp (a k) * (exp (a k * d k) * ((1 + x k) * (1 + ρ k)))) by ring.
      assert (X : (1 - e) * (1 - u) <= (1 + x k) * (1 + ρ k) <= (1 + e) * (1 + u))
        by (apply mul_between; lra).
      assert (0 <= (1 - e) * (1 - u)) by (apply Rmult_le_pos; lra).
      split; apply Rmult_le_compat_l; try lra; apply Rmult_le_compat; lra. }
    assert (WP : 0 < step w k).
    { eapply Rlt_le_trans; [|apply W]. repeat apply Rmult_lt_0_compat; try apply exp_pos; lra. }
    specialize (IH (step w k) WP).
    assert (E1 : exp (a k + S) = exp (a k) * exp S) by apply exp_plus.
    assert (E2 : exp (u * (a k + S)) = exp (u * a k) * exp (u * S))
      by (rewrite <- exp_plus; f_equal; ring).
    assert (E3 : exp (- (u * (a k + S))) = exp (- (u * a k)) * exp (- (u * S)))
      by (rewrite <- exp_plus; f_equal; ring).
    rewrite E1, E2, E3. cbn [pow].
    assert (PL : 0 <= exp S * (exp (u * S) * ((1 - e) * (1 - u)) ^ R)).
    { apply Rmult_le_pos; [apply Rlt_le, exp_pos|]. apply Rmult_le_pos; [apply Rlt_le, exp_pos|].
      apply pow_le, Rmult_le_pos; lra. }
    assert (PH : 0 <= exp S * (exp (- (u * S)) * ((1 + e) * (1 + u)) ^ R)).
    { apply Rmult_le_pos; [apply Rlt_le, exp_pos|]. apply Rmult_le_pos; [apply Rlt_le, exp_pos|].
      apply pow_le, Rmult_le_pos; lra. }
    pose proof (Rmult_le_compat_r _ _ _ PL (proj1 W)).
    pose proof (Rmult_le_compat_r _ _ _ PH (proj2 W)). split.
    + eapply Rle_trans; [|apply IH]. eapply Rle_trans; [|rewrite Rmult_assoc; exact H]. right. ring.
    + eapply Rle_trans; [apply IH|]. eapply Rle_trans; [rewrite Rmult_assoc; exact H0|]. right. ring.
Qed.
(*< bound.form-running-max *)

(* ---- the log-sum-exp ---- *)

Lemma ln_le_less_one x : 0 < x -> ln x <= x - 1.
Proof. intros Hx. pose proof (exp_ineq1_le (ln x)) as E. rewrite exp_ln in E by exact Hx. lra. Qed.

Lemma ln_near_1 σ g : 0 <= g < 1 -> Rabs σ <= g -> Rabs (ln (1 + σ)) <= g / (1 - g).
Proof.
  intros Hg Hs. apply within in Hs.
  assert (Q : g <= g / (1 - g)).
  { apply Rmult_le_reg_r with (1 - g); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
  apply Rabs_le. split.
  - assert (I : 0 < / (1 + σ)) by (apply Rinv_0_lt_compat; lra).
    pose proof (ln_le_less_one _ I) as L. rewrite ln_Rinv in L by lra.
    assert (/ (1 + σ) <= / (1 - g)) by (apply Rinv_le_contravar; lra).
    assert (g / (1 - g) = / (1 - g) - 1) by (field; lra). lra.
  - pose proof (ln_le_less_one (1 + σ) ltac:(lra)). lra.
Qed.

(* LSE as it is computed: the sum errs by g, its log by c, and m + log rounds. *)
(*> bound.form-lse *)
Theorem bound_form_lse (m S σ l' Λ' u c g : R) :
  0 < S -> 0 <= g < 1 -> Rabs σ <= g -> 0 <= c -> 0 <= u ->
  let l := ln (S * (1 + σ)) in
  Rabs (l' - l) <= c * Rabs l -> Rabs (Λ' - (m + l')) <= u * Rabs (m + l') ->
  Rabs (Λ' - (m + ln S)) <=
    u * Rabs (m + ln S) + (1 + u) * (c * Rabs (ln S) + (1 + c) * (g / (1 - g))).
Proof.
  intros HS Hg Hσ Hc Hu l Hl HΛ. pose proof (ln_near_1 σ g Hg Hσ) as N. pose proof (within _ _ Hσ).
  assert (E : l = ln S + ln (1 + σ)) by (unfold l; apply ln_mult; lra).
  assert (D : Rabs (l' - ln S) <= c * Rabs (ln S) + (1 + c) * (g / (1 - g))).
  { replace (l' - ln S) with ((l' - l) + ln (1 + σ)) by (rewrite E; ring).
    eapply Rle_trans; [apply Rabs_triang|].
    assert (Rabs l <= Rabs (ln S) + g / (1 - g))
      by (rewrite E; eapply Rle_trans; [apply Rabs_triang | lra]).
    pose proof (Rmult_le_compat_l c _ _ Hc H0). lra. }
  set (B := c * Rabs (ln S) + (1 + c) * (g / (1 - g))) in *.
  assert (Rabs (m + l') <= Rabs (m + ln S) + B).
  { replace (m + l') with ((m + ln S) + (l' - ln S)) by ring.
    eapply Rle_trans; [apply Rabs_triang | lra]. }
  replace (Λ' - (m + ln S)) with ((Λ' - (m + l')) + (l' - ln S)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. pose proof (Rmult_le_compat_l u _ _ Hu H0). lra.
Qed.

(* exp(z - LSE): the error λ of LSE and the rounding of the difference are a factor. *)
Theorem bound_form_lse_subtract {key} (J : list key) (s : key -> R) (b Λ' t' x u e λ : R)
  (k : option key) :
  let Λ := LSE_sink J s b in let z := cat s b in
  0 <= u -> 0 <= e < 1 -> Rabs (Λ' - Λ) <= λ -> Rabs x <= e ->
  Rabs (t' - (z k - Λ')) <= u * Rabs (z k - Λ') ->
  let G := λ + u * (Rabs (z k - Λ) + λ) in let α := exp (z k - Λ) in
  α * (exp (- G) * (1 - e)) <= exp t' * (1 + x) <= α * (exp G * (1 + e)).
Proof.
  intros Λ z Hu He HΛ Hx Ht G α. apply within in Hx.
  assert (E : Rabs (t' - (z k - Λ)) <= G).
  { replace (t' - (z k - Λ)) with ((t' - (z k - Λ')) + - (Λ' - Λ)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
    assert (Rabs (z k - Λ') <= Rabs (z k - Λ) + λ).
    { replace (z k - Λ') with ((z k - Λ) + - (Λ' - Λ)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
    pose proof (Rmult_le_compat_l u _ _ Hu H). unfold G. lra. }
  apply within in E. unfold α. rewrite <- !Rmult_assoc, <- !exp_plus.
  split; apply Rmult_le_compat; try lra; try (apply Rlt_le, exp_pos); apply exp_le; lra.
Qed.

(* The softmax without the sink, off by p, times the sigmoid of y, off by ξ from LSE - b. *)
Theorem bound_form_lse_gate {key} (J : list key) (s : key -> R) (b y ε p' p ξ u e : R)
  (fl : R -> R) (j : key) : J <> [] ->
  0 <= u < 1 -> 0 <= e < 1 -> 0 <= p < 1 -> (forall v, Rabs (fl v - v) <= u * Rabs v) ->
  Rabs ε <= e -> Rabs (y - (LSE J s - b)) <= ξ ->
  softmax J s j * (1 - p) <= p' <= softmax J s j * (1 + p) ->
  let α' := fl (p' * fl (1 / fl (1 + exp (- y) * (1 + ε)))) in
  alpha J s b j * (exp (- ξ) * ((1 - p) * (1 - u) ^ 2 / ((1 + u) * (1 + e)))) <= α' <=
  alpha J s b j * (exp ξ * ((1 + p) * (1 + u) ^ 2 / ((1 - u) * (1 - e)))).
Proof.
  intros HJ Hu He Hp Hfl Hε Hy Hq α'. apply within in Hε.
  set (S := ∑ j ∈ J, exp (s j)). pose proof (sum_exp_pos J s HJ : 0 < S) as SP.
  pose proof (exp_pos b) as BP. set (D := exp b + S).
  assert (M : 1 - alpha_sink J s b = sigmoid (LSE J s - b))
    by apply (proj1 (sink_gate J s (fun _ => 0) b HJ)).
  assert (MP : 0 < sigmoid (LSE J s - b)).
  { unfold sigmoid. apply Rdiv_lt_0_compat; [lra|]. pose proof (exp_pos (- (LSE J s - b))). lra. }
  assert (Gt : sigmoid (LSE J s - b) * exp (- ξ) <= sigmoid y <= sigmoid (LSE J s - b) * exp ξ).
  { pose proof (mass_between J s b fl u 0 S D ξ y HJ Hu Hfl ltac:(lra)) as Q. cbv zeta in Q.
    rewrite M in Q. fold S in Q. apply Q; [lra | unfold D; lra | exact Hy]. }
  (* an error of the exponential moves the sigmoid by as much at most *)
  pose proof (exp_pos (- y)) as YP. set (Ey := exp (- y)) in *.
  destruct (fl_factor fl u (1 + Ey * (1 + ε)) (proj1 Hu) Hfl) as (ρ1 & R1 & E1).
  destruct (fl_factor fl u (1 / fl (1 + Ey * (1 + ε))) (proj1 Hu) Hfl) as (ρ2 & R2 & E2).
  set (g' := fl (1 / fl (1 + Ey * (1 + ε)))) in *.
  destruct (fl_factor fl u (p' * g') (proj1 Hu) Hfl) as (ρ3 & R3 & E3).
  assert (XP : 0 < 1 + Ey * (1 + ε)) by (assert (0 < Ey * (1 + ε)) by (apply Rmult_lt_0_compat; lra); lra).
  set (τ := (1 + Ey) / (1 + Ey * (1 + ε))).
  assert (Hτ : / (1 + e) <= τ <= / (1 - e)).
  { unfold τ. split.
    - apply Rmult_le_reg_r with ((1 + Ey * (1 + ε)) * (1 + e)); [apply Rmult_lt_0_compat; lra|].
      field_simplify; try lra. assert (Ey * ε <= Ey * e) by (apply Rmult_le_compat_l; lra). nra.
    - apply Rmult_le_reg_r with ((1 + Ey * (1 + ε)) * (1 - e)); [apply Rmult_lt_0_compat; lra|].
      field_simplify; try lra. assert (- (Ey * e) <= Ey * ε) by nra. nra. }
  assert (G' : g' = sigmoid y * (τ * (ρ2 / ρ1))).
  { rewrite E2, E1. unfold sigmoid, τ. fold Ey. field. lra. }
  assert (A : alpha J s b j = softmax J s j * sigmoid (LSE J s - b)).
  { symmetry. apply (proj1 (form_lse_gate J s b HJ)). }
  assert (QP : 0 < softmax J s j) by (apply Rdiv_lt_0_compat; [apply exp_pos | exact SP]).
  assert (U : (1 - u) * (1 - u) / (1 + u) <= ρ3 * (ρ2 / ρ1) <= (1 + u) * (1 + u) / (1 - u)).
  { pose proof (mul_between (1 - u) _ (1 - u) _ _ _ ltac:(lra) R3 ltac:(lra) R2) as M1.
    assert (0 < (1 - u) * (1 - u)) by (apply Rmult_lt_0_compat; lra).
    replace (ρ3 * (ρ2 / ρ1)) with (ρ3 * ρ2 / ρ1) by (field; lra).
    apply quotient_bounds; lra. }
  assert (U0 : 0 < (1 - u) * (1 - u) / (1 + u)) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra).
  assert (I1 : 0 < / (1 + e)) by (apply Rinv_0_lt_compat; lra).
  assert (V : / (1 + e) * ((1 - u) * (1 - u) / (1 + u)) <= τ * (ρ3 * (ρ2 / ρ1)) <=
              / (1 - e) * ((1 + u) * (1 + u) / (1 - u))) by (apply mul_between; lra).
  assert (V0 : 0 <= / (1 + e) * ((1 - u) * (1 - u) / (1 + u))) by (apply Rmult_le_pos; lra).
  assert (SG : 0 <= sigmoid (LSE J s - b) * exp (- ξ))
    by (apply Rmult_le_pos; [lra | apply Rlt_le, exp_pos]).
  assert (SQ : 0 <= softmax J s j * (1 - p)) by (apply Rmult_le_pos; lra).
  pose proof (mul_between _ _ _ _ _ _ SQ Hq SG Gt) as N.
  assert (N0 : 0 <= softmax J s j * (1 - p) * (sigmoid (LSE J s - b) * exp (- ξ)))
    by (apply Rmult_le_pos; lra).
  pose proof (mul_between _ _ _ _ _ _ N0 N V0 V) as F.
  assert (EA : α' = p' * sigmoid y * (τ * (ρ3 * (ρ2 / ρ1)))).
  { unfold α'. rewrite E3, G'. ring. }
  rewrite EA, A. split.
  - eapply Rle_trans; [|apply F]. right. field. lra.
  - eapply Rle_trans; [apply F|]. right. field. lra.
Qed.
(*< bound.form-lse *)

(* ---- renormalised over the chosen ---- *)

(* p k = fl (e k / S), S whatever sum stands in all of them, then the chosen over their sum. *)
(*> bound.form-router *)
Theorem bound_form_router {A} (i : A) (others : list A) (e lo hi : A -> R) (S : R)
  (fl : R -> R) (u : R) (t : tree) :
  let n := length others in
  0 <= u < 1 -> INR n * u < 1 / 2 -> (forall y, Rabs (fl y - y) <= u * Rabs y) -> 0 < S ->
  (forall k, 0 < lo k /\ lo k <= e k <= hi k) ->
  let p k := fl (e k / S) in
  Permutation (terms t) (map (fun k => (p k, 1)) (i :: others)) -> products_round t = 0%nat ->
  let w := fl (p i / eval fl t) in
  let least k := lo k * (1 - u) in let most k := hi k * (1 + u) in
  least i / (most i + Sum others most) * ((1 - u) / (1 + gamma n u)) <= w <=
  most i / (least i + Sum others least) * ((1 + u) / (1 - gamma n u)).
Proof.
  intros n Hu Hn Hfl HS K p P Hp w least most.
  assert (I : 0 < / S) by (apply Rinv_0_lt_compat, HS).
  assert (Kp : forall k, 0 < least k /\ / S * least k <= p k <= / S * most k).
  { intros k. destruct (K k) as [L [L1 L2]]. unfold least, most, p.
    destruct (fl_factor fl u (e k / S) (proj1 Hu) Hfl) as (ρ & Hρ & E). rewrite E.
    split; [apply Rmult_lt_0_compat; lra|]. unfold Rdiv.
    replace (e k * / S * ρ) with (/ S * (e k * ρ)) by ring.
    split; apply Rmult_le_compat_l; try lra; apply Rmult_le_compat; lra. }
  apply (weight_of_terms i others p least most (p i) (/ S) fl u t); auto. apply Kp.
Qed.
(*< bound.form-router *)

(* ---- a sigmoid by tanh ---- *)

(*> bound.form-tanh *)
Theorem bound_form_tanh (t th p' σ' u e : R) :
  0 <= u -> 0 <= e ->
  Rabs (th - tanh (t / 2)) <= e * Rabs (tanh (t / 2)) ->
  Rabs (p' - th / 2) <= u * Rabs (th / 2) ->
  Rabs (σ' - (1 / 2 + p')) <= u * Rabs (1 / 2 + p') ->
  Rabs (σ' - sigmoid t) <=
    u * sigmoid t + (1 + u) * ((e * (1 + u) + u) / 2 * Rabs (tanh (t / 2))).
Proof.
  intros Hu He Hth Hp Hσ. rewrite form_sigmoid_tanh. set (T := tanh (t / 2)) in *.
  assert (SP : 0 <= (1 + T) / 2).
  { unfold T. rewrite <- form_sigmoid_tanh. unfold sigmoid. apply Rlt_le, Rdiv_lt_0_compat; [lra|].
    pose proof (exp_pos (- t)). lra. }
  pose proof (Rabs_pos T).
  assert (A : Rabs th <= (1 + e) * Rabs T).
  { replace th with (T + (th - T)) by ring. eapply Rle_trans; [apply Rabs_triang | lra]. }
  assert (H2 : Rabs (th / 2) = Rabs th / 2)
    by (unfold Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ 2)) by lra; reflexivity).
  assert (B : Rabs (p' - T / 2) <= (e * (1 + u) + u) / 2 * Rabs T).
  { replace (p' - T / 2) with ((p' - th / 2) + (th - T) / 2) by field.
    eapply Rle_trans; [apply Rabs_triang|].
    assert (Rabs ((th - T) / 2) = Rabs (th - T) / 2)
      by (unfold Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ 2)) by lra; reflexivity).
    pose proof (Rmult_le_compat_l u _ _ Hu A). rewrite H2 in Hp. lra. }
  set (E := (e * (1 + u) + u) / 2 * Rabs T) in *.
  assert (C : Rabs (1 / 2 + p') <= (1 + T) / 2 + E).
  { replace (1 / 2 + p') with ((1 + T) / 2 + (p' - T / 2)) by field.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq ((1 + T) / 2)) by exact SP. lra. }
  replace (σ' - (1 + T) / 2) with ((σ' - (1 / 2 + p')) + (p' - T / 2)) by field.
  eapply Rle_trans; [apply Rabs_triang|]. pose proof (Rmult_le_compat_l u _ _ Hu C). lra.
Qed.
(*< bound.form-tanh *)
