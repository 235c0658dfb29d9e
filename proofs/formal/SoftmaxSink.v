(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The softmax with a sink: its definitions (sink.alpha, sink.alpha-sink) and its row mass (sink.mass,
   sink.mass-below-one); chapter 6. J is the list of keys that a query may see (any type, any mask), s j the score of
   key j, b the learned sink logit. The sink is one more term of the denominator and has no value vector. Assumed: b
   is finite. *)

From Sinkproof Require Import Sums.
From Coq Require Import Reals List Lra.
Import ListNotations.
Open Scope R_scope.

Section Row.
  Context {key : Type}.
  Implicit Types (J : list key) (s : key -> R) (b : R).

  (*> sink.alpha *)
  Definition alpha J s b (j : key) : R := exp (s j) / (exp b + ∑ j' ∈ J, exp (s j')).
  (*< sink.alpha *)

  (*> sink.alpha-sink *)
  Definition alpha_sink J s b : R := exp b / (exp b + ∑ j' ∈ J, exp (s j')).
  (*< sink.alpha-sink *)

  (* The ordinary softmax, and softmax_1 with its constant 1 in the denominator. *)
  Definition softmax J s (j : key) : R := exp (s j) / ∑ j' ∈ J, exp (s j').
  Definition softmax1 J s (j : key) : R := exp (s j) / (1 + ∑ j' ∈ J, exp (s j')).

  Lemma sum_exp_nonneg J s : 0 <= ∑ j ∈ J, exp (s j).
  Proof. apply Sum_nonneg. intros. apply Rlt_le, exp_pos. Qed.

  Lemma sum_exp_pos J s : J <> [] -> 0 < ∑ j ∈ J, exp (s j).
  Proof. intros H. apply Sum_pos; [exact H | intros; apply exp_pos]. Qed.

  Lemma den_pos J s b : 0 < exp b + ∑ j ∈ J, exp (s j).
  Proof. pose proof (exp_pos b). pose proof (sum_exp_nonneg J s). lra. Qed.

  (* The weights of the keys and of the sink have the same denominator, so together they sum to 1. *)
  (*> sink.mass *)
  Theorem sink_mass J s b : ∑ j ∈ J, alpha J s b j = 1 - alpha_sink J s b.
  Proof.
    pose proof (den_pos J s b). unfold alpha, alpha_sink. rewrite Sum_div. field. lra.
  Qed.
  (*< sink.mass *)

  Lemma alpha_sink_pos J s b : 0 < alpha_sink J s b.
  Proof. apply Rdiv_lt_0_compat; [apply exp_pos | apply den_pos]. Qed.

  Lemma alpha_pos J s b j : 0 < alpha J s b j.
  Proof. apply Rdiv_lt_0_compat; [apply exp_pos | apply den_pos]. Qed.

  (*> sink.mass-below-one *)
  Theorem sink_mass_below_one J s b : J <> [] ->
    (0 < alpha_sink J s b < 1) /\ (0 < ∑ j ∈ J, alpha J s b j < 1).
  Proof.
    intros HJ. pose proof (alpha_sink_pos J s b).
    assert (0 < ∑ j ∈ J, alpha J s b j) by (apply Sum_pos; auto using alpha_pos).
    pose proof (sink_mass J s b). lra.
  Qed.
  (*< sink.mass-below-one *)

  (* Subtracting m from all scores and from the sink multiplies numerator and denominator by the same factor. *)
  Lemma alpha_shift J s b m j : alpha J (fun k => s k - m) (b - m) j = alpha J s b j.
  Proof.
    unfold alpha, Rminus. rewrite (Sum_ext _ _ (fun k => exp (s k) * exp (- m))), Sum_scal_r.
    - rewrite !exp_plus, <- Rmult_plus_distr_r.
      pose proof (den_pos J s b). pose proof (exp_pos (- m)). field. lra.
    - intros. apply exp_plus.
  Qed.

  Lemma alpha_sink_shift J s b m : alpha_sink J (fun k => s k - m) (b - m) = alpha_sink J s b.
  Proof.
    assert (E : ∑ j ∈ J, alpha J (fun k => s k - m) (b - m) j = ∑ j ∈ J, alpha J s b j)
      by (apply Sum_ext; intros; apply alpha_shift).
    rewrite !sink_mass in E. lra.
  Qed.
End Row.
