(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Products by exact slices (slices.exact): weights are sums of integers times powers of 2, activations are
   sums of digits, every product of a slice and a digit fits the certificate of bound.dot-exact, and the products
   are joined as integers. What truncation and radii leave open is bounded by a product of integers, too. *)

From Coq Require Import Reals List Permutation ZArith Lia Lra.
From Flocq Require Import Core.
From Sinkproof Require Import Sums Summation ExactSums.
Import ListNotations.
Open Scope R_scope.

(*> slices.exact *)
Section Sliced.
  Context (rnd : R -> Z) {valid : Valid_rnd rnd}.
  Variables n slices digits : nat. (* columns, slices of a weight, digits of an activation *)
  Variable s q : Z.                (* bits of a digit; the unit 2^q of the last one *)
  Variable h : nat -> nat -> Z.    (* h t c: the integer of slice t, column c *)
  Variable l : nat -> Z.           (* l t: the exponent of slice t *)
  Variable d : nat -> nat -> Z.    (* d c j: digit j of the activation of column c *)
  Variable P : nat -> nat -> tree. (* P t j: a binary64 sum of slice t times digit j, in any order *)

  Definition weight (c : nat) : R := ∑ t < slices, IZR (h t c) * bpow radix2 (l t).
  Definition activation (c : nat) : R := ∑ j < digits, IZR (d c j) * bpow radix2 (q + s * Z.of_nat j).
  Definition products (t j : nat) : list (R * R) := map (fun c => (IZR (h t c), IZR (d c j))) (seq 0 n).

  Hypothesis size : (1 <= s <= 54)%Z.
  Hypothesis room : forall t, ∑ c < n, Rabs (IZR (h t c)) < bpow radix2 (54 - s).
  Hypothesis digit : forall c j, Rabs (IZR (d c j)) <= bpow radix2 (s - 1).
  Hypothesis order : forall t j, Permutation (products t j) (terms (P t j)).

  Lemma product_exact t j : eval (round radix2 binary64 rnd) (P t j) = ∑ c < n, IZR (h t c) * IZR (d c j).
  Proof.
    assert (E : dot (terms (P t j)) = ∑ c < n, IZR (h t c) * IZR (d c j)).
    { rewrite <- (dot_perm _ _ (order t j)). unfold dot, products. rewrite Sum_map. reflexivity. }
    rewrite <- E. apply (bound_dot_exact rnd 0); [lia | | ].
    - intros a b Hab. apply (Permutation_in _ (Permutation_sym (order t j))) in Hab.
      unfold products in Hab. apply in_map_iff in Hab. destruct Hab as [c [Hc _]]. injection Hc as <- <-.
      exists (h t c * d c j)%Z. rewrite mult_IZR. simpl. ring.
    - fold (absdot (terms (P t j))). rewrite <- (absdot_perm _ _ (order t j)).
      unfold absdot, products. rewrite Sum_map. cbn [fst snd].
      apply Rle_lt_trans with (∑ c < n, Rabs (IZR (h t c)) * bpow radix2 (s - 1)).
      + apply Sum_le. intros c _. rewrite Rabs_mult.
        apply Rmult_le_compat_l; [apply Rabs_pos | apply digit].
      + rewrite Sum_scal_r. replace (53 + 0)%Z with ((54 - s) + (s - 1))%Z by lia. rewrite bpow_plus.
        apply Rmult_lt_compat_r; [apply bpow_gt_0 | apply room].
  Qed.

  (* The joined products are the exact product, in every order and in every rounding mode. *)
  Theorem slices_exact :
    ∑ t < slices, ∑ j < digits,
      eval (round radix2 binary64 rnd) (P t j) * bpow radix2 (l t + (q + s * Z.of_nat j))
    = ∑ c < n, weight c * activation c.
  Proof.
    transitivity (∑ c < n, ∑ t < slices, ∑ j < digits,
      IZR (h t c) * bpow radix2 (l t) * (IZR (d c j) * bpow radix2 (q + s * Z.of_nat j))).
    - rewrite (Sum_swap (seq 0 n)). apply Sum_ext. intros t. rewrite (Sum_swap (seq 0 n)). apply Sum_ext.
      intros j. rewrite product_exact, bpow_plus, <- Sum_scal_r. apply Sum_ext. intros c. ring.
    - apply Sum_ext. intros c. unfold weight, activation. rewrite <- Sum_scal_r. apply Sum_ext. intros t.
      rewrite <- Sum_scal_l. reflexivity.
  Qed.

  (* And the product with any reals that are within r_c units of 2^g is within a product of integers. *)
  Theorem slices_exact_radius (x : nat -> R) (u r : nat -> Z) (e g : Z) :
    (forall c, Rabs (weight c) <= IZR (u c) * bpow radix2 e) ->
    (forall c, Rabs (x c - activation c) <= IZR (r c) * bpow radix2 g) ->
    Rabs ((∑ c < n, weight c * x c) - ∑ c < n, weight c * activation c)
    <= (∑ c < n, IZR (u c) * IZR (r c)) * bpow radix2 (e + g).
  Proof.
    intros U X. rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|].
    rewrite <- Sum_scal_r. apply Sum_le. intros c _.
    replace (weight c * x c - weight c * activation c) with (weight c * (x c - activation c)) by ring.
    rewrite Rabs_mult, bpow_plus.
    replace (IZR (u c) * IZR (r c) * (bpow radix2 e * bpow radix2 g))
      with (IZR (u c) * bpow radix2 e * (IZR (r c) * bpow radix2 g)) by ring.
    apply Rmult_le_compat; auto using Rabs_pos.
  Qed.
End Sliced.
(*< slices.exact *)
