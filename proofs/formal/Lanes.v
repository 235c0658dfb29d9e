(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Two computations of the lane arithmetic (fast/lanes/lanes.h): the error of its dot product, in the order that the
   lanes fix (lanes.linear), and its one-pass attention over spans of keys (lanes.attention). The first assumes a
   rounding with |fl x - x| <= u |x|. The second is over the reals, without rounding. *)

From Sinkproof Require Import Sums SoftmaxSink Summation Online.
From Coq Require Import Reals List Lra Lia.
Import ListNotations.
Open Scope R_scope.

Section Product.
  (*> lanes.linear *)
  Variable fl : R -> R.
  Variable u : R.
  Hypothesis u_nonneg : 0 <= u.
  Hypothesis fl_error : forall x, Rabs (fl x - x) <= u * Rabs x.

  (* From 0: sum = fl(w x + sum), over the terms of a block in the order of the list. *)
  Definition block_sum (B : list (R * R)) : R :=
    fold_left (fun sum p => fl (fst p * snd p + sum)) B 0.

  (* From 0: total = fl(s block + total), over the blocks, each with its scale. *)
  Definition lanes_dot (Bs : list (R * list (R * R))) : R :=
    fold_left (fun total B => fl (fst B * block_sum (snd B) + total)) Bs 0.
  (*< lanes.linear *)

  (* The exact value of lanes_dot, and the same sum over absolute values. *)
  Definition whole (Bs : list (R * list (R * R))) : R := ∑ B ∈ Bs, fst B * dot (snd B).
  Definition abswhole (Bs : list (R * list (R * R))) : R := ∑ B ∈ Bs, Rabs (fst B) * absdot (snd B).

  (* One rounding of an approximate sum raises the exponent of the error bound (1 + u)^n - 1 by one. *)
  Lemma step (n : nat) (x y A : R) : Rabs y <= A -> Rabs (x - y) <= ((1 + u) ^ n - 1) * A ->
    Rabs (fl x - y) <= ((1 + u) ^ S n - 1) * A.
  Proof.
    intros Hy Hx. assert (F : forall z, Rabs (fl z - z) <= u * Rabs z + 0)
      by (intros; rewrite Rplus_0_r; apply fl_error).
    pose proof (round_step fl u 0 u_nonneg F x y A _ Hy Hx) as H.
    eapply Rle_trans; [exact H|]. apply Req_le. simpl. ring.
  Qed.

  Lemma grow (m n : nat) A : 0 <= A -> (m <= n)%nat ->
    ((1 + u) ^ m - 1) * A <= ((1 + u) ^ n - 1) * A.
  Proof.
    intros HA Hm. apply Rmult_le_compat_r; [exact HA|].
    pose proof (Rle_pow (1 + u) m n ltac:(lra) Hm). lra.
  Qed.

  Lemma block_error (B : list (R * R)) : forall n (s y A : R), Rabs y <= A ->
    Rabs (s - y) <= ((1 + u) ^ n - 1) * A ->
    Rabs (fold_left (fun sum p => fl (fst p * snd p + sum)) B s - (y + dot B)) <=
      ((1 + u) ^ (n + length B) - 1) * (A + absdot B).
  Proof.
    induction B as [|[w x] B IH]; intros n s y A Hy Hs; cbn [fold_left length fst snd].
    - unfold dot, absdot. simpl. rewrite !Rplus_0_r, Nat.add_0_r. exact Hs.
    - replace (n + S (length B))%nat with (S n + length B)%nat by lia.
      replace (y + dot ((w, x) :: B)) with ((w * x + y) + dot B) by (unfold dot; simpl; ring).
      replace (A + absdot ((w, x) :: B)) with ((Rabs (w * x) + A) + absdot B)
        by (unfold absdot; simpl; ring).
      apply IH.
      + pose proof (Rabs_triang (w * x) y). lra.
      + apply step; [pose proof (Rabs_triang (w * x) y); lra|].
        replace (w * x + s - (w * x + y)) with (s - y) by ring.
        eapply Rle_trans; [exact Hs|]. apply Rmult_le_compat_l.
        * pose proof (pow_R1_Rle (1 + u) n ltac:(lra)). lra.
        * pose proof (Rabs_pos (w * x)). lra.
  Qed.

  Lemma dot_error (width : nat) (Bs : list (R * list (R * R))) :
    (forall B, In B Bs -> (length (snd B) <= width)%nat) ->
    forall n (t y A : R), Rabs y <= A -> (width <= n)%nat ->
    Rabs (t - y) <= ((1 + u) ^ n - 1) * A ->
    Rabs (fold_left (fun total B => fl (fst B * block_sum (snd B) + total)) Bs t - (y + whole Bs)) <=
      ((1 + u) ^ (n + length Bs) - 1) * (A + abswhole Bs).
  Proof.
    induction Bs as [|[c B] Bs IH]; intros Hw n t y A Hy Hn Ht; cbn [fold_left length fst snd].
    - unfold whole, abswhole. simpl. rewrite !Rplus_0_r, Nat.add_0_r. exact Ht.
    - replace (n + S (length Bs))%nat with (S n + length Bs)%nat by lia.
      replace (y + whole ((c, B) :: Bs)) with ((c * dot B + y) + whole Bs) by (unfold whole; simpl; ring).
      replace (A + abswhole ((c, B) :: Bs)) with ((Rabs c * absdot B + A) + abswhole Bs)
        by (unfold abswhole; simpl; ring).
      assert (Y : Rabs (c * dot B + y) <= Rabs c * absdot B + A).
      { pose proof (Rabs_triang (c * dot B) y) as T. rewrite Rabs_mult in T.
        pose proof (Rmult_le_compat_l _ _ _ (Rabs_pos c) (dot_le_absdot B)). lra. }
      apply IH; [intros; apply Hw; right; assumption | exact Y | lia |].
      apply step; [exact Y|].
      replace (c * block_sum B + t - (c * dot B + y)) with (c * (block_sum B - dot B) + (t - y)) by ring.
      pose proof (block_error B 0 0 0 0 ltac:(rewrite Rabs_R0; lra)
                    ltac:(rewrite Rminus_0_r, Rabs_R0; lra)) as E.
      fold (block_sum B) in E. rewrite !Rplus_0_l in E. cbn [Nat.add] in E.
      pose proof (grow (length B) n (absdot B) (absdot_nonneg B)
                    ltac:(pose proof (Hw (c, B) (or_introl eq_refl)); simpl in *; lia)) as G.
      pose proof (Rabs_triang (c * (block_sum B - dot B)) (t - y)) as T. rewrite Rabs_mult in T.
      pose proof (Rmult_le_compat_l _ _ _ (Rabs_pos c) (Rle_trans _ _ _ E G)). lra.
  Qed.

  (* A term passes the roundings of its block, at most [width], and then one for each block. With blocks of 32
     these are 32 + ceil(n / 32) roundings; an arbitrary order may need n. *)
  (*> lanes.linear *)
  Theorem lanes_linear (Bs : list (R * list (R * R))) (width : nat) :
    (forall B, In B Bs -> (length (snd B) <= width)%nat) ->
    let m := (width + length Bs)%nat in INR m * u < 1 ->
    Rabs (lanes_dot Bs - ∑ B ∈ Bs, fst B * dot (snd B)) <=
      gamma m u * ∑ B ∈ Bs, Rabs (fst B) * absdot (snd B).
  Proof.
    intros Hw m Hm. fold (whole Bs) (abswhole Bs).
    pose proof (dot_error width Bs Hw width 0 0 0 ltac:(rewrite Rabs_R0; lra) (le_n _)
                  ltac:(rewrite Rminus_0_r, Rabs_R0; lra)) as E.
    fold (lanes_dot Bs) m in E. rewrite !Rplus_0_l in E.
    eapply Rle_trans; [exact E|]. apply Rmult_le_compat_r.
    - apply Sum_nonneg. intros B _. apply Rmult_le_pos; [apply Rabs_pos | apply absdot_nonneg].
    - apply pow_gamma; assumption.
  Qed.
  (*< lanes.linear *)
End Product.

Section Attention.
  Context {key : Type}.
  Variables s v : key -> R.

  (*> lanes.attention *)
  (* The state of one span, under any shift m; the division comes later. *)
  Definition span (m : R) (J : list key) : state :=
    State m (∑ j ∈ J, exp (s j - m)) (∑ j ∈ J, exp (s j - m) * v j).

  (* The state absorbs a span: the one with the smaller shift is rescaled, by a factor of at most 1. *)
  Definition take_in (st sp : state) : state :=
    if Rlt_dec (shift st) (shift sp) then
      let r := exp (shift st - shift sp) in State (shift sp) (mass st * r + mass sp) (acc st * r + acc sp)
    else
      let r := exp (shift sp - shift st) in State (shift st) (mass sp * r + mass st) (acc sp * r + acc st).
  (*< lanes.attention *)

  Lemma stands_take_in a b D N D' N' :
    stands a D N -> stands b D' N' -> stands (take_in a b) (D + D') (N + N').
  Proof.
    intros [<- <-] [<- <-]. unfold take_in, stands. destruct (Rlt_dec _ _); cbn [shift mass acc].
    - rewrite <- (exp_back (shift a) (shift b)). split; ring.
    - rewrite <- (exp_back (shift b) (shift a)). split; ring.
  Qed.

  Lemma stands_span m J : stands (span m J) (∑ j ∈ J, exp (s j)) (∑ j ∈ J, exp (s j) * v j).
  Proof.
    unfold stands, span. cbn [shift mass acc]. rewrite <- !Sum_scal_r. split; apply Sum_ext; intros j;
      rewrite <- (exp_back (s j) m); ring.
  Qed.

  Lemma stands_spans (spans : list (R * list key)) : forall st D N, stands st D N ->
    let J := concat (map snd spans) in
    stands (fold_left (fun st sp => take_in st (span (fst sp) (snd sp))) spans st)
      (D + ∑ j ∈ J, exp (s j)) (N + ∑ j ∈ J, exp (s j) * v j).
  Proof.
    induction spans as [|[m J] spans IH]; simpl; intros st D N H; [rewrite !Rplus_0_r; exact H|].
    rewrite !Sum_app, <- !Rplus_assoc. apply IH, stands_take_in; [exact H | apply stands_span].
  Qed.

  Lemma exp_at_most_one x : x <= 0 -> exp x <= 1.
  Proof.
    rewrite <- exp_0. intros [H | ->]; [apply Rlt_le, exp_increasing, H | apply Req_le; reflexivity].
  Qed.

  (* Spans are absorbed one after the other, starting from the sink's state, with any shifts and any cuts of
     the row. The result is the weighted sum of the values, and the sink is in the denominator once. The
     second theorem: neither state is ever multiplied by more than 1. *)
  (*> lanes.attention *)
  Theorem lanes_attention (spans : list (R * list key)) b :
    let last := fold_left (fun st sp => take_in st (span (fst sp) (snd sp))) spans (sink_state b) in
    let J := concat (map snd spans) in
    acc last / mass last = ∑ j ∈ J, alpha J s b j * v j.
  Proof.
    intros last J. apply output_alpha. rewrite <- (Rplus_0_l (∑ j ∈ J, exp (s j) * v j)).
    apply stands_spans, stands_sink.
  Qed.

  Theorem lanes_attention_factors (st sp : state) :
    let m := shift (take_in st sp) in exp (shift st - m) <= 1 /\ exp (shift sp - m) <= 1.
  Proof.
    unfold take_in. destruct (Rlt_dec _ _); cbn [shift]; split; apply exp_at_most_one; lra.
  Qed.
  (*< lanes.attention *)
End Attention.
