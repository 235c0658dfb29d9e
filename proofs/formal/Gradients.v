(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The backward pass (chapter 34): the derivative of each stage along any direction of its inputs, and the gradient
   that follows: numbers dx such that the derivative of the loss is the sum of dx times the direction. A loss enters
   only by its gradient dy with respect to the stage's results. Nothing is assumed but what a statement says; the
   lists of keys, queries, heads and coordinates are any. *)

From Sinkproof Require Import Sums SoftmaxSink Equivalences.
From Coq Require Import Reals List Arith Lia Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
Open Scope R_scope.

(* ---- derivatives of sums and of exponentials along a line ---- *)

Lemma is_derive_Sum {A} (J : list A) (f : A -> R -> R) (x : R) (df : A -> R) :
  (forall j, In j J -> is_derive (f j) x (df j)) -> is_derive (fun t => ∑ j ∈ J, f j t) x (∑ j ∈ J, df j).
Proof.
  induction J as [|j J IH]; intros H; simpl.
  - apply (is_derive_const 0).
  - apply (is_derive_plus (f j) (fun t => ∑ k ∈ J, f k t)); [apply H | apply IH; intros k Hk; apply H]; simpl; auto.
Qed.

(* A derivative, under another name of its value. *)
Lemma derive_is (f : R -> R) (x l m : R) : is_derive f x l -> l = m -> is_derive f x m.
Proof. intros H <-. exact H. Qed.

Lemma exp_line c d : is_derive (fun t => exp (c + t * d)) 0 (d * exp c).
Proof. eapply derive_is; [auto_derive; [exact I | reflexivity]|]. replace (c + 0 * d) with c by ring. ring. Qed.

Lemma line_0 c d : c + 0 * d = c.
Proof. ring. Qed.

Section Softmax.
  Context {key : Type}.
  Implicit Types (J : list key) (s σ a : key -> R) (b β : R).

  Lemma at_0 J s σ : ∑ k ∈ J, exp (s k + 0 * σ k) = ∑ k ∈ J, exp (s k).
  Proof. apply Sum_ext. intros k. rewrite line_0. reflexivity. Qed.

  Lemma den_line J s σ b β :
    is_derive (fun t => exp (b + t * β) + ∑ k ∈ J, exp (s k + t * σ k)) 0
      (β * exp b + ∑ k ∈ J, σ k * exp (s k)).
  Proof.
    apply (is_derive_plus (fun t => exp (b + t * β)) (fun t => ∑ k ∈ J, exp (s k + t * σ k))); [apply exp_line|].
    apply (is_derive_Sum J (fun k t => exp (s k + t * σ k))). intros k _. apply exp_line.
  Qed.

  (* The mean of a direction under the weights of keys and sink. *)
  Definition mean J s b σ β : R := (∑ k ∈ J, alpha J s b k * σ k) + alpha_sink J s b * β.

  Lemma mean_over_den J s b σ β :
    mean J s b σ β = (β * exp b + ∑ k ∈ J, σ k * exp (s k)) / (exp b + ∑ k ∈ J, exp (s k)).
  Proof.
    pose proof (den_pos J s b). unfold mean, alpha, alpha_sink.
    rewrite (Sum_ext _ _ (fun k => σ k * exp (s k) / (exp b + ∑ j' ∈ J, exp (s j')))) by (intros; field; lra).
    rewrite Sum_div. field. lra.
  Qed.

  Lemma quotient_line J s σ b β (e de : R) (f : R -> R) : f 0 = e -> is_derive f 0 (de * e) ->
    is_derive (fun t => f t / (exp (b + t * β) + ∑ k ∈ J, exp (s k + t * σ k))) 0
      (e / (exp b + ∑ k ∈ J, exp (s k)) * (de - mean J s b σ β)).
  Proof.
    intros E D. pose proof (den_pos J s b). eapply derive_is.
    - apply (is_derive_div f (fun t => exp (b + t * β) + ∑ k ∈ J, exp (s k + t * σ k)) 0 _ _ D (den_line J s σ b β)).
      rewrite line_0, at_0. lra.
    - rewrite E, line_0, at_0, mean_over_den. simpl. field. lra.
  Qed.

  (* Scores and sink move along (σ, β). The last part is the gradient: of a loss with dα and dα_s. *)
  (*> grad.softmax *)
  Theorem grad_softmax J s b σ β (dα : key -> R) (dα_s : R) :
    let D := (∑ k ∈ J, alpha J s b k * dα k) + alpha_sink J s b * dα_s in
    (forall j, is_derive (fun t => alpha J (fun k => s k + t * σ k) (b + t * β) j) 0
       (alpha J s b j * (σ j - mean J s b σ β))) /\
    is_derive (fun t => alpha_sink J (fun k => s k + t * σ k) (b + t * β)) 0
      (alpha_sink J s b * (β - mean J s b σ β)) /\
    (∑ j ∈ J, dα j * (alpha J s b j * (σ j - mean J s b σ β)))
      + dα_s * (alpha_sink J s b * (β - mean J s b σ β)) =
    (∑ j ∈ J, alpha J s b j * (dα j - D) * σ j) + alpha_sink J s b * (dα_s - D) * β.
  Proof.
    intros D. split; [|split].
    - intros j. unfold alpha at 1. apply (quotient_line J s σ b β (exp (s j)) (σ j) (fun t => exp (s j + t * σ j)));
        [rewrite line_0; reflexivity | apply exp_line].
    - unfold alpha_sink at 1. apply (quotient_line J s σ b β (exp b) β (fun t => exp (b + t * β)));
        [rewrite line_0; reflexivity | apply exp_line].
    - rewrite (Sum_ext _ _ (fun j => dα j * alpha J s b j * σ j - alpha J s b j * dα j * mean J s b σ β))
        by (intros; ring).
      rewrite Sum_minus, Sum_scal_r.
      rewrite (Sum_ext _ (fun j => alpha J s b j * (dα j - D) * σ j)
        (fun j => dα j * alpha J s b j * σ j - D * (alpha J s b j * σ j))) by (intros; ring).
      rewrite Sum_minus, Sum_scal_l. unfold mean, D. ring.
  Qed.
  (*< grad.softmax *)

  (* Of the log-sum-exp, with the sink inside it and without. *)
  (*> grad.lse *)
  Theorem grad_lse J s b σ β : J <> [] ->
    is_derive (fun t => ln (exp (b + t * β) + ∑ k ∈ J, exp (s k + t * σ k))) 0
      ((∑ k ∈ J, alpha J s b k * σ k) + alpha_sink J s b * β) /\
    is_derive (fun t => LSE J (fun k => s k + t * σ k)) 0 (∑ k ∈ J, softmax J s k * σ k).
  Proof.
    intros HJ. split.
    - pose proof (den_pos J s b). fold (mean J s b σ β). rewrite mean_over_den. eapply derive_is.
      + apply (is_derive_comp ln (fun t => exp (b + t * β) + ∑ k ∈ J, exp (s k + t * σ k)) 0).
        * apply is_derive_ln. rewrite line_0, at_0. lra.
        * apply den_line.
      + rewrite line_0, at_0. unfold scal; simpl; unfold mult; simpl. field. lra.
    - pose proof (sum_exp_pos J s HJ). unfold LSE. eapply derive_is.
      + apply (is_derive_comp ln (fun t => ∑ k ∈ J, exp (s k + t * σ k)) 0).
        * apply is_derive_ln. rewrite at_0. lra.
        * apply (is_derive_Sum J (fun k t => exp (s k + t * σ k))). intros k _. apply exp_line.
      + rewrite at_0. unfold scal; simpl; unfold mult; simpl. unfold softmax.
        rewrite (Sum_ext _ (fun k => exp (s k) / _ * σ k) (fun k => σ k * exp (s k) / ∑ k ∈ J, exp (s k)))
          by (intros; field; lra).
        rewrite Sum_div. field. lra.
  Qed.
  (*< grad.lse *)
End Softmax.

(* ---- weighted values ---- *)

Section Values.
  Context {key query : Type}.
  Variable d : nat.
  Implicit Types (J : list key) (v : key -> vec) (u : vec).

  Lemma dot_sum J (w : key -> R) v u : u ⋅[d] (∑ j ∈ J, w j *: v j)%V = ∑ j ∈ J, w j * (u ⋅[d] v j).
  Proof.
    unfold vdot, vsum, vscal.
    rewrite (Sum_ext _ _ (fun c => ∑ j ∈ J, w j * (u c * v j c))).
    - rewrite Sum_swap. apply Sum_ext. intros j. apply Sum_scal_l.
    - intros c. rewrite <- Sum_scal_l. apply Sum_ext. intros j. ring.
  Qed.

  Definition weighted J s b v : vec := (∑ j ∈ J, alpha J s b j *: v j)%V.

  (* D = sum_j alpha_j dalpha_j, with dalpha_j = <dO, v_j>, is <dO, O>. *)
  (*> grad.delta *)
  Theorem grad_delta J s b v (dO : vec) :
    ∑ j ∈ J, alpha J s b j * (dO ⋅[d] v j) = dO ⋅[d] weighted J s b v.
  Proof. unfold weighted. rewrite dot_sum. reflexivity. Qed.
  (*< grad.delta *)

  (*> grad.sink *)
  Theorem grad_sink (I : list query) (J : query -> list key) s b v (dO : query -> vec) :
    is_derive (fun b => ∑ i ∈ I, dO i ⋅[d] weighted (J i) (s i) b v) b
      (- ∑ i ∈ I, alpha_sink (J i) (s i) b * (dO i ⋅[d] weighted (J i) (s i) b v)).
  Proof.
    rewrite <- Sum_opp. apply (is_derive_Sum I (fun i b => dO i ⋅[d] weighted (J i) (s i) b v)). intros i _.
    apply (is_derive_ext (fun b => ∑ j ∈ J i, alpha (J i) (s i) b j * (dO i ⋅[d] v j)));
      [intros t; apply grad_delta|].
    rewrite <- grad_delta, <- Sum_scal_l, <- Sum_opp.
    apply (is_derive_Sum (J i) (fun j b => alpha (J i) (s i) b j * (dO i ⋅[d] v j))). intros j _.
    pose proof (den_pos (J i) (s i) b). unfold alpha, alpha_sink. auto_derive; [lra|]. field. lra.
  Qed.
  (*< grad.sink *)

  (*> grad.values *)
  Theorem grad_values (I : list query) J (α α' : query -> key -> R) v v' (dO : query -> vec) :
    let dα i j := dO i ⋅[d] v j in
    let dv j := (∑ i ∈ I, α i j *: dO i)%V in
    is_derive (fun t => ∑ i ∈ I, dO i ⋅[d] (∑ j ∈ J, (α i j + t * α' i j) *: (v j + t *: v' j))%V) 0
      ((∑ i ∈ I, ∑ j ∈ J, dα i j * α' i j) + ∑ j ∈ J, dv j ⋅[d] v' j).
  Proof.
    intros dα dv. unfold dα, dv.
    replace (∑ j ∈ J, (∑ i ∈ I, α i j *: dO i)%V ⋅[d] v' j)
      with (∑ i ∈ I, ∑ j ∈ J, ∑ c < d, dO i c * (α i j * v' j c)).
    - rewrite <- Sum_plus. unfold vdot, vsum, vscal, vadd.
      apply (is_derive_Sum I (fun i t => ∑ c < d, dO i c * ∑ j ∈ J, (α i j + t * α' i j) * (v j c + t * v' j c))).
      intros i _. rewrite <- Sum_plus.
      rewrite (Sum_ext J _ (fun j => ∑ c < d, dO i c * (v j c * α' i j + α i j * v' j c))).
      + rewrite Sum_swap.
        apply (is_derive_Sum (seq 0 d) (fun c t => dO i c * ∑ j ∈ J, (α i j + t * α' i j) * (v j c + t * v' j c))).
        intros c _. rewrite Sum_scal_l.
        apply (is_derive_scal (fun t => ∑ j ∈ J, (α i j + t * α' i j) * (v j c + t * v' j c))).
        apply (is_derive_Sum J (fun j t => (α i j + t * α' i j) * (v j c + t * v' j c))). intros j _.
        eapply derive_is; [auto_derive; [exact Logic.I | reflexivity] | ring].
      + intros j. rewrite <- Sum_scal_r, <- Sum_plus. apply Sum_ext. intros c. ring.
    - rewrite Sum_swap. apply Sum_ext. intros j. unfold vdot, vsum, vscal. rewrite Sum_swap. apply Sum_ext.
      intros c. rewrite <- Sum_scal_r. apply Sum_ext. intros i. ring.
  Qed.
  (*< grad.values *)

  (*> grad.value-bias *)
  Theorem grad_value_bias (I : list query) (J : query -> list key) s b v (β : vec) (dO : query -> vec) :
    is_derive (fun t => ∑ i ∈ I, dO i ⋅[d] weighted (J i) (s i) b (fun j => (v j + t *: β)%V)) 0
      ((∑ i ∈ I, (1 - alpha_sink (J i) (s i) b) *: dO i)%V ⋅[d] β).
  Proof.
    replace ((∑ i ∈ I, (1 - alpha_sink (J i) (s i) b) *: dO i)%V ⋅[d] β)
      with (∑ i ∈ I, ∑ j ∈ J i, alpha (J i) (s i) b j * (dO i ⋅[d] β)).
    - apply (is_derive_Sum I (fun i t => dO i ⋅[d] weighted (J i) (s i) b (fun j => (v j + t *: β)%V))). intros i _.
      apply (is_derive_ext (fun t => ∑ j ∈ J i, alpha (J i) (s i) b j * (dO i ⋅[d] (v j + t *: β)%V)));
        [intros t; apply grad_delta|].
      apply (is_derive_Sum (J i) (fun j t => alpha (J i) (s i) b j * (dO i ⋅[d] (v j + t *: β)%V))). intros j _.
      apply (is_derive_scal (fun t => dO i ⋅[d] (v j + t *: β)%V)). unfold vdot, vadd, vscal.
      apply (is_derive_Sum (seq 0 d) (fun c t => dO i c * (v j c + t * β c))). intros c _.
      eapply derive_is; [auto_derive; [exact Logic.I | reflexivity] | ring].
    - rewrite (Sum_ext I _ (fun i => (1 - alpha_sink (J i) (s i) b) * (dO i ⋅[d] β)))
        by (intros i; rewrite Sum_scal_r, sink_mass; reflexivity).
      unfold vdot, vsum, vscal.
      rewrite (Sum_ext (seq 0 d) _ (fun c => ∑ i ∈ I, (1 - alpha_sink (J i) (s i) b) * (dO i c * β c))).
      + rewrite Sum_swap. apply Sum_ext. intros i. rewrite Sum_scal_l. reflexivity.
      + intros c. rewrite <- Sum_scal_r. apply Sum_ext. intros i. ring.
  Qed.
  (*< grad.value-bias *)
End Values.
