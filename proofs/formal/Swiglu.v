(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The experts' activation (chapter 9): what its + 1 does near zero (swiglu.plus-one), and how closely its constant
   1.702 fits GELU (swiglu.gelu-fit). Nothing is assumed; interval arithmetic proves the numerical bounds. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences.
From Coq Require Import Reals List Lra.
From Coquelicot Require Import Coquelicot.
From Interval Require Import Float.Specific_stdz Float.Specific_ops.
From Interval Require Tactic.
Import ListNotations.
Open Scope R_scope.

(* Interval arithmetic over Coq's own integers: no axiom on machine numbers. *)
Module IntegerFloats := SpecificFloat StdZRadix2.
Module IntegerIntervals := Tactic.IntervalTactic IntegerFloats.
Import IntegerIntervals.
Notation i_prec := Tactic.i_prec.

Definition swish (a g : R) : R := g * sigmoid (a * g).

Lemma sigmoid_0 : sigmoid 0 = / 2.
Proof. unfold sigmoid. rewrite Ropp_0, exp_0. field. Qed.

Lemma sigmoid_le s t : s <= t -> sigmoid s <= sigmoid t.
Proof.
  intros [H | ->]; [|lra]. unfold sigmoid. pose proof (exp_pos (- t)).
  assert (exp (- t) < exp (- s)) by (apply exp_increasing; lra).
  unfold Rdiv. rewrite !Rmult_1_l. apply Rinv_le_contravar; lra.
Qed.

Lemma sigmoid_opp t : sigmoid (- t) = 1 - sigmoid t.
Proof.
  unfold sigmoid. rewrite Ropp_involutive, exp_Ropp. pose proof (exp_pos t). field. lra.
Qed.

Lemma swish_derive_0 a : is_derive (swish a) 0 (/ 2).
Proof.
  unfold swish, sigmoid. auto_derive.
  - rewrite Rmult_0_r, Ropp_0, exp_0. lra.
  - rewrite Rmult_0_r, Ropp_0, exp_0. field.
Qed.

(* With the + 1, an expert whose up-projection is 0 passes its gate on, and the gradient at the origin is (0,
   1/2) in (u, g). Without the + 1, the value and the gradient are 0 there. *)
(*> swiglu.plus-one *)
Theorem swiglu_plus_one (a u g : R) (L : list R) :
  let z u g := (u + 1) * swish a g in
  let plain u g := u * swish a g in
  z 0 g = swish a g /\ z (-1) g = 0 /\ is_derive (fun u => z u g) u (swish a g) /\
  is_derive (fun u => z u 0) 0 0 /\ is_derive (fun g => z 0 g) 0 (/ 2) /\
  z 0 g - z 0 (- g) = g /\
  is_derive (fun u => plain u 0) 0 0 /\ is_derive (fun g => plain 0 g) 0 0 /\
  (L <> [] -> ∑ u ∈ L, u = 0 ->
     (∑ u ∈ L, z u g) / INR (length L) = swish a g /\ ∑ u ∈ L, plain u g = 0).
Proof.
  intros z plain. unfold z, plain. assert (S : swish a 0 = 0) by (unfold swish; ring).
  assert (D : forall c u, is_derive (fun u => (u + 1) * c) u c)
    by (intros; auto_derive; [exact I | ring]).
  assert (P : forall c u, is_derive (fun u => u * c) u c)
    by (intros; auto_derive; [exact I | ring]).
  split; [ring|]. split; [ring|]. split; [apply D|]. rewrite S. split; [apply D|].
  assert (One : forall g, swish a g = (0 + 1) * swish a g) by (intros; ring).
  assert (Zero : forall g, 0 = 0 * swish a g) by (intros; ring).
  split; [apply (is_derive_ext _ _ _ _ One), swish_derive_0|].
  split; [unfold swish; rewrite <- Ropp_mult_distr_r, sigmoid_opp; ring|]. split; [apply P|].
  split; [apply (is_derive_ext _ _ _ _ Zero), @is_derive_const|].
  intros HL H0. rewrite !Sum_scal_r, Sum_plus, Sum_const, H0.
  assert (INR (length L) <> 0) by (destruct L; [congruence | apply not_0_INR; discriminate]).
  split; [field; assumption | ring].
Qed.
(*< swiglu.plus-one *)

(* A limit for every constant alpha, whatever function F is fitted. Suppose that sigmoid(a x) is wrong by e at
   one point and by -e at another, weighted by w. Then no alpha is better than e everywhere, because
   sigmoid(alpha x) increases with alpha at every x > 0. The weight w is 1 for the normal distribution
   function and x for GELU. *)
(*> swiglu.gelu-fit *)
Theorem swiglu_gelu_fit (F w : R -> R) a e x1 x2 :
  0 <= x1 -> 0 <= x2 -> 0 <= w x1 -> 0 <= w x2 ->
  e <= w x1 * (F x1 - sigmoid (a * x1)) -> e <= w x2 * (sigmoid (a * x2) - F x2) ->
  forall alpha, exists x, 0 <= x /\ e <= w x * Rabs (F x - sigmoid (alpha * x)).
Proof.
  intros P1 P2 W1 W2 E1 E2 alpha. destruct (Rle_dec alpha a) as [H | H].
  - exists x1. split; [exact P1|]. apply (Rle_trans _ _ _ E1), Rmult_le_compat_l; [exact W1|].
    pose proof (sigmoid_le (alpha * x1) (a * x1) (Rmult_le_compat_r _ _ _ P1 H)).
    pose proof (Rle_abs (F x1 - sigmoid (alpha * x1))). lra.
  - exists x2. split; [exact P2|]. apply (Rle_trans _ _ _ E2), Rmult_le_compat_l; [exact W2|].
    assert (a <= alpha) as H' by lra.
    pose proof (sigmoid_le (a * x2) (alpha * x2) (Rmult_le_compat_r _ _ _ P2 H')).
    rewrite Rabs_minus_sym. pose proof (Rle_abs (sigmoid (alpha * x2) - F x2)). lra.
Qed.

(* The normal distribution function: the integral of its density from -inf to 0 is 1/2. *)
Definition Phi (x : R) : R := / 2 + RInt (fun t => exp (- t ^ 2 / 2)) 0 x / sqrt (2 * PI).

(* For every alpha, the logistic function is wrong somewhere by at least 0.009457 against Phi, and x
   sigmoid(alpha x) by at least 0.013922 against GELU. With alpha = 1.702 it is wrong somewhere by at least
   0.020334. *)
Theorem swiglu_gelu_fit_distribution alpha :
  exists x, 0 <= x /\ 0.009457 <= Rabs (Phi x - sigmoid (alpha * x)).
Proof.
  destruct (swiglu_gelu_fit Phi (fun _ => 1) 1.701745 0.009457 2.0431 0.5711) with alpha
    as [x [P E]]; try lra; [| | exists x; split; [exact P | lra]];
    unfold Phi, sigmoid; integral with (i_prec 60).
Qed.

Theorem swiglu_gelu_fit_gelu alpha :
  exists x, 0 <= x /\ 0.013922 <= Rabs (x * Phi x - x * sigmoid (alpha * x)).
Proof.
  destruct (swiglu_gelu_fit Phi (fun x => x) 1.772934 0.013922 2.4266 0.8958) with alpha
    as [x [P E]]; try lra.
  - unfold Phi, sigmoid; integral with (i_prec 60).
  - unfold Phi, sigmoid; integral with (i_prec 60).
  - exists x. split; [exact P|].
    rewrite <- Rmult_minus_distr_l, Rabs_mult, (Rabs_right x) by lra. exact E.
Qed.

Theorem swiglu_gelu_fit_1702 :
  exists x, 0 <= x /\ 0.020334 <= Rabs (x * Phi x - x * sigmoid (1.702 * x)).
Proof.
  exists 2.2704. split; [lra|].
  apply (Rle_trans _ (2.2704 * Phi 2.2704 - 2.2704 * sigmoid (1.702 * 2.2704)));
    [unfold Phi, sigmoid; integral with (i_prec 60) | apply Rle_abs].
Qed.
(*< swiglu.gelu-fit *)
