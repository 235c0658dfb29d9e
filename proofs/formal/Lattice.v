(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Which design of attention becomes which other one, and when (lattice.edges, chapter 24): the edges that no other
   chapter proves, which are those of divisors, masks, positions, gates and features. Also the interval of a weight,
   from the intervals of its similarity and its divisor (bound.similarity). J lists the keys that a row sees, s j is
   the score of key j; tokens are counted from 0. Assumed: a row has a key. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences.
From Coq Require Import Reals List Arith Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* The similarity elu(x) + 1, and the divisor max(|x|, 1). *)
Definition elu_plus_one (x : R) : R := if Rlt_dec x 0 then exp x else x + 1.
Definition at_least_one (x : R) : R := Rmax (Rabs x) 1.

(* The features of the MLP kernel, W2 relu(W1 x), over d coordinates. *)
Definition mlp (d : nat) (W1 W2 : nat -> nat -> R) (x : nat -> R) (r : nat) : R :=
  ∑ k < d, W2 r k * Rmax (∑ c < d, W1 k c * x c) 0.
Definition identity (r c : nat) : R := if r =? c then 1 else 0.

Lemma identity_row d x r : (r < d)%nat -> ∑ c < d, identity r c * x c = x r.
Proof.
  assert (H : forall n start, (start <= r < start + n)%nat ->
    Sum (seq start n) (fun c => identity r c * x c) = x r).
  { induction n as [|n IH]; intros start Hr; [lia|]. simpl. unfold identity at 1.
    destruct (Nat.eqb_spec r start) as [->|Hne].
    - rewrite (Sum_ext_in _ _ (fun _ => 0)), Sum_zero.
      + ring.
      + intros c Hc. apply in_seq in Hc. unfold identity.
        destruct (Nat.eqb_spec start c); [lia | ring].
    - rewrite IH by lia. ring. }
  intros Hr. apply H. lia.
Qed.

(* Whether row i sees key j: causal, a window of w, a prefix of p, packed documents, the first p keys and the
   last w. *)
Definition causal (i j : nat) : Prop := (j <= i)%nat.
Definition window (w i j : nat) : Prop := (j <= i)%nat /\ (i - j < w)%nat.
Definition prefix (p i j : nat) : Prop := (j <= i)%nat \/ (j < p)%nat.
Definition packed (document : nat -> nat) (i j : nat) : Prop := (j <= i)%nat /\ document i = document j.
Definition first_recent (p w i j : nat) : Prop := window w i j \/ ((j <= i)%nat /\ (j < p)%nat).

(*> lattice.edges *)
Theorem lattice_edges_masks i j n w p document : (i < n)%nat ->
  ((n <= w)%nat -> (window w i j <-> causal i j)) /\
  ((p <= 1)%nat -> (prefix p i j <-> causal i j)) /\
  ((forall a b, document a = document b) -> (packed document i j <-> causal i j)) /\
  (first_recent 0 w i j <-> window w i j) /\
  ((n <= w)%nat -> (first_recent p w i j <-> causal i j)).
Proof.
  unfold window, prefix, packed, first_recent, causal.
  intros Hi. repeat split; intros; try tauto; try lia; try (unfold window in *; lia); auto.
Qed.

Section Row.
  Context {key : Type}.
  Implicit Types (J : list key) (s v : key -> R).

  Theorem lattice_edges J s j : J <> [] ->
    exp (s j) / ((∑ k ∈ J, exp (s k)) / 1) = softmax J s j /\
    exp (s j) / Rpower (∑ k ∈ J, Rpower (exp (s k)) 1) (/ 1) = softmax J s j /\
    ((forall k, In k J -> s k <= 0) -> In j J ->
      elu_plus_one (s j) / (∑ k ∈ J, elu_plus_one (s k)) = softmax J s j) /\
    (Rabs (∑ k ∈ J, s k) <= 1 -> s j / at_least_one (∑ k ∈ J, s k) = s j / 1).
  Proof.
    intros HJ. unfold softmax. pose proof (sum_exp_pos J s HJ) as Hpos.
    assert (E : forall x, x <= 0 -> elu_plus_one x = exp x).
    { intros x Hx. unfold elu_plus_one. destruct (Rlt_dec x 0) as [Hlt | Hge]; [reflexivity|].
      replace x with 0 by lra. rewrite exp_0. ring. }
    repeat split.
    - f_equal. field.
    - rewrite Rinv_1. rewrite (Sum_ext _ _ (fun k => exp (s k))).
      + rewrite Rpower_1 by exact Hpos. reflexivity.
      + intros k. apply Rpower_1, exp_pos.
    - intros Hs Hj. rewrite (Sum_ext_in J (fun k => elu_plus_one (s k)) (fun k => exp (s k))).
      + rewrite E by auto. reflexivity.
      + intros k Hk. apply E, Hs, Hk.
    - intros Hsum. unfold at_least_one. rewrite Rmax_right by exact Hsum. reflexivity.
  Qed.

  Theorem lattice_edges_positions J s (place : key -> R) c slope (distance : key -> R) j : J <> [] ->
    ((forall k, place k = c) -> softmax J (fun k => s k + place k) j = softmax J s j) /\
    (softmax J (fun k => s k + - 0 * distance k) j = softmax J s j) /\
    ((forall k, place k = - slope * distance k) ->
      softmax J (fun k => s k + place k) j = softmax J (fun k => s k + - slope * distance k) j).
  Proof.
    intros HJ. unfold softmax. pose proof (sum_exp_pos J s HJ) as Hpos. repeat split.
    - intros Hc. rewrite (Sum_ext _ _ (fun k => exp (s k) * exp c)).
      + rewrite Sum_scal_r, Hc, exp_plus. pose proof (exp_pos c). field. lra.
      + intros k. rewrite Hc. apply exp_plus.
    - rewrite (Sum_ext _ _ (fun k => exp (s k))).
      + f_equal. f_equal. ring.
      + intros k. f_equal. ring.
    - intros Hp. rewrite (Sum_ext _ (fun k => exp (s k + place k))
        (fun k => exp (s k + - slope * distance k))).
      + rewrite Hp. reflexivity.
      + intros k. rewrite Hp. reflexivity.
  Qed.

  Theorem lattice_edges_gates J s v : J <> [] ->
    sigmoid 0 * (∑ j ∈ J, softmax J s j * v j) =
      ∑ j ∈ J, exp (s j) / ((∑ k ∈ J, exp (s k)) / (1 / 2)) * v j.
  Proof.
    intros HJ. pose proof (sum_exp_pos J s HJ) as Hpos. unfold softmax, sigmoid.
    rewrite Ropp_0, exp_0, <- Sum_scal_l. apply Sum_ext. intros j. field. lra.
  Qed.

  Theorem lattice_edges_one_key s j : softmax1 [j] s j = sigmoid (s j).
  Proof.
    unfold softmax1, sigmoid. simpl. rewrite Rplus_0_r, exp_Ropp.
    pose proof (exp_pos (s j)). field. lra.
  Qed.
End Row.

Theorem lattice_edges_inputs n (x p : nat -> R) (W : nat -> nat -> R) (g : nat -> R) d :
  ((forall c, p c = 0) -> ∑ c < n, (x c + p c) * W c d = ∑ c < n, x c * W c d) /\
  ((forall c, W c d = g c) -> ∑ c < n, x c * W c d = ∑ c < n, x c * g c).
Proof.
  split; intros H; apply Sum_ext; intros c; rewrite H; ring.
Qed.

Theorem lattice_edges_features d q r : (r < d)%nat -> (forall c, 0 <= q c) ->
  mlp d identity identity q r = q r.
Proof.
  intros Hr Hq. unfold mlp.
  rewrite (Sum_ext_in _ _ (fun k => identity r k * q k)).
  - apply identity_row, Hr.
  - intros k Hk. apply in_seq in Hk. rewrite identity_row by lia.
    rewrite Rmax_left by apply Hq. reflexivity.
Qed.
(*< lattice.edges *)

(* The interval of a weight x / z: the similarity x of its score and the divisor z of its row lie in known
   intervals, and the quotient is rounded. *)
(*> bound.similarity *)
Theorem bound_similarity x z xl xh zl zh u delta :
  0 < zl -> zl <= z <= zh -> xl <= x <= xh -> Rabs delta <= u ->
  Rmin (xl / zl) (xl / zh) - u * (Rmax (Rabs xl) (Rabs xh) / zl) <= x / z * (1 + delta) <=
  Rmax (xh / zl) (xh / zh) + u * (Rmax (Rabs xl) (Rabs xh) / zl).
Proof.
  intros Hzl Hz Hx Hd.
  assert (Hinv : / zh <= / z <= / zl) by (split; apply Rinv_le_contravar; lra).
  assert (Hzpos : 0 < / zh) by (apply Rinv_0_lt_compat; lra).
  assert (Hq : Rabs (x / z) <= Rmax (Rabs xl) (Rabs xh) / zl).
  { unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ z)) by lra.
    apply Rmult_le_compat; try apply Rabs_pos; try lra.
    apply RmaxAbs; lra. }
  assert (Herr : Rabs (x / z * delta) <= u * (Rmax (Rabs xl) (Rabs xh) / zl)).
  { rewrite Rabs_mult, Rmult_comm. apply Rmult_le_compat; auto using Rabs_pos. }
  pose proof (Rle_abs (x / z * delta)). pose proof (Rle_abs (- (x / z * delta))) as Hneg.
  rewrite Rabs_Ropp in Hneg.
  assert (Hlow : Rmin (xl / zl) (xl / zh) <= x / z).
  { unfold Rdiv. destruct (Rle_dec 0 xl).
    - apply Rle_trans with (xl * / zh); [apply Rmin_r|].
      apply Rmult_le_compat; lra.
    - apply Rle_trans with (xl * / zl); [apply Rmin_l|].
      apply Rle_trans with (xl * / z); [|apply Rmult_le_compat_r; lra].
      apply Rmult_le_compat_neg_l; lra. }
  assert (Hhigh : x / z <= Rmax (xh / zl) (xh / zh)).
  { unfold Rdiv. destruct (Rle_dec 0 xh).
    - apply Rle_trans with (xh * / zl); [|apply Rmax_l].
      apply Rle_trans with (xh * / z); [apply Rmult_le_compat_r; lra|].
      apply Rmult_le_compat_l; lra.
    - apply Rle_trans with (xh * / zh); [|apply Rmax_r].
      apply Rle_trans with (xh * / z); [apply Rmult_le_compat_r; lra|].
      apply Rmult_le_compat_neg_l; lra. }
  lra.
Qed.

(* The three similarities increase with the score, so the ends of the score's interval suffice. The last
   theorem says what a relative error eps of the exponential does to a sigmoid. *)
Theorem bound_similarity_ends a b : a <= b ->
  exp a <= exp b /\ sigmoid a <= sigmoid b /\ elu_plus_one a <= elu_plus_one b.
Proof.
  intros Hab. assert (Hexp : forall x y, x <= y -> exp x <= exp y).
  { intros x y [Hlt | ->]; [left; apply exp_increasing, Hlt | right; reflexivity]. }
  repeat split; [auto | |].
  - unfold sigmoid. pose proof (exp_pos (- a)). pose proof (exp_pos (- b)).
    pose proof (Hexp (- b) (- a) ltac:(lra)).
    unfold Rdiv. rewrite !Rmult_1_l. apply Rinv_le_contravar; lra.
  - unfold elu_plus_one. destruct (Rlt_dec a 0), (Rlt_dec b 0); auto; try lra.
    pose proof (Hexp a 0 ltac:(lra)) as H. rewrite exp_0 in H. lra.
Qed.

Theorem bound_similarity_sigmoid E eps : 0 < E -> Rabs eps < 1 ->
  Rabs (1 / (1 + E * (1 + eps)) - 1 / (1 + E)) <= Rabs eps / (1 - Rabs eps) * (1 / (1 + E)).
Proof.
  intros HE Heps. pose proof (Rabs_pos eps). pose proof (Rle_abs eps). pose proof (Rle_abs (- eps)) as Hneg.
  rewrite Rabs_Ropp in Hneg.
  assert (Hden : 0 < 1 + E * (1 + eps)) by nra.
  replace (1 / (1 + E * (1 + eps)) - 1 / (1 + E)) with (- eps * (E / (1 + E * (1 + eps))) * (1 / (1 + E)))
    by (field; lra).
  assert (Hpos : 0 < 1 / (1 + E)) by (apply Rdiv_lt_0_compat; lra).
  rewrite !Rabs_mult, Rabs_Ropp, (Rabs_pos_eq (1 / (1 + E))) by lra.
  apply Rmult_le_compat_r; [lra|].
  rewrite (Rabs_pos_eq (E / (1 + E * (1 + eps)))) by (apply Rlt_le, Rdiv_lt_0_compat; lra).
  unfold Rdiv. apply Rmult_le_compat_l; [lra|].
  apply Rle_trans with (E * / (E * (1 - Rabs eps))).
  - apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; nra.
  - right. field. lra.
Qed.
(*< bound.similarity *)
