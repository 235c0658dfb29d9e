(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* What distinguishes the first token (chapter 16). It alone sees only itself (first.token); a window that has left
   it behind gives it no weight (sink.absolute); a mask that keeps the first few and the last few keys errs by the
   mass that it drops (bound.evict, mask.first-recent). Scores, values and the rest of a layer are arbitrary
   functions. Positions are counted from 0. *)

From Sinkproof Require Import Sums SoftmaxSink Laws.
From Coq Require Import Reals List Permutation Arith Bool Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* The keys that a query at position i sees through a window of w: i - w < j <= i; all keys up to i if w > i. *)
Definition window (w i : nat) : list nat := seq (S i - w) (Nat.min w (S i)).

Lemma in_window w i j : In j (window w i) <-> (j <= i < j + w)%nat.
Proof. unfold window. rewrite in_seq. lia. Qed.

(* A stack of layers over states of any type. Layer l has arbitrary scores (functions of both positions and
   both states, so rotations and biases are included), arbitrary values, and a sink logit for each head.
   [rest] is all else that the layer does to a token: projections, residuals, norms, experts. It depends on
   that token's own state and on the outputs of its heads. *)
Section States.
  Context {state : Type} (J : nat -> nat -> list nat)
    (score : nat -> nat -> nat -> nat -> state -> state -> R) (value : nat -> nat -> state -> vec)
    (b : nat -> nat -> R) (rest : nat -> state -> (nat -> vec) -> state).

  (*> first.token *)
  Definition head l h (x : nat -> state) i : vec :=
    let s j := score l h i j (x i) (x j) in
    (∑ j ∈ J l i, alpha (J l i) s (b l h) j *: value l h (x j))%V.

  Fixpoint states l (x : nat -> state) : nat -> state :=
    match l with
    | O => x
    | S l => fun i => rest l (states l x i) (fun h => head l h (states l x) i)
    end.

  (* The same for a token that sees only itself: a function of one state, without a sum. *)
  Definition faded_value l h (x : state) : vec :=
    ((1 - alpha_sink [0%nat] (fun _ => score l h 0 0 x x) (b l h)) *: value l h x)%V.

  Fixpoint first_state l (e : state) : state :=
    match l with
    | O => e
    | S l => rest l (first_state l e) (fun h => faded_value l h (first_state l e))
    end.

  Theorem first_token (x : nat -> state) l : (forall l, J l 0%nat = [0%nat]) ->
    states l x 0%nat = first_state l (x 0%nat) /\
    (forall h, head l h (states l x) 0 = faded_value l h (first_state l (x 0%nat))).
  Proof.
    intros HJ.
    assert (O : forall y k h, head k h y 0 = faded_value k h (y 0%nat)).
    { intros y k h. unfold head, faded_value. rewrite HJ. at_coordinate c.
      rewrite <- sink_mass. simpl. unfold alpha. simpl. ring. }
    assert (S : states l x 0%nat = first_state l (x 0%nat)).
    { induction l as [|l IH]; [reflexivity|]. simpl. rewrite IH. f_equal.
      apply FunctionalExtensionality.functional_extensionality. intros h.
      rewrite O, IH. reflexivity. }
    split; [exact S|]. intros h. rewrite O, S. reflexivity.
  Qed.

  (* Only position 0 sees itself alone: under a window of at least 2 keys, or a causal mask (a window that is
     long enough), every later position also sees the position before it. *)
  Theorem first_token_alone w i : (2 <= w)%nat -> (window w i = [i] <-> i = 0%nat).
  Proof.
    intros Hw. split; [intros E | intros ->].
    - destruct i as [|i]; [reflexivity|]. exfalso.
      assert (N : In i (window w (S i))) by (apply in_window; lia).
      rewrite E in N. simpl in N. lia.
    - unfold window. replace (1 - w)%nat with 0%nat by lia.
      replace (Nat.min w 1) with 1%nat by lia. reflexivity.
  Qed.
  (*< first.token *)
End States.

(* ---- a window that has left the first position behind ---- *)

(* The weight of key j in a row whose mask may hide it; a hidden key has weight 0. *)
Definition weight (J : list nat) (s : nat -> R) (b : R) (j : nat) : R :=
  if in_dec Nat.eq_dec j J then alpha J s b j else 0.

Lemma alpha_ext {key} (J : list key) s s' b j :
  In j J -> (forall k, In k J -> s k = s' k) -> alpha J s b j = alpha J s' b j.
Proof.
  intros Hj E. unfold alpha. rewrite (E j Hj). do 2 f_equal. apply Sum_ext_in.
  intros k Hk. rewrite E by exact Hk. reflexivity.
Qed.

(* Over a full window, the distances i - j run through 0 ... w - 1. *)
Lemma Sum_window w i (f : nat -> R) : (w <= i)%nat ->
  ∑ j ∈ window w i, f (i - j)%nat = ∑ d < w, f d.
Proof.
  intros H. unfold window. replace (Nat.min w (S i)) with w by lia.
  induction w as [|w IH]; [reflexivity|].
  replace (S i - S w)%nat with (i - w)%nat by lia.
  change (seq (i - w) (S w)) with ((i - w)%nat :: seq (S (i - w)) w).
  replace (S (i - w)) with (S i - w)%nat by lia. cbn [Sum]. rewrite IH by lia.
  rewrite seq_S, Sum_app. replace (i - (i - w))%nat with w by lia. simpl. ring.
Qed.

(* Once the window has left position 0 behind, key 0 has weight 0, and its score and value do not enter the
   output. The key that is now first in the window has the weight that its score gives it, like every other
   key. The sink's weight is at least what it would be if all scores equalled the largest one, M. The second
   theorem: if scores depend on the distance alone, both weights are the same on every row. *)
(*> sink.absolute *)
Theorem sink_absolute w i s b : (1 <= w <= i)%nat ->
  let J := window w i in
  weight J s b 0 = 0 /\
  (forall s' v v', (forall j, j <> 0%nat -> s j = s' j /\ v j = v' j) ->
     output J s b v = output J s' b v') /\
  (forall f j, alpha J s b f = exp (s f - s j) * alpha J s b j) /\
  (forall M, (forall j, In j J -> s j <= M) -> 1 / (1 + INR w * exp (M - b)) <= alpha_sink J s b).
Proof.
  intros Hw J. assert (N : ~ In 0%nat J) by (unfold J; rewrite in_window; lia).
  assert (NZ : forall j, In j J -> j <> 0%nat) by (intros j Hj ->; auto).
  split; [|split; [|split]].
  - unfold weight. destruct (in_dec _ _ _) as [Y|]; [exfalso; auto | reflexivity].
  - intros s' v v' E. unfold output. apply Sum_ext_in. intros j Hj.
    rewrite (proj2 (E j (NZ j Hj))). f_equal. apply alpha_ext; [exact Hj|].
    intros k Hk. apply (E k (NZ k Hk)).
  - intros f j. unfold alpha, Rminus. rewrite exp_plus, exp_Ropp.
    pose proof (den_pos J s b). pose proof (exp_pos (s j)). field. lra.
  - intros M HM. unfold alpha_sink. pose proof (den_pos J s b). pose proof (exp_pos b).
    pose proof (exp_pos M).
    assert (L : ∑ j ∈ J, exp (s j) <= INR w * exp M).
    { replace (INR w) with (INR (length J))
        by (f_equal; unfold J, window; rewrite seq_length; lia).
      rewrite <- Sum_const. apply Sum_le. intros j Hj.
      destruct (HM j Hj) as [H2 | ->]; [apply Rlt_le, exp_increasing, H2 | lra]. }
    unfold Rminus. rewrite exp_plus, exp_Ropp. pose proof (pos_INR w).
    apply (Rle_trans _ (exp b / (exp b + INR w * exp M))).
    + right. field. split; nra.
    + apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra.
Qed.

Theorem sink_absolute_every_row w i (g : nat -> R) b : (1 <= w <= i)%nat ->
  let s j := g (i - j)%nat in
  alpha (window w i) s b (S i - w)%nat = exp (g (w - 1)%nat) / (exp b + ∑ d < w, exp (g d)) /\
  alpha_sink (window w i) s b = exp b / (exp b + ∑ d < w, exp (g d)).
Proof.
  intros Hw s. unfold alpha, alpha_sink, s.
  rewrite (Sum_window w i (fun d => exp (g d))) by lia.
  replace (i - (S i - w))%nat with (w - 1)%nat by lia. split; reflexivity.
Qed.
(*< sink.absolute *)

(* ---- some keys are kept, the others are evicted ---- *)

Section Evict.
  Context {key : Type}.
  Implicit Types (J K E : list key) (s v : key -> R) (b : R).

  Lemma kept_share J K E s b : Permutation J (K ++ E) ->
    1 - (∑ j ∈ E, alpha J s b j) =
    (exp b + ∑ j ∈ K, exp (s j)) / (exp b + ∑ j ∈ J, exp (s j)).
  Proof.
    intros P. unfold alpha. rewrite Sum_div. pose proof (den_pos J s b) as D.
    rewrite (Sum_perm _ _ (fun j => exp (s j)) P), Sum_app in *. field. lra.
  Qed.

  Lemma alpha_kept J K E s b : Permutation J (K ++ E) ->
    (forall j, alpha J s b j = (1 - ∑ k ∈ E, alpha J s b k) * alpha K s b j) /\
    alpha_sink J s b = (1 - ∑ k ∈ E, alpha J s b k) * alpha_sink K s b.
  Proof.
    intros P. rewrite (kept_share J K E s b P).
    pose proof (den_pos J s b). pose proof (den_pos K s b). unfold alpha, alpha_sink.
    split; [intros j|]; field; lra.
  Qed.

  Lemma output_kept J K E s b v : Permutation J (K ++ E) ->
    output J s b v =
    (1 - ∑ j ∈ E, alpha J s b j) * output K s b v + ∑ j ∈ E, alpha J s b j * v j.
  Proof.
    intros P. destruct (alpha_kept J K E s b P) as [A _]. unfold output at 1.
    rewrite (Sum_perm _ _ _ P), Sum_app. f_equal. unfold output.
    rewrite <- Sum_scal_l. apply Sum_ext. intros j. rewrite A at 1. ring.
  Qed.

  Lemma evicted_mass J K E s b : Permutation J (K ++ E) -> 0 <= ∑ j ∈ E, alpha J s b j < 1.
  Proof.
    intros P. split; [apply Sum_nonneg; intros; apply Rlt_le, alpha_pos|].
    pose proof (kept_share J K E s b P) as S. pose proof (den_pos J s b). pose proof (den_pos K s b).
    assert (0 < (exp b + ∑ j ∈ K, exp (s j)) / (exp b + ∑ j ∈ J, exp (s j)))
      by (apply Rdiv_lt_0_compat; assumption). lra.
  Qed.

  (* All weights together, the sink's included, change by twice the evicted mass. *)
  Lemma moved_mass J K E s b : Permutation J (K ++ E) ->
    (∑ j ∈ K, Rabs (alpha K s b j - alpha J s b j)) +
    Rabs (alpha_sink K s b - alpha_sink J s b) + (∑ j ∈ E, alpha J s b j) =
    2 * ∑ j ∈ E, alpha J s b j.
  Proof.
    intros P. destruct (alpha_kept J K E s b P) as [A B].
    pose proof (evicted_mass J K E s b P) as M. rewrite B.
    set (μ := ∑ j ∈ E, alpha J s b j) in *.
    rewrite (Sum_ext _ _ (fun j => μ * alpha K s b j)).
    - rewrite Sum_scal_l, sink_mass. pose proof (alpha_sink_pos K s b).
      rewrite Rabs_right; [ring | nra].
    - intros j. rewrite A. pose proof (alpha_pos K s b j). rewrite Rabs_right; [ring | nra].
  Qed.

  (* [μ] is the evicted mass, and V bounds the size of every value. *)
  (*> bound.evict *)
  Theorem bound_evict J K E s b v V : Permutation J (K ++ E) ->
    (forall j, In j J -> Rabs (v j) <= V) ->
    let μ := ∑ j ∈ E, alpha J s b j in
    Rabs (output K s b v - output J s b v) <= μ * (2 - alpha_sink K s b) * V /\
    (forall M, (forall j, In j E -> s j <= M) ->
       μ <= INR (length E) * exp M / (exp b + (∑ j ∈ K, exp (s j)) + INR (length E) * exp M)).
  Proof.
    intros P HV μ. pose proof (evicted_mass J K E s b P) as M. fold μ in M.
    assert (W : forall L w, (forall j, In j L -> 0 <= w j) -> (forall j, In j L -> In j J) ->
      Rabs (∑ j ∈ L, w j * v j) <= (∑ j ∈ L, w j) * V).
    { intros L w Hw HL. apply (Rle_trans _ _ _ (Sum_abs L _)). rewrite <- Sum_scal_r.
      apply Sum_le. intros j Hj. rewrite Rabs_mult, (Rabs_right (w j)) by (apply Rle_ge; auto).
      apply Rmult_le_compat_l; auto. }
    assert (IK : forall j, In j K -> In j J)
      by (intros j Hj; apply (Permutation_in _ (Permutation_sym P)), in_app_iff; auto).
    assert (IE : forall j, In j E -> In j J)
      by (intros j Hj; apply (Permutation_in _ (Permutation_sym P)), in_app_iff; auto).
    split.
    - rewrite (output_kept J K E s b v P). fold μ.
      replace (output K s b v - ((1 - μ) * output K s b v + ∑ j ∈ E, alpha J s b j * v j))
        with (μ * output K s b v + - ∑ j ∈ E, alpha J s b j * v j) by ring.
      apply (Rle_trans _ _ _ (Rabs_triang _ _)). rewrite Rabs_Ropp, Rabs_mult, (Rabs_right μ) by lra.
      pose proof (W K (alpha K s b) (fun j _ => Rlt_le _ _ (alpha_pos K s b j)) IK) as WK.
      pose proof (W E (alpha J s b) (fun j _ => Rlt_le _ _ (alpha_pos J s b j)) IE) as WE.
      rewrite sink_mass in WK. fold μ in WE. unfold output.
      pose proof (Rmult_le_compat_l μ _ _ (proj1 M) WK). lra.
    - intros T HT.
      assert (L : ∑ j ∈ E, exp (s j) <= INR (length E) * exp T).
      { rewrite <- Sum_const. apply Sum_le. intros j Hj.
        destruct (HT j Hj) as [H | ->]; [apply Rlt_le, exp_increasing, H | lra]. }
      unfold μ, alpha. rewrite Sum_div, (Sum_perm _ _ (fun j => exp (s j)) P), Sum_app.
      pose proof (sum_exp_nonneg K s). pose proof (sum_exp_nonneg E s). pose proof (exp_pos b).
      set (k := ∑ j ∈ K, exp (s j)) in *. set (e := ∑ j ∈ E, exp (s j)) in *.
      set (t := INR (length E) * exp T) in *.
      apply (Rmult_le_reg_r ((exp b + (k + e)) * (exp b + k + t)));
        [apply Rmult_lt_0_compat; lra|].
      field_simplify; [|lra|lra]. nra.
  Qed.
  (*< bound.evict *)
End Evict.

(*> mask.first-recent *)
Definition keeps (n0 w i j : nat) : bool := (j <? n0) || (i <? j + w).
Definition first_recent n0 w i : list nat := filter (keeps n0 w i) (seq 0 (S i)).
Definition evicted n0 w i : list nat := filter (fun j => negb (keeps n0 w i j)) (seq 0 (S i)).

Theorem mask_first_recent n0 w i s b v :
  let J := seq 0 (S i) in let K := first_recent n0 w i in let E := evicted n0 w i in
  let μ := ∑ j ∈ E, alpha J s b j in
  (forall j, In j K <-> (j <= i)%nat /\ ((j < n0)%nat \/ (i < j + w)%nat)) /\
  (forall j, alpha J s b j = (1 - μ) * alpha K s b j) /\
  alpha_sink J s b = (1 - μ) * alpha_sink K s b /\
  output J s b v = (1 - μ) * output K s b v + (∑ j ∈ E, alpha J s b j * v j) /\
  (∑ j ∈ K, Rabs (alpha K s b j - alpha J s b j)) +
    Rabs (alpha_sink K s b - alpha_sink J s b) + μ = 2 * μ.
Proof.
  intros J K E μ.
  assert (P : Permutation J (K ++ E)).
  { unfold K, E, first_recent, evicted. fold J. generalize J as L. clear.
    induction L as [|j L IH]; [constructor|]. simpl.
    destruct (keeps n0 w i j); simpl; [constructor; exact IH|].
    apply Permutation_cons_app, IH. }
  split; [|split; [|split; [|split]]].
  - intros j. unfold K, first_recent, keeps.
    rewrite filter_In, in_seq, orb_true_iff, !Nat.ltb_lt. lia.
  - apply (alpha_kept J K E s b P).
  - apply (alpha_kept J K E s b P).
  - apply (output_kept J K E s b v P).
  - apply (moved_mass J K E s b P).
Qed.
(*< mask.first-recent *)
