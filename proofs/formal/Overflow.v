(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Where nothing overflows (bound.overflow). The error bounds are about roundings in formats without a largest
   number; a real format has one. What an operation may reach on its way is bounded by what the error bounds are made
   of: sizes, growth and underflow. Where this is below the format's end, a machine with infinities computes the same
   numbers. Assumed: finite operands, and round to nearest, ties to even. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences Nodes Summation BoundsSoftmaxSink.
From Coq Require Import Reals List Permutation ZArith Lia Lra.
From Flocq Require Import Core BinarySingleNaN.
From Coq Require SpecFloat.
Import ListNotations.
Open Scope R_scope.

(* The results of all operations of a sum, at any depth. *)
Fixpoint results (t : nodes) : list R :=
  match t with
  | Leaf _ _ => []
  | Join l r => results l ++ results r
  | Node _ _ δ s => (value s + δ) :: results s
  end.

Lemma underflow_nonneg t : honest t -> 0 <= underflow t.
Proof.
  induction t as [a b | l IHl r IHr | u η δ t IH]; cbn [honest underflow]; intros H; try lra.
  - pose proof (IHl (proj1 H)). pose proof (IHr (proj2 H)). lra.
  - destruct H as (Ht & Hu & Hη & _). pose proof (Rmult_le_pos (1 + u) _ ltac:(lra) (IH Ht)). lra.
Qed.

Lemma value_reaches t : honest t ->
  Rabs (value t) <= growth t * sum_sizes (products t) + underflow t.
Proof.
  intros H. destruct (nodes_error t H) as [_ E].
  assert (S : Rabs (sum_products (products t)) <= sum_sizes (products t))
    by apply (Sum_abs (products t) (fun p => fst p * snd p)).
  replace (value t) with (sum_products (products t) + (value t - sum_products (products t))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma results_reach t : honest t -> forall x, In x (results t) ->
  Rabs x <= growth t * sum_sizes (products t) + underflow t.
Proof.
  induction t as [a b | l IHl r IHr | u η δ t IH]; intros H x Hx.
  - contradiction.
  - destruct H as [Hl Hr]. cbn [results growth products underflow] in *. unfold sum_sizes in *. rewrite Sum_app.
    fold (sum_sizes (products l)) (sum_sizes (products r)) in *.
    pose proof (sum_sizes_nonneg (products l)) as Al. pose proof (sum_sizes_nonneg (products r)) as Ar.
    pose proof (Rmult_le_compat_r _ _ _ Al (Rmax_l (growth l) (growth r))).
    pose proof (Rmult_le_compat_r _ _ _ Ar (Rmax_r (growth l) (growth r))).
    pose proof (growth_ge_1 l Hl). pose proof (growth_ge_1 r Hr).
    pose proof (Rmult_le_pos (growth l) _ ltac:(lra) Al). pose proof (Rmult_le_pos (growth r) _ ltac:(lra) Ar).
    pose proof (underflow_nonneg l Hl). pose proof (underflow_nonneg r Hr).
    apply in_app_or in Hx. destruct Hx as [Hx | Hx].
    + specialize (IHl Hl x Hx). lra.
    + specialize (IHr Hr x Hx). lra.
  - destruct Hx as [<- | Hx]; [exact (value_reaches (Node u η δ t) H)|].
    destruct H as (Ht & Hu & Hη & _). specialize (IH Ht x Hx). cbn [growth products underflow].
    set (A := sum_sizes (products t)) in *.
    assert (0 <= growth t * A) by (apply Rmult_le_pos; [pose proof (growth_ge_1 t Ht); lra | apply sum_sizes_nonneg]).
    pose proof (underflow_nonneg t Ht). pose proof (Rmult_le_pos u _ Hu H).
    pose proof (Rmult_le_pos u _ Hu H0). lra.
Qed.

(* A machine's arithmetic, with infinities and NaN: Flocq's IEEE 754, round to nearest, ties to even. *)
Section Machine.
  (*> bound.overflow *)
  Variables prec emax : Z.
  Context (prec_gt_0 : Prec_gt_0 prec) (prec_lt_emax : Prec_lt_emax prec emax).
  Notation float := (binary_float prec emax).

  Inductive machine :=
    | Number (x : float)                (* a bias, or an exponential *)
    | Times (x y : float)
    | Plus (l r : machine)
    | Fused (x y : float) (t : machine).

  Fixpoint run (t : machine) : float :=
    match t with
    | Number x => x
    | Times x y => Bmult mode_NE x y
    | Plus l r => Bplus mode_NE (run l) (run r)
    | Fused x y t => Bfma mode_NE x y (run t)
    end.

  (* without_end: what the machine computes where nothing overflows. operands_finite: all its operands are
     finite. *)
  Fixpoint without_end (t : machine) : tree :=
    match t with
    | Number x => Exact (B2R x) 1
    | Times x y => Prod (B2R x) (B2R y)
    | Plus l r => Summation.Add (without_end l) (without_end r)
    | Fused x y t => Fma (B2R x) (B2R y) (without_end t)
    end.
  Fixpoint operands_finite (t : machine) : Prop :=
    match t with
    | Number x => is_finite x = true
    | Times x y => is_finite x = true /\ is_finite y = true
    | Plus l r => operands_finite l /\ operands_finite r
    | Fused x y t => is_finite x = true /\ is_finite y = true /\ operands_finite t
    end.

  Definition even_choice (x : Z) : bool := negb (Z.even x).
  (*< bound.overflow *)

  Notation fl := (nearest_FLT (3 - emax - prec) prec even_choice).
  Notation u := (unit_roundoff prec).
  Notation η := (half_smallest (3 - emax - prec)).

  (* A bound of every number that a sum of these products may reach on its way. *)
  Definition reach (t : tree) : R :=
    (1 + u) ^ depth t * absdot (terms t) + INR (length (terms t)) * (1 + u) ^ depth t * η.

  Lemma eval_reach t : Rabs (eval fl t) <= reach t.
  Proof.
    pose proof (bound_dot_with_underflow (3 - emax - prec) prec even_choice t prec_gt_0) as B. cbv zeta in B.
    pose proof (dot_le_absdot (terms t)). unfold reach.
    replace (eval fl t) with (dot (terms t) + (eval fl t - dot (terms t))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. lra.
  Qed.

  Lemma reach_mono s t : (depth s <= depth t)%nat -> (length (terms s) <= length (terms t))%nat ->
    absdot (terms s) <= absdot (terms t) -> reach s <= reach t.
  Proof.
    intros Hd Hl Ha. pose proof (unit_roundoff_nonneg prec). pose proof (half_smallest_nonneg (3 - emax - prec)).
    pose proof (Rle_pow (1 + u) _ _ ltac:(lra) Hd). pose proof (pow_R1_Rle (1 + u) (depth s) ltac:(lra)).
    pose proof (absdot_nonneg (terms s)). apply le_INR in Hl. pose proof (pos_INR (length (terms s))).
    unfold reach. apply Rplus_le_compat; [apply Rmult_le_compat; lra|].
    apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_compat; lra.
  Qed.

  (* The rounded result of an operation is below the end; Flocq's theorems ask for this. *)
  Lemma below_the_end t x : eval fl t = fl x -> reach t < bpow radix2 emax ->
    Rlt_bool (Rabs (round radix2 (SpecFloat.fexp prec emax) (round_mode mode_NE) x)) (bpow radix2 emax) = true.
  Proof.
    intros E H. apply Rlt_bool_true. change (Rabs (fl x) < bpow radix2 emax).
    rewrite <- E. eapply Rle_lt_trans; [apply eval_reach | exact H].
  Qed.

  Lemma machine_is_tree t : operands_finite t -> reach (without_end t) < bpow radix2 emax ->
    is_finite (run t) = true /\ B2R (run t) = eval fl (without_end t).
  Proof.
    induction t as [x | x y | l IHl r IHr | x y t IH]; intros Hf Hr.
    - split; [exact Hf | simpl; ring].
    - destruct Hf as [Fx Fy]. pose proof (Bmult_correct prec emax _ _ mode_NE x y) as M.
      rewrite (below_the_end (Prod (B2R x) (B2R y)) (B2R x * B2R y) eq_refl Hr) in M. destruct M as (V & F & _).
      split; [cbn [run]; rewrite F, Fx, Fy; reflexivity | exact V].
    - destruct Hf as [Fl Fr]. cbn [without_end] in Hr.
      assert (Ml : reach (without_end l) <= reach (Summation.Add (without_end l) (without_end r))).
      { apply reach_mono; cbn [depth terms]; [lia | rewrite app_length; lia|]. unfold absdot. rewrite Sum_app.
        pose proof (absdot_nonneg (terms (without_end r))). unfold absdot in *. lra. }
      assert (Mr : reach (without_end r) <= reach (Summation.Add (without_end l) (without_end r))).
      { apply reach_mono; cbn [depth terms]; [lia | rewrite app_length; lia|]. unfold absdot. rewrite Sum_app.
        pose proof (absdot_nonneg (terms (without_end l))). unfold absdot in *. lra. }
      destruct (IHl Fl ltac:(lra)) as [Il Vl]. destruct (IHr Fr ltac:(lra)) as [Ir Vr].
      pose proof (Bplus_correct prec emax _ _ mode_NE (run l) (run r) Il Ir) as P.
      rewrite (below_the_end (Summation.Add (without_end l) (without_end r)) (B2R (run l) + B2R (run r))
        ltac:(cbn [eval]; rewrite Vl, Vr; reflexivity) Hr) in P.
      destruct P as (V & F & _). split; [exact F|]. cbn [run without_end eval]. rewrite V, Vl, Vr. reflexivity.
    - destruct Hf as (Fx & Fy & Ft). cbn [without_end] in Hr.
      assert (Mt : reach (without_end t) <= reach (Fma (B2R x) (B2R y) (without_end t))).
      { apply reach_mono; cbn [depth terms]; [lia | cbn [length]; lia|]. unfold absdot. cbn [Sum fst snd].
        pose proof (Rabs_pos (B2R x * B2R y)). lra. }
      destruct (IH Ft ltac:(lra)) as [It Vt].
      pose proof (Bfma_correct prec emax _ _ mode_NE x y (run t) Fx Fy It) as P. cbv zeta in P.
      rewrite (below_the_end (Fma (B2R x) (B2R y) (without_end t)) (B2R x * B2R y + B2R (run t))
        ltac:(cbn [eval]; rewrite Vt; reflexivity) Hr) in P.
      destruct P as (V & F & _). split; [exact F|]. cbn [run without_end eval]. rewrite V, Vt. reflexivity.
  Qed.

  (*> bound.overflow *)

  (* A sum of products in one IEEE format, in any order, with or without FMA. If its operands are finite, and
     the sum of the products' sizes times the growth, plus what underflows, stays below the format's end, then
     no operation on the way overflows, and the machine's result is the number that the error bounds are
     about. *)
  Theorem bound_overflow_machine (m : machine) : operands_finite m ->
    let u := unit_roundoff prec in let η := half_smallest (3 - emax - prec) in
    let fl := nearest_FLT (3 - emax - prec) prec even_choice in let t := without_end m in
    (1 + u) ^ depth t * absdot (terms t) + INR (length (terms t)) * (1 + u) ^ depth t * η < bpow radix2 emax ->
    is_finite (run m) = true /\ B2R (run m) = eval fl t.
  Proof. intros Hf u0 η0 fl0 t Hr. apply machine_is_tree; assumption. Qed.
  (*< bound.overflow *)
End Machine.

(*> bound.overflow *)

(* Where each operation has its own error bound, no result on the way is larger than this. *)
Theorem bound_overflow (t : nodes) (l : list (R * R)) (x : R) : honest t -> Permutation (products t) l ->
  In x (results t) -> Rabs x <= growth t * (∑ p ∈ l, Rabs (fst p * snd p)) + underflow t.
Proof.
  intros H P Hx. rewrite <- (Sum_perm _ _ (fun p => Rabs (fst p * snd p)) P). apply results_reach; assumption.
Qed.

(* The softmax. The exponents are at most T: 0, or slightly more where base 2 rounds. So neither a numerator
   nor the sum of N numerators is large. *)
Theorem bound_overflow_softmax {A} (I : list A) (t' e' : A -> R) (T e η g D' : R) : 0 <= e -> 0 <= g ->
  (forall k, t' k <= T) -> (forall k, 0 <= e' k /\ Rabs (e' k - exp (t' k)) <= e * exp (t' k) + η) ->
  Rabs (D' - Sum I e') <= g * Sum I e' ->
  (forall k, e' k <= (1 + e) * exp T + η) /\ D' <= (1 + g) * (INR (length I) * ((1 + e) * exp T + η)).
Proof.
  intros He Hg HT Hx HD. assert (K : forall k, e' k <= (1 + e) * exp T + η).
  { intros k. destruct (Hx k) as [_ X]. apply abs_between in X.
    pose proof (Rmult_le_compat_l (1 + e) _ _ ltac:(lra) (exp_le _ _ (HT k))). lra. }
  split; [exact K|]. apply abs_between in HD. rewrite <- Sum_const.
  assert (S : Sum I e' <= ∑ _k ∈ I, ((1 + e) * exp T + η)) by (apply Sum_le; intros; apply K).
  pose proof (Rmult_le_compat_l (1 + g) _ _ ltac:(lra) S). lra.
Qed.

(* The sigmoid. Where e^-t is beyond the largest number Ω, an engine computes 1 / (1 + infinity) = 0, which is
   wrong by at most (1 + e) / Ω. *)
Theorem bound_overflow_sigmoid (t e Ω : R) : 0 <= e -> 0 < Ω -> Ω <= (1 + e) * exp (- t) ->
  Rabs (0 - sigmoid t) <= (1 + e) / Ω.
Proof.
  intros He HΩ H. pose proof (exp_pos (- t)) as P. rewrite Rminus_0_l, Rabs_Ropp. unfold sigmoid.
  rewrite Rabs_pos_eq by (apply Rlt_le, Rdiv_lt_0_compat; lra).
  apply Rmult_le_reg_r with ((1 + exp (- t)) * Ω); [apply Rmult_lt_0_compat; lra|].
  replace (1 / (1 + exp (- t)) * ((1 + exp (- t)) * Ω)) with Ω by (field; lra).
  replace ((1 + e) / Ω * ((1 + exp (- t)) * Ω)) with ((1 + e) * exp (- t) + (1 + e)) by (field; lra). lra.
Qed.
(*< bound.overflow *)
