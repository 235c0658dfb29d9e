(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The likely error of a dot product: roundings that are centred, given all roundings before them,
   add up like a random walk. No independence is asked for (Azuma's inequality).

   The bound holds for one order of summation, fixed before the roundings are. It is as large as what
   is rounded on the way, the partial sums; their squares are known on the mean over all orders.

   A rounding multiplies by 1 + δ. [pick h] is the distribution of the next δ, a list of
   (probability, value), after the roundings h: it may depend on all of them. *)

From Coq Require Import Reals List Permutation Lia Lra.
From Coquelicot Require Import Coquelicot.
From Sinkproof Require Import Sums Summation BoundsSoftmaxSink.
Import ListNotations.
Open Scope R_scope.

Definition mean (outcomes : list (R * R)) (f : R -> R) : R := ∑ o ∈ outcomes, fst o * f (snd o).

(* Probabilities; errors at most u; centred. *)
Definition fair (u : R) (pick : list R -> list (R * R)) : Prop := forall h,
  (forall p δ, In (p, δ) (pick h) -> 0 <= p /\ Rabs δ <= u) /\
  mean (pick h) (fun _ => 1) = 1 /\ mean (pick h) (fun δ => δ) = 0.

(* Such roundings exist: ±u with equal odds. *)
Example fair_coin u : 0 <= u -> fair u (fun _ => [(1 / 2, u); (1 / 2, - u)]).
Proof.
  intros Hu h. unfold mean. simpl. split; [|split; lra].
  intros p δ [E|[E|[]]]; injection E as <- <-; split; try lra; [|rewrite Rabs_Ropp];
    rewrite Rabs_pos_eq; lra.
Qed.

(* ---- cosh w <= e^(w²/2) ---- *)

Lemma slope_nonneg (f df : R -> R) y : 0 <= y -> (forall x, is_derive f x (df x)) ->
  (forall x, 0 <= x -> 0 <= df x) -> f 0 <= f y.
Proof.
  intros Hy D P. destruct (MVT_gen f 0 y df) as (c & Hc & E).
  - intros x _. apply D.
  - intros x _. apply derivable_continuous_pt. exists (df x). apply is_derive_Reals, D.
  - rewrite Rmin_left, Rmax_right in Hc by exact Hy. pose proof (P c (proj1 Hc)).
    assert (0 <= df c * (y - 0)) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma cosh_le w : (exp w + exp (- w)) / 2 <= exp (w ^ 2 / 2).
Proof.
  assert (P : forall y, 0 <= y -> (exp y + exp (- y)) / 2 <= exp (y ^ 2 / 2)).
  { intros y Hy.
    (* y cosh y >= sinh y, by its slope y sinh y *)
    assert (G : forall x, 0 <= x -> 0 <= x * (exp x + exp (- x)) - (exp x - exp (- x))).
    { intros x Hx.
      pose proof (slope_nonneg (fun x => x * (exp x + exp (- x)) - (exp x - exp (- x)))
        (fun x => x * (exp x - exp (- x))) x Hx) as S. cbv beta in S.
      rewrite Ropp_0, exp_0 in S. apply Rle_trans with (2 := S
        ltac:(intros t; auto_derive; [easy | ring])
        ltac:(intros t Ht; apply Rmult_le_pos; [exact Ht | pose proof (exp_le (- t) t ltac:(lra)); lra])).
      lra. }
    (* so 2 e^(-y²/2) cosh y falls from 2 *)
    pose proof (slope_nonneg (fun x => - (exp (- (x ^ 2 / 2)) * (exp x + exp (- x))))
      (fun x => exp (- (x ^ 2 / 2)) * (x * (exp x + exp (- x)) - (exp x - exp (- x)))) y Hy) as S.
    cbv beta in S. replace (0 ^ 2 / 2) with 0 in S by field. rewrite Ropp_0, exp_0 in S.
    assert (F : - (1 * (1 + 1)) <= - (exp (- (y ^ 2 / 2)) * (exp y + exp (- y)))).
    { apply S.
      - intros x. auto_derive; [easy|].
        replace (- (x * (x * 1) * / 2)) with (- (x ^ 2 / 2)) by (simpl; field). field.
      - intros x Hx. apply Rmult_le_pos; [apply Rlt_le, exp_pos | apply G, Hx]. }
    rewrite exp_Ropp in F. pose proof (exp_pos (y ^ 2 / 2)).
    apply Rmult_le_reg_l with (/ exp (y ^ 2 / 2)); [apply Rinv_0_lt_compat; lra|].
    rewrite Rinv_l by lra. lra. }
  destruct (Rle_lt_dec 0 w) as [H|H]; [apply P, H|].
  pose proof (P (- w) ltac:(lra)) as Q. rewrite Ropp_involutive in Q.
  replace ((- w) ^ 2) with (w ^ 2) in Q by ring. lra.
Qed.

(* A centred error within ±u: E e^(sδ) <= e^(s²u²/2), for e^(sδ) is below its chord. *)
Lemma centred_exp u pick h s : 0 < u -> fair u pick ->
  mean (pick h) (fun δ => exp (s * δ)) <= exp ((s * u) ^ 2 / 2).
Proof.
  intros Hu F. destruct (F h) as (B & M1 & M0).
  eapply Rle_trans; [|apply cosh_le].
  set (a := exp (s * u)). set (b := exp (- (s * u))).
  apply Rle_trans with (mean (pick h) (fun δ => (a + b) / 2 * 1 + (a - b) / (2 * u) * δ)).
  - apply Sum_le. intros [p δ] Ho. destruct (B p δ Ho) as [Hp Hδ]. simpl.
    apply Rmult_le_compat_l; [exact Hp|].
    assert (- u <= δ <= u) by (unfold Rabs in Hδ; destruct (Rcase_abs _) in Hδ; lra).
    pose proof (exp_tangent (s * δ) (s * u)) as T1. pose proof (exp_tangent (s * δ) (- (s * u))) as T2.
    fold a in T1. fold b in T2. set (e := exp (s * δ)) in *.
    assert (0 <= (1 + δ / u) / 2 /\ 0 <= (1 - δ / u) / 2) as [W1 W2].
    { split; apply Rmult_le_reg_r with (2 * u); try lra; field_simplify; lra. }
    pose proof (Rmult_le_compat_l _ _ _ W1 T1) as Q1. pose proof (Rmult_le_compat_l _ _ _ W2 T2) as Q2.
    replace ((a + b) / 2 * 1 + (a - b) / (2 * u) * δ) with ((1 + δ / u) / 2 * a + (1 - δ / u) / 2 * b)
      by (field; lra).
    replace e with ((1 + δ / u) / 2 * (e * (1 + (s * u - s * δ)))
                    + (1 - δ / u) / 2 * (e * (1 + (- (s * u) - s * δ)))) by (field; lra).
    lra.
  - unfold mean in *. rewrite (Sum_ext _ _ (fun o : R * R =>
      (a + b) / 2 * (fst o * 1) + (a - b) / (2 * u) * (fst o * snd o))) by (intros; ring).
    rewrite Sum_plus, !Sum_scal_l, M1, M0. lra.
Qed.

(* ---- what the roundings of a sum are sized by, over all orders of its terms ---- *)

(* Every element, and what is left without it. *)
Fixpoint removals (l : list R) : list (R * list R) :=
  match l with
  | [] => []
  | x :: rest => (x, rest) :: map (fun r => (fst r, x :: snd r)) (removals rest)
  end.

(* All orders of the n terms of l, the last term first: any term is the last, then the rest. *)
Fixpoint orders (n : nat) (l : list R) : list (list R) :=
  match n with
  | O => [[]]
  | S n => flat_map (fun r => map (cons (fst r)) (orders n (snd r))) (removals l)
  end.

Definition sum_of (l : list R) : R := ∑ x ∈ l, x.
Definition squares_of (l : list R) : R := ∑ x ∈ l, x ^ 2.

(* The squares of all partial sums of one order, from the first term alone to the whole. *)
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

(* ---- a tree whose roundings are drawn ---- *)

Section Walk.
  (*> bound.dot-likely *)
  Variable pick : list R -> list (R * R).
  (*< bound.dot-likely *)

  (* The mean of k over all outcomes: k sees the computed value and the roundings so far. *)
  Fixpoint run (t : tree) (h : list R) (k : R -> list R -> R) : R :=
    match t with
    | Exact a b => k (a * b) h
    | Prod a b => mean (pick h) (fun δ => k (a * b * (1 + δ)) (δ :: h))
    | Add l r => run l h (fun x h => run r h (fun y h =>
                   mean (pick h) (fun δ => k ((x + y) * (1 + δ)) (δ :: h))))
    | Fma a b t => run t h (fun x h => mean (pick h) (fun δ => k ((a * b + x) * (1 + δ)) (δ :: h)))
    end.

  (*> bound.dot-likely *)
  Variable u : R.
  Hypothesis u_pos : 0 < u.
  Hypothesis pick_fair : fair u pick.
  (*< bound.dot-likely *)

  Lemma mean_le h f g : (forall δ, Rabs δ <= u -> f δ <= g δ) -> mean (pick h) f <= mean (pick h) g.
  Proof.
    intros H. apply Sum_le. intros [p δ] Ho. destruct (proj1 (pick_fair h) p δ Ho).
    apply Rmult_le_compat_l; [assumption | apply H; assumption].
  Qed.

  Lemma run_le t : forall h k k', (forall v h, k v h <= k' v h) -> run t h k <= run t h k'.
  Proof.
    induction t as [| |l IHl r IHr|a b t IH]; simpl; intros h k k' H; auto.
    - apply mean_le. auto.
    - apply IHl. intros. apply IHr. intros. apply mean_le. auto.
    - apply IH. intros. apply mean_le. auto.
  Qed.

  Lemma mean_plus h f g : mean (pick h) (fun δ => f δ + g δ) = mean (pick h) f + mean (pick h) g.
  Proof. unfold mean. rewrite <- Sum_plus. apply Sum_ext. intros. ring. Qed.

  Lemma run_ext t h k k' : (forall v h, k v h = k' v h) -> run t h k = run t h k'.
  Proof. intros H. apply Rle_antisym; apply run_le; intros; rewrite H; apply Rle_refl. Qed.

  Lemma run_plus t : forall h k k',
    run t h (fun v h => k v h + k' v h) = run t h k + run t h k'.
  Proof.
    induction t as [| |l IHl r IHr|a b t IH]; simpl; intros h k k'; auto.
    - apply mean_plus.
    - rewrite <- IHl. apply run_ext. intros. rewrite <- IHr. apply run_ext. intros. apply mean_plus.
    - rewrite <- IH. apply run_ext. intros. apply mean_plus.
  Qed.

  (*> bound.dot-likely *)
  Let A t := absdot (terms t).

  (* The largest value that a tree can reach, and the squares of its roundings' largest sizes. *)
  Let top t := (1 + u) ^ depth t * A t.
  Fixpoint walk (t : tree) : R :=
    match t with
    | Exact _ _ => 0
    | Prod a b => (u * Rabs (a * b)) ^ 2
    | Add l r => walk l + walk r + (u * (top l + top r)) ^ 2
    | Fma a b t => walk t + (u * (Rabs (a * b) + top t)) ^ 2
    end.
  (*< bound.dot-likely *)

  Lemma rounded_top x X δ : Rabs x <= X -> Rabs δ <= u -> Rabs (x * (1 + δ)) <= (1 + u) * X.
  Proof.
    intros Hx Hδ. rewrite Rabs_mult, Rmult_comm. apply Rmult_le_compat; try apply Rabs_pos; auto.
    pose proof (Rabs_triang 1 δ). rewrite Rabs_R1 in H. lra.
  Qed.

  Lemma A_nonneg t : 0 <= A t.
  Proof. apply absdot_nonneg. Qed.

  Lemma pow_ge_1 n : 1 <= (1 + u) ^ n.
  Proof. apply pow_R1_Rle. lra. Qed.

  Lemma top_parts t : top t >= match t with
    | Exact a b => Rabs (a * b)
    | Prod a b => (1 + u) * Rabs (a * b)
    | Add l r => (1 + u) * (top l + top r)
    | Fma a b t => (1 + u) * (Rabs (a * b) + top t)
    end.
  Proof.
    unfold top, A. destruct t as [a b|a b|l r|a b t]; cbn [depth terms pow]; unfold absdot;
      rewrite ?Sum_app; cbn [Sum fst snd]; try lra.
    - pose proof (A_nonneg l) as L. pose proof (A_nonneg r) as R1. unfold A, absdot in *.
      pose proof (Rle_pow (1 + u) (depth l) (max (depth l) (depth r)) ltac:(lra) ltac:(lia)) as P1.
      pose proof (Rle_pow (1 + u) (depth r) (max (depth l) (depth r)) ltac:(lra) ltac:(lia)) as P2.
      pose proof (Rmult_le_compat_r _ _ _ L P1). pose proof (Rmult_le_compat_r _ _ _ R1 P2).
      rewrite Rmult_assoc. apply Rle_ge, Rmult_le_compat_l; lra.
    - pose proof (Rabs_pos (a * b)) as L. pose proof (pow_ge_1 (depth t)) as P1.
      pose proof (Rmult_le_compat_r _ _ _ L P1). rewrite Rmult_assoc.
      apply Rle_ge, Rmult_le_compat_l; lra.
  Qed.

  (* One rounding of x: the exponential moment grows by e^(θ² (u X)² / 2). *)
  Lemma round_moment θ K x X y h (k : R -> list R -> R) : 0 <= K -> Rabs x <= X ->
    (forall δ, Rabs δ <= u -> k (x * (1 + δ)) (δ :: h) <= K * exp (θ * (x * (1 + δ) - y))) ->
    mean (pick h) (fun δ => k (x * (1 + δ)) (δ :: h)) <=
      K * exp (θ ^ 2 * (u * X) ^ 2 / 2) * exp (θ * (x - y)).
  Proof.
    intros HK Hx Hk. eapply Rle_trans; [apply mean_le, Hk|].
    apply Rle_trans with (K * exp (θ * (x - y)) * mean (pick h) (fun δ => exp (θ * x * δ))).
    - right. unfold mean. rewrite <- Sum_scal_l. apply Sum_ext. intros o.
      replace (θ * (x * (1 + snd o) - y)) with (θ * (x - y) + θ * x * snd o) by ring.
      rewrite exp_plus. ring.
    - replace (K * exp (θ ^ 2 * (u * X) ^ 2 / 2) * exp (θ * (x - y)))
        with (K * exp (θ * (x - y)) * exp (θ ^ 2 * (u * X) ^ 2 / 2)) by ring.
      apply Rmult_le_compat_l; [apply Rmult_le_pos; [exact HK | apply Rlt_le, exp_pos]|].
      eapply Rle_trans; [apply (centred_exp u pick h (θ * x) u_pos pick_fair)|].
      apply exp_le. apply Rmult_le_compat_r; [lra|].
      replace ((θ * x * u) ^ 2) with ((θ * u) ^ 2 * (x * x)) by ring.
      replace (θ ^ 2 * (u * X) ^ 2) with ((θ * u) ^ 2 * (X * X)) by ring.
      apply Rmult_le_compat_l; [apply pow2_ge_0|].
      rewrite <- (Rabs_pos_eq (x * x)), Rabs_mult by apply Rle_0_sqr.
      apply Rmult_le_compat; auto using Rabs_pos.
  Qed.

  Lemma moment t θ : forall K h k, 0 <= K ->
    (forall v h, Rabs v <= top t -> k v h <= K * exp (θ * (v - dot (terms t)))) ->
    run t h k <= K * exp (θ ^ 2 * walk t / 2).
  Proof.
    induction t as [a b|a b|l IHl r IHr|a b t IH]; intros K h k HK Hk; cbn [run walk];
      pose proof (top_parts) as TP.
    - eapply Rle_trans; [apply Hk|].
      + specialize (TP (Exact a b)). cbv beta iota in TP. lra.
      + unfold dot. simpl. right. f_equal. f_equal. field.
    - eapply Rle_trans; [apply (round_moment θ K (a * b) (Rabs (a * b)) (a * b)); auto; try lra|].
      + intros δ Hδ. eapply Rle_trans; [apply Hk|].
        * eapply Rle_trans; [apply (rounded_top _ (Rabs (a * b))); [lra | exact Hδ]|].
          specialize (TP (Prod a b)). cbv beta iota in TP. lra.
        * unfold dot. simpl. rewrite Rplus_0_r. lra.
      + rewrite Rminus_diag_eq, Rmult_0_r, exp_0, Rmult_1_r by reflexivity. lra.
    - set (c := exp (θ ^ 2 * (u * (top l + top r)) ^ 2 / 2)).
      assert (0 < c) by apply exp_pos.
      eapply Rle_trans; [apply (IHl (K * c * exp (θ ^ 2 * walk r / 2)))|].
      + repeat apply Rmult_le_pos; try lra. apply Rlt_le, exp_pos.
      + intros x h1 Hx.
        replace (K * c * exp (θ ^ 2 * walk r / 2) * exp (θ * (x - dot (terms l))))
          with (K * c * exp (θ * (x - dot (terms l))) * exp (θ ^ 2 * walk r / 2)) by ring.
        apply IHr; [repeat apply Rmult_le_pos; try lra; apply Rlt_le, exp_pos|].
        intros y h2 Hy.
        replace (K * c * exp (θ * (x - dot (terms l))) * exp (θ * (y - dot (terms r))))
          with (K * c * exp (θ * (x + y - dot (terms (Add l r))))).
        * apply round_moment; auto.
          -- pose proof (Rabs_triang x y). lra.
          -- intros δ Hδ. apply Hk. eapply Rle_trans;
               [apply (rounded_top _ (top l + top r)); [pose proof (Rabs_triang x y); lra | exact Hδ]|].
             specialize (TP (Add l r)). cbv beta iota in TP. lra.
        * rewrite (Rmult_assoc (K * c)), <- exp_plus. f_equal. f_equal.
          unfold dot. cbn [terms]. rewrite Sum_app. ring.
      + unfold c. rewrite !(Rmult_assoc K), <- !exp_plus. right. f_equal. f_equal. field.
    - set (c := exp (θ ^ 2 * (u * (Rabs (a * b) + top t)) ^ 2 / 2)).
      assert (0 < c) by apply exp_pos.
      eapply Rle_trans; [apply (IH (K * c)); [apply Rmult_le_pos; lra|] |].
      + intros x h1 Hx.
        replace (θ * (x - dot (terms t))) with (θ * (a * b + x - dot (terms (Fma a b t))))
          by (unfold dot; simpl; ring).
        assert (Rabs (a * b + x) <= Rabs (a * b) + top t) by (pose proof (Rabs_triang (a * b) x); lra).
        apply round_moment; auto. intros δ Hδ. apply Hk.
        eapply Rle_trans; [apply (rounded_top _ (Rabs (a * b) + top t)); assumption|].
        specialize (TP (Fma a b t)). cbv beta iota in TP. lra.
      + unfold c. rewrite !(Rmult_assoc K), <- !exp_plus. right. f_equal. f_equal. field.
  Qed.

  Lemma top_nonneg t : 0 <= top t.
  Proof. apply Rmult_le_pos; [pose proof (pow_ge_1 (depth t)); lra | apply A_nonneg]. Qed.

  (* Every rounding is at most u times the top. *)
  Lemma walk_le t : walk t <= INR (roundings t) * (u * top t) ^ 2.
  Proof.
    assert (Sq : forall x y, 0 <= x <= y -> (u * x) ^ 2 <= (u * y) ^ 2)
      by (intros; apply pow_incr; split; [apply Rmult_le_pos | apply Rmult_le_compat_l]; lra).
    induction t as [a b|a b|l IHl r IHr|a b t IH]; cbn [walk roundings].
    - simpl. lra.
    - pose proof (top_parts (Prod a b)) as TP. cbv beta iota in TP.
      pose proof (Rabs_pos (a * b)). simpl INR. rewrite Rmult_1_l. apply Sq. nra.
    - pose proof (top_parts (Add l r)) as TP. cbv beta iota in TP.
      pose proof (top_nonneg l). pose proof (top_nonneg r). rewrite S_INR, plus_INR.
      assert (top l + top r <= top (Add l r)) by nra.
      pose proof (Sq (top l) (top (Add l r)) ltac:(lra)).
      pose proof (Sq (top r) (top (Add l r)) ltac:(lra)).
      pose proof (Sq (top l + top r) (top (Add l r)) ltac:(lra)).
      pose proof (Rmult_le_compat_l _ _ _ (pos_INR (roundings l)) H2).
      pose proof (Rmult_le_compat_l _ _ _ (pos_INR (roundings r)) H3). lra.
    - pose proof (top_parts (Fma a b t)) as TP. cbv beta iota in TP.
      pose proof (top_nonneg t). pose proof (Rabs_pos (a * b)). rewrite S_INR.
      assert (Rabs (a * b) + top t <= top (Fma a b t)) by nra.
      pose proof (Sq (top t) (top (Fma a b t)) ltac:(lra)).
      pose proof (Sq (Rabs (a * b) + top t) (top (Fma a b t)) ltac:(lra)).
      pose proof (Rmult_le_compat_l _ _ _ (pos_INR (roundings t)) H2). lra.
  Qed.

  Definition probability (t : tree) (event : R -> Prop) (dec : forall v, {event v} + {~ event v}) : R :=
    run t [] (fun v _ => if dec v then 1 else 0).

  Fixpoint again (n : nat) (x : R) : tree :=
    match n with O => Exact x 1 | S n => Fma 0 0 (again n x) end.

  Lemma again_facts n x : depth (again n x) = n /\ roundings (again n x) = n /\
    dot (terms (again n x)) = x /\ absdot (terms (again n x)) = Rabs x.
  Proof.
    induction n as [|n (D & R & S & T)]; unfold dot, absdot in *; cbn [again depth roundings terms Sum fst snd].
    - rewrite Rmult_1_r, !Rplus_0_r. auto.
    - rewrite D, R, S, T, Rmult_0_l, Rabs_R0, !Rplus_0_l. auto.
  Qed.

  (*> bound.dot-likely *)
  (* In one order of summation, W at least the squares of u times the largest size of each number
     that is rounded: an error of λ sqrt W or more has probability at most 2 e^(-λ²/2). *)
  Theorem bound_dot_likely_walk (t : tree) (λ W : R) : 0 < λ -> walk t <= W -> 0 < W ->
    let limit := λ * sqrt W in
    probability t (fun v => limit <= Rabs (v - dot (terms t)))
      (fun v => Rle_dec limit (Rabs (v - dot (terms t)))) <= 2 * exp (- (λ ^ 2 / 2)).
  Proof.
    intros Hλ HW W_pos limit. pose proof (sqrt_lt_R0 _ W_pos) as Hs.
    pose proof (sqrt_sqrt _ (Rlt_le _ _ W_pos)) as Ss.
    (* Markov's inequality on e^(θ error) and e^(-θ error), θ = λ / sqrt W *)
    set (θ := λ / sqrt W). assert (θ_pos : 0 < θ) by (apply Rdiv_lt_0_compat; lra).
    set (e v := v - dot (terms t)).
    assert (θl : θ * limit = λ ^ 2) by (unfold θ, limit; field; lra).
    apply Rle_trans with (run t [] (fun v _ => exp (- λ ^ 2) * exp (θ * e v)
                                             + exp (- λ ^ 2) * exp (- θ * e v))).
    - apply run_le. intros v _. pose proof (exp_pos (- λ ^ 2)) as E0.
      pose proof (exp_pos (θ * e v)) as E1. pose proof (exp_pos (- θ * e v)) as E2.
      rewrite <- !exp_plus. destruct (Rle_dec limit _) as [L|L].
      + fold (e v) in L. assert (H : θ * limit <= θ * Rabs (e v)) by (apply Rmult_le_compat_l; lra).
        rewrite θl in H. unfold Rabs in H. destruct (Rcase_abs (e v)) as [N|N].
        * pose proof (exp_le 0 (- λ ^ 2 + - θ * e v) ltac:(lra)) as X. rewrite exp_0 in X.
          pose proof (exp_pos (- λ ^ 2 + θ * e v)). lra.
        * pose proof (exp_le 0 (- λ ^ 2 + θ * e v) ltac:(lra)) as X. rewrite exp_0 in X.
          pose proof (exp_pos (- λ ^ 2 + - θ * e v)). lra.
      + pose proof (exp_pos (- λ ^ 2 + θ * e v)). pose proof (exp_pos (- λ ^ 2 + - θ * e v)). lra.
    - rewrite run_plus. pose proof (Rlt_le _ _ (exp_pos (- λ ^ 2))) as E0.
      pose proof (moment t θ _ [] (fun v _ => exp (- λ ^ 2) * exp (θ * e v)) E0
                    ltac:(intros; apply Rle_refl)) as M1.
      pose proof (moment t (- θ) _ [] (fun v _ => exp (- λ ^ 2) * exp (- θ * e v)) E0
                    ltac:(intros; apply Rle_refl)) as M2.
      replace ((- θ) ^ 2) with (θ ^ 2) in M2 by ring.
      assert (X : exp (- λ ^ 2) * exp (θ ^ 2 * walk t / 2) <= exp (- (λ ^ 2 / 2))); [|lra].
      rewrite <- exp_plus. apply exp_le.
      assert (θ ^ 2 * walk t <= λ ^ 2); [|lra].
      apply Rle_trans with (θ ^ 2 * W); [apply Rmult_le_compat_l; [apply pow2_ge_0 | exact HW]|].
      right. rewrite <- Ss. unfold θ. field. lra.
  Qed.

  (* Any tree with m roundings, the worst placed term meeting D of them: an error of
     λ sqrt(m) u (1 + u)^D sum |a b| or more is as seldom. *)
  Theorem bound_dot_likely (t : tree) (λ : R) : 0 < λ -> A t > 0 -> (0 < roundings t)%nat ->
    let limit := λ * sqrt (INR (roundings t)) * (u * ((1 + u) ^ depth t * A t)) in
    probability t (fun v => limit <= Rabs (v - dot (terms t)))
      (fun v => Rle_dec limit (Rabs (v - dot (terms t)))) <= 2 * exp (- (λ ^ 2 / 2)).
  Proof.
    intros Hλ HA Hm limit. fold (top t) in limit.
    assert (Hm' : 0 < INR (roundings t)) by (apply (lt_INR 0), Hm).
    assert (Ht : 0 < top t) by (apply Rmult_lt_0_compat; [pose proof (pow_ge_1 (depth t)); lra | lra]).
    assert (Hut : 0 < u * top t) by (apply Rmult_lt_0_compat; lra).
    pose proof (bound_dot_likely_walk t λ (INR (roundings t) * (u * top t) ^ 2) Hλ (walk_le t)
      ltac:(apply Rmult_lt_0_compat; [exact Hm' | apply pow_lt; exact Hut])) as B.
    rewrite sqrt_mult, sqrt_pow2 in B by (try apply pow2_ge_0; lra).
    rewrite <- Rmult_assoc in B. exact B.
  Qed.

  (* n roundings of one number, one after the other. *)
  Theorem bound_dot_likely_again (n : nat) (x λ : R) : 0 < λ -> x <> 0 -> (0 < n)%nat ->
    let limit := λ * sqrt (INR n) * (u * ((1 + u) ^ n * Rabs x)) in
    probability (again n x) (fun v => limit <= Rabs (v - x)) (fun v => Rle_dec limit (Rabs (v - x)))
      <= 2 * exp (- (λ ^ 2 / 2)).
  Proof.
    intros Hλ Hx Hn limit. pose proof (Rabs_pos_lt x Hx) as X.
    destruct (again_facts n x) as (D & R & S & T).
    pose proof (bound_dot_likely (again n x) λ Hλ) as B. unfold A in B.
    rewrite D, R, S, T in B. apply B; [lra | exact Hn].
  Qed.

  (* The squared partial sums of n terms add up, on the mean over all n! orders, to this. *)
  Theorem bound_dot_likely_orders (l : list R) : let n := length l in
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
  (*< bound.dot-likely *)
End Walk.
