(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Finite sums, vectors and matrices without any fixed size; nearly all other files use them. A sum runs over a
   list J of indices of any type: the keys that a query may see, heads, or the coordinates 0 … n-1, written
   [∑ k < n, f k]. A vector is a function of its coordinate, a matrix of row and column. Only a product needs a
   dimension: [x *[d] W] sums over d rows of W. Assumed: vectors with equal coordinates are equal (functional
   extensionality). *)

From Coq Require Import Reals List Permutation Arith Lia Lra FunctionalExtensionality.
Import ListNotations.
Open Scope R_scope.

Fixpoint Sum {A : Type} (J : list A) (f : A -> R) : R :=
  match J with
  | [] => 0
  | j :: rest => f j + Sum rest f
  end.

Notation "∑ j ∈ J , f" := (Sum J (fun j => f))
  (at level 41, j name, J at level 40, f at level 41, format "∑  j  ∈  J ,  f") : R_scope.
Notation "∑ k < n , f" := (Sum (seq 0 n) (fun k => f))
  (at level 41, k name, n at level 40, f at level 41, format "∑  k  <  n ,  f") : R_scope.

Section Laws.
  Context {A : Type}.
  Implicit Types (J : list A) (f g : A -> R).

  Lemma Sum_ext_in J f g : (forall j, In j J -> f j = g j) -> Sum J f = Sum J g.
  Proof.
    induction J as [|j J IH]; simpl; intros H; [reflexivity|].
    rewrite H by auto. rewrite IH by auto. reflexivity.
  Qed.

  Lemma Sum_ext J f g : (forall j, f j = g j) -> Sum J f = Sum J g.
  Proof. intros H. apply Sum_ext_in. auto. Qed.

  Lemma Sum_plus J f g : ∑ j ∈ J, (f j + g j) = (∑ j ∈ J, f j) + ∑ j ∈ J, g j.
  Proof. induction J; simpl; [ring | rewrite IHJ; ring]. Qed.

  Lemma Sum_scal_l J f c : ∑ j ∈ J, c * f j = c * ∑ j ∈ J, f j.
  Proof. induction J; simpl; [ring | rewrite IHJ; ring]. Qed.

  Lemma Sum_scal_r J f c : ∑ j ∈ J, f j * c = (∑ j ∈ J, f j) * c.
  Proof. induction J; simpl; [ring | rewrite IHJ; ring]. Qed.

  Lemma Sum_div J f c : ∑ j ∈ J, f j / c = (∑ j ∈ J, f j) / c.
  Proof. unfold Rdiv. apply Sum_scal_r. Qed.

  Lemma Sum_opp J f : ∑ j ∈ J, (- f j) = - ∑ j ∈ J, f j.
  Proof. induction J; simpl; [ring | rewrite IHJ; ring]. Qed.

  Lemma Sum_minus J f g : ∑ j ∈ J, (f j - g j) = (∑ j ∈ J, f j) - ∑ j ∈ J, g j.
  Proof. induction J; simpl; [ring | rewrite IHJ; ring]. Qed.

  Lemma Sum_zero J : ∑ _j ∈ J, 0 = 0.
  Proof. induction J; simpl; [reflexivity | rewrite IHJ; ring]. Qed.

  Lemma Sum_is_zero J f : (forall j, f j = 0) -> Sum J f = 0.
  Proof. intros H. rewrite (Sum_ext _ _ (fun _ => 0) H). apply Sum_zero. Qed.

  Lemma Sum_const J c : ∑ _j ∈ J, c = INR (length J) * c.
  Proof.
    induction J as [|j J IH]; [simpl; ring|].
    change (length (j :: J)) with (S (length J)). rewrite S_INR. simpl Sum. rewrite IH. ring.
  Qed.

  Lemma Sum_app J1 J2 f : Sum (J1 ++ J2) f = Sum J1 f + Sum J2 f.
  Proof. induction J1; simpl; [ring | rewrite IHJ1; ring]. Qed.

  Lemma Sum_perm J1 J2 f : Permutation J1 J2 -> Sum J1 f = Sum J2 f.
  Proof. induction 1; simpl; lra. Qed.

  Lemma Sum_map {B : Type} (L : list B) (p : B -> A) f : Sum (map p L) f = ∑ l ∈ L, f (p l).
  Proof. induction L; simpl; [reflexivity | rewrite IHL; reflexivity]. Qed.

  Lemma Sum_le J f g : (forall j, In j J -> f j <= g j) -> Sum J f <= Sum J g.
  Proof.
    induction J as [|j J IH]; simpl; intros H; [lra|].
    apply Rplus_le_compat; [|apply IH]; auto.
  Qed.

  Lemma Sum_nonneg J f : (forall j, In j J -> 0 <= f j) -> 0 <= Sum J f.
  Proof. intros H. rewrite <- (Sum_zero J). apply Sum_le. exact H. Qed.

  Lemma Sum_pos J f : J <> [] -> (forall j, In j J -> 0 < f j) -> 0 < Sum J f.
  Proof.
    destruct J as [|j J]; [congruence|]. intros _ H. simpl.
    apply Rplus_lt_le_0_compat; [apply H; simpl; auto|].
    apply Sum_nonneg. intros k Hk. apply Rlt_le, H. simpl. auto.
  Qed.

  Lemma Sum_term_le J f j : In j J -> (forall k, In k J -> 0 <= f k) -> f j <= Sum J f.
  Proof.
    induction J as [|k J IH]; simpl; [tauto|]. intros [->|Hj] H.
    - pose proof (Sum_nonneg J f (fun k Hk => H k (or_intror Hk))). lra.
    - pose proof (IH Hj (fun k Hk => H k (or_intror Hk))). pose proof (H k (or_introl eq_refl)). lra.
  Qed.

  Lemma Sum_abs J f : Rabs (Sum J f) <= ∑ j ∈ J, Rabs (f j).
  Proof.
    induction J as [|j J IH]; simpl; [rewrite Rabs_R0; lra|].
    pose proof (Rabs_triang (f j) (Sum J f)). lra.
  Qed.
End Laws.

Lemma Sum_swap {A B : Type} (J : list A) (L : list B) (f : A -> B -> R) :
  ∑ j ∈ J, ∑ l ∈ L, f j l = ∑ l ∈ L, ∑ j ∈ J, f j l.
Proof.
  induction J; simpl; [symmetry; induction L; simpl; lra|].
  rewrite IHJ, Sum_plus. reflexivity.
Qed.

(* The indices below H m are H blocks of length m. Block matrices rest on this. *)
Lemma Sum_blocks (H m : nat) (f : nat -> R) :
  ∑ r < (H * m), f r = ∑ h < H, ∑ k < m, f (h * m + k)%nat.
Proof.
  induction H as [|H IH]; [reflexivity|].
  replace (S H * m)%nat with (H * m + m)%nat by lia.
  rewrite seq_app, Sum_app, IH, seq_S, Sum_app. f_equal. simpl. rewrite Rplus_0_r.
  rewrite <- (Sum_map (seq 0 m) (fun k => (H * m + k)%nat) f). f_equal.
  clear. generalize (H * m)%nat as a. intros a.
  rewrite <- (Nat.add_0_r a) at 1. generalize 0%nat as b.
  induction m as [|m IH]; intros b; simpl; [reflexivity|].
  f_equal. rewrite <- IH. f_equal. lia.
Qed.

(* ---- vectors and matrices ---- *)

Definition vec := nat -> R.
Definition mat := nat -> nat -> R.

Declare Scope V_scope.
Delimit Scope V_scope with V.
Bind Scope V_scope with vec.

Definition vadd (u v : vec) : vec := fun c => u c + v c.
Definition vopp (u : vec) : vec := fun c => - u c.
Definition vscal (a : R) (u : vec) : vec := fun c => a * u c.
Definition vsum {A} (J : list A) (u : A -> vec) : vec := fun c => ∑ j ∈ J, u j c.
Definition vmul (n : nat) (x : vec) (W : mat) : vec := fun c => ∑ k < n, x k * W k c.
Definition vdot (n : nat) (x y : vec) : R := ∑ k < n, x k * y k.

Notation "u + v" := (vadd u v) : V_scope.
Notation "- u" := (vopp u) : V_scope.
Notation "u - v" := (vadd u (vopp v)) : V_scope.
Notation "a *: u" := (vscal a%R u%V) (at level 40, left associativity) : V_scope.
Notation "x *[ n ] W" := (vmul n x%V W) (at level 40, left associativity, n at level 200) : V_scope.
Notation "∑ j ∈ J , u" := (vsum J (fun j => u%V)) : V_scope.
Notation "∑ k < n , u" := (vsum (seq 0 n) (fun k => u%V)) : V_scope.
Notation "x ⋅[ n ] y" := (vdot n x%V y%V) (at level 40, n at level 200) : R_scope.

(* Vectors are equal if all their coordinates are equal. *)
Lemma vec_eq (u v : vec) : (forall c, u c = v c) -> u = v.
Proof. apply functional_extensionality. Qed.

Section VectorLaws.
  Context {A : Type}.
  Implicit Types (J : list A) (a : A -> R) (u v : A -> vec) (W : mat).

  Lemma vsum_ext_in J u v : (forall j, In j J -> u j = v j) -> vsum J u = vsum J v.
  Proof. intros H. apply vec_eq. intros c. apply Sum_ext_in. intros j Hj. rewrite H; auto. Qed.

  Lemma vsum_ext J u v : (forall j, u j = v j) -> vsum J u = vsum J v.
  Proof. intros H. apply vsum_ext_in. auto. Qed.

  Lemma vsum_plus J u v : (∑ j ∈ J, (u j + v j) = (∑ j ∈ J, u j) + ∑ j ∈ J, v j)%V.
  Proof. apply vec_eq. intros c. apply Sum_plus. Qed.

  Lemma vsum_opp J u : (∑ j ∈ J, (- u j) = - ∑ j ∈ J, u j)%V.
  Proof. apply vec_eq. intros c. apply Sum_opp. Qed.

  (* A vector that is the same in all terms is a factor outside the sum of the weights. *)
  Lemma vsum_scal_const J a (w : vec) : (∑ j ∈ J, a j *: w = (∑ j ∈ J, a j)%R *: w)%V.
  Proof. apply vec_eq. intros c. apply Sum_scal_r. Qed.

  Lemma vsum_mul n J u W : ((∑ j ∈ J, u j) *[n] W = ∑ j ∈ J, u j *[n] W)%V.
  Proof.
    apply vec_eq. intros c. unfold vmul, vsum.
    rewrite (Sum_ext _ _ (fun k => ∑ j ∈ J, u j k * W k c)).
    - apply Sum_swap.
    - intros k. symmetry. apply Sum_scal_r.
  Qed.
End VectorLaws.

Lemma vmul_add n x y W : ((x + y) *[n] W = x *[n] W + y *[n] W)%V.
Proof.
  apply vec_eq. intros c. unfold vmul, vadd. rewrite <- Sum_plus. apply Sum_ext. intros. ring.
Qed.

Lemma vmul_scal n a x W : ((a *: x) *[n] W = a *: (x *[n] W))%V.
Proof.
  apply vec_eq. intros c. unfold vmul, vscal. rewrite <- Sum_scal_l. apply Sum_ext. intros. ring.
Qed.

Lemma vscal_add a u v : (a *: (u + v) = a *: u + a *: v)%V.
Proof. apply vec_eq. intros c. unfold vscal, vadd. ring. Qed.

(* An equation of vectors, checked at one coordinate c as an equation of reals. *)
Ltac at_coordinate c :=
  apply vec_eq; intros c; unfold vadd, vopp, vscal, vsum, vmul in *.
