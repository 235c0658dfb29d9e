(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* How far a change of one token reaches (mix.paths, chapter 26): sums over the paths that attention leaves open, for
   any number of tokens, heads and layers. Assumed: attention weights that do not depend on the states, and maps that
   stretch differences by known factors. Also: what a cache that stores keys and values in few bits costs a row
   (bound.quantized-cache). Positions are counted from 0. *)

From Sinkproof Require Import Sums SoftmaxSink Laws.
From Coq Require Import Reals List Arith Lia Lra.
Import ListNotations.
Open Scope R_scope.

(* ---- sums over paths ---- *)

(* A stack of layers over T tokens. J l i lists the keys of row i. The attention weights A are given: they do
   not depend on the states. V l h is the value and output map of a head, and [rest] is what a layer does to a
   token by itself. Both may be any maps that stretch differences, in some norm, by at most w l h and γ l. *)
Section Stack.
  (*> mix.paths *)
  Context (T : nat) (J : nat -> nat -> list nat) (H : list nat) (A : nat -> nat -> nat -> nat -> R)
    (V : nat -> nat -> vec -> vec) (rest : nat -> vec -> vec) (w : nat -> nat -> R) (γ : nat -> R).

  Fixpoint stack l (x : nat -> vec) : nat -> vec :=
    match l with
    | O => x
    | S l => fun i =>
        rest l (stack l x i + (∑ h ∈ H, ∑ j ∈ J l i, A l h i j *: V l h (stack l x j)))%V
    end.

  (* Entry (i, j) of the product of γ (I + Σ_h w_h |A_h|) over the layers: what all paths from key j to row i
     carry. *)
  Fixpoint paths l i j : R :=
    match l with
    | O => if (i =? j)%nat then 1 else 0
    | S l => γ l * (paths l i j + ∑ h ∈ H, ∑ k ∈ J l i, Rabs (A l h i k) * w l h * paths l k j)
    end.

  Context (w_nonneg : forall l h, 0 <= w l h) (γ_nonneg : forall l, 0 <= γ l).
  (*< mix.paths *)

  Lemma paths_nonneg l i j : 0 <= paths l i j.
  Proof.
    revert i. induction l as [|l IH]; intros i; simpl; [destruct (i =? j)%nat; lra|].
    apply Rmult_le_pos; [apply γ_nonneg|]. apply Rplus_le_le_0_compat; [apply IH|].
    apply Sum_nonneg. intros h _. apply Sum_nonneg. intros k _.
    apply Rmult_le_pos; [apply Rmult_le_pos; [apply Rabs_pos | apply w_nonneg] | apply IH].
  Qed.

  (*> mix.paths *)
  Context (inside : forall l i j, (i < T)%nat -> In j (J l i) -> (j < T)%nat).
  (*< mix.paths *)

  Section Norm.
    (*> mix.paths *)
    Context (nrm : vec -> R) (nrm_nonneg : forall u, 0 <= nrm u)
      (nrm_add : forall u v, nrm (u + v)%V <= nrm u + nrm v)
      (nrm_scal : forall a u, nrm (a *: u)%V <= Rabs a * nrm u)
      (V_bound : forall l h u v, nrm (V l h u - V l h v)%V <= w l h * nrm (u - v)%V)
      (rest_bound : forall l u v, nrm (rest l u - rest l v)%V <= γ l * nrm (u - v)%V).
    (*< mix.paths *)

    Lemma nrm_zero (u : vec) : (forall c, u c = 0) -> nrm u = 0.
    Proof.
      intros Z. pose proof (nrm_scal 0 u) as S. pose proof (nrm_nonneg u).
      replace (0 *: u)%V with u in S by (apply vec_eq; intros c; unfold vscal; rewrite Z; ring).
      rewrite Rabs_R0 in S. lra.
    Qed.

    Lemma nrm_sum {B : Type} (L : list B) (u : B -> vec) : nrm (vsum L u) <= ∑ b ∈ L, nrm (u b).
    Proof.
      induction L as [|b L IH]; simpl.
      - rewrite nrm_zero; [lra | reflexivity].
      - replace (vsum (b :: L) u) with (u b + vsum L u)%V by (apply vec_eq; reflexivity).
        pose proof (nrm_add (u b) (vsum L u)). lra.
    Qed.

    (*> mix.paths *)
    (* Two inputs: every row of the output differs by at most what the paths carry to it. *)
    Theorem mix_paths x y l i : (i < T)%nat ->
      nrm (stack l x i - stack l y i)%V <= ∑ j < T, paths l i j * nrm (x j - y j)%V.
    Proof.
      revert i. induction l as [|l IH]; intros i Hi.
      - simpl. apply (Rle_trans _ ((if (i =? i)%nat then 1 else 0) * nrm (x i - y i)%V)).
        { rewrite Nat.eqb_refl. lra. }
        apply (Sum_term_le (seq 0 T) (fun j => (if (i =? j)%nat then 1 else 0) * nrm (x j - y j)%V)).
        + apply in_seq. lia.
        + intros k _. apply Rmult_le_pos; [destruct (_ =? _)%nat; lra | apply nrm_nonneg].
      - simpl. eapply Rle_trans; [apply rest_bound|].
        rewrite (Sum_ext _ _ (fun j => γ l * ((paths l i j +
          ∑ h ∈ H, ∑ k ∈ J l i, Rabs (A l h i k) * w l h * paths l k j) * nrm (x j - y j)%V)))
          by (intros; ring).
        rewrite Sum_scal_l. apply Rmult_le_compat_l; [apply γ_nonneg|].
        set (d j := (stack l x j - stack l y j)%V).
        match goal with |- nrm ?u <= _ =>
          replace u with (d i + (∑ h ∈ H, ∑ j ∈ J l i,
            A l h i j *: (V l h (stack l x j) - V l h (stack l y j))))%V end.
        2: { unfold d. at_coordinate c.
             rewrite (Sum_ext _ (fun h => ∑ j ∈ J l i, A l h i j * (V l h (stack l x j) c +
               - V l h (stack l y j) c)) (fun h => (∑ j ∈ J l i, A l h i j * V l h (stack l x j) c) -
               ∑ j ∈ J l i, A l h i j * V l h (stack l y j) c))
               by (intros h; rewrite <- Sum_minus; apply Sum_ext; intros; ring).
             rewrite Sum_minus. ring. }
        eapply Rle_trans; [apply nrm_add|].
        rewrite (Sum_ext _ _ (fun j => paths l i j * nrm (x j - y j)%V +
          ∑ h ∈ H, ∑ k ∈ J l i, Rabs (A l h i k) * w l h * (paths l k j * nrm (x j - y j)%V))).
        2: { intros j. rewrite Rmult_plus_distr_r, <- Sum_scal_r. f_equal. apply Sum_ext. intros h.
             rewrite <- Sum_scal_r. apply Sum_ext. intros. ring. }
        rewrite Sum_plus. apply Rplus_le_compat; [apply IH, Hi|].
        eapply Rle_trans; [apply nrm_sum|]. rewrite Sum_swap. apply Sum_le. intros h _.
        eapply Rle_trans; [apply nrm_sum|]. rewrite Sum_swap. apply Sum_le. intros k Hk.
        rewrite Sum_scal_l, Rmult_assoc. eapply Rle_trans; [apply nrm_scal|].
        apply Rmult_le_compat_l; [apply Rabs_pos|].
        eapply Rle_trans; [apply V_bound|]. apply Rmult_le_compat_l; [apply w_nonneg|].
        apply IH, (inside l i k Hi Hk).
    Qed.

    (* If only token p changes, only its column of the path sums counts. *)
    Theorem mix_paths_token x y l i p : (i < T)%nat -> (p < T)%nat ->
      (forall j, j <> p -> x j = y j) ->
      nrm (stack l x i - stack l y i)%V <= paths l i p * nrm (x p - y p)%V.
    Proof.
      intros Hi Hp E. eapply Rle_trans; [apply mix_paths, Hi|].
      assert (Z : forall j, j <> p -> nrm (x j - y j)%V = 0).
      { intros j Hj. apply nrm_zero. intros c. rewrite (E j Hj). unfold vadd, vopp. ring. }
      replace (seq 0 T) with (seq 0 p ++ p :: seq (S p) (T - S p)).
      2: { replace T with (p + S (T - S p))%nat at 2 by lia. rewrite seq_app. reflexivity. }
      rewrite Sum_app. simpl.
      rewrite (Sum_ext_in (seq 0 p) _ (fun _ => 0)), (Sum_ext_in (seq (S p) _) _ (fun _ => 0)).
      - rewrite !Sum_zero. lra.
      - intros j Hj. apply in_seq in Hj. rewrite Z by lia. ring.
      - intros j Hj. apply in_seq in Hj. rewrite Z by lia. ring.
    Qed.
    (*< mix.paths *)
  End Norm.

  (*> mix.paths *)
  Fixpoint product (f : nat -> R) l : R := match l with O => 1 | S l => f l * product f l end.

  (* A bound of everything that reaches a row, from all tokens together. *)
  Theorem mix_paths_rows ρ l i : (i < T)%nat -> (forall l, 0 <= ρ l) ->
    (forall l i, (i < T)%nat -> ∑ h ∈ H, (∑ k ∈ J l i, Rabs (A l h i k)) * w l h <= ρ l) ->
    ∑ j < T, paths l i j <= product (fun l => γ l * (1 + ρ l)) l.
  Proof.
    intros Hi Hρ HA. revert i Hi. induction l as [|l IH]; intros i Hi.
    - simpl. replace (seq 0 T) with (seq 0 i ++ i :: seq (S i) (T - S i)).
      2: { replace T with (i + S (T - S i))%nat at 2 by lia. rewrite seq_app. reflexivity. }
      rewrite Sum_app. simpl. rewrite Nat.eqb_refl.
      rewrite (Sum_ext_in (seq 0 i) _ (fun _ => 0)), (Sum_ext_in (seq (S i) _) _ (fun _ => 0)).
      + rewrite !Sum_zero. lra.
      + intros j Hj. apply in_seq in Hj. destruct (Nat.eqb_spec i j); [lia | reflexivity].
      + intros j Hj. apply in_seq in Hj. destruct (Nat.eqb_spec i j); [lia | reflexivity].
    - simpl. set (P := product _ l) in *.
      assert (P0 : 0 <= P).
      { eapply Rle_trans; [|apply (IH i Hi)]. apply Sum_nonneg. intros. apply paths_nonneg. }
      rewrite Sum_scal_l, Rmult_assoc. apply Rmult_le_compat_l; [apply γ_nonneg|].
      rewrite Sum_plus, Sum_swap, Rmult_plus_distr_r, Rmult_1_l.
      apply Rplus_le_compat; [apply IH, Hi|].
      apply (Rle_trans _ ((∑ h ∈ H, (∑ k ∈ J l i, Rabs (A l h i k)) * w l h) * P));
        [|apply Rmult_le_compat_r; [exact P0 | apply HA, Hi]].
      rewrite <- Sum_scal_r. apply Sum_le. intros h _. rewrite Sum_swap, <- !Sum_scal_r.
      apply Sum_le. intros k Hk. rewrite Sum_scal_l. apply Rmult_le_compat_l.
      + apply Rmult_le_pos; [apply Rabs_pos | apply w_nonneg].
      + apply IH, (inside l i k Hi Hk).
  Qed.
  (*< mix.paths *)
End Stack.

(*> mix.paths *)
(* With sinks, a row has mass 1 - α_s. If every α_s is at least a, this mass is at most 1 - a. *)
Theorem mix_paths_sink T J H s b w γ a l i : (i < T)%nat ->
  (forall l h, 0 <= w l h) -> (forall l, 0 <= γ l) -> 0 <= a <= 1 ->
  (forall l i j, (i < T)%nat -> In j (J l i) -> (j < T)%nat) ->
  (forall l h i, (i < T)%nat -> a <= alpha_sink (J l i) (s l h i) (b l h)) ->
  let A l h i j := alpha (J l i) (s l h i) (b l h) j in
  ∑ j < T, paths J H A w γ l i j <= product (fun l => γ l * (1 + (1 - a) * ∑ h ∈ H, w l h)) l.
Proof.
  intros Hi Hw Hγ Ha HJ HS A.
  apply (mix_paths_rows T J H A w γ Hw Hγ HJ (fun l => (1 - a) * ∑ h ∈ H, w l h)); [exact Hi| |].
  - intros k. apply Rmult_le_pos; [lra | apply Sum_nonneg; auto].
  - intros k r Hr. rewrite <- Sum_scal_l. apply Sum_le. intros h _.
    apply Rmult_le_compat_r; [apply Hw|].
    rewrite (Sum_ext _ _ (alpha (J k r) (s k h r) (b k h)))
      by (intros j; apply Rabs_right, Rle_ge, Rlt_le, alpha_pos).
    rewrite sink_mass. pose proof (HS k h r Hr). lra.
Qed.

(* Larger weights give larger path sums. Raising a sink logit makes no path sum larger. *)
Theorem mix_paths_grow J H A A' w γ l i j :
  (forall l h, 0 <= w l h) -> (forall l, 0 <= γ l) ->
  (forall l h i j, Rabs (A l h i j) <= Rabs (A' l h i j)) ->
  paths J H A w γ l i j <= paths J H A' w γ l i j.
Proof.
  intros Hw Hγ HA. revert i. induction l as [|l IH]; intros i; simpl; [lra|].
  apply Rmult_le_compat_l; [apply Hγ|]. apply Rplus_le_compat; [apply IH|].
  apply Sum_le. intros h _. apply Sum_le. intros k _. apply Rmult_le_compat.
  - apply Rmult_le_pos; [apply Rabs_pos | apply Hw].
  - apply paths_nonneg; assumption.
  - apply Rmult_le_compat_r; [apply Hw | apply HA].
  - apply IH.
Qed.

Theorem mix_paths_raised J H s b b' w γ l i j :
  (forall l h, 0 <= w l h) -> (forall l, 0 <= γ l) -> (forall l h, b l h <= b' l h) ->
  let A b l h i j := alpha (J l i) (s l h i) (b l h) j in
  paths J H (A b') w γ l i j <= paths J H (A b) w γ l i j.
Proof.
  intros Hw Hγ Hb A. apply mix_paths_grow; auto. intros k h r c. unfold A.
  rewrite !Rabs_right by (apply Rle_ge, Rlt_le, alpha_pos). unfold alpha.
  apply Rmult_le_compat_l; [apply Rlt_le, exp_pos|].
  apply Rinv_le_contravar; [apply den_pos|]. apply Rplus_le_compat_r.
  destruct (Hb k h) as [L | ->]; [apply Rlt_le, exp_increasing, L | lra].
Qed.

(* The sum of absolute values is such a norm. A matrix stretches it by at most the largest such sum of its
   rows. *)
Definition size (d : nat) (x : vec) : R := ∑ c < d, Rabs (x c).
Theorem mix_paths_size d m W (r : R) : (forall k, (k < d)%nat -> ∑ c < m, Rabs (W k c) <= r) ->
  (forall x, 0 <= size d x) /\ (forall u v, size d (u + v)%V <= size d u + size d v) /\
  (forall a u, size d (a *: u)%V <= Rabs a * size d u) /\
  (forall x, size m (x *[d] W)%V <= r * size d x).
Proof.
  intros HW. unfold size. split; [|split; [|split]].
  - intros x. apply Sum_nonneg. intros. apply Rabs_pos.
  - intros u v. rewrite <- Sum_plus. apply Sum_le. intros c _. apply Rabs_triang.
  - intros a u. rewrite <- Sum_scal_l. apply Sum_le. intros c _. unfold vscal. rewrite Rabs_mult. lra.
  - intros x. apply (Rle_trans _ (∑ c < m, ∑ k < d, Rabs (x k) * Rabs (W k c))).
    + apply Sum_le. intros c _. unfold vmul. eapply Rle_trans; [apply Sum_abs|].
      apply Sum_le. intros k _. rewrite Rabs_mult. lra.
    + rewrite Sum_swap, <- Sum_scal_l. apply Sum_le. intros k Hk. apply in_seq in Hk.
      rewrite Sum_scal_l, Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos | apply HW; lia].
Qed.

(* Without the I of the residual the bound is false: row 1, which looks at key 0 alone, keeps a change of its
   own state, though no path of attention leads from token 1 to row 1. *)
Theorem mix_paths_refuted :
  let A (_ _ i j : nat) := if (j =? 0)%nat then 1 else 0 in let J (_ i : nat) := seq 0 (S i) in
  let out x := stack J [0%nat] A (fun _ _ v => v) (fun _ v => v) 1 x 1%nat 0%nat in
  ∑ k ∈ J 0%nat 1%nat, A 0%nat 0%nat 1%nat k * (if (k =? 1)%nat then 1 else 0) = 0 /\
  out (fun i _ => if (i =? 1)%nat then 1 else 0) - out (fun _ _ => 0) = 1.
Proof. cbv -[Rplus Rmult Rminus Ropp IZR]. split; ring. Qed.
(*< mix.paths *)

(* ---- keys and values kept in few bits ---- *)

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [L | ->]; [apply Rlt_le, exp_increasing, L | lra]. Qed.

Lemma one_minus_exp t δ : Rabs t <= δ -> Rabs (1 - exp (- t)) <= exp δ - 1.
Proof.
  intros L. pose proof (Rle_abs t) as L1. pose proof (Rle_abs (- t)) as L2. rewrite Rabs_Ropp in L2.
  pose proof (exp_le (- t) δ ltac:(lra)). pose proof (exp_le (- δ) (- t) ltac:(lra)).
  pose proof (exp_pos δ). pose proof (exp_pos (- δ)).
  assert (exp δ * exp (- δ) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  apply Rabs_le. nra.
Qed.

(*> bound.quantized-cache *)
(* s' and v' are the scores of the stored keys, and the stored values. δ j = 0 and ε j = 0 where key j and
   value j are stored without change. The weights in the bound are those of the row as it runs, with the
   stored keys. *)
Theorem bound_quantized_cache {key : Type} (J : list key) s s' b v v' δ ε B :
  (forall j, In j J -> Rabs (s' j - s j) <= δ j) ->
  (forall j, In j J -> Rabs (v' j - v j) <= ε j) -> (forall j, In j J -> Rabs (v j) <= B) ->
  Rabs (output J s' b v' - output J s b v) <=
    (∑ j ∈ J, alpha J s' b j * ε j) +
    (2 - alpha_sink J s b) * B * ∑ j ∈ J, alpha J s' b j * (exp (δ j) - 1).
Proof.
  intros Hs Hv HB.
  set (c j := alpha J s' b j * (1 - exp (- (s' j - s j)))).
  assert (C : forall j, In j J -> Rabs (c j) <= alpha J s' b j * (exp (δ j) - 1)).
  { intros j Hj. unfold c. rewrite Rabs_mult, (Rabs_right (alpha _ _ _ _))
      by (apply Rle_ge, Rlt_le, alpha_pos).
    apply Rmult_le_compat_l; [apply Rlt_le, alpha_pos | apply one_minus_exp, Hs, Hj]. }
  set (D := ∑ j ∈ J, alpha J s' b j * (exp (δ j) - 1)).
  assert (E : forall j, alpha J s' b j - alpha J s b j = c j - alpha J s b j * ∑ k ∈ J, c k).
  { intros j. unfold c.
    assert (N : forall k, alpha J s' b k * (1 - exp (- (s' k - s k))) =
                          (exp (s' k) - exp (s k)) / (exp b + ∑ k ∈ J, exp (s' k))).
    { intros k. unfold alpha. pose proof (den_pos J s' b).
      replace (exp (- (s' k - s k))) with (exp (s k) / exp (s' k)).
      - pose proof (exp_pos (s' k)). field. lra.
      - unfold Rdiv. rewrite <- exp_Ropp, <- exp_plus. f_equal. ring. }
    rewrite N, (Sum_ext _ _ _ N), Sum_div, Sum_minus. unfold alpha.
    pose proof (den_pos J s b). pose proof (den_pos J s' b). field. lra. }
  assert (D0 : Rabs (∑ k ∈ J, c k) <= D).
  { eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. exact C. }
  assert (S0 : Rabs (∑ j ∈ J, alpha J s b j * v j) <= (1 - alpha_sink J s b) * B).
  { rewrite <- sink_mass, <- Sum_scal_r. eapply Rle_trans; [apply Sum_abs|].
    apply Sum_le. intros j Hj. rewrite Rabs_mult, (Rabs_right (alpha _ _ _ _))
      by (apply Rle_ge, Rlt_le, alpha_pos).
    apply Rmult_le_compat_l; [apply Rlt_le, alpha_pos | apply HB, Hj]. }
  unfold output.
  replace ((∑ j ∈ J, alpha J s' b j * v' j) - ∑ j ∈ J, alpha J s b j * v j)
    with ((∑ j ∈ J, alpha J s' b j * (v' j - v j)) + ((∑ j ∈ J, c j * v j) +
          - ((∑ k ∈ J, c k) * ∑ j ∈ J, alpha J s b j * v j))).
  2: { rewrite <- (Sum_scal_l J (fun j => alpha J s b j * v j)).
       replace ((∑ j ∈ J, c j * v j) + - ∑ j ∈ J, (∑ k ∈ J, c k) * (alpha J s b j * v j))
         with (∑ j ∈ J, (alpha J s' b j - alpha J s b j) * v j)
         by (rewrite <- Sum_opp, <- Sum_plus; apply Sum_ext; intros j; rewrite E; ring).
       rewrite <- Sum_plus, <- Sum_minus. apply Sum_ext. intros. ring. }
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat.
  - eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros j Hj.
    rewrite Rabs_mult, (Rabs_right (alpha _ _ _ _)) by (apply Rle_ge, Rlt_le, alpha_pos).
    apply Rmult_le_compat_l; [apply Rlt_le, alpha_pos | apply Hv, Hj].
  - eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, Rabs_mult.
    assert (P1 : Rabs (∑ j ∈ J, c j * v j) <= D * B).
    { unfold D. rewrite <- Sum_scal_r. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le.
      intros j Hj. rewrite Rabs_mult. apply Rmult_le_compat; auto using Rabs_pos. }
    assert (P2 : Rabs (∑ k ∈ J, c k) * Rabs (∑ j ∈ J, alpha J s b j * v j) <=
                 D * ((1 - alpha_sink J s b) * B))
      by (apply Rmult_le_compat; auto using Rabs_pos).
    lra.
Qed.

(* The score of a key whose coordinates are wrong by at most e each is wrong by at most e times the sum of
   |q_c|, over r. *)
Theorem bound_quantized_cache_score d q k k' e r : 0 < r ->
  (forall c, (c < d)%nat -> Rabs (k' c - k c) <= e) ->
  Rabs ((q ⋅[d] k') / r - (q ⋅[d] k) / r) <= (∑ c < d, Rabs (q c)) * e / r.
Proof.
  intros Hr He.
  replace ((q ⋅[d] k') / r - (q ⋅[d] k) / r) with ((∑ c < d, q c * (k' c - k c)) / r).
  2: { unfold vdot, Rdiv. rewrite <- Rmult_minus_distr_r, <- Sum_minus. f_equal. apply Sum_ext.
       intros. ring. }
  unfold Rdiv. rewrite Rabs_mult, (Rabs_right (/ r)) by (apply Rle_ge, Rlt_le, Rinv_0_lt_compat, Hr).
  apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Hr|].
  rewrite <- Sum_scal_r. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros c Hc.
  apply in_seq in Hc. rewrite Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos | apply He; lia].
Qed.

(* The errors of the values alone do not bound the output: an error of a key moves the weights, even if every
   value is stored without change. *)
Theorem bound_quantized_cache_refuted :
  let s' k := if (k =? 0)%nat then ln 3 else 0 in let v k := if (k =? 0)%nat then 1 else 0 in
  let J := [0%nat; 1%nat] in
  ∑ j ∈ J, alpha J s' 0 j * Rabs (v j - v j) = 0 /\
  output J s' 0 v - output J (fun _ => 0) 0 v = 3 / 5 - 1 / 3.
Proof.
  cbv zeta. split.
  - apply Sum_is_zero. intros j. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. ring.
  - unfold output, alpha. simpl. rewrite exp_ln, exp_0 by lra. field.
Qed.
(*< bound.quantized-cache *)
