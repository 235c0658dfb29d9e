(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Sums of products in which every operation has its own error: other formats for products, accumulator and result,
   several terms added at once (as a tensor core does), underflow anywhere. The theorems whose names end in _nodes
   use this (bound.dot, bound.linear, bound.value and others). Assumed of an operation: its result is wrong by δ,
   where |δ| is at most u times the sum of the sizes of what it adds, plus η. *)

(* Rounding to nearest is the case |δ| <= u |exact result|. An aligned sum that cuts off what lies far below
   its largest term is another case; its u counts the terms. *)

From Sinkproof Require Import Sums.
From Coq Require Import Reals List Permutation Arith Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* One operation. Its result z approximates x with errors u and η, and x is within E of the true y. *)
Lemma operation_step (z x y X E u η : R) : 0 <= u -> Rabs (z - x) <= u * Rabs x + η ->
  Rabs y <= X -> Rabs (x - y) <= E -> Rabs (z - y) <= (1 + u) * E + u * X + η.
Proof.
  intros Hu Hz Hy Hx. replace (z - y) with ((z - x) + (x - y)) by ring.
  pose proof (Rabs_triang (z - x) (x - y)).
  assert (Rabs x <= X + E)
    by (replace x with (y + (x - y)) by ring; pose proof (Rabs_triang y (x - y)); lra).
  pose proof (Rmult_le_compat_l u _ _ Hu H0). lra.
Qed.

Inductive nodes :=
  | Leaf (a b : R)                 (* a product *)
  | Join (l r : nodes)             (* the numbers that one operation adds *)
  | Node (u η δ : R) (t : nodes).  (* the result of one operation *)

Fixpoint value (t : nodes) : R :=
  match t with
  | Leaf a b => a * b
  | Join l r => value l + value r
  | Node _ _ δ t => value t + δ
  end.

Fixpoint products (t : nodes) : list (R * R) :=
  match t with
  | Leaf a b => [(a, b)]
  | Join l r => products l ++ products r
  | Node _ _ _ t => products t
  end.

(* The sum of the sizes (absolute values) of the numbers that an operation adds. *)
Fixpoint size (t : nodes) : R :=
  match t with
  | Leaf a b => Rabs (a * b)
  | Join l r => size l + size r
  | Node _ _ _ _ => Rabs (value t)
  end.

Fixpoint honest (t : nodes) : Prop :=
  match t with
  | Leaf _ _ => True
  | Join l r => honest l /\ honest r
  | Node u η δ t => honest t /\ 0 <= u /\ 0 <= η /\ Rabs δ <= u * size t + η
  end.

(* The factor by which the operations after a term may enlarge it; the largest over all terms. *)
Fixpoint growth (t : nodes) : R :=
  match t with
  | Leaf _ _ => 1
  | Join l r => Rmax (growth l) (growth r)
  | Node u _ _ t => (1 + u) * growth t
  end.

(* What underflows, enlarged by the operations that follow. *)
Fixpoint underflow (t : nodes) : R :=
  match t with
  | Leaf _ _ => 0
  | Join l r => underflow l + underflow r
  | Node u η _ t => (1 + u) * underflow t + η
  end.

Definition sum_products (l : list (R * R)) : R := ∑ p ∈ l, fst p * snd p.
Definition sum_sizes (l : list (R * R)) : R := ∑ p ∈ l, Rabs (fst p * snd p).

Lemma sum_sizes_nonneg l : 0 <= sum_sizes l.
Proof. apply Sum_nonneg. intros. apply Rabs_pos. Qed.

Lemma value_le_size t : Rabs (value t) <= size t.
Proof.
  induction t as [a b | l IHl r IHr | u η δ t IH]; cbn [value size]; try lra.
  pose proof (Rabs_triang (value l) (value r)). lra.
Qed.

Lemma growth_ge_1 t : honest t -> 1 <= growth t.
Proof.
  induction t as [a b | l IHl r IHr | u η δ t IH]; cbn [honest growth]; intros H; try lra.
  - pose proof (IHl (proj1 H)). pose proof (Rmax_l (growth l) (growth r)). lra.
  - destruct H as (Ht & Hu & _ & _). pose proof (IH Ht). nra.
Qed.

(* Sizes grow by at most the factor [growth], and errors by at most growth - 1. *)
Lemma nodes_error t : honest t ->
  let A := sum_sizes (products t) in
  size t <= growth t * A + underflow t /\
  Rabs (value t - sum_products (products t)) <= (growth t - 1) * A + underflow t.
Proof.
  induction t as [a b | l IHl r IHr | u η δ t IH]; cbn [honest products]; intros H.
  - unfold sum_sizes, sum_products. simpl. rewrite !Rplus_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
  - destruct H as [Hl Hr]. destruct (IHl Hl) as [Sl El]. destruct (IHr Hr) as [Sr Er].
    unfold sum_sizes, sum_products in *. rewrite !Sum_app. cbn [value size growth underflow].
    fold (sum_sizes (products l)) (sum_sizes (products r)) (sum_products (products l))
      (sum_products (products r)) in *.
    pose proof (sum_sizes_nonneg (products l)) as Al. pose proof (sum_sizes_nonneg (products r)) as Ar.
    pose proof (Rmult_le_compat_r _ _ _ Al (Rmax_l (growth l) (growth r))).
    pose proof (Rmult_le_compat_r _ _ _ Ar (Rmax_r (growth l) (growth r))). split; [lra|].
    replace (_ - _) with ((value l - sum_products (products l)) + (value r - sum_products (products r))) by ring.
    pose proof (Rabs_triang (value l - sum_products (products l)) (value r - sum_products (products r))). lra.
  - destruct H as (Ht & Hu & Hη & Hδ). destruct (IH Ht) as [S E]. cbn [value size growth underflow].
    set (A := sum_sizes (products t)) in *. pose proof (value_le_size t).
    pose proof (Rmult_le_compat_l u _ _ Hu S). pose proof (Rabs_triang (value t) δ).
    replace (value t + δ - _) with ((value t - sum_products (products t)) + δ) by ring.
    pose proof (Rabs_triang (value t - sum_products (products t)) δ). split; lra.
Qed.

(* Where all operations have the same u, each gives a factor 1 + u; [levels] counts them on the longest path. *)
Fixpoint levels (t : nodes) : nat :=
  match t with
  | Leaf _ _ => 0
  | Join l r => max (levels l) (levels r)
  | Node _ _ _ t => S (levels t)
  end.
Fixpoint all_within (u : R) (t : nodes) : Prop :=
  match t with
  | Leaf _ _ => True
  | Join l r => all_within u l /\ all_within u r
  | Node v _ _ t => v <= u /\ all_within u t
  end.

Lemma growth_levels u t : 0 <= u -> honest t -> all_within u t -> growth t <= (1 + u) ^ levels t.
Proof.
  intros Hu. induction t as [a b | l IHl r IHr | v η δ t IH]; cbn [honest all_within growth levels];
    intros H W.
  - simpl. lra.
  - apply Rmax_lub.
    + eapply Rle_trans; [apply IHl; tauto | apply Rle_pow; [lra | lia]].
    + eapply Rle_trans; [apply IHr; tauto | apply Rle_pow; [lra | lia]].
  - cbn [pow]. pose proof (growth_ge_1 t (proj1 H)). apply Rmult_le_compat; try lra; apply IH; tauto.
Qed.

(* A tensor core: its accumulator adds block after block of products, each block in one operation. *)
Fixpoint blocks_added (u η : R) (blocks : list (R * list (R * R))) : nodes :=
  match blocks with
  | [] => Leaf 0 0
  | (δ, block) :: before =>
      Node u η δ (fold_right (fun p t => Join (Leaf (fst p) (snd p)) t) (blocks_added u η before) block)
  end.

Lemma block_growth u η before block : 0 <= u ->
  growth (blocks_added u η before) = (1 + u) ^ length before ->
  growth (fold_right (fun p t => Join (Leaf (fst p) (snd p)) t) (blocks_added u η before) block) =
  (1 + u) ^ length before.
Proof.
  intros Hu E. induction block as [|p block IH]; simpl; [exact E|]. rewrite IH.
  apply Rmax_right, pow_R1_Rle. lra.
Qed.

Lemma blocks_growth u η blocks : 0 <= u ->
  growth (blocks_added u η blocks) = (1 + u) ^ length blocks.
Proof.
  intros Hu. induction blocks as [|[δ block] before IH]; [reflexivity|].
  cbn [blocks_added growth length pow]. rewrite block_growth by assumption. reflexivity.
Qed.

Lemma blocks_underflow u η blocks : 0 <= u -> 0 <= η ->
  underflow (blocks_added u η blocks) <= INR (length blocks) * (1 + u) ^ length blocks * η.
Proof.
  intros Hu Hη. induction blocks as [|[δ block] before IH]; [simpl; lra|].
  cbn [blocks_added underflow]. change (length ((δ, block) :: before)) with (S (length before)).
  assert (E : underflow (fold_right (fun p t => Join (Leaf (fst p) (snd p)) t) (blocks_added u η before) block)
              = underflow (blocks_added u η before))
    by (clear; induction block as [|p block IHb]; simpl; [reflexivity | lra]).
  rewrite E, S_INR. cbn [pow]. set (P := (1 + u) ^ length before) in *.
  pose proof (pow_R1_Rle (1 + u) (length before) ltac:(lra)) as P1. fold P in P1.
  pose proof (Rmult_le_compat_l (1 + u) _ _ ltac:(lra) IH).
  assert (1 <= (1 + u) * P) by nra.
  pose proof (Rmult_le_compat_r η _ _ Hη H0). lra.
Qed.
