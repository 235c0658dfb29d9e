(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The mean, over all orders of n terms, of the sum of the squared partial sums; Likely.v states it as part of
   bound.dot-likely. It matters because the roundings of a sum are as large as its partial sums. The terms are any
   reals; nothing is assumed. *)

From Coq Require Import Reals List Lia Lra.
From Sinkproof Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(* Every element of l, each with the list that remains without it. *)
Fixpoint removals (l : list R) : list (R * list R) :=
  match l with
  | [] => []
  | x :: rest => (x, rest) :: map (fun r => (fst r, x :: snd r)) (removals rest)
  end.

(* All orders of the n terms of l, each written with its last term first: choose the last term, then order the
   others. *)
Fixpoint orders (n : nat) (l : list R) : list (list R) :=
  match n with
  | O => [[]]
  | S n => flat_map (fun r => map (cons (fst r)) (orders n (snd r))) (removals l)
  end.

Definition sum_of (l : list R) : R := ∑ x ∈ l, x.
Definition squares_of (l : list R) : R := ∑ x ∈ l, x ^ 2.

(* The sum of the squares of all partial sums of one order, from the first term alone to the whole. *)
Fixpoint partial_squares (l : list R) : R :=
  match l with
  | [] => 0
  | _ :: rest => sum_of l ^ 2 + partial_squares rest
  end.

Lemma removals_rest l : forall r, In r (removals l) -> length l = S (length (snd r)) /\
  sum_of l = fst r + sum_of (snd r) /\ squares_of l = fst r ^ 2 + squares_of (snd r).
Proof.
  induction l as [|x l IH]; cbn [removals]; [easy|]. intros r [<-|H]; [auto|].
  apply in_map_iff in H as (q & <- & Hq). destruct (IH q Hq) as (L & S1 & S2).
  unfold sum_of, squares_of in *. cbn [Sum fst snd length]. repeat split; [lia | lra | lra].
Qed.

Lemma removals_sum l f : ∑ r ∈ removals l, f (fst r) = ∑ x ∈ l, f x.
Proof.
  induction l as [|x l IH]; simpl; [reflexivity|]. rewrite Sum_map. simpl. rewrite IH. reflexivity.
Qed.

Lemma removals_length l : length (removals l) = length l.
Proof. induction l; simpl; [reflexivity | rewrite map_length; auto]. Qed.

Lemma Sum_flat_map {A B} (J : list A) (g : A -> list B) f :
  Sum (flat_map g J) f = ∑ j ∈ J, Sum (g j) f.
Proof. induction J; simpl; [reflexivity | rewrite Sum_app, IHJ; reflexivity]. Qed.

Lemma orders_sum n : forall l p, length l = n -> In p (orders n l) -> sum_of p = sum_of l.
Proof.
  induction n as [|n IH]; simpl; intros l p L H.
  - destruct H as [<-|[]]. destruct l; [reflexivity | discriminate].
  - apply in_flat_map in H as (r & Hr & Hp). apply in_map_iff in Hp as (q & <- & Hq).
    destruct (removals_rest l r Hr) as (L' & S1 & _).
    specialize (IH (snd r) q ltac:(lia) Hq). unfold sum_of in *. simpl. lra.
Qed.

Lemma orders_count n : forall l, length l = n -> INR (length (orders n l)) = INR (fact n).
Proof.
  induction n as [|n IH]; intros l L; [reflexivity|].
  change (fact (S n)) with (S n * fact n)%nat. rewrite mult_INR.
  assert (E : INR (length (orders (S n) l)) = ∑ p ∈ orders (S n) l, 1)
    by (rewrite Sum_const; ring).
  rewrite E. simpl orders. rewrite Sum_flat_map.
  rewrite (Sum_ext_in _ _ (fun _ => INR (fact n))).
  - rewrite Sum_const, removals_length, L. reflexivity.
  - intros r Hr. destruct (removals_rest l r Hr) as (L' & _).
    rewrite Sum_map, Sum_const, IH by lia. ring.
Qed.

(* The mean, over all n! orders of n terms, of the sum of the squared partial sums. *)
Lemma orders_mean (l : list R) : let n := length l in
  (∑ p ∈ orders n l, partial_squares p) / INR (length (orders n l)) =
  INR (n + 1) * (sum_of l ^ 2 / 3 + squares_of l / 6).
Proof.
  intros n.
  assert (H : forall n l, length l = n ->
    ∑ p ∈ orders n l, partial_squares p =
    INR (fact n) * (INR (n + 1) * (sum_of l ^ 2 / 3 + squares_of l / 6))).
  { clear. induction n as [|n IH]; intros l L.
    - destruct l; [|discriminate]. unfold sum_of, squares_of. simpl. field.
    - simpl orders. rewrite Sum_flat_map.
      set (S := sum_of l). set (Q := squares_of l). set (F := INR (fact n)).
      rewrite (Sum_ext_in _ _ (fun r => F * S ^ 2 + F * (INR (n + 1) *
        ((S - fst r) ^ 2 / 3 + (Q - fst r ^ 2) / 6)))).
      + rewrite (Sum_ext _ _ (fun r =>
          F * S ^ 2 + F * (INR (n + 1) * (S ^ 2 / 3 + Q / 6)) + (fun x => - (F * (INR (n + 1) * (2 * S / 3))) * x) (fst r)
          + (fun x => F * (INR (n + 1) * (1 / 6)) * x ^ 2) (fst r))) by (intros; field).
        rewrite !Sum_plus.
        rewrite Sum_const, removals_length, L.
        rewrite (removals_sum l (fun x => - (F * (INR (n + 1) * (2 * S / 3))) * x)).
        rewrite (removals_sum l (fun x => F * (INR (n + 1) * (1 / 6)) * x ^ 2)).
        rewrite !Sum_scal_l, Sum_const, removals_length, L.
        change (∑ x ∈ l, x) with S. change (∑ x ∈ l, x ^ 2) with Q.
        change (fact (Datatypes.S n)) with (Datatypes.S n * fact n)%nat.
        rewrite mult_INR. fold F. rewrite !plus_INR, !S_INR. simpl INR. field.
      + intros r Hr. destruct (removals_rest l r Hr) as (L' & S1 & S2).
        rewrite Sum_map.
        rewrite (Sum_ext_in _ _ (fun p => S ^ 2 + partial_squares p)).
        * rewrite Sum_plus, Sum_const, orders_count, IH by lia. fold F.
          replace (sum_of (snd r)) with (S - fst r) by (unfold S; lra).
          replace (squares_of (snd r)) with (Q - fst r ^ 2) by (unfold Q; lra). ring.
        * intros p Hp. cbn [partial_squares].
          assert (E : sum_of p = sum_of (snd r)) by (apply (orders_sum n); [lia | exact Hp]).
          replace (sum_of (fst r :: p)) with S; [reflexivity|].
          unfold S. rewrite S1, <- E. reflexivity. }
  rewrite H by reflexivity. rewrite orders_count by reflexivity. field.
  apply not_0_INR, fact_neq_0.
Qed.
