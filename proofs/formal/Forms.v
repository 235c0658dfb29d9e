(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Forms in which kernels compute the same weights and the same sigmoid: base 2, a running maximum, log-sum-exp,
   tanh. They are equal over the reals (form.base2 to form.sigmoid-tanh); bound.form-lse and bound.form-tanh bound
   two of them when they are rounded, FormsWeights.v bounds the others. No second-order term is dropped. Assumed: for
   each operation a bound of its relative error (such as e) and of its absolute error by underflow (such as ηe). *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Nodes Summation BoundsSoftmaxSink Bounds.
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

(* μ is any number that is subtracted from the exponents, and [None] is the sink. By sink.concat-slice the
   right side is alpha_j or alpha_sink. *)
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

(* A numerator that was computed under the maximum m is rescaled at each later maximum. *)
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

(* Each key has its own first maximum and its own later ones. In the end all numerators have the same maximum
   M. *)
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

(* The computed LSE, with an error bound for each operation. The maximum m' is within M of m (in base 2 it was
   scaled). The sum has relative error g, its logarithm has c and ηl, and the final addition has u and ηs. *)
(*> bound.form-lse *)
Theorem bound_form_lse (m m' S σ l' Λ' M u c g ηl ηs : R) :
  0 < S -> 0 <= g < 1 -> Rabs σ <= g -> 0 <= c -> 0 <= u -> Rabs (m' - m) <= M ->
  let l := ln (S * (1 + σ)) in
  Rabs (l' - l) <= c * Rabs l + ηl -> Rabs (Λ' - (m' + l')) <= u * Rabs (m' + l') + ηs ->
  Rabs (Λ' - (m + ln S)) <=
    u * Rabs (m + ln S) + (1 + u) * (M + c * Rabs (ln S) + (1 + c) * (g / (1 - g)) + ηl) + ηs.
Proof.
  intros HS Hg Hσ Hc Hu Hm l Hl HΛ. pose proof (ln_near_1 σ g Hg Hσ) as N. pose proof (within _ _ Hσ).
  assert (E : l = ln S + ln (1 + σ)) by (unfold l; apply ln_mult; lra).
  assert (D : Rabs (l' - ln S) <= c * Rabs (ln S) + (1 + c) * (g / (1 - g)) + ηl).
  { replace (l' - ln S) with ((l' - l) + ln (1 + σ)) by (rewrite E; ring).
    eapply Rle_trans; [apply Rabs_triang|].
    assert (Rabs l <= Rabs (ln S) + g / (1 - g))
      by (rewrite E; eapply Rle_trans; [apply Rabs_triang | lra]).
    pose proof (Rmult_le_compat_l c _ _ Hc H0). lra. }
  assert (D1 : Rabs (m' + l' - (m + ln S)) <= M + c * Rabs (ln S) + (1 + c) * (g / (1 - g)) + ηl).
  { replace (m' + l' - (m + ln S)) with ((m' - m) + (l' - ln S)) by ring.
    eapply Rle_trans; [apply Rabs_triang | lra]. }
  pose proof (operation_step _ _ _ _ _ u ηs Hu HΛ (Rle_refl _) D1). lra.
Qed.

(* exp(z - LSE). The error Y of the score, the error λ of LSE and the rounding of their difference change the
   result by at most a factor e^G. *)
Theorem bound_form_lse_subtract {key} (J : list key) (s : key -> R) (b z' Y Λ' λ t' α' v e ηt ηx : R)
  (k : option key) :
  let Λ := LSE_sink J s b in let z := cat s b in
  0 <= v -> 0 <= e < 1 -> Rabs (Λ' - Λ) <= λ -> Rabs (z' - z k) <= Y ->
  Rabs (t' - (z' - Λ')) <= v * Rabs (z' - Λ') + ηt -> Rabs (α' - exp t') <= e * exp t' + ηx ->
  let G := λ + Y + v * (Rabs (z k - Λ) + λ + Y) + ηt in let α := exp (z k - Λ) in
  α * (exp (- G) * (1 - e)) - ηx <= α' <= α * (exp G * (1 + e)) + ηx.
Proof.
  intros Λ z Hv He HΛ HY Ht Hx G α. apply abs_between in Hx.
  assert (D : Rabs (z' - Λ' - (z k - Λ)) <= λ + Y).
  { replace (z' - Λ' - (z k - Λ)) with ((z' - z k) + - (Λ' - Λ)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
  pose proof (operation_step _ _ _ _ _ v ηt Hv Ht (Rle_refl _) D) as E.
  assert (E' : Rabs (t' - (z k - Λ)) <= G) by (unfold G; lra). apply within in E'.
  unfold α. rewrite <- !Rmult_assoc, <- !exp_plus.
  pose proof (Rmult_le_compat_r (1 - e) (exp (z k - Λ + - G)) (exp t') ltac:(lra) ltac:(apply exp_le; lra)).
  pose proof (Rmult_le_compat_r (1 + e) (exp t') (exp (z k - Λ + G)) ltac:(lra) ltac:(apply exp_le; lra)).
  lra.
Qed.

(* A lower bound of the product x y, from x >= A - a and y >= B - b. *)
Lemma product_from_below A B a b x y : 0 <= A -> 0 <= B -> 0 <= a -> 0 <= b -> 0 <= x -> 0 <= y ->
  A - a <= x -> B - b <= y -> A * B - a * B - b * A <= x * y.
Proof.
  intros HA HB Ha Hb Hx Hy H1 H2. pose proof (Rmult_le_pos _ _ Hx Hy).
  destruct (Rle_dec A a) as [L | L].
  - pose proof (Rmult_le_compat_r B _ _ HB L). pose proof (Rmult_le_pos _ _ Hb HA). lra.
  - destruct (Rle_dec B b) as [M | M].
    + pose proof (Rmult_le_compat_r A _ _ HA M). pose proof (Rmult_le_pos _ _ Ha HB). lra.
    + pose proof (Rmult_le_compat (A - a) x (B - b) y ltac:(lra) ltac:(lra) H1 H2).
      pose proof (Rmult_le_pos _ _ Ha Hb). lra.
Qed.

(* The softmax without the sink, with errors p and ηp, times the sigmoid of y, where y is within ξ of LSE - b.
   In the sigmoid, the exponential E' has errors e and ηe, the sum has v, the quotient w and ηg. The product
   of both has r and ηr. *)
Theorem bound_form_lse_gate {key} (J : list key) (s : key -> R)
  (b y E' s' g' p' α' p ξ e v w r ηp ηe ηg ηr : R) (j : key) : In j J ->
  let κ := e + ηe in
  0 <= e -> 0 <= ηe -> κ < 1 -> 0 <= v < 1 -> 0 <= w <= 1 -> 0 <= r <= 1 -> 0 <= p <= 1 ->
  0 <= ηp -> 0 <= ηg -> Rabs (y - (LSE J s - b)) <= ξ ->
  Rabs (E' - exp (- y)) <= e * exp (- y) + ηe -> Rabs (s' - (1 + E')) <= v * (1 + E') ->
  0 <= g' -> Rabs (g' - 1 / s') <= w * (1 / s') + ηg ->
  0 <= p' -> Rabs (p' - softmax J s j) <= p * softmax J s j + ηp ->
  Rabs (α' - p' * g') <= r * (p' * g') + ηr ->
  let most := exp ξ * ((1 + w) / ((1 - v) * (1 - κ))) in
  let H := (1 + r) * (ηp * most + ηg * (1 + p) + ηp * ηg) + ηr in
  alpha J s b j * (exp (- ξ) * ((1 - p) * (1 - w) * (1 - r) / ((1 + v) * (1 + κ)))) - H <= α' <=
  alpha J s b j * (exp ξ * ((1 + p) * (1 + w) * (1 + r) / ((1 - v) * (1 - κ)))) + H.
Proof.
  intros Hj κ He Hηe Hκ Hv Hw Hr Hp Hηp Hηg Hy HE Hs Hg0 Hg Hp0 Hq Hα most H.
  assert (HJ : J <> []) by (intros ->; exact Hj).
  set (S := ∑ j ∈ J, exp (s j)). pose proof (sum_exp_pos J s HJ : 0 < S) as SP.
  pose proof (exp_pos b) as BP. set (G := sigmoid (LSE J s - b)). set (Q := softmax J s j) in *.
  assert (M : 1 - alpha_sink J s b = G) by apply (proj1 (sink_gate J s (fun _ => 0) b HJ)).
  pose proof (exp_pos (- y)) as YP. set (Ey := exp (- y)) in *.
  assert (Gt : G * exp (- ξ) <= / (1 + Ey) <= G * exp ξ).
  { pose proof (sigmoid_between J s b ξ y HJ Hy) as B. cbv zeta in B. rewrite M in B.
    replace (/ (1 + Ey)) with (sigmoid y) by (unfold sigmoid, Ey, Rdiv; ring). exact B. }
  assert (G1 : 0 < G <= 1).
  { unfold G, sigmoid. pose proof (exp_pos (- (LSE J s - b))). split; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_le_reg_r with (1 + exp (- (LSE J s - b))); [lra|]. field_simplify; lra. }
  assert (Q1 : 0 <= Q <= 1).
  { split; [apply Rlt_le, Rdiv_lt_0_compat; [apply exp_pos | exact SP]|].
    apply Rmult_le_reg_r with S; [exact SP|]. unfold Q, softmax. fold S.
    replace (exp (s j) / S * S) with (exp (s j)) by (field; lra). rewrite Rmult_1_l.
    apply (Sum_term_le J (fun j => exp (s j))); [exact Hj | intros; apply Rlt_le, exp_pos]. }
  apply abs_between in HE. apply abs_between in Hs. apply abs_between in Hg. apply abs_between in Hq.
  apply abs_between in Hα.
  assert (KE : e * Ey + ηe <= κ * (1 + Ey)) by (unfold κ; pose proof (Rmult_le_pos _ _ Hηe (Rlt_le _ _ YP)); lra).
  assert (K0 : 0 <= κ) by (unfold κ; lra).
  assert (S1 : (1 + Ey) * (1 - κ) <= 1 + E' <= (1 + Ey) * (1 + κ)) by lra.
  assert (P0 : 0 < (1 + Ey) * (1 - κ)) by (apply Rmult_lt_0_compat; lra).
  assert (S2 : (1 + Ey) * (1 - κ) * (1 - v) <= s' <= (1 + Ey) * (1 + κ) * (1 + v)).
  { pose proof (Rmult_le_compat_r (1 - v) _ _ ltac:(lra) (proj1 S1)).
    pose proof (Rmult_le_compat_r (1 + v) _ _ ltac:(lra) (proj2 S1)). lra. }
  assert (P1 : 0 < (1 + Ey) * (1 - κ) * (1 - v)) by (apply Rmult_lt_0_compat; lra).
  pose proof (quotient_bounds 1 1 1 _ _ _ ltac:(lra) ltac:(lra) P1 S2) as I1.
  (* the gate lies between B1 and B2, up to ηg *)
  assert (D1 : 0 < (1 - v) * (1 - κ)) by (apply Rmult_lt_0_compat; lra).
  assert (D2 : 0 < (1 + v) * (1 + κ)) by (apply Rmult_lt_0_compat; lra).
  set (lo := (1 - w) / ((1 + v) * (1 + κ))). set (hi := (1 + w) / ((1 - v) * (1 - κ))) in *.
  assert (lo0 : 0 <= lo) by (apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat, D2]).
  assert (hi0 : 0 < hi) by (apply Rdiv_lt_0_compat; lra).
  assert (lh : lo <= hi).
  { unfold lo, hi. unfold Rdiv. apply Rmult_le_compat; try lra; [apply Rlt_le, Rinv_0_lt_compat, D2|].
    apply Rinv_le_contravar; [exact D1|]. apply Rmult_le_compat; lra. }
  pose proof (exp_pos ξ) as X0. pose proof (exp_pos (- ξ)) as X1.
  assert (B2 : g' <= G * exp ξ * hi + ηg).
  { assert (1 / s' * (1 + w) <= G * exp ξ * hi); [|lra].
    apply Rle_trans with (/ (1 + Ey) * hi); [|apply Rmult_le_compat_r; lra].
    apply Rle_trans with (1 / ((1 + Ey) * (1 - κ) * (1 - v)) * (1 + w)); [apply Rmult_le_compat_r; lra|].
    right. unfold hi. field. lra. }
  assert (B1 : G * exp (- ξ) * lo - ηg <= g').
  { assert (G * exp (- ξ) * lo <= 1 / s' * (1 - w)); [|lra].
    apply Rle_trans with (/ (1 + Ey) * lo); [apply Rmult_le_compat_r; lra|].
    apply Rle_trans with (1 / ((1 + Ey) * (1 + κ) * (1 + v)) * (1 - w)); [|apply Rmult_le_compat_r; lra].
    right. unfold lo. field. lra. }
  assert (ξ0 : 0 <= ξ) by (pose proof (Rabs_pos (y - (LSE J s - b))); lra).
  pose proof (exp_le (- ξ) ξ ltac:(lra)) as Xle.
  assert (Gm : G * exp ξ * hi <= most).
  { pose proof (Rmult_lt_0_compat _ _ X0 hi0). unfold most.
    assert (0 <= (1 - G) * (exp ξ * hi)) by (apply Rmult_le_pos; lra). lra. }
  assert (b0 : 0 <= G * exp (- ξ) * lo) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  assert (Gl : G * exp (- ξ) * lo <= most).
  { eapply Rle_trans; [|exact Gm]. rewrite !Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    apply Rmult_le_compat; lra. }
  assert (A : alpha J s b j = Q * G) by (symmetry; apply (proj1 (form_lse_gate J s b HJ))).
  assert (qm : Q * (1 + p) <= 1 + p) by (assert (0 <= (1 - Q) * (1 + p)) by (apply Rmult_le_pos; lra); lra).
  assert (ql : 0 <= Q * (1 - p)) by (apply Rmult_le_pos; lra).
  assert (qp : 0 <= Q * p) by (apply Rmult_le_pos; lra).
  set (T := ηp * most + ηg * (1 + p) + ηp * ηg) in *.
  assert (m0 : 0 <= most) by lra.
  assert (T0 : 0 <= T) by (unfold T; repeat apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra).
  assert (U : p' * g' <= Q * (1 + p) * (G * exp ξ * hi) + T).
  { apply Rle_trans with ((Q * (1 + p) + ηp) * (G * exp ξ * hi + ηg)); [apply Rmult_le_compat; lra|].
    pose proof (Rmult_le_compat_l ηp _ _ Hηp Gm). pose proof (Rmult_le_compat_l ηg _ _ Hηg qm). unfold T. lra. }
  assert (L : Q * (1 - p) * (G * exp (- ξ) * lo) - T <= p' * g').
  { pose proof (product_from_below (Q * (1 - p)) (G * exp (- ξ) * lo) ηp ηg p' g' ql b0 Hηp Hηg Hp0 Hg0
      ltac:(lra) B1) as X.
    pose proof (Rmult_le_compat_l ηp _ _ Hηp Gl).
    pose proof (Rmult_le_compat_l ηg (Q * (1 - p)) (1 + p) Hηg ltac:(lra)).
    pose proof (Rmult_le_pos _ _ Hηp Hηg). unfold T. lra. }
  pose proof (Rmult_le_compat_r (1 + r) _ _ ltac:(lra) U). pose proof (Rmult_le_compat_r (1 - r) _ _ ltac:(lra) L).
  assert (0 <= T * r) by (apply Rmult_le_pos; lra). rewrite A. split.
  - replace (Q * G * (exp (- ξ) * ((1 - p) * (1 - w) * (1 - r) / ((1 + v) * (1 + κ)))))
      with (Q * (1 - p) * (G * exp (- ξ) * lo) * (1 - r)) by (unfold lo; field; lra). unfold H. lra.
  - replace (Q * G * (exp ξ * ((1 + p) * (1 + w) * (1 + r) / ((1 - v) * (1 - κ)))))
      with (Q * (1 + p) * (G * exp ξ * hi) * (1 + r)) by (unfold hi; field; lra). unfold H. lra.
Qed.
(*< bound.form-lse *)

(* ---- a sigmoid by tanh ---- *)

(* tanh has errors e and ηt, its half has v and ηp, and the sum with 1/2 has w and ηs. *)
(*> bound.form-tanh *)
Theorem bound_form_tanh (t th p' σ' e v w ηt ηp ηs : R) :
  0 <= e -> 0 <= v -> 0 <= w -> 0 <= ηt ->
  Rabs (th - tanh (t / 2)) <= e * Rabs (tanh (t / 2)) + ηt ->
  Rabs (p' - th / 2) <= v * Rabs (th / 2) + ηp ->
  Rabs (σ' - (1 / 2 + p')) <= w * Rabs (1 / 2 + p') + ηs ->
  Rabs (σ' - sigmoid t) <=
    w * sigmoid t
    + (1 + w) * ((e * (1 + v) + v) / 2 * Rabs (tanh (t / 2)) + (1 + v) * ηt / 2 + ηp) + ηs.
Proof.
  intros He Hv Hw Hηt Hth Hp Hσ. rewrite form_sigmoid_tanh. set (T := tanh (t / 2)) in *.
  assert (SP : 0 <= (1 + T) / 2).
  { unfold T. rewrite <- form_sigmoid_tanh. unfold sigmoid. apply Rlt_le, Rdiv_lt_0_compat; [lra|].
    pose proof (exp_pos (- t)). lra. }
  assert (H2 : forall x, Rabs (x / 2) = Rabs x / 2)
    by (intros; unfold Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ 2)) by lra; reflexivity).
  assert (D : Rabs (th / 2 - T / 2) <= (e * Rabs T + ηt) / 2).
  { replace (th / 2 - T / 2) with ((th - T) / 2) by field. rewrite H2. lra. }
  pose proof (operation_step _ _ (T / 2) _ _ v ηp Hv Hp (Rle_refl _) D) as B. rewrite H2 in B.
  assert (C : Rabs (1 / 2 + p' - (1 + T) / 2) <= (1 + v) * ((e * Rabs T + ηt) / 2) + v * (Rabs T / 2) + ηp).
  { replace (1 / 2 + p' - (1 + T) / 2) with (p' - T / 2) by field. exact B. }
  pose proof (operation_step _ _ ((1 + T) / 2) ((1 + T) / 2) _ w ηs Hw Hσ
    ltac:(rewrite Rabs_pos_eq; lra) C). lra.
Qed.
(*< bound.form-tanh *)
