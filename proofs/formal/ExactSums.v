(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* When a binary64 dot product is exact in every order (bound.dot-exact): all products are multiples of 2^L, and
   their absolute values sum to less than 2^(53 + L). Then no partial sum is rounded, and any two orders agree to the
   last bit. Assumed: L >= -1074, the exponent of the smallest subnormal. The rounding mode is arbitrary. *)

From Coq Require Import Reals List Permutation ZArith Arith Lia Lra.
From Flocq Require Import Core.
From Sinkproof Require Import Sums Summation.
Import ListNotations.
Open Scope R_scope.

Definition binary64 := FLT_exp (-1074) 53.
Definition bfloat16 := FLT_exp (-133) 8.

(* x is an integer multiple of 2^L. *)
Definition multiple (L : Z) (x : R) : Prop := exists m : Z, x = IZR m * bpow radix2 L.

Lemma multiple_plus L x y : multiple L x -> multiple L y -> multiple L (x + y).
Proof. intros [m ->] [n ->]. exists (m + n)%Z. rewrite plus_IZR. ring. Qed.

Lemma multiple_dot L l :
  (forall a b, In (a, b) l -> multiple L (a * b)) -> multiple L (dot l).
Proof.
  unfold dot. induction l as [|[a b] l IH]; simpl; intros H.
  - exists 0%Z. ring.
  - apply multiple_plus; [apply H; auto | apply IH; intros; apply H; auto].
Qed.

(* A multiple of 2^L below 2^(53 + L) has at most 53 significant bits, so binary64 holds it. *)
Lemma multiple_format L x : (-1074 <= L)%Z -> multiple L x -> Rabs x < bpow radix2 (53 + L) ->
  generic_format radix2 binary64 x.
Proof.
  intros HL [m ->] Hx. apply generic_format_FLT. exists (Float radix2 m L); [reflexivity | | exact HL].
  rewrite bpow_plus, Rabs_mult, (Rabs_pos_eq (bpow _ L)) in Hx by apply bpow_ge_0.
  apply Rmult_lt_reg_r in Hx; [|apply bpow_gt_0].
  apply lt_IZR. rewrite abs_IZR. exact Hx.
Qed.

(* A multiple of 2^e times a multiple of 2^f is a multiple of 2^(e + f). Every bfloat16 number is a multiple
   of 2^-133, so every product of two is a multiple of 2^-266. *)
Lemma multiple_product a b e f : multiple e a -> multiple f b -> multiple (e + f) (a * b).
Proof.
  intros [m ->] [n ->]. exists (m * n)%Z. rewrite mult_IZR, bpow_plus. ring.
Qed.

Lemma multiple_bfloat16 x : generic_format radix2 bfloat16 x -> multiple (-133) x.
Proof.
  intros F. apply FLT_format_generic in F; [|easy]. destruct F as [[m e] -> _ He].
  exists (m * 2 ^ (e + 133))%Z. unfold F2R. simpl Fnum. simpl Fexp. simpl Fexp in He.
  rewrite mult_IZR, (IZR_Zpower radix2) by lia. rewrite Rmult_assoc, <- bpow_plus.
  do 2 f_equal. lia.
Qed.

(* No rounding happens: every partial sum fits in binary64, in every order and in every rounding mode. *)
(*> bound.dot-exact *)
Theorem bound_dot_exact (rnd : R -> Z) {valid : Valid_rnd rnd} (L : Z) (t : tree) :
  (-1074 <= L)%Z ->
  (forall a b, In (a, b) (terms t) -> multiple L (a * b)) ->
  ∑ p ∈ terms t, Rabs (fst p * snd p) < bpow radix2 (53 + L) ->
  eval (round radix2 binary64 rnd) t = ∑ p ∈ terms t, fst p * snd p.
Proof.
  fold (absdot (terms t)) (dot (terms t)). intros HL.
  assert (Fits : forall l, (forall a b, In (a, b) l -> multiple L (a * b)) ->
    absdot l < bpow radix2 (53 + L) -> round radix2 binary64 rnd (dot l) = dot l).
  { intros l M B. apply round_generic; [exact valid|]. apply (multiple_format L); auto.
    - apply multiple_dot, M.
    - eapply Rle_lt_trans; [apply dot_le_absdot | exact B]. }
  induction t as [a b | a b | l IHl r IHr | a b t IH]; intros M B; cbn [eval].
  - unfold dot. simpl. ring.
  - specialize (Fits [(a, b)] M B). unfold dot in *. simpl in *. rewrite Rplus_0_r in *. exact Fits.
  - specialize (Fits (terms (Add l r)) M B). cbn [terms] in *. unfold dot, absdot in *.
    rewrite !Sum_app in *. pose proof (absdot_nonneg (terms l)). pose proof (absdot_nonneg (terms r)).
    unfold absdot in *. rewrite IHl, IHr; try lra; auto; intros; apply M, in_or_app; auto.
  - specialize (Fits (terms (Fma a b t)) M B). cbn [terms] in *. unfold dot, absdot in *.
    cbn [Sum fst snd] in *. pose proof (Rabs_pos (a * b)).
    rewrite IH; try lra; auto. intros. apply M. right. assumption.
Qed.

(* So any two orders give the same number, to the last bit. *)
Corollary bound_dot_exact_any_order (rnd : R -> Z) {valid : Valid_rnd rnd} (L : Z) (t t' : tree) :
  (-1074 <= L)%Z -> (forall a b, In (a, b) (terms t) -> multiple L (a * b)) ->
  absdot (terms t) < bpow radix2 (53 + L) -> Permutation (terms t) (terms t') ->
  eval (round radix2 binary64 rnd) t = eval (round radix2 binary64 rnd) t'.
Proof.
  intros HL M B P. rewrite (bound_dot_exact rnd L t HL M B). rewrite (bound_dot_exact rnd L t' HL).
  - apply Sum_perm, P.
  - intros a b Hab. apply M. apply (Permutation_in _ (Permutation_sym P)), Hab.
  - fold (absdot (terms t')). rewrite <- (absdot_perm _ _ P). exact B.
Qed.

(* bfloat16 inputs of any size, down to the smallest subnormal: L = -266. *)
Corollary bound_dot_exact_bfloat16 (rnd : R -> Z) {valid : Valid_rnd rnd} (t : tree) :
  (forall a b, In (a, b) (terms t) ->
     generic_format radix2 bfloat16 a /\ generic_format radix2 bfloat16 b) ->
  absdot (terms t) < bpow radix2 (53 - 266) ->
  eval (round radix2 binary64 rnd) t = dot (terms t).
Proof.
  intros F B. apply (bound_dot_exact rnd (-266)); [lia | | exact B]. intros a b Hab.
  destruct (F a b Hab). apply (multiple_product a b (-133) (-133)); apply multiple_bfloat16; assumption.
Qed.
(*< bound.dot-exact *)
