(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The mixture of experts: the softmax over the chosen logits equals the renormalised softmax over all
   (router.softmax-after), and the sum of the experts does not depend on their order (moe.sum). Assumed: the choice
   is a top k by logits, with ties broken in any way. *)

From Sinkproof Require Import Sums SoftmaxSink.
From Coq Require Import Reals List Permutation Lra.
Import ListNotations.
Open Scope R_scope.

Section Router.
  Context {expert : Type}.
  Implicit Types (E T rest : list expert) (r : expert -> R).

  (* T are top experts of E by r: no other expert has a larger r than any of them. Ties may be broken in any
     way. *)
  Definition top T E r : Prop :=
    exists rest, Permutation E (T ++ rest) /\ forall t o, In t T -> In o rest -> r o <= r t.

  Lemma softmax_le E r e f : E <> [] -> (softmax E r e <= softmax E r f <-> r e <= r f).
  Proof.
    intros HE. pose proof (sum_exp_pos E r HE). unfold softmax. split; intros H'.
    - apply Rmult_le_reg_r in H'; [|apply Rinv_0_lt_compat; lra].
      destruct (Rle_lt_dec (r e) (r f)) as [L|L]; [exact L|]. apply exp_increasing in L. lra.
    - apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; lra|].
      destruct H' as [L | ->]; [apply Rlt_le, exp_increasing, L | lra].
  Qed.

  (* Two orders: top k of the logits and then a softmax over these; or a softmax over all logits, its top k,
     and then renormalisation. Both choose the same sets and give the same weights. *)
  (*> router.softmax-after *)
  Theorem router_softmax_after E T r : E <> [] ->
    (top T E r <-> top T E (softmax E r)) /\
    (forall e, softmax T r e = softmax E r e / ∑ t ∈ T, softmax E r t).
  Proof.
    intros HE. pose proof (sum_exp_pos E r HE). split.
    - split; intros (rest & P & H'); exists rest; split; auto; intros t o Ht Ho;
        specialize (H' t o Ht Ho); apply (softmax_le E r o t HE); exact H'.
    - intros e. unfold softmax. rewrite Sum_div. pose proof (sum_exp_nonneg T r).
      destruct (Req_dec (∑ t ∈ T, exp (r t)) 0) as [Z|N]; [|field; lra].
      unfold Rdiv. rewrite Z, Rmult_0_l, !Rinv_0. ring.
  Qed.

  (* (≠) Without renormalisation every weight is too small, as soon as one expert is left out. *)
  Theorem router_softmax_after_wrong_without_renormalising E T rest r e :
    Permutation E (T ++ rest) -> T <> [] -> rest <> [] -> softmax E r e < softmax T r e.
  Proof.
    intros P HT Hrest. unfold softmax. rewrite (Sum_perm _ _ _ P), Sum_app.
    pose proof (sum_exp_pos T r HT). pose proof (sum_exp_pos rest r Hrest).
    apply Rmult_lt_compat_l; [apply exp_pos|]. apply Rinv_lt_contravar; [|lra].
    apply Rmult_lt_0_compat; lra.
  Qed.
  (*< router.softmax-after *)

  (* The sum of the chosen experts does not depend on their order. Each b2 enters once, weighted by w e. *)
  (*> moe.sum *)
  Theorem moe_sum T T' n (w : expert -> R) (t b2 : expert -> vec) (W2 : expert -> mat) :
    let y T := (∑ e ∈ T, w e *: (t e *[n] W2 e + b2 e))%V in
    (Permutation T T' -> y T = y T') /\
    y T = ((∑ e ∈ T, w e *: (t e *[n] W2 e)) + ∑ e ∈ T, w e *: b2 e)%V.
  Proof.
    split.
    - intros P. at_coordinate c. apply Sum_perm, P.
    - rewrite <- vsum_plus. apply vsum_ext. intros e. apply vscal_add.
  Qed.
  (*< moe.sum *)
End Router.
