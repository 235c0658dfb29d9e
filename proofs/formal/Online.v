(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The online softmax with a sink and its merges are exact (sink.online, sink.split-kv, sink.split-tree). A state
   (m, l, acc) stands for the denominator l e^m and the numerator acc e^m, for any shift m. All of this is over the
   reals, without rounding; the sink's logit is finite. *)

From Sinkproof Require Import Sums SoftmaxSink.
From Coq Require Import Reals List Permutation Lra.
Import ListNotations.
Open Scope R_scope.

Record state := State { shift : R; mass : R; acc : R }.

(* What a state stands for: denominator D and numerator N. *)
Definition stands (st : state) (D N : R) : Prop :=
  mass st * exp (shift st) = D /\ acc st * exp (shift st) = N.

(* Both states are brought to the larger shift and added. *)
Definition merge (a b : state) : state :=
  let m := Rmax (shift a) (shift b) in
  State m (mass a * exp (shift a - m) + mass b * exp (shift b - m))
          (acc a * exp (shift a - m) + acc b * exp (shift b - m)).

(* Adding one more key is a merge with the state of that key alone. This is the usual recurrence:
   m' = max(m, s), l' = l e^(m - m') + e^(s - m'), acc' = acc e^(m - m') + e^(s - m') v. *)
Definition push (st : state) (s v : R) : state := merge st (State s 1 v).

Lemma exp_back s m : exp (s - m) * exp m = exp s.
Proof. rewrite <- exp_plus. f_equal. ring. Qed.

Lemma stands_merge a b D N D' N' :
  stands a D N -> stands b D' N' -> stands (merge a b) (D + D') (N + N').
Proof.
  intros [<- <-] [<- <-]. unfold stands, merge. cbn [shift mass acc]. set (m := Rmax _ _).
  rewrite <- (exp_back (shift a) m), <- (exp_back (shift b) m). split; ring.
Qed.

Lemma stands_one s v : stands (State s 1 v) (exp s) (exp s * v).
Proof. split; simpl; ring. Qed.

(* The shift cancels in the output. *)
Lemma stands_output st D N : stands st D N -> 0 < D -> acc st / mass st = N / D.
Proof.
  intros [HD HN] HP. pose proof (exp_pos (shift st)).
  assert (mass st <> 0) by (intros E; rewrite E in HD; lra).
  rewrite <- HD, <- HN. field. split; lra.
Qed.

(* An empty state has no shift yet ([None]); the sink's own state is (b, 1, 0). *)
Definition merge' (a b : option state) : option state :=
  match a, b with
  | Some a, Some b => Some (merge a b)
  | None, o | o, None => o
  end.
Definition stands' (a : option state) (D N : R) : Prop :=
  match a with Some st => stands st D N | None => D = 0 /\ N = 0 end.
Definition sink_state (b : R) : state := State b 1 0.
Definition add_sink (a : option state) (b : R) : state :=
  match a with Some st => merge st (sink_state b) | None => sink_state b end.

Lemma stands_sink b : stands (sink_state b) (exp b) 0.
Proof. split; simpl; ring. Qed.

Lemma stands_merge' a b D N D' N' :
  stands' a D N -> stands' b D' N' -> stands' (merge' a b) (D + D') (N + N').
Proof.
  destruct a, b; simpl; intros H H'; [apply stands_merge; auto | | |];
    destruct H, H'; subst; try split; try lra; unfold stands in *; lra.
Qed.

Lemma stands_add_sink a b D N : stands' a D N -> stands (add_sink a b) (exp b + D) N.
Proof.
  rewrite <- (Rplus_0_r N) at 2. rewrite (Rplus_comm (exp b)). destruct a; simpl.
  - intros H. apply stands_merge; auto using stands_sink.
  - intros [-> ->]. rewrite !Rplus_0_l. apply stands_sink.
Qed.

Section Rows.
  Context {key : Type}.
  Variables s v : key -> R.
  Implicit Types (J : list key).

  (* The recurrence over the keys of J, from a given state and from the empty one. *)
  Definition run (st : state) J : state := fold_left (fun st j => push st (s j) (v j)) J st.
  Definition run' J : option state :=
    fold_left (fun st j => merge' st (Some (State (s j) 1 (v j)))) J None.

  Lemma stands_run J : forall st D N, stands st D N ->
    stands (run st J) (D + ∑ j ∈ J, exp (s j)) (N + ∑ j ∈ J, exp (s j) * v j).
  Proof.
    induction J as [|j J IH]; simpl; intros st D N H; [rewrite !Rplus_0_r; exact H|].
    rewrite <- !Rplus_assoc. apply IH, stands_merge; auto using stands_one.
  Qed.

  Lemma stands_run' J : stands' (run' J) (∑ j ∈ J, exp (s j)) (∑ j ∈ J, exp (s j) * v j).
  Proof.
    unfold run'. assert (G : forall a D N, stands' a D N ->
      stands' (fold_left (fun st j => merge' st (Some (State (s j) 1 (v j)))) J a)
        (D + ∑ j ∈ J, exp (s j)) (N + ∑ j ∈ J, exp (s j) * v j)).
    { induction J as [|j J IH]; simpl; intros a D N H; [rewrite !Rplus_0_r; exact H|].
      rewrite <- !Rplus_assoc. apply IH, stands_merge'; [exact H | apply stands_one]. }
    rewrite <- (Rplus_0_l (Sum _ _)), <- (Rplus_0_l (∑ j ∈ J, exp (s j) * v j)).
    apply G. split; reflexivity.
  Qed.

  Lemma output_alpha st J b :
    stands st (exp b + ∑ j ∈ J, exp (s j)) (∑ j ∈ J, exp (s j) * v j) ->
    acc st / mass st = ∑ j ∈ J, alpha J s b j * v j.
  Proof.
    intros H. pose proof (den_pos J s b) as P. rewrite (stands_output _ _ _ H P).
    rewrite <- Sum_div. apply Sum_ext. intros j. unfold alpha. field. lra.
  Qed.

  (* Started at the sink, or started empty with the sink added at the end: both are exact. *)
  (*> sink.online *)
  Theorem sink_online J b :
    let first := run (sink_state b) J in
    let last := add_sink (run' J) b in
    acc first / mass first = ∑ j ∈ J, alpha J s b j * v j /\
    acc last / mass last = ∑ j ∈ J, alpha J s b j * v j.
  Proof.
    split; apply output_alpha.
    - rewrite <- (Rplus_0_l (∑ j ∈ J, exp (s j) * v j)). apply stands_run, stands_sink.
    - apply stands_add_sink, stands_run'.
  Qed.
  (*< sink.online *)

  (* Partial states of the parts, merged two at a time along any tree. *)
  Inductive merges := Part (J : list key) | Merge (l r : merges).
  Fixpoint merged (t : merges) : option state :=
    match t with Part J => run' J | Merge l r => merge' (merged l) (merged r) end.
  Fixpoint parts (t : merges) : list key :=
    match t with Part J => J | Merge l r => parts l ++ parts r end.

  Lemma stands_merged t :
    stands' (merged t) (∑ j ∈ parts t, exp (s j)) (∑ j ∈ parts t, exp (s j) * v j).
  Proof.
    induction t as [J | l IHl r IHr]; cbn [merged parts]; [apply stands_run'|].
    rewrite !Sum_app. apply stands_merge'; assumption.
  Qed.

  (* Any tree of merges whose parts hold the keys of the row, in any order; the sink is merged once, at the
     end. *)
  (*> sink.split-kv *)
  Theorem sink_split_kv (t : merges) (J : list key) b : Permutation (parts t) J ->
    let whole := add_sink (merged t) b in acc whole / mass whole = ∑ j ∈ J, alpha J s b j * v j.
  Proof.
    intros P whole. apply output_alpha, stands_add_sink.
    rewrite <- (Sum_perm _ _ (fun j => exp (s j)) P), <- (Sum_perm _ _ (fun j => exp (s j) * v j) P).
    apply stands_merged.
  Qed.
  (*< sink.split-kv *)

  (* A tree of merges. A leaf is a part of the keys, started empty (Keys) or at the sink (Begun), or the sink
     alone (Sink). So the sink may enter anywhere, and more than once; n sinks of logit b act as one of logit
     b + ln n. *)
  (*> sink.split-tree *)
  Inductive tree := Keys (J : list key) | Begun (J : list key) | Sink | Node (l r : tree).
  Fixpoint keys_of (t : tree) : list key :=
    match t with Keys J | Begun J => J | Sink => [] | Node l r => keys_of l ++ keys_of r end.
  Fixpoint sinks_of (t : tree) : nat :=
    match t with Keys _ => 0 | Begun _ | Sink => 1 | Node l r => sinks_of l + sinks_of r end%nat.
  Fixpoint state_of (b : R) (t : tree) : option state :=
    match t with
    | Keys J => run' J
    | Begun J => Some (run (sink_state b) J)
    | Sink => Some (sink_state b)
    | Node l r => merge' (state_of b l) (state_of b r)
    end.

  Lemma stands_tree b t :
    stands' (state_of b t) (INR (sinks_of t) * exp b + ∑ j ∈ keys_of t, exp (s j))
      (∑ j ∈ keys_of t, exp (s j) * v j).
  Proof.
    induction t as [J | J | | l IHl r IHr]; cbn [state_of keys_of sinks_of].
    - rewrite Rmult_0_l, Rplus_0_l. apply stands_run'.
    - rewrite Rmult_1_l, <- (Rplus_0_l (∑ j ∈ J, exp (s j) * v j)). apply stands_run, stands_sink.
    - simpl. rewrite Rmult_1_l, Rplus_0_r. apply stands_sink.
    - rewrite !Sum_app, plus_INR.
      replace ((INR (sinks_of l) + INR (sinks_of r)) * exp b +
               (∑ j ∈ keys_of l, exp (s j) + ∑ j ∈ keys_of r, exp (s j)))
        with (INR (sinks_of l) * exp b + ∑ j ∈ keys_of l, exp (s j) +
              (INR (sinks_of r) * exp b + ∑ j ∈ keys_of r, exp (s j))) by ring.
      apply stands_merge'; assumption.
  Qed.

  Theorem sink_split_tree (t : tree) (J : list key) b :
    Permutation (keys_of t) J -> (0 < sinks_of t)%nat ->
    exists whole, state_of b t = Some whole /\
      acc whole / mass whole = ∑ j ∈ J, alpha J s (b + ln (INR (sinks_of t))) j * v j /\
      (sinks_of t = 1%nat -> acc whole / mass whole = ∑ j ∈ J, alpha J s b j * v j).
  Proof.
    intros P N. apply lt_INR in N. simpl in N.
    pose proof (stands_tree b t) as H.
    rewrite (Sum_perm _ _ (fun j => exp (s j)) P), (Sum_perm _ _ (fun j => exp (s j) * v j) P) in H.
    assert (E : INR (sinks_of t) * exp b = exp (b + ln (INR (sinks_of t)))).
    { rewrite exp_plus, exp_ln by assumption. ring. }
    rewrite E in H. destruct (state_of b t) as [whole|]; simpl in H.
    - exists whole. split; [reflexivity|]. split; [apply output_alpha, H|].
      intros O. rewrite O in H. simpl in H. rewrite ln_1, Rplus_0_r in H. apply output_alpha, H.
    - destruct H as [H _]. pose proof (den_pos J s (b + ln (INR (sinks_of t)))) as D.
      lra.
  Qed.
  (*< sink.split-tree *)
End Rows.

(* (≠) The sink once in each part: two parts of one key each, scores 0, b = 0 and values 1 give 2/4, but the
   whole row gives 2/3. *)
(*> sink.split-kv *)
Theorem sink_split_kv_wrong_once_per_part : exists (s v : nat -> R) b J1 J2,
  let wrong := merge (run s v (sink_state b) J1) (run s v (sink_state b) J2) in
  let J := J1 ++ J2 in
  acc wrong / mass wrong <> ∑ j ∈ J, alpha J s b j * v j.
Proof.
  exists (fun _ => 0), (fun _ => 1), 0, [0%nat], [1%nat]. cbv zeta.
  assert (S : forall j, stands (run (fun _ : nat => 0) (fun _ => 1) (sink_state 0) [j]) 2 1).
  { intros j.
    destruct (stands_run (fun _ => 0) (fun _ => 1) [j] _ _ _ (stands_sink 0)) as [D N].
    split; [rewrite D | rewrite N]; simpl; rewrite exp_0; ring. }
  pose proof (stands_merge _ _ _ _ _ _ (S 0%nat) (S 1%nat)) as W.
  rewrite (stands_output _ _ _ W) by lra. unfold alpha. simpl. rewrite exp_0. lra.
Qed.
(*< sink.split-kv *)
