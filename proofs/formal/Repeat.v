(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* One repeated token (chapter 23). Equal inputs stay equal where every row has the same mass (repeat.lemma), and a
   sink breaks this (repeat.sink). Rows of equal tokens have closed forms (repeat.nope, repeat.relative,
   repeat.alibi, repeat.rope). Positions are counted from 0: row i sees the keys 0 ... i, which are t = i + 1 keys.
   The layers are arbitrary. *)

From Sinkproof Require Import Sums Rope SoftmaxSink Laws.
From Coq Require Import Reals List Arith Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* A stack of layers over states of any type. The weight of key j in row i may depend on all states and all
   positions. The value of a token depends on its own state, and so does [rest], which also takes the outputs
   of the heads. *)
Section Layers.
  Context {state : Type} (T : nat) (J : nat -> nat -> list nat)
    (weight : nat -> nat -> (nat -> state) -> nat -> nat -> R)
    (value : nat -> nat -> state -> vec) (rest : nat -> state -> (nat -> vec) -> state).

  (*> repeat.lemma *)
  Definition mixed l h (x : nat -> state) i : vec :=
    (∑ j ∈ J l i, weight l h x i j *: value l h (x j))%V.

  Fixpoint layers l (x : nat -> state) : nat -> state :=
    match l with
    | O => x
    | S l => fun i => rest l (layers l x i) (fun h => mixed l h (layers l x) i)
    end.

  (* The same for one token, without a sum and without positions. μ l h is the mass that every row has in
     layer l, head h. *)
  Fixpoint one_state (μ : nat -> nat -> R) l (e : state) : state :=
    match l with
    | O => e
    | S l => rest l (one_state μ l e) (fun h => (μ l h *: value l h (one_state μ l e))%V)
    end.

  (* If all keys of a row have the same state, a head returns the value of this state times the mass of the
     row. *)
  Theorem repeat_lemma_mass l h (x : nat -> state) e i : (forall j, In j (J l i) -> x j = e) ->
    mixed l h x i = ((∑ j ∈ J l i, weight l h x i j)%R *: value l h e)%V.
  Proof.
    intros E. unfold mixed. rewrite (vsum_ext_in _ _ (fun j => (weight l h x i j *: value l h e)%V))
      by (intros j Hj; rewrite (E j Hj); reflexivity).
    apply vsum_scal_const.
  Qed.

  Theorem repeat_lemma (μ : nat -> nat -> R) (e : state) (x : nat -> state) :
    (forall l i j, (i < T)%nat -> In j (J l i) -> (j < T)%nat) ->
    (forall l h x i, (i < T)%nat -> ∑ j ∈ J l i, weight l h x i j = μ l h) ->
    (forall i, (i < T)%nat -> x i = e) ->
    forall l i, (i < T)%nat -> layers l x i = one_state μ l e.
  Proof.
    intros HJ Hμ Hx. induction l as [|l IH]; intros i Hi; [apply Hx, Hi|].
    simpl. rewrite (IH i Hi). f_equal.
    apply FunctionalExtensionality.functional_extensionality. intros h.
    rewrite (repeat_lemma_mass l h _ (one_state μ l e)), (Hμ l h _ i Hi); [reflexivity|].
    intros j Hj. apply IH, (HJ l i j Hi Hj).
  Qed.
  (*< repeat.lemma *)
End Layers.

(*> repeat.lemma *)
(* Positions may enter the scores in any way: not at all, by distance, or by a rotation. *)
Theorem repeat_lemma_softmax {state : Type} (T : nat) J
    (score : nat -> nat -> nat -> nat -> state -> state -> R) value rest (e : state) (x : nat -> state) :
  (forall l i, J l i <> []) -> (forall l i j, (i < T)%nat -> In j (J l i) -> (j < T)%nat) ->
  (forall i, (i < T)%nat -> x i = e) ->
  let weight l h x i := softmax (J l i) (fun j => score l h i j (x i) (x j)) in
  forall l i, (i < T)%nat ->
    layers J weight value rest l x i = one_state value rest (fun _ _ => 1) l e.
Proof.
  intros N HJ Hx weight. apply (repeat_lemma T); auto. intros l h y i _. unfold weight, softmax.
  rewrite Sum_div. apply Rinv_r, Rgt_not_eq, sum_exp_pos, N.
Qed.
(*< repeat.lemma *)

(* ---- what a sink changes ---- *)

Lemma sum_equal t (s : nat -> R) c : (forall j, (j < t)%nat -> s j = c) ->
  ∑ j < t, exp (s j) = INR t * exp c.
Proof.
  intros E. rewrite (Sum_ext_in _ _ (fun _ => exp c)), Sum_const, seq_length; [reflexivity|].
  intros j Hj. apply in_seq in Hj. rewrite E by lia. reflexivity.
Qed.

(*> repeat.sink *)
Theorem repeat_sink t s b c : (forall j, (j < t)%nat -> s j = c) ->
  ∑ j < t, alpha (seq 0 t) s b j = INR t / (INR t + exp (b - c)).
Proof.
  intros E. unfold alpha. rewrite Sum_div, (sum_equal t s c E). unfold Rminus.
  rewrite exp_plus, exp_Ropp. pose proof (exp_pos b). pose proof (exp_pos c).
  pose proof (pos_INR t).
  field. split; nra.
Qed.
(*< repeat.sink *)

(*> repeat.lemma *)
(* With a sink logit, the mass of a row of equal keys grows with the number of keys. So no two rows of a head
   agree, unless the value is 0. A learned key k* without a value acts as such a logit; it is the same on
   every row where q is the same. *)
Theorem repeat_lemma_sink i i' b c v : (i < i')%nat -> v <> 0 ->
  let o i := ∑ j < S i, alpha (seq 0 (S i)) (fun _ => c) b j * v in
  o i <> o i' /\ (0 < v -> o i < o i' < v).
Proof.
  intros L V o.
  assert (M : forall t, 0 < INR (S t) / (INR (S t) + exp (b - c)) < 1 /\
                        o t = INR (S t) / (INR (S t) + exp (b - c)) * v).
  { intros t. pose proof (exp_pos (b - c)). pose proof (lt_INR 0 (S t) (Nat.lt_0_succ t)).
    change (INR 0) with 0 in *. split.
    - split; [apply Rdiv_lt_0_compat; lra|].
      apply (Rmult_lt_reg_r (INR (S t) + exp (b - c))); [lra|]. field_simplify; lra.
    - unfold o. rewrite Sum_scal_r, (repeat_sink (S t) _ b c) by reflexivity. reflexivity. }
  assert (G : INR (S i) / (INR (S i) + exp (b - c)) < INR (S i') / (INR (S i') + exp (b - c))).
  { pose proof (exp_pos (b - c)). pose proof (lt_INR 0 (S i) (Nat.lt_0_succ i)).
    pose proof (lt_INR (S i) (S i') (proj1 (Nat.succ_lt_mono _ _) L)). change (INR 0) with 0 in *.
    apply (Rmult_lt_reg_r ((INR (S i) + exp (b - c)) * (INR (S i') + exp (b - c))));
      [apply Rmult_lt_0_compat; lra|]. field_simplify; [nra | lra | lra]. }
  destruct (M i) as [[M1 M2] ->], (M i') as [[M3 M4] ->]. split.
  - intros E. apply Rmult_eq_reg_r in E; [lra | exact V].
  - intros P. split; [apply Rmult_lt_compat_r; assumption|]. nra.
Qed.

(* Without a normaliser, t keys of one score c contribute t sigmoid(c) times their value. *)
Theorem repeat_lemma_sigmoid t c v :
  ∑ _j < t, / (1 + exp (- c)) * v = INR t * / (1 + exp (- c)) * v.
Proof. rewrite Sum_const, seq_length. ring. Qed.

(* A counterexample: one layer with a residual, scores and sink logit 0, and the token's state as its value.
   It turns equal states 1 into 3/2, 5/3, 7/4, ... *)
Theorem repeat_lemma_refuted i :
  let J (_ i : nat) := seq 0 (S i) in
  let weight (l _ : nat) (_ : nat -> R) i := alpha (J l i) (fun _ => 0) 0 in
  layers J weight (fun _ _ x _ => x) (fun _ x o => x + o 0%nat 0%nat) 1 (fun _ => 1) i =
  1 + INR (S i) / (INR (S i) + 1).
Proof.
  intros J weight. cbn [layers]. unfold mixed, vsum, vscal, weight, J. f_equal.
  rewrite (Sum_ext _ _ (alpha (seq 0 (S i)) (fun _ => 0) 0)) by (intros; ring).
  rewrite (repeat_sink (S i) _ 0 0), Rminus_0_r, exp_0 by reflexivity. reflexivity.
Qed.
(*< repeat.lemma *)

(* ---- closed forms: the weight of one key in a row of equal tokens ---- *)

(*> repeat.nope *)
(* The weight of the first key, averaged over the first T rows. *)
Definition mean_first (A : nat -> R) (T : nat) : R := (∑ i < T, A i) / INR T.
Definition harmonic (T : nat) : R := ∑ i < T, 1 / INR (S i).

Theorem repeat_nope i c j :
  softmax (seq 0 (S i)) (fun _ => c) j = 1 / INR (S i).
Proof.
  unfold softmax. rewrite (sum_equal (S i) _ c) by reflexivity. pose proof (exp_pos c).
  pose proof (lt_INR 0 (S i) (Nat.lt_0_succ i)). change (INR 0) with 0 in *. field. lra.
Qed.

Theorem repeat_nope_mean T c :
  mean_first (fun i => softmax (seq 0 (S i)) (fun _ => c) 0%nat) T = harmonic T / INR T.
Proof. unfold mean_first, harmonic. f_equal. apply Sum_ext. intros i. apply repeat_nope. Qed.
(*< repeat.nope *)

Lemma harmonic_S T : harmonic (S T) = harmonic T + 1 / INR (S T).
Proof. unfold harmonic. rewrite seq_S, Sum_app. cbn [Sum]. rewrite Nat.add_0_l. ring. Qed.

(* H_T <= 3 T / 10 from T = 10 on, because each further step adds less than 3/10. *)
Lemma harmonic_late T : (10 <= T)%nat -> harmonic T <= 3 / 10 * INR T.
Proof.
  induction 1 as [|T HT IH].
  - rewrite !harmonic_S. unfold harmonic. simpl. lra.
  - rewrite harmonic_S, S_INR. pose proof (le_INR _ _ HT) as G. simpl in G.
    assert (1 / (INR T + 1) <= 3 / 10); [|lra].
    apply (Rmult_le_reg_r (INR T + 1)); [lra|]. field_simplify; lra.
Qed.

Lemma harmonic_early T : (1 <= T <= 9)%nat -> 3 / 10 * INR T < harmonic T.
Proof.
  intros H. do 10 (destruct T as [|T]; [try lia; rewrite ?harmonic_S; unfold harmonic; simpl;
      lra|]).
  lia.
Qed.

(*> repeat.nope *)
(* So a threshold of 0.3 calls uniform weights a sink in sequences of up to nine tokens. *)
Theorem repeat_nope_short T : (1 <= T)%nat -> (3 / 10 < harmonic T / INR T <-> (T <= 9)%nat).
Proof.
  intros H. pose proof (lt_INR 0 T H) as P. change (INR 0) with 0 in P. split; intros G.
  - apply Nat.nlt_ge. intros L. pose proof (harmonic_late T L).
    assert (harmonic T / INR T <= 3 / 10); [|lra].
    apply (Rmult_le_reg_r (INR T)); [lra|]. field_simplify; lra.
  - pose proof (harmonic_early T (conj H G)).
    apply (Rmult_lt_reg_r (INR T)); [lra|]. field_simplify; lra.
Qed.
(*< repeat.nope *)

Lemma Sum_reversed (f : nat -> R) n : ∑ j < n, f (n - S j)%nat = ∑ d < n, f d.
Proof.
  induction n as [|n IH]; [reflexivity|].
  transitivity (f n + ∑ j < n, f (n - S j)%nat).
  - change (seq 0 (S n)) with (0%nat :: seq 1 n). rewrite <- (seq_shift n 0). cbn [Sum].
    rewrite Sum_map, Nat.sub_succ, Nat.sub_0_r. reflexivity.
  - rewrite IH, (seq_S n 0), Sum_app. cbn [Sum]. rewrite Nat.add_0_l. ring.
Qed.

Lemma falling (g : nat -> R) d i : (forall d, g (S d) <= g d) -> (d <= i)%nat -> g i <= g d.
Proof. intros H L. induction L as [|k L IH]; [lra | apply (Rle_trans _ _ _ (H k) IH)]. Qed.

Lemma rising (g : nat -> R) d i : (forall d, g d <= g (S d)) -> (d <= i)%nat -> g d <= g i.
Proof. intros H L. induction L as [|k L IH]; [lra | apply (Rle_trans _ _ _ IH (H k))]. Qed.

(*> repeat.relative *)
(* c is what the contents add to a score, the same for every pair. g is what the distance adds. *)
Theorem repeat_relative i j c (g : nat -> R) : (j <= i)%nat ->
  softmax (seq 0 (S i)) (fun j => c + g (i - j)%nat) j = exp (g (i - j)%nat) / ∑ d < S i, exp (g d).
Proof.
  intros _. unfold softmax. rewrite <- (Sum_reversed (fun d => exp (g d)) (S i)).
  rewrite (Sum_ext _ (fun k => exp (c + _)) (fun k => exp c * exp (g (S i - S k)%nat)))
    by (intros; rewrite exp_plus, Nat.sub_succ; reflexivity).
  rewrite Sum_scal_l, exp_plus. pose proof (exp_pos c).
  assert (0 < ∑ k < S i, exp (g (S i - S k)%nat))
    by (apply Sum_pos; [discriminate | intros; apply exp_pos]).
  field. lra.
Qed.

(* If the bias falls with the distance, the first key has at most an even share of the row; if it rises, at
   least that. *)
Theorem repeat_relative_first i (g : nat -> R) :
  let A := exp (g i) / ∑ d < S i, exp (g d) in
  ((forall d, g (S d) <= g d) -> A <= 1 / INR (S i)) /\
  ((forall d, g d <= g (S d)) -> 1 / INR (S i) <= A).
Proof.
  intros A. assert (P : 0 < ∑ d < S i, exp (g d))
    by (apply Sum_pos; [discriminate | intros; apply exp_pos]).
  pose proof (lt_INR 0 (S i) (Nat.lt_0_succ i)) as I. change (INR 0) with 0 in I.
  assert (mono : forall a b, a <= b -> exp a <= exp b)
    by (intros a b [H | ->]; [apply Rlt_le, exp_increasing, H | lra]).
  assert (C : ∑ _d < S i, exp (g i) = INR (S i) * exp (g i))
    by (rewrite Sum_const, seq_length; reflexivity).
  unfold A. split; intros H.
  - assert (INR (S i) * exp (g i) <= ∑ d < S i, exp (g d)).
    { rewrite <- C. apply Sum_le. intros d Hd. apply in_seq in Hd. apply mono, (falling g d i H).
      lia. }
    apply (Rmult_le_reg_r (INR (S i) * ∑ d < S i, exp (g d))); [nra|]. field_simplify; lra.
  - assert (∑ d < S i, exp (g d) <= INR (S i) * exp (g i)).
    { rewrite <- C. apply Sum_le. intros d Hd. apply in_seq in Hd. apply mono, (rising g d i H).
      lia. }
    apply (Rmult_le_reg_r (INR (S i) * ∑ d < S i, exp (g d))); [nra|]. field_simplify; lra.
Qed.
(*< repeat.relative *)

(*> repeat.alibi *)
Theorem repeat_alibi i m c : 0 < m ->
  softmax (seq 0 (S i)) (fun j => c + - m * INR (i - j)) 0%nat =
  exp (- m * INR i) * (1 - exp (- m)) / (1 - exp (- m * INR (S i))).
Proof.
  intros Hm. rewrite (repeat_relative i 0 c (fun d => - m * INR d)) by lia. rewrite Nat.sub_0_r.
  assert (less : forall t, (0 < t)%nat -> exp (- m * INR t) < 1).
  { intros t Ht. rewrite <- exp_0. apply exp_increasing. pose proof (lt_INR 0 t Ht). simpl in *.
    nra. }
  assert (geometric : forall t, (∑ d < t, exp (- m * INR d)) * (1 - exp (- m)) =
    1 - exp (- m * INR t)).
  { induction t as [|t IH]; [simpl; rewrite Rmult_0_r, exp_0; ring|].
    rewrite seq_S, Sum_app, Rmult_plus_distr_r, IH. cbn [Sum]. rewrite Nat.add_0_l, S_INR.
    rewrite Rmult_plus_distr_l, Rmult_1_r, exp_plus. ring. }
  pose proof (less 1%nat Nat.lt_0_1) as L. simpl in L. rewrite Rmult_1_r in L.
  rewrite <- geometric.
  assert (0 < ∑ d < S i, exp (- m * INR d))
    by (apply Sum_pos; [discriminate | intros; apply exp_pos]).
  field. lra.
Qed.

(* The first key has at most an even share of the row. *)
Theorem repeat_alibi_first i m : 0 < m ->
  exp (- m * INR i) * (1 - exp (- m)) / (1 - exp (- m * INR (S i))) <= 1 / INR (S i).
Proof.
  intros Hm. rewrite <- (repeat_alibi i m 0 Hm), (repeat_relative i 0 0 (fun d => - m * INR d)) by lia.
  rewrite Nat.sub_0_r. apply (repeat_relative_first i (fun d => - m * INR d)).
  intros d. rewrite S_INR. lra.
Qed.
(*< repeat.alibi *)

(* ---- rotary positions ---- *)

Lemma vdot_square n x : 0 <= x ⋅[n] x.
Proof. apply Sum_nonneg. intros. nra. Qed.

Lemma cauchy_schwarz n (x y : vec) : Rabs (x ⋅[n] y) <= sqrt (x ⋅[n] x) * sqrt (y ⋅[n] y).
Proof.
  rewrite <- sqrt_mult by apply vdot_square. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt.
  unfold Rsqr.
  induction n as [|n IH]; [unfold vdot; simpl; lra|].
  pose proof (vdot_square n x) as X. pose proof (vdot_square n y) as Y. unfold vdot in *.
  rewrite seq_S, !Sum_app. cbn [Sum]. rewrite Nat.add_0_l.
  set (D := ∑ k < n, x k * y k) in *. set (P := ∑ k < n, x k * x k) in *.
  set (Q := ∑ k < n, y k * y k) in *.
  set (a := x n). set (c := y n).
  assert (2 * (D * (a * c)) <= P * (c * c) + Q * (a * a)); [|nra].
  assert (0 <= c * c) by nra. assert (0 <= a * a) by nra.
  apply Rsqr_incr_0_var; [|nra]. unfold Rsqr.
  assert (D * D * ((a * a) * (c * c)) <= P * Q * ((a * a) * (c * c)))
    by (apply Rmult_le_compat_r; [nra | exact IH]).
  pose proof (Rle_0_sqr (P * (c * c) - Q * (a * a))) as S. unfold Rsqr in S. nra.
Qed.

(*> repeat.rope *)
(* All scores are within ξ of 0. A key has its largest weight in a row of t keys when its score is ξ and every
   other score is -ξ, and its smallest weight in the opposite case. *)
Theorem repeat_rope_any {key : Type} (J : list key) s j ξ :
  In j J -> (forall k, In k J -> Rabs (s k) <= ξ) ->
  let t := INR (length J) in
  exp (- 2 * ξ) / (exp (- 2 * ξ) + (t - 1)) <= softmax J s j <= exp (2 * ξ) / (exp (2 * ξ) + (t - 1)).
Proof.
  intros Hj B t.
  assert (mono : forall a b, a <= b -> exp a <= exp b)
    by (intros a b [H | ->]; [apply Rlt_le, exp_increasing, H | lra]).
  assert (R : forall k, In k J -> - ξ <= s k <= ξ) 
    by (intros k Hk; pose proof (B k Hk); unfold Rabs in *; destruct (Rcase_abs (s k)); lra).
  apply in_split in Hj. destruct Hj as [J1 [J2 EJ]].
  set (e := exp (s j)). set (o := (∑ k ∈ J1, exp (s k)) + ∑ k ∈ J2, exp (s k)).
  assert (E : softmax J s j = e / (e + o)).
  { unfold softmax, e, o. rewrite EJ, Sum_app. cbn [Sum]. f_equal. ring. }
  assert (N : t - 1 = INR (length J1) + INR (length J2)).
  { unfold t. rewrite EJ, app_length. cbn [length]. rewrite plus_INR, S_INR. ring. }
  assert (I1 : forall k, In k J1 -> In k J) by (intros; rewrite EJ; apply in_app_iff; auto).
  assert (I2 : forall k, In k J2 -> In k J) by (intros; rewrite EJ; apply in_app_iff; simpl; auto).
  assert (Ij : In j J) by (rewrite EJ; apply in_app_iff; simpl; auto).
  assert (O1 : (t - 1) * exp (- ξ) <= o).
  { rewrite N, Rmult_plus_distr_r, <- !Sum_const.
    apply Rplus_le_compat; apply Sum_le; intros k Hk; apply mono, R; auto. }
  assert (O2 : o <= (t - 1) * exp ξ).
  { rewrite N, Rmult_plus_distr_r, <- !Sum_const.
    apply Rplus_le_compat; apply Sum_le; intros k Hk; apply mono, R; auto. }
  assert (E1 : exp (- ξ) <= e <= exp ξ) by (split; apply mono, R; exact Ij).
  assert (T0 : 0 <= t - 1) by (rewrite N; pose proof (pos_INR (length J1));
      pose proof (pos_INR (length J2)); lra).
  pose proof (exp_pos ξ) as P. pose proof (exp_pos (- ξ)) as P'. pose proof (exp_pos (s j)) as Pe.
  fold e in Pe.
  replace (2 * ξ) with (ξ + ξ) by ring. replace (- 2 * ξ) with (- ξ + - ξ) by ring.
  rewrite !exp_plus. assert (One : exp ξ * exp (- ξ) = 1)
    by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  set (p := exp ξ) in *. set (q := exp (- ξ)) in *. set (n := t - 1) in *.
  assert (O0 : 0 <= o) by nra. rewrite E.
  assert (Hp : 0 < p * p) by nra. assert (Hq : 0 < q * q) by nra. split.
  - apply (Rmult_le_reg_r ((q * q + n) * (e + o))); [apply Rmult_lt_0_compat; lra|].
    field_simplify; [|lra|lra].
    assert (q * q * o <= n * e); [|nra].
    apply (Rle_trans _ (q * q * (n * p))); [apply Rmult_le_compat_l; lra|].
    replace (q * q * (n * p)) with (n * q * (p * q)) by ring. rewrite One, Rmult_1_r.
    apply Rmult_le_compat_l; lra.
  - apply (Rmult_le_reg_r ((p * p + n) * (e + o))); [apply Rmult_lt_0_compat; lra|].
    field_simplify; [|lra|lra].
    assert (n * e <= p * p * o); [|nra].
    apply (Rle_trans _ (p * p * (n * q))); [|apply Rmult_le_compat_l; lra].
    replace (p * p * (n * q)) with (n * p * (p * q)) by ring. rewrite One, Rmult_1_r.
    apply Rmult_le_compat_l; lra.
Qed.

(* Pair p of the coordinates adds a cosine of the distance, of amplitude |q_p| |k_p|; these are its two
   coefficients. *)
Definition with_cos half (q k : vec) p : R := q p * k p + q (p + half)%nat * k (p + half)%nat.
Definition with_sin half (q k : vec) p : R := q p * k (p + half)%nat - q (p + half)%nat * k p.

Theorem repeat_rope half (ω : nat -> R) γ (q k : vec) i j : (0 < half)%nat -> (j <= i)%nat ->
  let r := sqrt (INR (half + half)) in
  let s j := (rotate half ω γ (INR i) q ⋅[half + half] rotate half ω γ (INR j) k) / r in
  let ξ := γ ^ 2 * (sqrt (q ⋅[half + half] q) * sqrt (k ⋅[half + half] k)) / r in
  s j = γ ^ 2 * (∑ p < half, (with_cos half q k p * cos ((INR i - INR j) * ω p) +
                              with_sin half q k p * sin ((INR i - INR j) * ω p))) / r /\
  (forall p, with_cos half q k p ^ 2 + with_sin half q k p ^ 2 =
             (q p ^ 2 + q (p + half)%nat ^ 2) * (k p ^ 2 + k (p + half)%nat ^ 2)) /\
  softmax (seq 0 (S i)) s j <= exp (2 * ξ) / (exp (2 * ξ) + INR i).
Proof.
  intros H Hj r s ξ.
  assert (Pr : 0 < r) by (apply sqrt_lt_R0, (lt_INR 0); lia).
  split; [|split].
  - unfold s. f_equal. rewrite dot_pairs, <- Sum_scal_l. apply Sum_ext_in. intros p Hp.
    apply in_seq in Hp.
    rewrite !rotate_second, !rotate_first by lia. unfold with_cos, with_sin.
    rewrite Rmult_minus_distr_r, cos_minus, sin_minus. ring.
  - intros p. unfold with_cos, with_sin. ring.
  - assert (B : forall j, Rabs (s j) <= ξ).
    { intros j'. unfold s, ξ, Rdiv. rewrite Rabs_mult, (Rabs_right (/ r))
        by (apply Rle_ge, Rlt_le, Rinv_0_lt_compat, Pr).
      apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Pr|].
      apply (Rle_trans _ _ _ (cauchy_schwarz _ _ _)).
      destruct (rope_orthogonal half ω γ q q) as [Nq _].
      destruct (rope_orthogonal half ω γ k k) as [Nk _].
      rewrite Nq, Nk, !sqrt_mult by (apply vdot_square || nra).
      rewrite <- Rsqr_pow2, sqrt_Rsqr_abs. unfold Rsqr. right.
      replace (γ * γ) with (Rabs γ * Rabs γ) by (rewrite <- Rabs_mult; apply Rabs_right; nra).
      ring. }
    destruct (repeat_rope_any (seq 0 (S i)) s j ξ) as [_ U]; [apply in_seq; lia | intros; apply B|].
    rewrite seq_length, S_INR in U. replace (INR i + 1 - 1) with (INR i) in U by ring. exact U.
Qed.

(* What a bound β of this form can say. It is at most 1; it is at most ε for rows with enough keys; and the
   size of the scores alone gives no sharper bound, because some scores attain it. *)
Theorem repeat_rope_reach ξ ε (n : nat) : 0 < ε < 1 ->
  let β := exp (2 * ξ) / (exp (2 * ξ) + INR n) in
  β <= 1 /\ (β <= ε <-> exp (2 * ξ) * (1 / ε - 1) <= INR n) /\
  softmax (seq 0 (S n)) (fun j => if j =? 0 then ξ else - ξ) 0%nat = β.
Proof.
  intros He β. pose proof (exp_pos (2 * ξ)) as P. pose proof (pos_INR n) as N.
  split; [|split].
  - unfold β. apply (Rmult_le_reg_r (exp (2 * ξ) + INR n)); [lra|]. field_simplify; lra.
  - assert (F : exp (2 * ξ) * (1 / ε - 1) <= INR n <-> exp (2 * ξ) * (1 - ε) <= ε * INR n).
    { split; intros H.
      - apply (Rmult_le_compat_l ε) in H; [|lra]. replace (ε * (exp (2 * ξ) * (1 / ε - 1))) with
          (exp (2 * ξ) * (1 - ε)) in H by (field; lra). exact H.
      - apply (Rmult_le_reg_l ε); [lra|]. replace (ε * (exp (2 * ξ) * (1 / ε - 1))) with
          (exp (2 * ξ) * (1 - ε)) by (field; lra). exact H. }
    rewrite F. unfold β. split; intros H.
    + apply (Rmult_le_compat_r (exp (2 * ξ) + INR n)) in H; [|lra]. field_simplify in H; lra.
    + apply (Rmult_le_reg_r (exp (2 * ξ) + INR n)); [lra|]. field_simplify; lra.
  - unfold softmax, β. change (seq 0 (S n)) with (0%nat :: seq 1 n). cbn [Sum Nat.eqb].
    rewrite (Sum_ext_in _ _ (fun _ => exp (- ξ))), Sum_const, seq_length.
    + replace (2 * ξ) with (ξ + ξ) by ring. rewrite exp_plus, exp_Ropp. pose proof (exp_pos ξ).
      field. split; nra.
    + intros k Hk. apply in_seq in Hk. destruct k; [lia | reflexivity].
Qed.
(*< repeat.rope *)
