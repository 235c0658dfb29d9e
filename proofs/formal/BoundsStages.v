(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds of the rotation and of the clamped SwiGLU. *)

From Sinkproof Require Import Sums Rope Equivalences Summation BoundsSoftmaxSink Bounds.
From Coq Require Import Reals List Permutation Arith Lia Lra.
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

(* An angle that is wrong by δ: each of cos and sin moves by at most |δ| (|the other| + |δ|). *)
Lemma wave_error (φ δ : R) :
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

(* The pair of coordinate p at position n. The engine's frequency is wrong by δω, so its angle is
   wrong by n δω; its table holds γ cos and γ sin of that angle within ηc and ηs; products and
   sums round by any tree of two terms (two products and a sum, or one product and an FMA). *)
(*> bound.rope *)
Theorem bound_rope (half p : nat) (ω : nat -> R) (γ n δω : R) (x : vec) (c' s' ηc ηs : R)
  (fl : R -> R) (u : R) (t : tree) :
  (p < half)%nat -> 0 <= u -> 2 * u < 1 -> (forall y, Rabs (fl y - y) <= u * Rabs y) ->
  let φ := n * ω p in let δ := n * δω in
  Rabs (c' - γ * cos (n * (ω p + δω))) <= ηc -> Rabs (s' - γ * sin (n * (ω p + δω))) <= ηs ->
  let a := x p in let b := x (p + half)%nat in
  let Ec := ηc + Rabs γ * (Rabs δ * (Rabs (sin φ) + Rabs δ)) in
  let Es := ηs + Rabs γ * (Rabs δ * (Rabs (cos φ) + Rabs δ)) in
  (Permutation (terms t) [(a, c'); (- b, s')] ->
   Rabs (eval fl t - rotate half ω γ n x p) <=
     gamma 2 u * (Rabs (a * c') + Rabs (b * s')) + Rabs a * Ec + Rabs b * Es) /\
  (Permutation (terms t) [(b, c'); (a, s')] ->
   Rabs (eval fl t - rotate half ω γ n x (p + half)%nat) <=
     gamma 2 u * (Rabs (b * c') + Rabs (a * s')) + Rabs b * Ec + Rabs a * Es).
Proof.
  intros Hp Hu Hu2 Hfl φ δ Hc Hs a b Ec Es.
  rewrite rotate_second, (rotate_first half ω γ n x p Hp). fold φ a b.
  destruct (wave_error φ δ) as [Wc Ws].
  replace (φ + δ) with (n * (ω p + δω)) in Wc, Ws by (unfold φ, δ; ring).
  (* an entry of the table, against γ cos φ *)
  assert (T : forall w' w1 w0 η e, Rabs (w' - γ * w1) <= η -> Rabs (w1 - w0) <= e ->
              Rabs (w' - γ * w0) <= η + Rabs γ * e).
  { intros w' w1 w0 η e H1 H2. replace (w' - γ * w0) with ((w' - γ * w1) + γ * (w1 - w0)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult γ).
    pose proof (Rmult_le_compat_l (Rabs γ) _ _ (Rabs_pos γ) H2). lra. }
  pose proof (T _ _ _ _ _ Hc Wc) as Tc. pose proof (T _ _ _ _ _ Hs Ws) as Ts. fold Ec in Tc. fold Es in Ts.
  (* any tree of two terms A c' + B s' *)
  assert (K : forall A B, Permutation (terms t) [(A, c'); (B, s')] ->
    Rabs (eval fl t - (A * (γ * cos φ) + B * (γ * sin φ))) <=
    gamma 2 u * (Rabs (A * c') + Rabs (B * s')) + Rabs A * Ec + Rabs B * Es).
  { intros A B P. pose proof (bound_dot fl u t _ Hu Hfl P) as D. simpl in D.
    specialize (D ltac:(lra)). rewrite !Rplus_0_r in D.
    replace (eval fl t - _) with ((eval fl t - (A * c' + B * s'))
      + (A * (c' - γ * cos φ) + B * (s' - γ * sin φ))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rplus_assoc. apply Rplus_le_compat; [exact D|].
    eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult A (_ - _)), (Rabs_mult B (_ - _)).
    apply Rplus_le_compat; (apply Rmult_le_compat_l; [apply Rabs_pos | assumption]). }
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

(* The engine: t' = fl(α g), E = exp(-t') (1 + ε) with |ε| <= e, sigma' = fl(1 / fl(1 + E)), and
   y' = fl(fl(g sigma') fl(l + 1)). An error of E moves the sigmoid by E/(1+E) of itself; an error
   of t moves it by a factor e^(|t| u) at most. *)
(*> bound.swiglu *)
Theorem bound_swiglu (α limit up gate : R) (fl : R -> R) (u e ε : R) :
  0 <= u < 1 -> (forall y, Rabs (fl y - y) <= u * Rabs y) -> 0 <= e < 1 -> Rabs ε <= e ->
  let g := Rmin gate limit in
  let l := Rmax (- limit) (Rmin up limit) in
  let t' := fl (α * g) in
  let E := exp (- t') in
  let σ' := fl (1 / fl (1 + E * (1 + ε))) in
  let y' := fl (fl (g * σ') * fl (l + 1)) in
  let tail := E / (1 + E) in
  let drift := u * Rabs (α * g) in
  exists ρ, y' = swiglu α limit up gate * ρ /\
    exp (- drift) * ((1 - u) ^ 4 / ((1 + u) * (1 + e * tail))) <= ρ <=
    exp drift * ((1 + u) ^ 4 / ((1 - u) * (1 - e * tail))).
Proof.
  intros Hu Hfl He Hε g l t' E σ' y' tail drift. apply within in Hε.
  pose proof (exp_pos (- t') : 0 < E) as EP.
  assert (Tl : 0 < tail < 1).
  { unfold tail. split; [apply Rdiv_lt_0_compat; lra|].
    apply Rmult_lt_reg_r with (1 + E); [lra|]. field_simplify; lra. }
  assert (eT : 0 <= e * tail < 1) by nra.
  pose proof (Hfl (α * g)) as T1. fold t' drift in T1. apply within in T1.
  (* the sigmoid of t' against that of t = α g *)
  set (τ := sigmoid t' / sigmoid (α * g)).
  assert (SP : forall t, 0 < sigmoid t)
    by (intros t; unfold sigmoid; apply Rdiv_lt_0_compat; [lra | pose proof (exp_pos (- t)); lra]).
  assert (Hτ : exp (- drift) <= τ <= exp drift).
  { assert (Q : forall a b, Rabs (a - b) <= drift -> sigmoid a <= sigmoid b * exp drift).
    { intros a b D. apply within in D. unfold sigmoid. pose proof (exp_pos (- a)).
      pose proof (exp_pos (- b)). pose proof (exp_pos drift).
      replace (1 / (1 + exp (- b)) * exp drift) with (/ ((1 + exp (- b)) * / exp drift)) by (field; lra).
      unfold Rdiv. rewrite Rmult_1_l. apply Rinv_le_contravar.
      - apply Rmult_lt_0_compat; [lra | apply Rinv_0_lt_compat; lra].
      - rewrite <- exp_Ropp, Rmult_plus_distr_r, <- exp_plus, Rmult_1_l. apply Rplus_le_compat.
        + rewrite <- exp_0. apply exp_le. lra.
        + apply exp_le. lra. }
    pose proof (SP (α * g)) as P1. pose proof (SP t') as P2. unfold τ. split.
    - pose proof (Q (α * g) t' ltac:(apply Rabs_le; lra)) as Q1. pose proof (exp_pos drift).
      rewrite exp_Ropp. apply Rmult_le_reg_r with (sigmoid (α * g) * exp drift);
        [apply Rmult_lt_0_compat; lra|]. field_simplify; lra.
    - pose proof (Q t' (α * g) ltac:(apply Rabs_le; lra)) as Q1.
      apply Rmult_le_reg_r with (sigmoid (α * g)); [lra|]. field_simplify; lra. }
  (* the roundings, one factor each *)
  destruct (fl_factor fl u (1 + E * (1 + ε)) (proj1 Hu) Hfl) as (ρ1 & R1 & E1).
  destruct (fl_factor fl u (1 / fl (1 + E * (1 + ε))) (proj1 Hu) Hfl) as (ρ2 & R2 & E2).
  destruct (fl_factor fl u (g * σ') (proj1 Hu) Hfl) as (ρ3 & R3 & E3).
  destruct (fl_factor fl u (l + 1) (proj1 Hu) Hfl) as (ρ4 & R4 & E4).
  destruct (fl_factor fl u (fl (g * σ') * fl (l + 1)) (proj1 Hu) Hfl) as (ρ5 & R5 & E5).
  set (κ := 1 + ε * tail).
  assert (Hκ : 1 - e * tail <= κ <= 1 + e * tail) by (
    pose proof (Rmult_le_compat_r tail _ _ ltac:(lra) (proj1 Hε));
    pose proof (Rmult_le_compat_r tail _ _ ltac:(lra) (proj2 Hε)); unfold κ; lra).
  exists (τ * (ρ2 * ρ3 * (ρ4 * ρ5) / (ρ1 * κ))). split.
  - unfold y', swiglu. fold g l. rewrite E5, E4, E3. unfold σ'. rewrite E2, E1.
    unfold τ, sigmoid, κ, tail. fold E. pose proof (exp_pos (- (α * g))).
    assert (0 < E * (1 + ε)) by (apply Rmult_lt_0_compat; lra). field. repeat split; try lra.
  - apply mul_between; [apply Rlt_le, exp_pos | exact Hτ | |].
    + apply Rmult_le_pos; [apply pow_le; lra | apply Rlt_le, Rinv_0_lt_compat].
      apply Rmult_lt_0_compat; lra.
    + pose proof (mul_between (1 - u) _ (1 - u) _ _ _ ltac:(lra) R2 ltac:(lra) R3) as M1.
      pose proof (mul_between (1 - u) _ (1 - u) _ _ _ ltac:(lra) R4 ltac:(lra) R5) as M2.
      assert (P2 : 0 <= (1 - u) * (1 - u)) by (apply Rmult_le_pos; lra).
      pose proof (mul_between _ _ _ _ _ _ P2 M1 P2 M2) as M3.
      pose proof (mul_between (1 - u) _ (1 - e * tail) _ _ _ ltac:(lra) R1 ltac:(lra) Hκ) as M4.
      assert (0 < (1 - u) * (1 - e * tail)) by (apply Rmult_lt_0_compat; lra).
      assert (F4 : forall v, v ^ 4 = v * v * (v * v)) by (intros; ring). rewrite !F4.
      assert (0 < (1 - u) * (1 - u) * ((1 - u) * (1 - u))) by (repeat apply Rmult_lt_0_compat; lra).
      apply quotient_bounds; try assumption.
Qed.
(*< bound.swiglu *)
