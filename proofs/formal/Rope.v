(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Rotary positions by halves: coordinate p is paired with p + half; position t turns the pair by the angle t ω_p and
   scales it by the concentration γ. Rotations compose (rope.rotate), and the product of a rotated query and a
   rotated key depends only on the distance (rope.orthogonal). Nothing is assumed of ω and γ. *)

From Sinkproof Require Import Sums.
From Coq Require Import Reals List Arith Lia Lra.
Import ListNotations.
Open Scope R_scope.

Lemma seq_plus half n : forall a, map (fun p => (p + half)%nat) (seq a n) = seq (a + half) n.
Proof. induction n as [|n IH]; intros a; simpl; [|rewrite IH]; reflexivity. Qed.

Section Rope.
  Variable half : nat.
  Variable ω : nat -> R. (* the frequency of pair p, YaRN or not *)

  (*> rope.rotate *)
  Definition rotate (γ t : R) (x : vec) : vec := fun c =>
    if c <? half then γ * (x c * cos (t * ω c) - x (c + half)%nat * sin (t * ω c))
    else let p := (c - half)%nat in γ * (x c * cos (t * ω p) + x p * sin (t * ω p)).

  Lemma rotate_first γ t x p : (p < half)%nat ->
    rotate γ t x p = γ * (x p * cos (t * ω p) - x (p + half)%nat * sin (t * ω p)).
  Proof. intros Hp. unfold rotate. rewrite (proj2 (Nat.ltb_lt p half) Hp). reflexivity. Qed.

  Lemma rotate_second γ t x p :
    rotate γ t x (p + half)%nat =
    γ * (x (p + half)%nat * cos (t * ω p) + x p * sin (t * ω p)).
  Proof.
    unfold rotate. rewrite (proj2 (Nat.ltb_ge _ _)) by lia.
    rewrite Nat.add_sub. reflexivity.
  Qed.

  (*< rope.rotate *)

  (* A dot product over the 2 half coordinates, pair by pair. *)
  Lemma dot_pairs x y :
    x ⋅[half + half] y = ∑ p < half, (x p * y p + x (p + half)%nat * y (p + half)%nat).
  Proof.
    unfold vdot. rewrite seq_app, Sum_app, Sum_plus. f_equal.
    rewrite <- (Sum_map (seq 0 half) (fun p => (p + half)%nat) (fun c => x c * y c)).
    f_equal. symmetry. apply seq_plus.
  Qed.

  (* Rotations compose: angles add, scales multiply; position 0 with scale 1 changes nothing. *)
  (*> rope.rotate *)
  Theorem rope_rotate γ γ' t t' x c : (c < half + half)%nat ->
    rotate γ t (rotate γ' t' x) c = rotate (γ * γ') (t + t') x c /\ rotate 1 0 x c = x c.
  Proof.
    intros Hc. destruct (lt_dec c half) as [L | G]; [|replace c with (c - half + half)%nat by lia];
      rewrite ?rotate_first, ?rotate_second, ?rotate_first, ?Rmult_plus_distr_r, ?cos_plus, ?sin_plus,
        ?Rmult_0_l, ?cos_0, ?sin_0 by lia; split; ring.
  Qed.
  (*< rope.rotate *)

  (* Squared lengths are multiplied by γ². The product of a rotated query and a rotated key is γ² times the
     product of the query with the key that is turned by the difference of the positions. *)
  (*> rope.orthogonal *)
  Theorem rope_orthogonal γ q k :
    (forall t, rotate γ t q ⋅[half + half] rotate γ t q = γ ^ 2 * (q ⋅[half + half] q)) /\
    (forall i j, rotate γ i q ⋅[half + half] rotate γ j k =
                 γ ^ 2 * (q ⋅[half + half] rotate 1 (j - i) k)) /\
    (forall i j i' j', i - j = i' - j' ->
       rotate γ i q ⋅[half + half] rotate γ j k = rotate γ i' q ⋅[half + half] rotate γ j' k).
  Proof.
    assert (E : forall i j k, rotate γ i q ⋅[half + half] rotate γ j k =
                              γ ^ 2 * (q ⋅[half + half] rotate 1 (j - i) k)).
    { intros i j k0. rewrite !dot_pairs, <- Sum_scal_l. apply Sum_ext_in. intros p Hp.
      apply in_seq in Hp. rewrite !rotate_second, !rotate_first by lia.
      unfold Rminus. rewrite Rmult_plus_distr_r, <- Ropp_mult_distr_l, cos_plus, sin_plus, cos_neg, sin_neg.
      ring. }
    split; [|split; [intros; apply E|]].
    - intros t. rewrite E, Rminus_diag_eq by reflexivity. f_equal. rewrite !dot_pairs.
      apply Sum_ext_in. intros p Hp. apply in_seq in Hp.
      rewrite rotate_second, rotate_first, Rmult_0_l, cos_0, sin_0 by lia. ring.
    - intros i j i' j' D. rewrite !E. do 2 f_equal. replace (j - i) with (j' - i') by lra. reflexivity.
  Qed.
  (*< rope.orthogonal *)
End Rope.
