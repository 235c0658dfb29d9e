(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* The likely error of a dot product (bound.dot-likely): by Azuma's inequality, an error of λ sqrt W or more has
   probability at most 2 e^(-λ²/2). Assumed: each rounding error has mean 0, given all roundings before it;
   independence is not assumed. The bound is for one order of summation, fixed before the roundings. W depends on the
   partial sums; Orders.v gives the mean of their squares over all orders. *)

(* A rounding multiplies by 1 + δ. [pick u h] is the distribution of the next δ within u, a list of
   (probability, value), after the roundings h; it may depend on all of them. *)

From Coq Require Import Reals List Permutation Lia Lra.
From Coquelicot Require Import Coquelicot.
From Sinkproof Require Import Sums Summation BoundsSoftmaxSink Orders.
Import ListNotations.
Open Scope R_scope.

Definition mean (outcomes : list (R * R)) (f : R -> R) : R := ∑ o ∈ outcomes, fst o * f (snd o).

(* Fair roundings: the probabilities sum to 1, the errors are at most u, and their mean is 0. *)
Definition fair (u : R) (pick : list R -> list (R * R)) : Prop := forall h,
  (forall p δ, In (p, δ) (pick h) -> 0 <= p /\ Rabs δ <= u) /\
  mean (pick h) (fun _ => 1) = 1 /\ mean (pick h) (fun δ => δ) = 0.

(* Fair roundings exist: ±u with equal odds. *)
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
    (* so 2 e^(-y²/2) cosh y decreases from 2 *)
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

(* For a centred error δ within ±u, the mean of e^(sδ) is at most e^(s²u²/2), because e^(sδ) lies below its
   chord. *)
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

(* ---- a sum whose roundings are random ---- *)

(*> bound.dot-likely *)
Inductive plan :=
  | Product (a b : R)             (* a b, exact *)
  | Both (l r : plan)             (* the exact sum of two parts *)
  | Rounded (u : R) (t : plan).   (* t, rounded: times 1 + δ, |δ| <= u *)
(*< bound.dot-likely *)

Section Walk.
  (*> bound.dot-likely *)
  Variable pick : R -> list R -> list (R * R).
  Hypothesis pick_fair : forall u, 0 < u -> fair u (pick u).
  (*< bound.dot-likely *)

  (* The mean of k over all outcomes. k depends on the computed value and on the roundings so far. *)
  Fixpoint run (t : plan) (h : list R) (k : R -> list R -> R) : R :=
    match t with
    | Product a b => k (a * b) h
    | Both l r => run l h (fun x h => run r h (fun y h => k (x + y) h))
    | Rounded u t => run t h (fun x h => mean (pick u h) (fun δ => k (x * (1 + δ)) (δ :: h)))
    end.

  (*> bound.dot-likely *)
  (* Every rounding may err, but by at most v. *)
  Fixpoint within_all (v : R) (t : plan) : Prop :=
    match t with
    | Product _ _ => True
    | Both l r => within_all v l /\ within_all v r
    | Rounded u t => 0 < u <= v /\ within_all v t
    end.

  (* exactly: the exact sum. sizes: the sum of the absolute values of its terms. reach: the largest absolute
     value that roundings can give. walk: the sum, over the roundings, of the square of the largest absolute
     error. *)
  Fixpoint exactly (t : plan) : R :=
    match t with
    | Product a b => a * b
    | Both l r => exactly l + exactly r
    | Rounded _ t => exactly t
    end.
  Fixpoint sizes (t : plan) : R :=
    match t with
    | Product a b => Rabs (a * b)
    | Both l r => sizes l + sizes r
    | Rounded _ t => sizes t
    end.
  Fixpoint reach (t : plan) : R :=
    match t with
    | Product a b => Rabs (a * b)
    | Both l r => reach l + reach r
    | Rounded u t => (1 + u) * reach t
    end.
  Fixpoint walk (t : plan) : R :=
    match t with
    | Product _ _ => 0
    | Both l r => walk l + walk r
    | Rounded u t => walk t + (u * reach t) ^ 2
    end.

  (* rounds: the number of all roundings. deep: the number of roundings on the longest path. *)
  Fixpoint rounds (t : plan) : nat :=
    match t with
    | Product _ _ => 0
    | Both l r => rounds l + rounds r
    | Rounded _ t => S (rounds t)
    end.
  Fixpoint deep (t : plan) : nat :=
    match t with
    | Product _ _ => 0
    | Both l r => max (deep l) (deep r)
    | Rounded _ t => S (deep t)
    end.
  (*< bound.dot-likely *)

  Lemma mean_le u h f g : 0 < u -> (forall δ, Rabs δ <= u -> f δ <= g δ) ->
    mean (pick u h) f <= mean (pick u h) g.
  Proof.
    intros Hu H. apply Sum_le. intros [p δ] Ho. destruct (proj1 (pick_fair u Hu h) p δ Ho).
    apply Rmult_le_compat_l; [assumption | apply H; assumption].
  Qed.

  Lemma run_le v t : within_all v t ->
    forall h k k', (forall v h, k v h <= k' v h) -> run t h k <= run t h k'.
  Proof.
    induction t as [|l IHl r IHr|u t IH]; cbn [run within_all]; intros W h k k' H; auto.
    - apply IHl; [tauto|]. intros. apply IHr; [tauto|]. intros. apply H.
    - apply IH; [tauto|]. intros. apply mean_le; [tauto|]. auto.
  Qed.

  Lemma mean_plus u h f g :
    mean (pick u h) (fun δ => f δ + g δ) = mean (pick u h) f + mean (pick u h) g.
  Proof. unfold mean. rewrite <- Sum_plus. apply Sum_ext. intros. ring. Qed.

  Lemma run_ext v t : within_all v t ->
    forall h k k', (forall v h, k v h = k' v h) -> run t h k = run t h k'.
  Proof.
    intros W h k k' H. apply Rle_antisym; apply (run_le v t W); intros; rewrite H; apply Rle_refl.
  Qed.

  Lemma run_plus v t : within_all v t -> forall h k k',
    run t h (fun v h => k v h + k' v h) = run t h k + run t h k'.
  Proof.
    induction t as [|l IHl r IHr|u t IH]; cbn [run within_all]; intros W h k k'; auto.
    - rewrite <- IHl by tauto. apply (run_ext v); [tauto|]. intros. apply IHr. tauto.
    - rewrite <- IH by tauto. apply (run_ext v); [tauto|]. intros. apply mean_plus.
  Qed.

  Lemma rounded_reach u x X δ : Rabs x <= X -> Rabs δ <= u -> Rabs (x * (1 + δ)) <= (1 + u) * X.
  Proof.
    intros Hx Hδ. rewrite Rabs_mult, Rmult_comm. apply Rmult_le_compat; try apply Rabs_pos; auto.
    pose proof (Rabs_triang 1 δ). rewrite Rabs_R1 in H. lra.
  Qed.

  (* One rounding of x multiplies the exponential moment by at most e^(θ² (u X)² / 2). *)
  Lemma round_moment u θ K x X y h (k : R -> list R -> R) : 0 < u -> 0 <= K -> Rabs x <= X ->
    (forall δ, Rabs δ <= u -> k (x * (1 + δ)) (δ :: h) <= K * exp (θ * (x * (1 + δ) - y))) ->
    mean (pick u h) (fun δ => k (x * (1 + δ)) (δ :: h)) <=
      K * exp (θ ^ 2 * (u * X) ^ 2 / 2) * exp (θ * (x - y)).
  Proof.
    intros u_pos HK Hx Hk. eapply Rle_trans; [apply mean_le; [exact u_pos | exact Hk]|].
    apply Rle_trans with (K * exp (θ * (x - y)) * mean (pick u h) (fun δ => exp (θ * x * δ))).
    - right. unfold mean. rewrite <- Sum_scal_l. apply Sum_ext. intros o.
      replace (θ * (x * (1 + snd o) - y)) with (θ * (x - y) + θ * x * snd o) by ring.
      rewrite exp_plus. ring.
    - replace (K * exp (θ ^ 2 * (u * X) ^ 2 / 2) * exp (θ * (x - y)))
        with (K * exp (θ * (x - y)) * exp (θ ^ 2 * (u * X) ^ 2 / 2)) by ring.
      apply Rmult_le_compat_l; [apply Rmult_le_pos; [exact HK | apply Rlt_le, exp_pos]|].
      eapply Rle_trans; [apply (centred_exp u (pick u) h (θ * x) u_pos (pick_fair u u_pos))|].
      apply exp_le. apply Rmult_le_compat_r; [lra|].
      replace ((θ * x * u) ^ 2) with ((θ * u) ^ 2 * (x * x)) by ring.
      replace (θ ^ 2 * (u * X) ^ 2) with ((θ * u) ^ 2 * (X * X)) by ring.
      apply Rmult_le_compat_l; [apply pow2_ge_0|].
      rewrite <- (Rabs_pos_eq (x * x)), Rabs_mult by apply Rle_0_sqr.
      apply Rmult_le_compat; auto using Rabs_pos.
  Qed.

  Lemma moment v t θ : within_all v t -> forall K h k, 0 <= K ->
    (forall x h, Rabs x <= reach t -> k x h <= K * exp (θ * (x - exactly t))) ->
    run t h k <= K * exp (θ ^ 2 * walk t / 2).
  Proof.
    induction t as [a b|l IHl r IHr|u t IH]; cbn [run within_all walk reach exactly];
      intros W K h k HK Hk.
    - eapply Rle_trans; [apply Hk, Rle_refl|]. rewrite Rminus_diag_eq by reflexivity.
      right. f_equal. f_equal. field.
    - eapply Rle_trans; [apply (IHl (proj1 W) (K * exp (θ ^ 2 * walk r / 2)))|].
      + apply Rmult_le_pos; [exact HK | apply Rlt_le, exp_pos].
      + intros x h1 Hx.
        replace (K * exp (θ ^ 2 * walk r / 2) * exp (θ * (x - exactly l)))
          with (K * exp (θ * (x - exactly l)) * exp (θ ^ 2 * walk r / 2)) by ring.
        apply (IHr (proj2 W)); [apply Rmult_le_pos; [exact HK | apply Rlt_le, exp_pos]|].
        intros y h2 Hy. eapply Rle_trans; [apply Hk|].
        * pose proof (Rabs_triang x y). lra.
        * rewrite (Rmult_assoc K), <- exp_plus. right. f_equal. f_equal. ring.
      + rewrite (Rmult_assoc K), <- exp_plus. right. f_equal. f_equal. field.
    - destruct W as [[u_pos _] W]. set (c := exp (θ ^ 2 * (u * reach t) ^ 2 / 2)).
      assert (0 < c) by apply exp_pos.
      eapply Rle_trans; [apply (IH W (K * c)); [apply Rmult_le_pos; lra|] |].
      + intros x h1 Hx. apply round_moment; auto.
        intros δ Hδ. apply Hk. apply rounded_reach; assumption.
      + unfold c. rewrite (Rmult_assoc K), <- exp_plus. right. f_equal. f_equal. field.
  Qed.

  Lemma reach_nonneg v t : within_all v t -> 0 <= reach t.
  Proof.
    induction t as [a b|l IHl r IHr|u t IH]; cbn [within_all reach]; intros W.
    - apply Rabs_pos.
    - pose proof (IHl (proj1 W)). pose proof (IHr (proj2 W)). lra.
    - apply Rmult_le_pos; [lra | apply IH; tauto].
  Qed.

  Lemma sizes_nonneg t : 0 <= sizes t.
  Proof. induction t; cbn [sizes]; [apply Rabs_pos | lra | assumption]. Qed.

  Lemma reach_le v t : 0 <= v -> within_all v t -> reach t <= (1 + v) ^ deep t * sizes t.
  Proof.
    intros Hv. induction t as [a b|l IHl r IHr|u t IH]; cbn [within_all reach deep sizes]; intros W.
    - simpl. lra.
    - specialize (IHl (proj1 W)). specialize (IHr (proj2 W)).
      pose proof (Rle_pow (1 + v) (deep l) (max (deep l) (deep r)) ltac:(lra) ltac:(lia)) as P1.
      pose proof (Rle_pow (1 + v) (deep r) (max (deep l) (deep r)) ltac:(lra) ltac:(lia)) as P2.
      pose proof (Rmult_le_compat_r _ _ _ (sizes_nonneg l) P1).
      pose proof (Rmult_le_compat_r _ _ _ (sizes_nonneg r) P2). lra.
    - destruct W as [Hu W]. cbn [pow]. rewrite Rmult_assoc.
      apply Rmult_le_compat; [lra | apply (reach_nonneg v), W | lra | apply IH, W].
  Qed.

  (* Every rounding error is at most v times the largest value X. *)
  Lemma walk_le v t X : 0 <= v -> within_all v t -> reach t <= X ->
    walk t <= INR (rounds t) * (v * X) ^ 2.
  Proof.
    intros Hv. revert X. induction t as [a b|l IHl r IHr|u t IH]; cbn [within_all reach rounds walk];
      intros X W HX.
    - simpl. lra.
    - destruct W as [Wl Wr]. pose proof (reach_nonneg v l Wl). pose proof (reach_nonneg v r Wr).
      rewrite plus_INR. pose proof (IHl X Wl ltac:(lra)). pose proof (IHr X Wr ltac:(lra)). lra.
    - destruct W as [Hu W]. pose proof (reach_nonneg v t W) as P0.
      assert (reach t <= X) by nra. rewrite S_INR. pose proof (IH X W H).
      assert ((u * reach t) ^ 2 <= (v * X) ^ 2); [|lra].
      apply pow_incr. split; [apply Rmult_le_pos; lra | apply Rmult_le_compat; lra].
  Qed.

  (*> bound.dot-likely *)
  Definition probability (t : plan) (event : R -> Prop) (dec : forall v, {event v} + {~ event v}) : R :=
    run t [] (fun v _ => if dec v then 1 else 0).

  (* The probability of an error of at least [limit]. *)
  Definition odds (t : plan) (limit : R) : R :=
    probability t (fun y => limit <= Rabs (y - exactly t))
      (fun y => Rle_dec limit (Rabs (y - exactly t))).
  (*< bound.dot-likely *)

  (*> bound.dot-likely *)
  Fixpoint again (u : R) (n : nat) (x : R) : plan :=
    match n with O => Product x 1 | S n => Rounded u (again u n x) end.
  (*< bound.dot-likely *)

  Lemma again_facts u n x : 0 < u -> within_all u (again u n x) /\ deep (again u n x) = n /\
    rounds (again u n x) = n /\ exactly (again u n x) = x /\ sizes (again u n x) = Rabs x.
  Proof.
    intros Hu. induction n as [|n (W & D & N & E & S)];
      cbn [again within_all deep rounds exactly sizes].
    - rewrite Rmult_1_r. auto.
    - rewrite D, N, E, S. repeat split; auto; lra.
  Qed.

  (* A tree of Summation.v, with one format for all roundings, as a plan. *)
  Fixpoint plan_of (u : R) (t : tree) : plan :=
    match t with
    | Exact a b => Product a b
    | Prod a b => Rounded u (Product a b)
    | Add l r => Rounded u (Both (plan_of u l) (plan_of u r))
    | Fma a b t => Rounded u (Both (Product a b) (plan_of u t))
    end.

  Lemma plan_of_tree u t : 0 < u -> within_all u (plan_of u t) /\
    exactly (plan_of u t) = dot (terms t) /\ sizes (plan_of u t) = absdot (terms t) /\
    rounds (plan_of u t) = roundings t /\ deep (plan_of u t) = depth t.
  Proof.
    intros Hu. unfold dot, absdot.
    induction t as [a b|a b|l (Wl & El & Sl & Nl & Dl) r (Wr & Er & Sr & Nr & Dr)|a b t (W & E & S & N & D)];
      cbn [plan_of within_all exactly sizes rounds deep terms roundings depth];
      rewrite ?Sum_app; cbn [Sum fst snd]; repeat split; auto; try lra; try lia.
  Qed.

  (*> bound.dot-likely *)
  (* One order of summation, where each rounding has its own bound u. W is at least the sum, over the
     roundings, of (u times the largest size of the rounded number) squared. Then an error of λ sqrt W or more
     has probability at most 2 e^(-λ²/2). *)
  Theorem bound_dot_likely_walk (t : plan) (v λ W : R) : within_all v t ->
    0 < λ -> walk t <= W -> 0 < W -> odds t (λ * sqrt W) <= 2 * exp (- (λ ^ 2 / 2)).
  Proof.
    intros Ht Hλ HW W_pos. set (limit := λ * sqrt W). unfold odds, probability. pose proof (sqrt_lt_R0 _ W_pos) as Hs.
    pose proof (sqrt_sqrt _ (Rlt_le _ _ W_pos)) as Ss.
    (* Markov's inequality on e^(θ error) and e^(-θ error), θ = λ / sqrt W *)
    set (θ := λ / sqrt W). assert (θ_pos : 0 < θ) by (apply Rdiv_lt_0_compat; lra).
    set (e y := y - exactly t).
    assert (θl : θ * limit = λ ^ 2) by (unfold θ, limit; field; lra).
    apply Rle_trans with (run t [] (fun y _ => exp (- λ ^ 2) * exp (θ * e y)
                                             + exp (- λ ^ 2) * exp (- θ * e y))).
    - apply (run_le v t Ht). intros y _. pose proof (exp_pos (- λ ^ 2)) as E0.
      pose proof (exp_pos (θ * e y)) as E1. pose proof (exp_pos (- θ * e y)) as E2.
      rewrite <- !exp_plus. destruct (Rle_dec limit _) as [L|L].
      + fold (e y) in L. assert (H : θ * limit <= θ * Rabs (e y)) by (apply Rmult_le_compat_l; lra).
        rewrite θl in H. unfold Rabs in H. destruct (Rcase_abs (e y)) as [N|N].
        * pose proof (exp_le 0 (- λ ^ 2 + - θ * e y) ltac:(lra)) as X. rewrite exp_0 in X.
          pose proof (exp_pos (- λ ^ 2 + θ * e y)). lra.
        * pose proof (exp_le 0 (- λ ^ 2 + θ * e y) ltac:(lra)) as X. rewrite exp_0 in X.
          pose proof (exp_pos (- λ ^ 2 + - θ * e y)). lra.
      + pose proof (exp_pos (- λ ^ 2 + θ * e y)). pose proof (exp_pos (- λ ^ 2 + - θ * e y)). lra.
    - rewrite (run_plus v t Ht). pose proof (Rlt_le _ _ (exp_pos (- λ ^ 2))) as E0.
      pose proof (moment v t θ Ht _ [] (fun y _ => exp (- λ ^ 2) * exp (θ * e y)) E0
                    ltac:(intros; apply Rle_refl)) as M1.
      pose proof (moment v t (- θ) Ht _ [] (fun y _ => exp (- λ ^ 2) * exp (- θ * e y)) E0
                    ltac:(intros; apply Rle_refl)) as M2.
      replace ((- θ) ^ 2) with (θ ^ 2) in M2 by ring.
      assert (X : exp (- λ ^ 2) * exp (θ ^ 2 * walk t / 2) <= exp (- (λ ^ 2 / 2))); [|lra].
      rewrite <- exp_plus. apply exp_le.
      assert (θ ^ 2 * walk t <= λ ^ 2); [|lra].
      apply Rle_trans with (θ ^ 2 * W); [apply Rmult_le_compat_l; [apply pow2_ge_0 | exact HW]|].
      right. rewrite <- Ss. unfold θ. field. lra.
  Qed.

  (* m roundings, each of at most u, with D of them on the longest path: an error of λ sqrt(m) u (1 + u)^D sum
     |a b| or more has at most the same probability. *)
  Theorem bound_dot_likely (t : plan) (u λ : R) : 0 < u -> within_all u t ->
    0 < λ -> sizes t > 0 -> (0 < rounds t)%nat ->
    odds t (λ * sqrt (INR (rounds t)) * (u * ((1 + u) ^ deep t * sizes t))) <=
      2 * exp (- (λ ^ 2 / 2)).
  Proof.
    intros Hu Ht Hλ HA Hm. set (top := (1 + u) ^ deep t * sizes t) in *.
    assert (Hm' : 0 < INR (rounds t)) by (apply (lt_INR 0), Hm).
    assert (0 < top) by (apply Rmult_lt_0_compat; [apply pow_lt; lra | lra]).
    assert (Hut : 0 < u * top) by (apply Rmult_lt_0_compat; lra).
    pose proof (bound_dot_likely_walk t u λ (INR (rounds t) * (u * top) ^ 2) Ht Hλ
      (walk_le u t top (Rlt_le _ _ Hu) Ht (reach_le u t (Rlt_le _ _ Hu) Ht))
      ltac:(apply Rmult_lt_0_compat; [exact Hm' | apply pow_lt; exact Hut])) as B.
    rewrite sqrt_mult, sqrt_pow2 in B by (try apply pow2_ge_0; lra).
    rewrite <- Rmult_assoc in B. exact B.
  Qed.

  (* One number, rounded n times in succession. *)
  Theorem bound_dot_likely_again (u : R) (n : nat) (x λ : R) : 0 < u ->
    0 < λ -> x <> 0 -> (0 < n)%nat ->
    odds (again u n x) (λ * sqrt (INR n) * (u * ((1 + u) ^ n * Rabs x))) <= 2 * exp (- (λ ^ 2 / 2)).
  Proof.
    intros Hu Hλ Hx Hn. pose proof (Rabs_pos_lt x Hx) as X.
    destruct (again_facts u n x Hu) as (W & D & N & E & S).
    pose proof (bound_dot_likely (again u n x) u λ Hu W Hλ) as B.
    rewrite D, N, S in B. apply B; [lra | exact Hn].
  Qed.
  (* The mean, over all n! orders of n terms, of the sum of the squared partial sums. *)
  Theorem bound_dot_likely_orders (l : list R) : let n := length l in
    (∑ p ∈ orders n l, partial_squares p) / INR (length (orders n l)) =
    INR (n + 1) * (sum_of l ^ 2 / 3 + squares_of l / 6).
  Proof. exact (orders_mean l). Qed.
  (*< bound.dot-likely *)
End Walk.
