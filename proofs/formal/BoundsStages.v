(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds of the rotation (bound.rope), of the clamped SwiGLU (bound.swiglu), and of a sigmoid that is computed
   from e^|t| (bound.sigmoid-exp). No second-order term is dropped. Assumed: an error bound for each operation. *)

From Sinkproof Require Import Sums Rope Equivalences Nodes Summation BoundsSoftmaxSink Bounds.
From Coq Require Import Reals List Permutation Arith Lia Lra.
From Coquelicot Require Import Rcomplements.
Import ListNotations.
Open Scope R_scope.

(* ---- the rotation ---- *)

Lemma sin_le_id x : 0 <= x -> sin x <= x.
Proof. intros [H | <-]; [left; apply sin_lt_x, H | rewrite sin_0; lra]. Qed.

Lemma abs_sin_le x : Rabs (sin x) <= Rabs x.
Proof.
  destruct (Rle_lt_dec 0 (sin x)) as [S|S]; destruct (Rle_lt_dec 0 x) as [X|X].
  - rewrite !Rabs_pos_eq by assumption. apply sin_le_id, X.
  - rewrite (Rabs_pos_eq _ S), (Rabs_left _ X). destruct (Rle_lt_dec (- x) PI) as [P|P].
    + pose proof (sin_ge_0 (- x) ltac:(lra) P) as G. rewrite sin_neg in G. lra.
    + pose proof (SIN_bound x). pose proof PI2_1. lra.
  - rewrite (Rabs_left _ S), (Rabs_pos_eq _ X). destruct (Rle_lt_dec x PI) as [P|P].
    + pose proof (sin_ge_0 x X P). lra.
    + pose proof (SIN_bound x). pose proof PI2_1. lra.
  - rewrite (Rabs_left _ S), (Rabs_left _ X).
    pose proof (sin_le_id (- x) ltac:(lra)) as G. rewrite sin_neg in G. lra.
Qed.

(* 1 - cos δ = 2 sin²(δ/2) <= δ²/2. *)
Lemma cos_near_1 δ : 0 <= 1 - cos δ <= δ ^ 2 / 2.
Proof.
  replace δ with (2 * (δ / 2)) at 1 2 by field. rewrite cos_2a_sin.
  pose proof (abs_sin_le (δ / 2)) as H. apply Rsqr_le_abs_1 in H. unfold Rsqr in H.
  pose proof (Rle_0_sqr (sin (δ / 2))) as P. unfold Rsqr in P. split; [lra|].
  replace (δ ^ 2 / 2) with (2 * (δ / 2 * (δ / 2))) by field. lra.
Qed.

(*> bound.rope *)
(* If the angle has error δ, cos moves by at most |δ| (|sin φ| + |δ|), and sin by |δ| (|cos φ| + |δ|). *)
Theorem bound_rope_wave (φ δ : R) :
  Rabs (cos (φ + δ) - cos φ) <= Rabs δ * (Rabs (sin φ) + Rabs δ) /\
  Rabs (sin (φ + δ) - sin φ) <= Rabs δ * (Rabs (cos φ) + Rabs δ).
Proof.
  assert (G : forall a b, Rabs a <= 1 ->
    Rabs (a * (cos δ - 1) + b * sin δ) <= Rabs δ * (Rabs b + Rabs δ)).
  { intros a b Ha. eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
    pose proof (cos_near_1 δ) as C. pose proof (abs_sin_le δ) as S.
    rewrite (Rabs_minus_sym (cos δ)), (Rabs_pos_eq (1 - cos δ)) by lra.
    pose proof (Rmult_le_compat_l (Rabs b) _ _ (Rabs_pos b) S).
    assert (Rabs a * (1 - cos δ) <= 1 * (δ ^ 2 / 2))
      by (apply Rmult_le_compat; try apply Rabs_pos; lra).
    rewrite <- (pow2_abs δ) in *. pose proof (pow2_ge_0 (Rabs δ)). simpl in *. lra. }
  pose proof (SIN_bound φ). pose proof (COS_bound φ). split.
  - rewrite cos_plus.
    replace (_ - cos φ) with (cos φ * (cos δ - 1) + - sin φ * sin δ) by ring.
    rewrite <- (Rabs_Ropp (sin φ)). apply G, Rabs_le. lra.
  - rewrite sin_plus.
    replace (_ - sin φ) with (sin φ * (cos δ - 1) + cos φ * sin δ) by ring.
    apply G, Rabs_le. lra.
Qed.

(* The pair of coordinate p at position n. The engine's frequency has error δω, so its angle has error n δω.
   Its table holds γ cos and γ sin of that angle within ηc and ηs. Each of the two sums is a tree whose
   operations have their own error bounds: two products and a sum, one product and an FMA, or products rounded
   to another format. *)
Theorem bound_rope (half p : nat) (ω : nat -> R) (γ n δω : R) (x : vec) (c' s' ηc ηs : R) (t : nodes) :
  (p < half)%nat -> honest t ->
  let φ := n * ω p in let δ := n * δω in
  Rabs (c' - γ * cos (n * (ω p + δω))) <= ηc -> Rabs (s' - γ * sin (n * (ω p + δω))) <= ηs ->
  let a := x p in let b := x (p + half)%nat in
  let Ec := ηc + Rabs γ * (Rabs δ * (Rabs (sin φ) + Rabs δ)) in
  let Es := ηs + Rabs γ * (Rabs δ * (Rabs (cos φ) + Rabs δ)) in
  (Permutation (products t) [(a, c'); (- b, s')] ->
   Rabs (value t - rotate half ω γ n x p) <=
     (growth t - 1) * (Rabs (a * c') + Rabs (b * s')) + Rabs a * Ec + Rabs b * Es + underflow t) /\
  (Permutation (products t) [(b, c'); (a, s')] ->
   Rabs (value t - rotate half ω γ n x (p + half)%nat) <=
     (growth t - 1) * (Rabs (b * c') + Rabs (a * s')) + Rabs b * Ec + Rabs a * Es + underflow t).
Proof.
  intros Hp Ht φ δ Hc Hs a b Ec Es.
  rewrite rotate_second, (rotate_first half ω γ n x p Hp). fold φ a b.
  destruct (bound_rope_wave φ δ) as [Wc Ws].
  replace (φ + δ) with (n * (ω p + δω)) in Wc, Ws by (unfold φ, δ; ring).
  (* an entry of the table, compared with γ cos φ *)
  assert (T : forall w' w1 w0 η e, Rabs (w' - γ * w1) <= η -> Rabs (w1 - w0) <= e ->
              Rabs (w' - γ * w0) <= η + Rabs γ * e).
  { intros w' w1 w0 η e H1 H2. replace (w' - γ * w0) with ((w' - γ * w1) + γ * (w1 - w0)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult γ).
    pose proof (Rmult_le_compat_l (Rabs γ) _ _ (Rabs_pos γ) H2). lra. }
  pose proof (T _ _ _ _ _ Hc Wc) as Tc. pose proof (T _ _ _ _ _ Hs Ws) as Ts. fold Ec in Tc. fold Es in Ts.
  (* any tree of two terms A c' + B s' *)
  assert (K : forall A B, Permutation (products t) [(A, c'); (B, s')] ->
    Rabs (value t - (A * (γ * cos φ) + B * (γ * sin φ))) <=
    (growth t - 1) * (Rabs (A * c') + Rabs (B * s')) + Rabs A * Ec + Rabs B * Es + underflow t).
  { intros A B P. pose proof (bound_dot_nodes t _ Ht P) as D. cbn [Sum fst snd] in D. rewrite !Rplus_0_r in D.
    replace (value t - _) with ((value t - (A * c' + B * s'))
      + (A * (c' - γ * cos φ) + B * (s' - γ * sin φ))) by ring.
    eapply Rle_trans; [apply Rabs_triang|].
    pose proof (Rabs_triang (A * (c' - γ * cos φ)) (B * (s' - γ * sin φ))) as T2.
    rewrite (Rabs_mult A (_ - _)), (Rabs_mult B (_ - _)) in T2.
    pose proof (Rmult_le_compat_l (Rabs A) _ _ (Rabs_pos A) Tc).
    pose proof (Rmult_le_compat_l (Rabs B) _ _ (Rabs_pos B) Ts). lra. }
  split; intros P.
  - specialize (K a (- b) P). rewrite <- (Rabs_Ropp (b * s')), <- (Rabs_Ropp b).
    rewrite <- (Ropp_mult_distr_l_reverse b s').
    replace (γ * _) with (a * (γ * cos φ) + - b * (γ * sin φ)) by ring. exact K.
  - specialize (K b a P). replace (γ * _) with (b * (γ * cos φ) + a * (γ * sin φ)) by ring. exact K.
Qed.
(*< bound.rope *)

(* ---- the clamped SwiGLU ---- *)

Definition swiglu (α limit up gate : R) : R :=
  let g := Rmin gate limit in
  let l := Rmax (- limit) (Rmin up limit) in
  (l + 1) * g * sigmoid (α * g).

Lemma sigmoid_pos t : 0 < sigmoid t.
Proof. unfold sigmoid. apply Rdiv_lt_0_compat; [lra | pose proof (exp_pos (- t)); lra]. Qed.

(* If two arguments differ by at most d, their sigmoids differ by at most a factor e^d. *)
Lemma sigmoid_moved d x y : Rabs (x - y) <= d -> sigmoid x <= sigmoid y * exp d.
Proof.
  intros D. apply within in D. unfold sigmoid. pose proof (exp_pos (- x)).
  pose proof (exp_pos (- y)). pose proof (exp_pos d).
  replace (1 / (1 + exp (- y)) * exp d) with (/ ((1 + exp (- y)) * / exp d)) by (field; lra).
  unfold Rdiv. rewrite Rmult_1_l. apply Rinv_le_contravar.
  - apply Rmult_lt_0_compat; [lra | apply Rinv_0_lt_compat; lra].
  - rewrite <- exp_Ropp, Rmult_plus_distr_r, <- exp_plus, Rmult_1_l. apply Rplus_le_compat.
    + rewrite <- exp_0. apply exp_le. lra.
    + apply exp_le. lra.
Qed.

Lemma plus_le_inv_minus x : 0 <= x < 1 -> 1 + x <= / (1 - x).
Proof. intros H. apply Rmult_le_reg_r with (1 - x); [lra|]. rewrite Rinv_l; nra. Qed.

Lemma minus_le_inv_plus x : 0 <= x -> 1 - x <= / (1 + x).
Proof. intros H. apply Rmult_le_reg_r with (1 + x); [lra|]. rewrite Rinv_l; nra. Qed.

(* Every operation has its own error bound. The argument t' is within d of t. The exponential E' has relative
   error e and underflow η, the sum s' relative error v, the quotient σ' relative error w. A relative error of
   E reaches the sigmoid multiplied by E/(1+E), which the statement calls the tail. *)
(*> bound.swiglu *)
Theorem bound_swiglu_sigmoid (t t' E' s' σ' d e η v w : R) :
  let E := exp (- t') in let tail := E / (1 + E) in let κ := e * tail + η in
  0 <= e -> 0 <= η -> κ < 1 -> 0 <= v < 1 -> 0 <= w <= 1 ->
  Rabs (t' - t) <= d -> Rabs (E' - E) <= e * E + η ->
  Rabs (s' - (1 + E')) <= v * (1 + E') -> Rabs (σ' - 1 / s') <= w * (1 / s') ->
  Rabs (σ' - sigmoid t) <= (exp d * ((1 + w) / ((1 - v) * (1 - κ))) - 1) * sigmoid t.
Proof.
  intros E tail κ He Hη Hκ Hv Hw Ht HE Hs Hσ.
  pose proof (exp_pos (- t') : 0 < E) as EP.
  assert (Tl : 0 < tail < 1).
  { unfold tail. split; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_lt_reg_r with (1 + E); [lra|]. field_simplify; lra. }
  assert (K0 : 0 <= κ) by (unfold κ; nra).
  apply abs_between in HE. apply abs_between in Hs. apply abs_between in Hσ.
  assert (KE : e * E + η <= κ * (1 + E)).
  { unfold κ, tail. replace ((e * (E / (1 + E)) + η) * (1 + E)) with (e * E + η * (1 + E)) by (field; lra). nra. }
  assert (S1 : (1 + E) * (1 - κ) <= 1 + E' <= (1 + E) * (1 + κ)) by lra.
  assert (P0 : 0 < (1 + E) * (1 - κ)) by (apply Rmult_lt_0_compat; lra).
  pose proof (mul_between _ _ (1 - v) (1 + v) _ (s' / (1 + E')) (Rlt_le _ _ P0) S1 ltac:(lra)) as S2.
  assert (V : 1 - v <= s' / (1 + E') <= 1 + v)
    by (split; apply Rmult_le_reg_r with (1 + E'); try lra; unfold Rdiv;
        rewrite Rmult_assoc, Rinv_l, Rmult_1_r; lra).
  specialize (S2 V). replace ((1 + E') * (s' / (1 + E'))) with s' in S2 by (field; lra).
  assert (P1 : 0 < (1 + E) * (1 - κ) * (1 - v)) by (apply Rmult_lt_0_compat; lra).
  pose proof (quotient_bounds 1 1 1 _ _ _ ltac:(lra) ltac:(lra) P1 S2) as Q.
  assert (Sg : sigmoid t' = / (1 + E)) by (unfold sigmoid; fold E; unfold Rdiv; ring).
  pose proof (sigmoid_pos t') as G'. pose proof (sigmoid_pos t) as G. pose proof (exp_pos d) as X.
  pose proof (sigmoid_moved d t' t Ht) as M1.
  pose proof (sigmoid_moved d t t' ltac:(rewrite Rabs_minus_sym; exact Ht)) as M2.
  assert (d0 : 0 <= d) by (pose proof (Rabs_pos (t' - t)); lra).
  assert (X1 : 1 <= exp d) by (rewrite <- exp_0; apply exp_le; exact d0).
  set (hi := (1 + w) / ((1 - v) * (1 - κ))). set (lo := (1 - w) / ((1 + v) * (1 + κ))).
  assert (D1 : 0 < (1 - v) * (1 - κ)) by (apply Rmult_lt_0_compat; lra).
  assert (D2 : 0 < (1 + v) * (1 + κ)) by (apply Rmult_lt_0_compat; lra).
  assert (H1 : 0 < hi) by (apply Rdiv_lt_0_compat; lra).
  assert (L0 : 0 <= lo) by (apply Rdiv_le_0_compat; lra).
  assert (U1 : σ' <= sigmoid t' * hi).
  { apply Rle_trans with (1 / s' * (1 + w)); [lra|].
    replace (sigmoid t' * hi) with (1 / ((1 + E) * (1 - κ) * (1 - v)) * (1 + w))
      by (rewrite Sg; unfold hi; field; lra). apply Rmult_le_compat_r; lra. }
  assert (U2 : sigmoid t' * lo <= σ').
  { apply Rle_trans with (1 / s' * (1 - w)); [|lra].
    replace (sigmoid t' * lo) with (1 / ((1 + E) * (1 + κ) * (1 + v)) * (1 - w))
      by (rewrite Sg; unfold lo; field; lra). apply Rmult_le_compat_r; lra. }
  assert (hi1 : 1 <= hi).
  { unfold hi. apply Rmult_le_reg_r with ((1 - v) * (1 - κ)); [exact D1|].
    replace (_ / _ * _) with (1 + w) by (field; lra).
    assert ((1 - v) * (1 - κ) <= 1 * 1) by (apply Rmult_le_compat; lra). lra. }
  assert (lo1 : lo <= 1).
  { unfold lo. apply Rmult_le_reg_r with ((1 + v) * (1 + κ)); [exact D2|].
    replace (_ / _ * _) with (1 - w) by (field; lra).
    assert (1 * 1 <= (1 + v) * (1 + κ)) by (apply Rmult_le_compat; lra). lra. }
  (* the error downwards is at most the error upwards *)
  assert (Two : 2 - hi <= lo).
  { assert (I1 : 1 + v <= / (1 - v)) by (apply plus_le_inv_minus; lra).
    assert (I2 : 1 + κ <= / (1 - κ)) by (apply plus_le_inv_minus; lra).
    assert (I3 : 1 - v <= / (1 + v)) by (apply minus_le_inv_plus; lra).
    assert (I4 : 1 - κ <= / (1 + κ)) by (apply minus_le_inv_plus; lra).
    assert (A1 : (1 + v) * (1 + κ) <= / ((1 - v) * (1 - κ)))
      by (rewrite Rinv_mult; apply Rmult_le_compat; lra).
    assert (A2 : (1 - v) * (1 - κ) <= / ((1 + v) * (1 + κ)))
      by (rewrite Rinv_mult; apply Rmult_le_compat; lra).
    pose proof (Rmult_le_compat_l (1 + w) _ _ ltac:(lra) A1).
    pose proof (Rmult_le_compat_l (1 - w) _ _ ltac:(lra) A2). unfold hi, lo, Rdiv.
    assert (0 <= v * κ) by (apply Rmult_le_pos; lra). assert (0 <= w * v) by (apply Rmult_le_pos; lra).
    assert (0 <= w * κ) by (apply Rmult_le_pos; lra). lra. }
  apply Rabs_le. split.
  - assert (Lw : sigmoid t * (lo * / exp d) <= σ').
    { apply Rle_trans with (2 := U2).
      replace (sigmoid t * (lo * / exp d)) with (sigmoid t * / exp d * lo) by ring.
      apply Rmult_le_compat_r; [exact L0|].
      apply Rmult_le_reg_r with (exp d); [exact X|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    assert (Lx : 2 - exp d * hi <= lo * / exp d).
    { assert (Y : / exp d >= 1 - (exp d - 1)).
      { apply Rle_ge, Rmult_le_reg_r with (exp d); [exact X|]. rewrite Rinv_l by lra.
        pose proof (Rle_0_sqr (exp d - 1)) as Z. unfold Rsqr in Z. lra. }
      assert (Y1 : / exp d <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
      assert (0 <= (1 - lo) * (1 - / exp d)) by (apply Rmult_le_pos; lra).
      assert (0 <= (hi - 1) * (exp d - 1)) by (apply Rmult_le_pos; lra). lra. }
    pose proof (Rmult_le_compat_l _ _ _ (Rlt_le _ _ G) Lx). lra.
  - assert (Uw : σ' <= sigmoid t * exp d * hi)
      by (apply Rle_trans with (1 := U1), Rmult_le_compat_r; lra). lra.
Qed.

(* The whole activation. The argument t' of the sigmoid approximates α g with relative error u, and the
   sigmoid has relative error B (the theorem above, with d = u |α g|). The product h' with g has errors p and
   ηh, the sum l' has q, and the last product has r and ηy. *)
Theorem bound_swiglu (α limit up gate σ' h' l' y' B p q r ηh ηy : R) :
  0 <= B -> 0 <= p -> 0 <= q -> 0 <= r -> 0 <= ηh ->
  let g := Rmin gate limit in let l := Rmax (- limit) (Rmin up limit) in let σ := sigmoid (α * g) in
  Rabs (σ' - σ) <= B * σ -> Rabs (h' - g * σ') <= p * Rabs (g * σ') + ηh ->
  Rabs (l' - (l + 1)) <= q * Rabs (l + 1) -> Rabs (y' - h' * l') <= r * Rabs (h' * l') + ηy ->
  let y := swiglu α limit up gate in
  Rabs (y' - y) <= ((1 + B) * (1 + p) * (1 + q) * (1 + r) - 1) * Rabs y
                   + (1 + r) * (1 + q) * ηh * Rabs (l + 1) + ηy.
Proof.
  intros HB Hp Hq Hr Hηh g l σ Hσ Hh Hl Hy y.
  pose proof (sigmoid_pos (α * g) : 0 < σ) as G.
  set (h := g * σ). assert (h0 : 0 <= Rabs h) by apply Rabs_pos.
  assert (E1 : Rabs (g * σ' - h) <= B * Rabs h).
  { unfold h. replace (g * σ' - g * σ) with (g * (σ' - σ)) by ring. rewrite !Rabs_mult, (Rabs_pos_eq σ) by lra.
    pose proof (Rmult_le_compat_l _ _ _ (Rabs_pos g) Hσ). lra. }
  pose proof (operation_step _ _ h (Rabs h) _ p ηh Hp Hh (Rle_refl _) E1) as E2.
  set (L := Rabs (l + 1)) in *. assert (L0 : 0 <= L) by apply Rabs_pos.
  assert (Ll : Rabs l' <= (1 + q) * L).
  { replace l' with ((l + 1) + (l' - (l + 1))) by ring. pose proof (Rabs_triang (l + 1) (l' - (l + 1))).
    fold L in H. lra. }
  assert (Ey : y = h * (l + 1)) by (unfold y, swiglu, h, σ; fold g l; ring).
  assert (Ay : Rabs y = Rabs h * L) by (rewrite Ey; apply Rabs_mult).
  assert (E3 : Rabs (h' * l' - y) <= ((1 + B) * (1 + p) * (1 + q) - 1) * (Rabs h * L) + (1 + q) * ηh * L).
  { rewrite Ey. replace (h' * l' - h * (l + 1)) with ((h' - h) * l' + h * (l' - (l + 1))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
    pose proof (Rmult_le_compat _ _ _ _ (Rabs_pos _) (Rabs_pos _) E2 Ll).
    pose proof (Rmult_le_compat_l _ _ _ h0 Hl). lra. }
  pose proof (operation_step _ _ y (Rabs y) _ r ηy Hr Hy (Rle_refl _) E3) as E4.
  rewrite Ay in *. lra.
Qed.
(*< bound.swiglu *)

(* ---- a sigmoid from the exponential of |t| ---- *)

(* e^|t'| has relative error e, its rounding included, and underflow η. The sum of 1 and e^|t'| has relative
   error v, the quotient y' has w. Where t' >= 0 the sigmoid is 1 - y', with relative error r. The first
   theorem shows that this form is the sigmoid if nothing is rounded. *)
(*> bound.sigmoid-exp *)
Theorem bound_sigmoid_exp_of_size t :
  let y := 1 / (1 + exp (Rabs t)) in (t < 0 -> sigmoid t = y) /\ (0 <= t -> sigmoid t = 1 - y).
Proof.
  intros y. unfold y, sigmoid. pose proof (exp_pos t). split; intros Ht.
  - rewrite Rabs_left by exact Ht. reflexivity.
  - rewrite Rabs_pos_eq, exp_Ropp by exact Ht. field. lra.
Qed.

Theorem bound_sigmoid_exp (t t' E' s' y' σ' d e η v w r : R) :
  let E := exp (Rabs t') in let tail := E / (1 + E) in let κ := e * tail + η in
  let K := exp d * ((1 + w) / ((1 - v) * (1 - κ))) - 1 in
  0 <= e -> 0 <= η -> κ < 1 -> 0 <= v < 1 -> 0 <= w <= 1 -> 0 <= r ->
  Rabs (t' - t) <= d -> Rabs (E' - E) <= e * E + η ->
  Rabs (s' - (1 + E')) <= v * (1 + E') -> Rabs (y' - 1 / s') <= w * (1 / s') ->
  (t' < 0 -> σ' = y' -> Rabs (σ' - sigmoid t) <= K * sigmoid t) /\
  (0 <= t' -> Rabs (σ' - (1 - y')) <= r * Rabs (1 - y') ->
   Rabs (σ' - sigmoid t) <= (r + (1 + r) * (K * exp (- t))) * sigmoid t).
Proof.
  intros E tail κ K He Hη Hκ Hv Hw Hr Ht HE Hs Hy. split; intros sign Hσ.
  - subst σ'. assert (A : Rabs t' = - t') by (apply Rabs_left; exact sign).
    unfold K, κ, tail, E in *. rewrite A in *.
    apply bound_swiglu_sigmoid with (t' := t') (E' := E') (s' := s'); assumption.
  - assert (A : Rabs t' = - - t') by (rewrite Rabs_pos_eq by exact sign; ring).
    assert (B : Rabs (y' - sigmoid (- t)) <= K * sigmoid (- t)).
    { unfold K, κ, tail, E in *. rewrite A in *.
      apply bound_swiglu_sigmoid with (t' := - t') (E' := E') (s' := s'); try assumption.
      replace (- t' - - t) with (- (t' - t)) by ring. rewrite Rabs_Ropp. exact Ht. }
    pose proof (exp_pos t). pose proof (exp_pos (- t)).
    assert (S : sigmoid (- t) = exp (- t) * sigmoid t).
    { unfold sigmoid. rewrite Ropp_involutive, exp_Ropp. field. lra. }
    assert (O : sigmoid t = 1 - sigmoid (- t)).
    { unfold sigmoid. rewrite Ropp_involutive, exp_Ropp. field. lra. }
    assert (P : 0 < sigmoid t) by apply sigmoid_pos.
    assert (D : Rabs (1 - y' - sigmoid t) <= K * (exp (- t) * sigmoid t)).
    { replace (1 - y' - sigmoid t) with (- (y' - sigmoid (- t))) by lra.
      rewrite Rabs_Ropp, <- S. exact B. }
    pose proof (operation_step _ _ (sigmoid t) (sigmoid t) _ r 0 Hr ltac:(rewrite Rplus_0_r; exact Hσ)
      ltac:(rewrite Rabs_pos_eq; lra) D). lra.
Qed.
(*< bound.sigmoid-exp *)
